"""Metrics of class predictions: accuracy, confusion, likelihood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..error import AxisOutOfRange, InvalidValue, OutOfRange
from ..ops.documentation import inherits_parameters
from .base import (
    Arrays,
    EvalMetric,
    alias,
    as_float,
    check_label_shapes,
    pairs,
    register,
    stays_on_device,
)

Names = Sequence[str] | None
Average = Literal["macro", "micro"]
MAX_CLASSES = 8192  # number of classes; a confusion matrix of doubles takes 512 MB


def class_ids(label: Tensor, pred: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return labels and predicted classes (the argmax of scores) as flat integers."""
    if pred.shape != label.shape:
        if not -pred.ndim <= axis < pred.ndim:
            raise AxisOutOfRange(
                f"Predictions of shape {tuple(pred.shape)} have no axis {axis} of classes "
                f"for labels of shape {tuple(label.shape)}"
            )
        pred = pred.argmax(axis)
    label, pred = label.reshape(-1).long(), pred.reshape(-1).long()
    check_label_shapes(label, pred)
    return label, pred


@register
@alias("acc")
@inherits_parameters
class Accuracy(EvalMetric):
    """The fraction of correct predictions, given as class ids or as scores along `axis`.

    Parameters
    ----------
    axis
        Axis of the classes in the predictions.

    >>> metric = mx.metric.Accuracy()
    >>> metric.update(nd.array([0, 1, 1]), nd.array([[0.3, 0.7], [0, 1], [0.4, 0.6]]))
    >>> round(metric.get()[1], 4)
    0.6667
    """

    def __init__(
        self,
        axis: int = 1,
        name: str = "accuracy",
        output_names: Names = None,
        label_names: Names = None,
    ) -> None:
        super().__init__(name, output_names, label_names, axis=axis, has_global_stats=True)
        self.axis = axis

    def update(self, labels: Arrays, preds: Arrays) -> None:
        """Update with labels and predictions."""
        for label, pred in pairs(labels, preds):
            label, chosen = class_ids(label, pred, self.axis)
            self._tally((label == chosen).sum(), label.numel())


def f1_score(tp: float, fp: float, tn: float, fn: float) -> float:
    """Return the harmonic mean of precision and recall; 0 if undefined."""
    return 2 * tp / (2 * tp + fp + fn) if tp else 0.0


def matthews(tp: float, fp: float, tn: float, fn: float) -> float:
    """Return Matthews' correlation, 0 if a row or column of the table is empty."""
    rows_and_columns = (tp + fp, tp + fn, tn + fp, tn + fn)
    scale = math.sqrt(math.prod(float(n) or 1.0 for n in rows_and_columns))
    return (tp * tn - fp * fn) / scale


class _BinaryMetric(EvalMetric):
    """A score of the confusion counts: the mean over batches (macro), or of all samples (micro)."""

    _score = staticmethod(f1_score)

    def __init__(
        self, name: str, output_names: Names, label_names: Names, average: Average
    ) -> None:
        if average not in ("macro", "micro"):
            raise ValueError(f"average must be 'macro' or 'micro', got {average!r}")
        self.average = self._average = average
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, labels: Arrays, preds: Arrays) -> None:
        """Update with labels 0 or 1, and scores of the two classes."""
        counts = [0, 0, 0, 0]
        for label, pred in pairs(labels, preds):
            counts = _added(counts, self._count(label, pred))
        if self.average == "macro":
            self._add(self._score(*counts), 1)
            return
        self._counts = _added(self._counts, counts)
        self._global_counts = _added(self._global_counts, counts)
        self.num_inst, self.global_num_inst = sum(self._counts), sum(self._global_counts)
        self.sum_metric = self._score(*self._counts) * self.num_inst
        self.global_sum_metric = self._score(*self._global_counts) * self.global_num_inst

    def reset(self) -> None:
        self._global_counts = [0, 0, 0, 0]
        self._counts = [0, 0, 0, 0]
        super().reset()

    def reset_local(self) -> None:
        """Reset the counts of `get`, but not those of `get_global`."""
        self._counts = [0, 0, 0, 0]
        super().reset_local()

    def _count(self, label: Tensor, pred: Tensor) -> list[int]:
        if pred.ndim < 2:
            raise AxisOutOfRange(
                f"{type(self).__name__} needs scores of shape (batch, 2), "
                f"got predictions of shape {tuple(pred.shape)}"
            )
        chosen, label = pred.argmax(1).reshape(-1), label.reshape(-1).long()
        check_label_shapes(label, chosen)
        if not label.numel():
            return [0, 0, 0, 0]
        others = ((label != label.min()) & (label != label.max())).sum()
        yes, no, result, left = label == 1, label == 0, chosen == 1, chosen == 0
        table = (result & yes, result & no, left & no, left & yes)
        *counts, others = torch.stack([*(cell.sum() for cell in table), others]).tolist()
        if others:
            raise ValueError(
                f"{type(self).__name__} currently only supports binary classification: "
                "the labels have more than two values."
            )
        return counts


def _added(first: list[int], second: list[int]) -> list[int]:
    return [a + b for a, b in zip(first, second, strict=True)]


@register
@inherits_parameters
class F1(_BinaryMetric):
    """The F1 score of a binary classifier: ``2 p r / (p + r)`` with precision p and recall r.

    Parameters
    ----------
    average : {'macro', 'micro'}
        ``'macro'``: mean of the batches' scores; ``'micro'``: score of all samples.

    >>> metric = mx.metric.F1()
    >>> metric.update(nd.array([0, 1, 1]), nd.array([[0.3, 0.7], [0, 1], [0.4, 0.6]]))
    >>> round(metric.get()[1], 4)
    0.8
    """

    def __init__(
        self,
        name: str = "f1",
        output_names: Names = None,
        label_names: Names = None,
        average: Average = "macro",
    ) -> None:
        super().__init__(name, output_names, label_names, average)


@register
@inherits_parameters
class MCC(_BinaryMetric):
    """Matthews' correlation coefficient of a binary classifier, from -1 to 1.

    Parameters
    ----------
    average
        ``'macro'``: mean of the batches' scores; ``'micro'``: score of all samples.

    >>> metric = mx.metric.MCC()
    >>> metric.update(nd.array([0, 1, 1]), nd.array([[0.7, 0.3], [0, 1], [0.6, 0.4]]))
    >>> metric.get()
    ('mcc', 0.5)
    """

    _score = staticmethod(matthews)

    def __init__(
        self,
        name: str = "mcc",
        output_names: Names = None,
        label_names: Names = None,
        average: Average = "macro",
    ) -> None:
        super().__init__(name, output_names, label_names, average)


@register
@inherits_parameters
class PCC(EvalMetric):
    """Pearson's correlation of labels and predicted classes: Matthews' for any number of classes.

    It is computed from a confusion matrix, which grows with the number of classes.

    Parameters
    ----------
    has_global_stats
        Whether to keep global values too.

    >>> metric = mx.metric.PCC()
    >>> metric.update(nd.array([0, 1, 2]), nd.array([[9, 0, 0], [0, 9, 0], [0, 9, 0]]))
    >>> round(metric.get()[1], 4)
    0.6124
    """

    def __init__(
        self,
        name: str = "pcc",
        output_names: Names = None,
        label_names: Names = None,
        has_global_stats: bool = True,
    ) -> None:
        self.k = 2
        super().__init__(name, output_names, label_names, has_global_stats=has_global_stats)

    @property
    def sum_metric(self) -> float:
        """The coefficient times the number of batches."""
        return multiclass_correlation(self.lcm) * self.num_inst

    @property
    def global_sum_metric(self) -> float:
        """The coefficient since `reset` times the number of batches."""
        return multiclass_correlation(self.gcm) * self.global_num_inst

    def update(self, labels: Arrays, preds: Arrays) -> None:
        """Update with labels and predictions."""
        for label, pred in pairs(labels, preds):
            label, chosen = class_ids(label, pred, 1)
            if not label.numel():
                continue
            self._grow(int(torch.maximum(label.max(), chosen.max())) + 1)
            # A negative class counts from the end, like an index.
            cells = chosen.remainder(self.k) * self.k + label.remainder(self.k)
            counts = torch.bincount(cells, minlength=self.k**2)
            batch = counts.reshape(self.k, self.k).cpu().numpy()
            self.lcm += batch
            self.gcm += batch
        self.num_inst += 1
        self.global_num_inst += 1

    def reset(self) -> None:
        """Reset all counts."""
        self.global_num_inst = 0
        self.gcm = np.zeros((self.k, self.k))
        self.reset_local()

    def reset_local(self) -> None:
        """Reset the counts of `get`, but not those of `get_global`."""
        self.num_inst = 0
        self.lcm = np.zeros((self.k, self.k))

    def _grow(self, classes: int) -> None:
        more = classes - self.k
        if more <= 0:
            return
        if classes > MAX_CLASSES:
            raise ValueError(
                f"PCC met class {classes - 1}; it has a confusion matrix, for classes below "
                f"{MAX_CLASSES}."
            )
        self.lcm = np.pad(self.lcm, ((0, more), (0, more)))
        self.gcm = np.pad(self.gcm, ((0, more), (0, more)))
        self.k = classes


def multiclass_correlation(confusion: np.ndarray) -> float:
    """Return Pearson's correlation of a confusion matrix; NaN if one side is constant."""
    n, rows, columns = confusion.sum(), confusion.sum(1), confusion.sum(0)
    spread = float((rows * (n - rows)).sum() * (columns * (n - columns)).sum())
    if spread == 0:
        return math.nan
    return float((confusion.diagonal() * n - rows * columns).sum()) / math.sqrt(spread)


class _LogLoss(EvalMetric):
    """The mean of ``-log(p + eps)``, where p is the predicted probability of the true class."""

    def __init__(self, eps: float, name: str, output_names: Names, label_names: Names) -> None:
        super().__init__(name, output_names, label_names, eps=eps, has_global_stats=True)
        self.eps = eps

    def update(self, labels: Arrays, preds: Arrays) -> None:
        """Update with class labels, and probabilities of shape (batch, classes)."""
        for label, pred in pairs(labels, preds):
            label = label.reshape(-1).long()
            if pred.ndim < 2 or len(label) != len(pred):
                kind = InvalidValue if len(label) != len(pred) else OutOfRange
                raise kind(
                    f"Shape of labels {tuple(label.shape)} does not match shape of predictions "
                    f"{tuple(pred.shape)}: {self.name} needs (batch,) and (batch, classes)"
                )
            classes = pred.shape[1]
            self._check_range(label, classes)
            label = label.clamp(-classes, classes - 1)
            probability = pred[torch.arange(len(label), device=pred.device), label]
            self._tally(-torch.log(as_float(probability) + self.eps).sum(), len(label))

    def _check_range(self, label: Tensor, classes: int) -> None:
        """Check labels immediately, or when the metric is read if they are on a device."""
        if not label.numel():
            return
        low, high = label.aminmax()
        if not stays_on_device(label):
            self._check_ends(int(low), int(high), classes)
            return
        ends = self.__dict__.setdefault("_ends", {})
        before = ends.get((label.device, classes), (low, high))
        both = torch.minimum(before[0], low), torch.maximum(before[1], high)
        ends[label.device, classes] = both

    def _check_ends(self, low: int, high: int, classes: int) -> None:
        if low < -classes or high >= classes:
            raise IndexError(f"{self.name}: labels from {low} to {high} for {classes} classes")

    def _settle(self) -> None:
        for (_, classes), (low, high) in self.__dict__.pop("_ends", {}).items():
            self._check_ends(int(low), int(high), classes)
        super()._settle()


@register
@alias("ce")
@inherits_parameters
class CrossEntropy(_LogLoss):
    """The mean cross entropy: ``-log(p + eps)`` of the true class.

    Parameters
    ----------
    eps
        Small constant added to probabilities to avoid the logarithm of 0.

    >>> metric = mx.metric.CrossEntropy()
    >>> metric.update(nd.array([0, 1]), nd.array([[0.5, 0.5], [0, 1]]))
    >>> round(metric.get()[1], 4)
    0.3466
    """

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "cross-entropy",
        output_names: Names = None,
        label_names: Names = None,
    ) -> None:
        super().__init__(eps, name, output_names, label_names)


@register
@alias("nll_loss")
@inherits_parameters
class NegativeLogLikelihood(_LogLoss):
    """The mean negative log likelihood: ``-log(p + eps)`` of the true class.

    Parameters
    ----------
    eps
        Small constant added to probabilities to avoid the logarithm of 0.

    >>> metric = mx.metric.NegativeLogLikelihood()
    >>> metric.update(nd.array([0, 1]), nd.array([[0.5, 0.5], [0, 1]]))
    >>> round(metric.get()[1], 4)
    0.3466
    """

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "nll-loss",
        output_names: Names = None,
        label_names: Names = None,
    ) -> None:
        super().__init__(eps, name, output_names, label_names)


@register
@inherits_parameters
class Perplexity(EvalMetric):
    """``exp`` of the mean of ``-log(p)`` of the true class; 1 is perfect.

    Parameters
    ----------
    ignore_label : int or None
        Label of samples to ignore, such as padding.
    axis : int
        Axis of the classes in the predictions.

    >>> metric = mx.metric.Perplexity(ignore_label=None)
    >>> metric.update(nd.array([0, 1]), nd.array([[0.5, 0.5], [0, 1]]))
    >>> round(metric.get()[1], 4)
    1.4142
    """

    def __init__(
        self,
        ignore_label: int | None,
        axis: int = -1,
        name: str = "perplexity",
        output_names: Names = None,
        label_names: Names = None,
    ) -> None:
        super().__init__(
            name, output_names, label_names, ignore_label=ignore_label, has_global_stats=True
        )
        self.ignore_label = ignore_label
        self.axis = axis

    def update(self, labels: Arrays, preds: Arrays) -> None:
        """Update with class labels and probabilities."""
        for label, pred in pairs(labels, preds):
            classes = pred.shape[self.axis]
            if label.numel() * classes != pred.numel():
                raise InvalidValue(
                    f"Shape of labels {tuple(label.shape)} does not match shape of predictions "
                    f"{tuple(pred.shape)}: perplexity needs one label for the {classes} "
                    f"probabilities along axis {self.axis}"
                )
            scores = pred.movedim(self.axis, -1).reshape(-1, classes)
            label = label.reshape(-1, 1).long()
            probabilities = as_float(scores.gather(1, label.clamp(0, classes - 1)))
            count: Tensor | int = label.numel()
            if self.ignore_label is not None:
                ignored = label == self.ignore_label
                probabilities = probabilities.masked_fill(ignored, 1.0)
                count = count - ignored.sum()
            self._tally(-probabilities.clamp(min=1e-10).log().sum(), count)

    def get(self) -> tuple[str, float]:
        """Return the name and the value since the last reset; NaN without samples."""
        return self.name, _exp(super().get()[1])

    def get_global(self) -> tuple[str, float]:
        """Return the name and the value since `reset`."""
        return self.name, _exp(super().get_global()[1])


def _exp(value: Any) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


@register
@alias("top_k_accuracy", "top_k_acc")
@inherits_parameters
class TopKAccuracy(EvalMetric):
    """The fraction of samples whose class has one of the `top_k` highest scores.

    Parameters
    ----------
    top_k
        Number of highest scores.

    >>> metric = mx.metric.TopKAccuracy(top_k=2)
    >>> metric.update(nd.array([2, 2]), nd.array([[0.1, 0.6, 0.3], [0.5, 0.4, 0.1]]))
    >>> metric.get()
    ('top_k_accuracy_2', 0.5)
    """

    def __init__(
        self,
        top_k: int = 1,
        name: str = "top_k_accuracy",
        output_names: Names = None,
        label_names: Names = None,
    ) -> None:
        if top_k <= 1:
            raise InvalidValue(f"Please use Accuracy if top_k is no more than 1, got {top_k}")
        super().__init__(
            f"{name}_{top_k}", output_names, label_names, top_k=top_k, has_global_stats=True
        )
        self.top_k = top_k

    def update(self, labels: Arrays, preds: Arrays) -> None:
        """Update with class labels, and scores of shape (batch, classes)."""
        for label, pred in pairs(labels, preds):
            if pred.ndim != 2:
                raise InvalidValue(
                    f"{self.name} needs scores of shape (batch, classes), got predictions of "
                    f"shape {tuple(pred.shape)}"
                )
            label = label.reshape(-1, 1).long()
            check_label_shapes(label, pred)
            self._tally((ranks(pred, label) < self.top_k).sum(), len(label))


def ranks(pred: Tensor, label: Tensor) -> Tensor:
    """Return the rank of the label's class, from 0; of equal scores the last class ranks first.

    NaN ranks first, as in a sort. A class that does not exist ranks last.
    """
    classes = pred.shape[1]
    scores = as_float(pred).nan_to_num(nan=math.inf, posinf=math.inf, neginf=-math.inf)
    own = scores.gather(1, label.clamp(0, classes - 1))
    positions = label.new_ones(classes).cumsum(0) - 1
    before = (scores > own) | ((scores == own) & (positions > label))
    missing = ((label < 0) | (label >= classes)).squeeze(1)
    return before.sum(1).masked_fill(missing, max(classes, 2**31))
