"""MXNet's contributed optimizers: row-wise AdaGrad, and AdamW."""

from __future__ import annotations

from typing import Any

from ..error import InvalidValue
from ..ndarray import NDArray, zeros
from ..ops.training.adam import adamw
from ..ops.training.adaptive import group_adagrad
from .adaptive import Adam, bias_correction
from .base import Index, register
from .multi_tensor import Batch, ListOptimizer

__all__ = ["AdamW", "GroupAdaGrad"]


@register
class GroupAdaGrad(ListOptimizer):
    """AdaGrad with one history value per row: ``h += mean(g^2)``;  ``w -= lr g / sqrt(h + eps)``.

    Weights must be matrices; weight decay is not supported. With a row_sparse gradient only its
    rows are updated.

    Parameters
    ----------
    eps : float
        Constant added to the denominator to avoid division by zero.

    >>> w = mx.nd.ones((2, 3))
    >>> optimizer = mx.optimizer.contrib.GroupAdaGrad(learning_rate=0.1)
    >>> optimizer.update(0, w, mx.nd.ones((2, 3)), optimizer.create_state(0, w))
    >>> bool((w.asnumpy() < 1).all())
    True
    """

    shards_by = "rows"
    rule = group_adagrad
    lazy_update = True
    states_like_weights = False  # one value per row

    def __init__(self, eps: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Index, weight: NDArray) -> NDArray:
        """Return the history, one value per row."""
        if len(weight.shape) != 2:
            raise InvalidValue(
                f"GroupAdaGrad works on matrices; parameter {index!r} has shape {weight.shape}."
            )
        shape = (weight.shape[0], 1)
        return zeros(shape, ctx=weight.context, dtype=weight.dtype, stype=weight.stype)

    def _numbers(self, batch: Batch) -> dict[str, float]:
        if batch.wd:
            raise InvalidValue("Weight decay is not supported for GroupAdaGrad")
        return {"epsilon": self.float_stable_eps}


@register
class AdamW(ListOptimizer):
    """Adam with decoupled weight decay: ``w -= eta (lr' m / (sqrt(v) + eps) + wd w)``.

    MXNet 1.9.1 has only the operators. Moments are Adam's, of ``clip(rescale_grad g)``. The
    learning rate scales both the step and the decay.

    Parameters
    ----------
    learning_rate : float
        The learning rate ``eta``.
    beta1, beta2 : float
        Decay rates of the running means of gradients and of their squares.
    epsilon : float
        Constant added to the denominator to avoid division by zero.
    correct_bias : bool
        Whether ``lr'`` includes Adam's bias correction.

    >>> w = mx.nd.array([1.0])
    >>> optimizer = mx.optimizer.AdamW()
    >>> optimizer.update(0, w, mx.nd.array([0.5]), optimizer.create_state(0, w))
    >>> bool(w.asscalar() != 1)
    True
    """

    shards_by = "rows"
    rule = adamw
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

    def _numbers(self, batch: Batch) -> dict[str, float]:
        """Apply bias correction to the step's rate, but not to the decay's."""
        t, corrects = batch.t, self.correct_bias
        factor = bias_correction(self.beta1, self.beta2, t) if corrects else 1.0
        return {"lr": factor, "eta": batch.lr}
