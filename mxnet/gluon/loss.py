"""Loss functions: one value per sample."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from .. import ndarray  # noqa: F401 (MXNet shows it here)
from ..io.range_check import RangeCheck
from ..ndarray import NDArray, _internal
from ..ops.documentation import inherits_parameters
from ..ops.fused.log_likelihood import is_by_row
from ..util import is_np_array  # noqa: F401 (likewise)
from .block import HybridBlock

__all__ = [
    "CTCLoss",
    "CosineEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "L2Loss",
    "LogisticLoss",
    "Loss",
    "PoissonNLLLoss",
    "SDMLLoss",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
    "TripletLoss",
]


numeric_types = (float, int, np.generic)


def _apply_weighting(F: Any, loss: Any, weight: Any = None, sample_weight: Any = None) -> Any:
    """Multiply by the sample weights, if given, and by the weight of the loss."""
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    if weight is not None:
        assert isinstance(weight, numeric_types), "weight must be a number"
        loss = loss * weight
    return loss


def _reshape_like(F: Any, x: Any, y: Any) -> Any:
    return F.reshape_like(x, y)


class Loss(HybridBlock):
    """Base of all losses: holds the weight and the batch axis.

    Parameters
    ----------
    weight
        Factor of the loss; by default 1.
    batch_axis
        Axis of the samples; the loss is averaged over the other axes.

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
        """Compute the loss; implemented by subclasses."""
        raise NotImplementedError

    def _finish(self, F: Any, loss: Any, sample_weight: Any, weight: Any = None) -> Any:
        loss = _apply_weighting(F, loss, self._weight if weight is None else weight, sample_weight)
        return F.mean(loss, axis=self._batch_axis, exclude=True)


_likelihood_loss = _internal._likelihood_loss


@inherits_parameters
class SigmoidBinaryCrossEntropyLoss(Loss):
    """Cross entropy of binary predictions, given as logits or (`from_sigmoid`) probabilities.

    ``-(pos_weight label log(p) + (1 - label) log(1 - p))``

    Parameters
    ----------
    from_sigmoid
        Whether predictions are probabilities.

    >>> mx.gluon.loss.SigmoidBCELoss()(nd.array([[0]]), nd.array([[1]])).asnumpy().round(4)
    array([0.6931], dtype=float32)
    """

    def __init__(
        self,
        from_sigmoid: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def hybrid_forward(
        self, F: Any, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None
    ) -> Any:
        """Compute the loss."""
        label = _reshape_like(F, label, pred)
        entropy = self._of_probabilities if self._from_sigmoid else self._of_logits
        return self._finish(F, entropy(F, pred, label, pos_weight), sample_weight)

    @staticmethod
    def _of_logits(F: Any, pred: Any, label: Any, pos_weight: Any) -> Any:
        # softrelu(-|x|) is log(1 + exp(-|x|)), which cannot overflow
        if pos_weight is None:
            return F.relu(pred) - pred * label + F.Activation(-F.abs(pred), act_type="softrelu")
        log_weight = 1 + F.broadcast_mul(pos_weight - 1, label)
        tail = F.Activation(-F.abs(pred), act_type="softrelu") + F.relu(-pred)
        return pred - pred * label + log_weight * tail

    @staticmethod
    def _of_probabilities(F: Any, pred: Any, label: Any, pos_weight: Any) -> Any:
        eps = 1e-12
        positive = F.log(pred + eps) * label
        if pos_weight is not None:
            positive = F.broadcast_mul(positive, pos_weight)
        return -(positive + F.log(1.0 - pred + eps) * (1.0 - label))


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


@inherits_parameters
class SoftmaxCrossEntropyLoss(Loss):
    """Softmax cross entropy.

    ``-log softmax(pred)[label]``; with ``sparse_label=False`` labels are distributions, with
    ``from_logits=True`` predictions are log probabilities.

    Parameters
    ----------
    axis
        The axis of the classes.
    sparse_label
        Whether labels are class indices; otherwise they are probabilities.
    from_logits
        Whether predictions are log probabilities.

    >>> mx.gluon.loss.SoftmaxCELoss()(nd.array([[0, 0]]), nd.array([1])).asnumpy().round(4)
    array([0.6931], dtype=float32)
    """

    def __init__(
        self,
        axis: int = -1,
        sparse_label: bool = True,
        from_logits: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._axis = axis
        self._sparse_label = sparse_label
        self._from_logits = from_logits
        self._range_check = RangeCheck(type(self).__name__, "labels", "classes")

    def __call__(self, pred: Any, label: Any, *args: Any) -> Any:
        """Compute the loss; the labels of the first batches are checked."""
        is_checked = self._range_check.is_active and self._sparse_label and not args
        if is_checked and isinstance(pred, NDArray):  # sample weights may mask invalid labels
            self._range_check(label, pred.shape[self._axis])
        return super().__call__(pred, label, *args)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Compute the loss."""
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        if sample_weight is None and self._is_one_kernel(pred, label):
            return _likelihood_loss(pred, label)
        if self._sparse_label:
            loss = -F.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            label = _reshape_like(F, label, pred)
            loss = -F.sum(pred * label, axis=self._axis, keepdims=True)
        return self._finish(F, loss, sample_weight)

    def _is_one_kernel(self, pred: Any, label: Any) -> bool:
        """Return whether the fused kernel supports these arrays, with one label for each row.

        In graphs a rewrite inserts it (`graph/passes/composites.py`).
        """
        if type(pred) is not NDArray or type(label) is not NDArray:
            return False
        is_plain = self._sparse_label and self._weight is None and self._batch_axis == 0
        return is_plain and self._axis in (-1, 1) and is_by_row(pred.shape, label.shape)


SoftmaxCELoss = SoftmaxCrossEntropyLoss


@inherits_parameters
class KLDivLoss(Loss):
    """Kullback-Leibler divergence ``label (log(label) - pred)``, summed.

    `pred` contains log probabilities, or raw scores with ``from_logits=False``.

    Parameters
    ----------
    from_logits
        Whether predictions are log probabilities; otherwise log softmax is applied.
    axis
        The axis of the classes.

    >>> loss = mx.gluon.loss.KLDivLoss(from_logits=False)
    >>> loss(nd.array([[0, 0]]), nd.array([[1, 0]])).asnumpy().round(4)
    array([0.6931], dtype=float32)
    """

    def __init__(
        self,
        from_logits: bool = True,
        axis: int = -1,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._axis = axis

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Compute the loss."""
        if not self._from_logits:
            pred = F.log_softmax(pred, self._axis)
        loss = label * (F.log(label + 1e-12) - pred)
        loss = _apply_weighting(F, loss, self._weight, sample_weight)
        return F.sum(loss, axis=self._batch_axis, exclude=True)


@inherits_parameters
class HingeLoss(Loss):
    """Hinge loss: ``max(0, margin - pred label)``, with labels -1 and 1.

    Parameters
    ----------
    margin
        Margin of the hinge.

    >>> mx.gluon.loss.HingeLoss()(nd.array([[0.5], [2]]), nd.array([[1], [1]])).asnumpy()
    array([0.5, 0. ], dtype=float32)
    """

    def __init__(
        self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Compute the loss."""
        loss = F.relu(self._margin - pred * _reshape_like(F, label, pred))
        return self._finish(F, loss, sample_weight)


@inherits_parameters
class SquaredHingeLoss(Loss):
    """Squared hinge loss: ``max(0, margin - pred label)^2``, with labels -1 and 1.

    Parameters
    ----------
    margin
        Margin of the hinge.

    >>> mx.gluon.loss.SquaredHingeLoss()(nd.array([[0.5], [2]]), nd.array([[1], [1]])).asnumpy()
    array([0.25, 0.  ], dtype=float32)
    """

    def __init__(
        self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Compute the loss."""
        loss = F.square(F.relu(self._margin - pred * _reshape_like(F, label, pred)))
        return self._finish(F, loss, sample_weight)


@inherits_parameters
class LogisticLoss(Loss):
    """Logistic loss: ``log(1 + exp(-pred label))``, with labels -1 and 1, or 0 and 1 (`binary`).

    Parameters
    ----------
    label_format
        Whether labels are ``'signed'`` (-1 and 1) or ``'binary'`` (0 and 1).

    >>> mx.gluon.loss.LogisticLoss()(nd.array([[0]]), nd.array([[1]])).asnumpy().round(4)
    array([0.6931], dtype=float32)
    """

    def __init__(
        self,
        weight: float | None = None,
        batch_axis: int = 0,
        label_format: str = "signed",
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._label_format = label_format
        if label_format not in ("signed", "binary"):
            raise ValueError(f"label_format can only be signed or binary, received {label_format}.")

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Compute the loss."""
        label = _reshape_like(F, label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        loss = F.relu(pred) - pred * label + F.Activation(-F.abs(pred), act_type="softrelu")
        return self._finish(F, loss, sample_weight)


@inherits_parameters
class CTCLoss(Loss):
    """Connectionist temporal classification loss for unaligned label sequences.

    The last class is the blank; labels are padded with -1 unless `label_lengths` are given.

    Parameters
    ----------
    layout
        Order of the axes of predictions: ``'NTC'`` or ``'TNC'``.
    label_layout
        Order of the axes of labels: ``'NT'`` or ``'TN'``.

    >>> loss = mx.gluon.loss.CTCLoss()
    >>> loss(nd.zeros((1, 2, 2)), nd.array([[0]])).asnumpy().round(4)
    array([0.2877], dtype=float32)
    """

    def __init__(
        self,
        layout: str = "NTC",
        label_layout: str = "NT",
        weight: float | None = None,
        **kwargs: Any,
    ) -> None:
        assert layout in ["NTC", "TNC"], (
            f"Only 'NTC' and 'TNC' layouts for pred are supported. Got: {layout}"
        )
        assert label_layout in ["NT", "TN"], (
            f"Only 'NT' and 'TN' layouts for label are supported. Got: {label_layout}"
        )
        self._layout = layout
        self._label_layout = label_layout
        super().__init__(weight, label_layout.find("N"), **kwargs)

    def hybrid_forward(
        self,
        F: Any,
        pred: Any,
        label: Any,
        pred_lengths: Any = None,
        label_lengths: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        """Compute the loss."""
        if self._layout == "NTC":
            pred = F.swapaxes(pred, 0, 1)
        if self._batch_axis == 1:
            label = F.swapaxes(label, 0, 1)
        loss = F.CTCLoss(
            pred,
            label,
            pred_lengths,
            label_lengths,
            use_data_lengths=pred_lengths is not None,
            use_label_lengths=label_lengths is not None,
            blank_label="last",
        )
        return _apply_weighting(F, loss, self._weight, sample_weight)


@inherits_parameters
class L2Loss(Loss):
    """Half the mean squared error: ``1/2 (pred - label)^2``.

    >>> mx.gluon.loss.L2Loss()(nd.array([[1], [3]]), nd.array([[0], [1]])).asnumpy()
    array([0.5, 2. ], dtype=float32)
    """

    def __init__(self, weight: float = 1.0, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Compute the loss."""
        loss = F.square(_reshape_like(F, label, pred) - pred)
        return self._finish(F, loss, sample_weight, self._weight / 2)


@inherits_parameters
class L1Loss(Loss):
    """Mean absolute error: ``|pred - label|``.

    >>> mx.gluon.loss.L1Loss()(nd.array([[1], [3]]), nd.array([[0], [1]])).asnumpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Compute the loss."""
        loss = F.abs(_reshape_like(F, label, pred) - pred)
        return self._finish(F, loss, sample_weight)


@inherits_parameters
class HuberLoss(Loss):
    """Huber loss: squared error up to a distance of `rho`, absolute error beyond.

    Parameters
    ----------
    rho
        Distance at which the loss changes from squared to linear.

    >>> mx.gluon.loss.HuberLoss()(nd.array([[0.5], [3]]), nd.array([[0], [1]])).asnumpy()
    array([0.125, 1.5  ], dtype=float32)
    """

    def __init__(
        self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = rho

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Compute the loss."""
        distance = F.abs(_reshape_like(F, label, pred) - pred)
        near = (0.5 / self._rho) * F.square(distance)
        loss = F.where(distance > self._rho, distance - 0.5 * self._rho, near)
        return self._finish(F, loss, sample_weight)


@inherits_parameters
class PoissonNLLLoss(Loss):
    """Negative log likelihood of counts under a Poisson distribution, averaged over all elements.

    `pred` is the logarithm of the rate, or the rate with ``from_logits=False``; `compute_full`
    adds Stirling's approximation of ``log(target!)`` where the target is above 1.

    Parameters
    ----------
    from_logits
        Whether predictions are log rates.
    compute_full
        Whether to add Stirling's approximation of ``log(target!)``, which does not depend on
        `pred`.

    >>> mx.gluon.loss.PoissonNLLLoss()(nd.array([[0.0]]), nd.array([[2.0]])).asnumpy()
    array([1.], dtype=float32)
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._compute_full = compute_full

    def hybrid_forward(
        self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: float = 1e-08
    ) -> Any:
        """Compute the loss."""
        target = _reshape_like(F, target, pred)
        if self._from_logits:
            loss = F.exp(pred) - target * pred
        else:
            loss = pred - target * F.log(pred + epsilon)
        if self._compute_full:
            stirling = target * F.log(target) - target + 0.5 * F.log(2 * pi * target)
            loss = loss + F.where(target > 1, stirling, F.zeros_like(stirling))
        return F.mean(_apply_weighting(F, loss, self._weight, sample_weight))


@inherits_parameters
class TripletLoss(Loss):
    """Triplet loss: `pred` must be closer to the positive than to the negative sample by a margin.

    ``max(0, sum((positive - pred)^2 - (negative - pred)^2) + margin)``

    Parameters
    ----------
    margin
        Required difference of the squared distances.

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
        positive = _reshape_like(F, positive, pred)
        negative = _reshape_like(F, negative, pred)
        difference = F.square(positive - pred) - F.square(negative - pred)
        loss = F.relu(F.sum(difference, axis=self._batch_axis, exclude=True) + self._margin)
        return _apply_weighting(F, loss, self._weight, None)


@inherits_parameters
class CosineEmbeddingLoss(Loss):
    """Cosine distance: ``1 - cos`` for label 1, ``max(0, cos - margin)`` for label -1.

    Parameters
    ----------
    margin
        Similarity above which pairs with label -1 are penalized.

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
        input1 = _reshape_like(F, input1, input2)
        cosine = self._cosine(F, input1, input2)
        label = F.reshape(label, shape=(-1, 1))
        apart = F.maximum((label == -1) * (cosine - self._margin), 0)
        loss = (label == 1) * (1 - cosine) + apart
        return _apply_weighting(F, loss, self._weight, sample_weight)

    @staticmethod
    def _cosine(F: Any, x: Any, y: Any, axis: int = -1) -> Any:
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
        """Return the target distribution over rows: the smoothed diagonal."""
        row = F.contrib.arange_like(x, axis=0)
        same = F.broadcast_equal(F.expand_dims(row, axis=1), F.expand_dims(row, axis=0))
        other = 1 - same
        share = F.broadcast_div(other, F.sum(other, axis=1, keepdims=True))
        return same * (1 - self.smoothing_parameter) + share * self.smoothing_parameter
