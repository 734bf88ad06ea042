"""Optimizers that MXNet keeps among its contributions: row-wise AdaGrad, and AdamW."""

from __future__ import annotations

from math import sqrt
from typing import Any

from ..error import MXNetError
from ..ndarray import NDArray, zeros
from ..ops import registry
from ..ops.training.list_steps import in_chunks
from ..ops.training.steps import adam_, all_rescaled
from .adam import Adam
from .base import Index, register
from .lists import Batch, ListOptimizer

__all__ = ["AdamW", "GroupAdaGrad"]


@register
class GroupAdaGrad(ListOptimizer):
    """AdaGrad with one history number a row: ``h += mean(g^2)``;  ``w -= lr g / sqrt(h + eps)``.

    Weights are matrices, without weight decay. A row_sparse gradient changes only the rows that it
    has.

    Parameters
    ----------
    eps : float
        Keeps the divisor from 0.
    """

    lazy_update = True
    states_like_weights = False  # one number a row

    def __init__(self, eps: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Index, weight: NDArray) -> NDArray:
        """Return the history, one number a row."""
        if len(weight.shape) != 2:
            raise MXNetError(
                f"GroupAdaGrad works on matrices; parameter {index!r} has shape {weight.shape}."
            )
        return zeros((weight.shape[0], 1), ctx=weight.context, dtype=weight.dtype)

    def _step_batch(self, batch: Batch) -> None:
        """Do `group_adagrad_update`, weight after weight."""
        if batch.wd:
            raise MXNetError("Weight decay is not supported for GroupAdaGrad")
        update = registry.get("_contrib_group_adagrad_update").function
        for weight, *others in zip(batch.weights, batch.grads, *batch.states, strict=True):
            numbers = {"lr": batch.lr, "epsilon": self.float_stable_eps, **self._gradient}
            weight.copy_(update(weight, *others, **numbers))


@register
class AdamW(ListOptimizer):
    """Adam with weight decay beside its step: ``w -= eta (lr' m / (sqrt(v) + eps) + wd w)``.

    1.9.1 has the operators for it, but no optimizer. Moments are Adam's of
    ``clip(rescale_grad g)``. The rate rules both the step and the decay.

    Parameters
    ----------
    learning_rate : float
        The rate, ``eta`` of the formula.
    beta1, beta2 : float
        How much of the running mean and of the running square stays.
    epsilon : float
        Keeps the divisor from 0.
    correct_bias : bool
        Whether the moments are corrected for their start at 0, in ``lr'``.
    """

    create_state = Adam.create_state

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        correct_bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.correct_bias = correct_bias

    def _step_batch(self, batch: Batch) -> None:
        """Do `_adamw_update` for all weights."""
        lr = batch.lr
        if self.correct_bias:
            lr *= sqrt(1.0 - self.beta2**batch.t) / (1.0 - self.beta1**batch.t)
        numbers = {"beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon}

        def piece(weights: Any, grads: Any, means: Any, variances: Any) -> None:
            grads = all_rescaled(grads, **self._gradient)
            adam_(weights, grads, means, variances, lr=lr, decay=batch.lr * batch.wd, **numbers)

        in_chunks(piece, batch.weights, batch.grads, *batch.states)
