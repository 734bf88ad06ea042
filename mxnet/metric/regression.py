"""Regression metrics: errors and correlation."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..error import ShapeError
from ..ops.documentation import inherits_parameters
from .base import (
    Arrays,
    EvalMetric,
    alias,
    as_float,
    as_tensor,
    check_label_shapes,
    pairs,
    register,
    wide,
)
from .classification import Average, Names


class _MeanError(EvalMetric):
    """The mean over batches of an error of ``label - pred``."""

    def __init__(self, name: str, output_names: Names, label_names: Names) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, labels: Arrays, preds: Arrays) -> None:
        """Update with labels and predictions; a vector is treated as a column."""
        for label, pred in pairs(labels, preds):
            label, pred = _column(as_float(label)), _column(as_float(pred))
            try:
                difference = label - pred
            except RuntimeError:
                raise ShapeError(
                    f"Shape of labels {tuple(label.shape)} does not match shape of predictions "
                    f"{tuple(pred.shape)} in {self.name}"
                ) from None
            self._tally(self._error(difference), 1)

    @staticmethod
    def _error(difference: Tensor) -> Tensor:
        raise NotImplementedError


def _column(values: Tensor) -> Tensor:
    return values.reshape(-1, 1) if values.ndim < 2 else values


@register
@inherits_parameters
class MAE(_MeanError):
    """The mean absolute error, averaged over batches.

    >>> metric = mx.metric.MAE()
    >>> metric.update(nd.array([3, -0.5]), nd.array([2, 0]))
    >>> metric.get()
    ('mae', 0.75)
    """

    def __init__(
        self, name: str = "mae", output_names: Names = None, label_names: Names = None
    ) -> None:
        super().__init__(name, output_names, label_names)

    @staticmethod
    def _error(difference: Tensor) -> Tensor:
        return difference.abs().mean()


@register
@inherits_parameters
class MSE(_MeanError):
    """The mean squared error, averaged over batches.

    >>> metric = mx.metric.MSE()
    >>> metric.update(nd.array([3, -0.5]), nd.array([2, 0]))
    >>> metric.get()
    ('mse', 0.625)
    """

    def __init__(
        self, name: str = "mse", output_names: Names = None, label_names: Names = None
    ) -> None:
        super().__init__(name, output_names, label_names)

    @staticmethod
    def _error(difference: Tensor) -> Tensor:
        return difference.square().mean()


@register
@inherits_parameters
class RMSE(_MeanError):
    """The root of the mean squared error of each batch, averaged over batches.

    >>> metric = mx.metric.RMSE()
    >>> metric.update(nd.array([3, 5]), nd.array([2, 4]))
    >>> metric.get()
    ('rmse', 1.0)
    """

    def __init__(
        self, name: str = "rmse", output_names: Names = None, label_names: Names = None
    ) -> None:
        super().__init__(name, output_names, label_names)

    @staticmethod
    def _error(difference: Tensor) -> Tensor:
        return difference.square().mean().sqrt()


@register
@alias("pearsonr")
@inherits_parameters
class PearsonCorrelation(EvalMetric):
    """Pearson's correlation of labels and predictions, from -1 to 1.

    Parameters
    ----------
    average : {'macro', 'micro'}
        ``'macro'``: mean of the batches' correlations; ``'micro'``: correlation of all samples.

    >>> metric = mx.metric.PearsonCorrelation()
    >>> metric.update(nd.array([1, 2, 3]), nd.array([1, 3, 2]))
    >>> metric.get()
    ('pearsonr', 0.5)
    """

    def __init__(
        self,
        name: str = "pearsonr",
        output_names: Names = None,
        label_names: Names = None,
        average: Average = "macro",
    ) -> None:
        if average not in ("macro", "micro"):
            raise ValueError(f"average must be 'macro' or 'micro', got {average!r}")
        self.average = average
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def reset(self) -> None:
        """Reset all counts."""
        super().reset()
        if self.average == "micro":
            self.reset_micro()

    def reset_micro(self) -> None:
        """Reset the moments of all samples."""
        self._pred_nums = self._label_nums = 0
        self._mean_p = self._mean_l = 0
        self._sse_p = self._sse_l = 0
        self._conv = 0

    def update(self, labels: Arrays, preds: Arrays) -> None:
        """Update with labels and predictions of equal shapes."""
        for label, pred in pairs(labels, preds):
            check_label_shapes(label, pred, shape=True)
            x, y = label.reshape(-1).to(wide(label)), pred.reshape(-1).to(wide(pred))
            if self.average == "macro":
                self._tally(correlation(x, y), 1)
            else:
                self._add(0.0, 1)
                self._take(x, y)

    def _take(self, label: Tensor, pred: Tensor) -> None:
        self._label_nums, self._mean_l, self._sse_l = self.update_variance(
            label, self._label_nums, self._mean_l, self._sse_l
        )
        # In this order: the update needs the new mean of the labels and the old one of the
        # predictions.
        self.update_cov(label, pred)
        self._pred_nums, self._mean_p, self._sse_p = self.update_variance(
            pred, self._pred_nums, self._mean_p, self._sse_p
        )

    def update_variance(self, new_values: Any, *aggregate: Any) -> tuple[Any, Any, Any]:
        """Update (count, mean, sum of squared deviations) with values, and return them."""
        count, mean, spread = aggregate
        values = as_tensor(new_values)
        total = count + values.numel()
        new_mean = mean + (values - mean).sum() / total
        return total, new_mean, spread + ((values - mean) * (values - new_mean)).sum()

    def update_cov(self, label: Any, pred: Any) -> None:
        """Update the sum of products of deviations with pairs."""
        label, pred = as_tensor(label), as_tensor(pred)
        self._conv = self._conv + ((label - self._mean_l) * (pred - self._mean_p)).sum()

    def get(self) -> tuple[str, float]:
        """Return the name and the value since the last reset; NaN without samples."""
        if self.average == "macro" or self.num_inst == 0:
            return super().get()
        return self.name, self._of_all()

    def get_global(self) -> tuple[str, float]:
        """Return the name and the value since `reset`."""
        if self.average == "macro" or self.global_num_inst == 0:
            return super().get_global()
        return self.name, self._of_all()

    def _of_all(self) -> float:
        spread = float(self._sse_p) * float(self._sse_l)
        return float(self._conv) / math.sqrt(spread) if spread > 0 else math.nan


def correlation(x: Tensor, y: Tensor) -> Tensor:
    """Return the correlation of two vectors; NaN if one of them is constant."""
    x, y = x - x.mean(), y - y.mean()
    return ((x * y).sum() / torch.sqrt((x * x).sum() * (y * y).sum())).clamp(-1, 1)
