"""Losses of classes: binary, one of several, distributions over them, and sequences of them."""

from __future__ import annotations

from typing import Any

from ...ndarray import NDArray, _internal
from ...ops.documentation import inherits_parameters
from ...ops.fused.likelihood import is_by_row
from .base import Loss, apply_weighting, reshape_like

_likelihood_loss = _internal._likelihood_loss


@inherits_parameters
class SigmoidBinaryCrossEntropyLoss(Loss):
    """Cross entropy of binary predictions, given as logits or (`from_sigmoid`) probabilities.

    ``-(pos_weight label log(p) + (1 - label) log(1 - p))``

    Parameters
    ----------
    from_sigmoid
        Whether predictions are probabilities already.

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
        label = reshape_like(F, label, pred)
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
    """Cross entropy of one of several classes.

    ``-log softmax(pred)[label]``; with ``sparse_label=False`` labels are distributions, with
    ``from_logits=True`` predictions are logarithms of probabilities already.

    Parameters
    ----------
    axis
        The axis of the classes.
    sparse_label
        Whether labels are class numbers; else they are probabilities.
    from_logits
        Whether predictions are logarithms of probabilities already.

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

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """Compute the loss."""
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        if sample_weight is None and self._is_one_kernel(pred, label):
            return _likelihood_loss(pred, label)
        if self._sparse_label:
            loss = -F.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            label = reshape_like(F, label, pred)
            loss = -F.sum(pred * label, axis=self._axis, keepdims=True)
        return self._finish(F, loss, sample_weight)

    def _is_one_kernel(self, pred: Any, label: Any) -> bool:
        """Return whether one kernel computes the loss of these arrays, one label for each row.

        In graphs it is the rewriting that finds it (`graph/passes/composites.py`).
        """
        if type(pred) is not NDArray or type(label) is not NDArray:
            return False
        is_plain = self._sparse_label and self._weight is None and self._batch_axis == 0
        return is_plain and self._axis in (-1, 1) and is_by_row(pred.shape, label.shape)


SoftmaxCELoss = SoftmaxCrossEntropyLoss


@inherits_parameters
class KLDivLoss(Loss):
    """Kullback-Leibler divergence ``label (log(label) - pred)``, summed.

    `pred` holds logarithms of probabilities, or raw scores with ``from_logits=False``.

    Parameters
    ----------
    from_logits
        Whether predictions are logarithms of probabilities already; else softmax is taken.
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
        loss = apply_weighting(F, loss, self._weight, sample_weight)
        return F.sum(loss, axis=self._batch_axis, exclude=True)


@inherits_parameters
class HingeLoss(Loss):
    """Hinge of a margin: ``max(0, margin - pred label)``, labels -1 and 1.

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
        loss = F.relu(self._margin - pred * reshape_like(F, label, pred))
        return self._finish(F, loss, sample_weight)


@inherits_parameters
class SquaredHingeLoss(Loss):
    """Square of a hinge: ``max(0, margin - pred label)^2``, labels -1 and 1.

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
        loss = F.square(F.relu(self._margin - pred * reshape_like(F, label, pred)))
        return self._finish(F, loss, sample_weight)


@inherits_parameters
class LogisticLoss(Loss):
    """Logistic loss ``log(1 + exp(-pred label))``, labels -1 and 1, or 0 and 1 as `binary`.

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
        label = reshape_like(F, label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        loss = F.relu(pred) - pred * label + F.Activation(-F.abs(pred), act_type="softrelu")
        return self._finish(F, loss, sample_weight)


@inherits_parameters
class CTCLoss(Loss):
    """Connectionist temporal classification: labels of a sequence without their places in time.

    `layout` orders predictions (NTC or TNC), `label_layout` labels (NT or TN). The last class
    is the blank; labels are padded with -1 unless `label_lengths` are given.

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
        return apply_weighting(F, loss, self._weight, sample_weight)
