"""Metrics of rank: whether the right class is among the best."""

from __future__ import annotations

import math

from torch import Tensor

from ..error import InvalidValue
from ..ops.documentation import inherits_parameters
from .base import Arrays, EvalMetric, alias, as_float, check_label_shapes, pairs, register
from .classification import Names


@register
@alias("top_k_accuracy", "top_k_acc")
@inherits_parameters
class TopKAccuracy(EvalMetric):
    """The fraction of samples whose class has one of the `top_k` highest scores.

    Parameters
    ----------
    top_k
        How many of the highest scores count.
    name
        Name of the metric, as it is shown.

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
        """Take a batch of class labels, and scores of shape (batch, classes)."""
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
    """Return how many classes come before the label's; of equal scores the last class is first.

    NaN ranks first, as in a sort. A class that does not exist ranks last.
    """
    classes = pred.shape[1]
    scores = as_float(pred).nan_to_num(nan=math.inf, posinf=math.inf, neginf=-math.inf)
    own = scores.gather(1, label.clamp(0, classes - 1))
    places = label.new_ones(classes).cumsum(0) - 1
    before = (scores > own) | ((scores == own) & (places > label))
    missing = ((label < 0) | (label >= classes)).squeeze(1)
    return before.sum(1).masked_fill(missing, max(classes, 2**31))
