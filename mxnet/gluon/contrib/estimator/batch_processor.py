"""`BatchProcessor`: the training and validation step of an Estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import autograd
from ...utils import split_and_load

if TYPE_CHECKING:
    from ....ndarray import NDArray
    from .estimator import Estimator

__all__ = ["BatchProcessor"]

Shards = tuple[list, list, list, list]


class BatchProcessor:
    """Runs one batch through the network, for training or for validation.

    >>> class Halves(mx.gluon.contrib.estimator.BatchProcessor):
    ...     def fit_batch(self, estimator, train_batch, batch_axis=0):
    ...         data, label = train_batch
    ...         return super().fit_batch(estimator, (data / 2, label), batch_axis)
    """

    def __init__(self) -> None:
        pass

    def _get_data_and_label(
        self, batch: Any, ctx: Any, batch_axis: int = 0
    ) -> tuple[list[NDArray], list[NDArray]]:
        data = split_and_load(batch[0], ctx_list=ctx, batch_axis=batch_axis)
        label = split_and_load(batch[1], ctx_list=ctx, batch_axis=batch_axis)
        return data, label

    def evaluate_batch(self, estimator: Estimator, val_batch: Any, batch_axis: int = 0) -> Shards:
        """Return data, label, prediction and loss of a batch, each as a list over the devices."""
        data, label = self._get_data_and_label(val_batch, estimator.context, batch_axis)
        pred = [estimator.val_net(x) for x in data]
        loss = [estimator.val_loss(p, y) for p, y in zip(pred, label, strict=True)]
        return data, label, pred, loss

    def fit_batch(self, estimator: Estimator, train_batch: Any, batch_axis: int = 0) -> Shards:
        """Compute the gradients of a batch; return data, label, prediction and loss as lists."""
        data, label = self._get_data_and_label(train_batch, estimator.context, batch_axis)
        with autograd.record():
            pred = [estimator.net(x) for x in data]
            loss = [estimator.loss(p, y) for p, y in zip(pred, label, strict=True)]
        for each in loss:
            each.backward()
        return data, label, pred, loss
