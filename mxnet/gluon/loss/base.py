"""`Loss`, the base of all losses, and how values are weighted."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..block import HybridBlock

numeric_types = (float, int, np.generic)


def apply_weighting(F: Any, loss: Any, weight: Any = None, sample_weight: Any = None) -> Any:
    """Multiply by the weight of each sample, where given, and by the weight of the loss."""
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    if weight is not None:
        assert isinstance(weight, numeric_types), "weight must be a number"
        loss = loss * weight
    return loss


def reshape_like(F: Any, x: Any, y: Any) -> Any:
    """Give `x` the shape of `y`."""
    return F.reshape_like(x, y)


class Loss(HybridBlock):
    """Base of all losses: holds the weight and the batch axis.

    Parameters
    ----------
    weight
        Factor of the loss; None means 1.
    batch_axis
        The axis of the samples; losses are averaged over all others.

    >>> class CubicLoss(mx.gluon.loss.Loss):
    ...     def hybrid_forward(self, F, pred, label):
    ...         return F.mean(F.abs(pred - label) ** 3, axis=0, exclude=True)
    >>> CubicLoss(None, 0)(nd.array([[2.0]]), nd.array([[0.0]])).asnumpy()
    array([8.], dtype=float32)
    """

    def __init__(self, weight: float | None, batch_axis: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._weight: Any = weight
        self._batch_axis = batch_axis

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the loss; each kind has its own."""
        raise NotImplementedError

    def _finish(self, F: Any, loss: Any, sample_weight: Any, weight: Any = None) -> Any:
        """Weight the values and take the mean of each sample."""
        loss = apply_weighting(F, loss, self._weight if weight is None else weight, sample_weight)
        return F.mean(loss, axis=self._batch_axis, exclude=True)
