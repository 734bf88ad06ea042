"""Losses of embeddings: like samples should be near each other, others apart."""

from __future__ import annotations

from typing import Any

from ...ops.documentation import inherits_parameters
from .base import Loss, apply_weighting, reshape_like
from .classification import KLDivLoss


@inherits_parameters
class TripletLoss(Loss):
    """Hinge that wants `pred` nearer to the positive than to the negative sample by a margin.

    ``max(0, sum((positive - pred)^2 - (negative - pred)^2) + margin)``

    Parameters
    ----------
    margin
        How much farther the negative must be than the positive.

    >>> near, far = nd.array([[1.0]]), nd.array([[3.0]])
    >>> mx.gluon.loss.TripletLoss()(nd.array([[0.0]]), far, near).asnumpy()
    array([9.], dtype=float32)
    """

    def __init__(
        self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, positive: Any, negative: Any) -> Any:
        """Compute the loss."""
        positive = reshape_like(F, positive, pred)
        negative = reshape_like(F, negative, pred)
        difference = F.square(positive - pred) - F.square(negative - pred)
        loss = F.relu(F.sum(difference, axis=self._batch_axis, exclude=True) + self._margin)
        return apply_weighting(F, loss, self._weight, None)


@inherits_parameters
class CosineEmbeddingLoss(Loss):
    """Cosine distance: ``1 - cos`` for label 1, ``max(0, cos - margin)`` for label -1.

    Parameters
    ----------
    margin
        Similarity above which unlike pairs are penalized.

    >>> loss = mx.gluon.loss.CosineEmbeddingLoss()
    >>> loss(nd.array([[1, 0]]), nd.array([[0, 2]]), nd.array([1])).asnumpy()
    array([[1.]], dtype=float32)
    """

    def __init__(
        self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(
        self, F: Any, input1: Any, input2: Any, label: Any, sample_weight: Any = None
    ) -> Any:
        """Compute the loss."""
        input1 = reshape_like(F, input1, input2)
        cosine = self._cosine(F, input1, input2)
        label = F.reshape(label, shape=(-1, 1))
        apart = F.maximum((label == -1) * (cosine - self._margin), 0)
        loss = (label == 1) * (1 - cosine) + apart
        return apply_weighting(F, loss, self._weight, sample_weight)

    @staticmethod
    def _cosine(F: Any, x: Any, y: Any, axis: int = -1) -> Any:
        """Return the cosine of the angle between the vectors along an axis, as a column."""
        lengths = F.reshape(F.norm(x, axis=axis), shape=(-1, 1)) * F.reshape(
            F.norm(y, axis=axis), shape=(-1, 1)
        )
        product = F.reshape(F.sum(x * y, axis=axis), shape=(-1, 1))
        return product / F.maximum(lengths, 1e-12)


@inherits_parameters
class SDMLLoss(Loss):
    """Smoothed deep metric learning: row i of `x1` belongs to row i of `x2` and to no other.

    The cross entropy, over all rows of `x2`, between the softmax of negative squared distances
    and a target that gives `smoothing_parameter` to the other rows.

    Parameters
    ----------
    smoothing_parameter
        Fraction of the target that is spread over the other samples.

    >>> x = nd.array([[0.0], [9.0]])
    >>> mx.gluon.loss.SDMLLoss(smoothing_parameter=0)(x, x).asnumpy().round(4)
    array([0., 0.], dtype=float32)
    """

    def __init__(
        self,
        smoothing_parameter: float = 0.3,
        weight: float = 1.0,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self.kl_loss = KLDivLoss(from_logits=True)
        self.smoothing_parameter = smoothing_parameter

    def hybrid_forward(self, F: Any, x1: Any, x2: Any) -> Any:
        """Compute the loss."""
        scores = F.log_softmax(-self._distances(F, x1, x2), axis=1)
        return self.kl_loss(scores, self._targets(F, x1))

    @staticmethod
    def _distances(F: Any, x1: Any, x2: Any) -> Any:
        """Return the squared distance of each row of `x1` to each of `x2`."""
        difference = F.broadcast_sub(F.expand_dims(x1, axis=1), F.expand_dims(x2, axis=0))
        return F.sum(F.square(difference), axis=2)

    def _targets(self, F: Any, x: Any) -> Any:
        """Return the wanted distribution over rows: the diagonal, smoothed."""
        row = F.contrib.arange_like(x, axis=0)
        same = F.broadcast_equal(F.expand_dims(row, axis=1), F.expand_dims(row, axis=0))
        other = 1 - same
        share = F.broadcast_div(other, F.sum(other, axis=1, keepdims=True))
        return same * (1 - self.smoothing_parameter) + share * self.smoothing_parameter
