"""Horovod's `DistributedTrainer`: a Trainer that averages gradients over all workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import kvstore as kvs
from .. import optimizer as opt
from ..distributed import DistributedOptimizer, collectives
from .trainer import Trainer

__all__ = ["DistributedTrainer"]


class DistributedTrainer(Trainer):
    """A Trainer that averages gradients over all workers; ``step(batch_size)`` is the local size.

    Parameters
    ----------
    params, optimizer, optimizer_params
        As of `mx.gluon.Trainer`.
    compression_params : dict, optional
        ``{'type': 'fp16'}``, 'bf16' or '2bit': how gradients travel.
    gradient_predivide_factor, prefix, num_groups
        Accepted: sums do not overflow in float32, and names need not be unique.
    """

    def __init__(
        self,
        params: Mapping[str, Any] | Sequence[Any],
        optimizer: str | opt.Optimizer,
        optimizer_params: Mapping[str, Any] | None = None,
        compression_params: Mapping[str, Any] | None = None,
        gradient_predivide_factor: float = 1.0,
        prefix: str | None = None,
        num_groups: int = 0,
    ) -> None:
        if isinstance(optimizer, DistributedOptimizer):
            optimizer = optimizer._optimizer  # the average must be taken once
        several = collectives.size() > 1
        store = kvs.create("dist_sync") if several else None
        super().__init__(
            params, optimizer, optimizer_params, store, compression_params, update_on_kvstore=False
        )
        self._scale /= collectives.size()
