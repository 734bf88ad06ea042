"""`EvalMetric`: sums over batches, since `reset_local` (local) and since `reset` (global).

A metric is computed on the device of the predictions. Sums on a GPU are read only on request, so no
batch waits for a transfer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import accelerator, registry
from ..error import ShapeError
from ..ops.documentation import inherits_parameters
from ..runtime.array import Handle, plain

Arrays = Any  # an array, or a list of arrays
Feval = Callable[[np.ndarray, np.ndarray], Any]  # label, pred -> value, or (sum, count)
_HALVES = (torch.float16, torch.bfloat16)


class _Sum:
    """A sum of a metric; pending sums on devices are added before reading or setting it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.slot = "_" + name

    def __get__(self, metric: Any, owner: type | None = None) -> Any:
        if metric is None:
            return self
        metric._settle()
        return metric.__dict__.get(self.slot, 0)

    def __set__(self, metric: Any, value: Any) -> None:
        metric._settle()
        # NumPy 2 adds a Python float to a float32 in float32; to a float64 it adds in float64.
        if isinstance(value, float | np.floating):
            value = np.float64(value)
        metric.__dict__[self.slot] = value


class EvalMetric:
    """Base class of all metrics; the value is a sum divided by a count.

    Subclasses override `update` to add to ``sum_metric`` and ``num_inst``, and with
    ``has_global_stats=True`` also to ``global_sum_metric`` and ``global_num_inst``.

    Parameters
    ----------
    name : str
        Name of the metric.
    output_names : list of str, optional
        Names of the outputs that `update_dict` uses, in this order; by default all.
    label_names : list of str, optional
        Names of the labels that `update_dict` uses, in this order; by default all.

    >>> metric = mx.metric.Accuracy()
    >>> metric.update([nd.array([1, 0])], [nd.array([[0.1, 0.9], [0.2, 0.8]])])
    >>> metric.get()
    ('accuracy', 0.5)
    """

    sum_metric = _Sum()
    num_inst = _Sum()
    global_sum_metric = _Sum()
    global_num_inst = _Sum()

    def __init__(
        self,
        name: str,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.name = str(name)
        self.output_names = output_names
        self.label_names = label_names
        self._has_global_stats = kwargs.pop("has_global_stats", False)
        self._kwargs = kwargs
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """Return the configuration for `create`."""
        return {
            **self._kwargs,
            "metric": type(self).__name__,
            "name": self.name,
            "output_names": self.output_names,
            "label_names": self.label_names,
        }

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Add a batch of labels and predictions by name.

        Parameters
        ----------
        label
            The labels by name.
        pred
            The predictions by name.
        """
        outputs, labels = self.output_names, self.label_names
        preds = [pred[name] for name in (pred if outputs is None else outputs)]
        self.update([label[name] for name in (label if labels is None else labels)], preds)

    def update(self, labels: Arrays, preds: Arrays) -> None:
        """Add a batch of labels and predictions; subclasses define it.

        Parameters
        ----------
        labels
            The labels, in a list.
        preds
            The predictions, in a list.
        """
        raise NotImplementedError(f"{type(self).__name__} must override update(labels, preds)")

    def reset(self) -> None:
        """Reset all sums."""
        self.__dict__.pop("_pending", None)
        self.num_inst = self.global_num_inst = 0
        self.sum_metric = self.global_sum_metric = 0.0

    def reset_local(self) -> None:
        """Reset the sums of `get`, and keep those of `get_global`."""
        self.num_inst = 0
        self.sum_metric = 0.0

    def get(self) -> tuple[Any, Any]:
        """Return the name and the value since the last reset; NaN without samples."""
        return self.name, quotient(self.sum_metric, self.num_inst)

    def get_global(self) -> tuple[Any, Any]:
        """Return the name and the value since `reset`."""
        if not self._has_global_stats:
            return self.get()
        return self.name, quotient(self.global_sum_metric, self.global_num_inst)

    def get_name_value(self) -> list[tuple[str, float]]:
        """Return pairs of name and value since the last reset."""
        return _as_pairs(*self.get())

    def get_global_name_value(self) -> list[tuple[str, float]]:
        """Return pairs of name and value since `reset`."""
        if not self._has_global_stats:
            return self.get_name_value()
        return _as_pairs(*self.get_global())

    def _tally(self, total: Tensor | float, count: Tensor | int) -> None:
        """Add a batch's results to the local and global sums, without waiting for a GPU."""
        if isinstance(total, Tensor) and stays_on_device(total):
            total = total.to(wide(total))
            count = count.to(total) if isinstance(count, Tensor) else torch.full_like(total, count)
            pending = self.__dict__.setdefault("_pending", {})
            step = torch.stack((total, count))
            sums = pending.get(total.device)
            pending[total.device] = step if sums is None else sums + step
        else:
            self._add(float(total), int(count))

    def _settle(self) -> None:
        pending = self.__dict__.pop("_pending", None)
        for sums in (pending or {}).values():
            total, count = sums.tolist()
            self._add(total, int(count))

    def _add(self, total: float, count: int) -> None:
        self.sum_metric += total
        self.num_inst += count
        self.global_sum_metric += total
        self.global_num_inst += count


register = registry.get_register_func(EvalMetric, "metric")
alias = registry.get_alias_func(EvalMetric, "metric")
_create = registry.get_create_func(EvalMetric, "metric")


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """Create a metric from its name, from a function, or from a list of these.

    Further arguments are passed to the metric, or to each metric of a list.

    Parameters
    ----------
    metric
        A name, a function, a metric, or a list of these.
    args
        Arguments of the metric.

    >>> mx.metric.create("top_k_accuracy", top_k=5).name
    'top_k_accuracy_5'
    >>> mx.metric.create(["acc", "mse"]).get()
    (['accuracy', 'mse'], [nan, nan])
    """
    if isinstance(metric, type) and issubclass(metric, EvalMetric):
        return metric(*args, **kwargs)
    if callable(metric) and not isinstance(metric, EvalMetric):
        return _create("custommetric", metric, *args, **kwargs)
    if isinstance(metric, list):
        return CompositeEvalMetric([create(child, *args, **kwargs) for child in metric])
    return _create(metric, *args, **kwargs)


@register
@alias("composite")
@inherits_parameters
class CompositeEvalMetric(EvalMetric):
    """Several metrics that are updated together.

    Parameters
    ----------
    metrics
        The metrics, or their names.
    name
        Name of the metric.

    >>> both = mx.metric.CompositeEvalMetric(["acc", mx.metric.F1()])
    >>> both.get_name_value()
    [('accuracy', nan), ('f1', nan)]
    """

    def __init__(
        self,
        metrics: Sequence[Any] | None = None,
        name: str = "composite",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        self.metrics: list[EvalMetric] = []  # while it is empty: passed metrics keep their sums
        super().__init__(name, output_names, label_names, has_global_stats=True)
        self.metrics = [create(metric) for metric in metrics or ()]

    def add(self, metric: Any) -> None:
        """Add a metric, or an argument of `create`."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """Return the metric at an index."""
        try:
            return self.metrics[index]
        except IndexError:
            raise ValueError(
                f"Metric index {index} is out of range 0 and {len(self.metrics)}"
            ) from None

    def update(self, labels: Arrays, preds: Arrays) -> None:
        """Update each metric with a batch."""
        for metric in self.metrics:
            metric.update(labels, preds)

    def update_dict(  # pyright: ignore[reportIncompatibleMethodOverride]  # MXNet's names
        self, labels: Mapping[str, Any], preds: Mapping[str, Any]
    ) -> None:
        """Update the metrics with named arrays; each metric selects its own."""
        if self.label_names is not None:
            labels = {name: labels[name] for name in labels if name in self.label_names}
        if self.output_names is not None:
            preds = {name: preds[name] for name in preds if name in self.output_names}
        for metric in self.metrics:
            metric.update_dict(labels, preds)

    def reset(self) -> None:
        """Reset all sums."""
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        """Reset the sums of `get`, and keep those of `get_global`."""
        for metric in self.metrics:
            metric.reset_local()

    def get(self) -> tuple[list[str], list[float]]:
        """Return the names and the values since the last reset."""
        return _unzip(metric.get_name_value() for metric in self.metrics)

    def get_global(self) -> tuple[list[str], list[float]]:
        """Return the names and the values since `reset`."""
        return _unzip(metric.get_global_name_value() for metric in self.metrics)

    def get_config(self) -> dict[str, Any]:
        """Return the configuration for `create`."""
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


def check_label_shapes(
    labels: Any, preds: Any, wrap: bool = False, shape: bool = False
) -> tuple[Any, Any]:
    """Raise unless labels and predictions have equal lengths, or with `shape` equal shapes.

    With `wrap` a single array is returned as a list of one.

    Parameters
    ----------
    labels
        The labels: an array, or a list.
    preds
        The predictions: an array, or a list.
    wrap
        Whether to return a single array as a list of one.
    shape
        Whether to compare shapes; otherwise the numbers of arrays.

    >>> mx.metric.check_label_shapes([1], [1, 2])
    Traceback (most recent call last):
    mxnet.error.ShapeError: Shape of labels 1 does not match shape of predictions 2
    """
    label, pred = len(labels), len(preds)
    if shape:
        label, pred = tuple(labels.shape), tuple(preds.shape)
    if label != pred:
        raise ShapeError(f"Shape of labels {label} does not match shape of predictions {pred}")
    if wrap:
        labels, preds = as_array_list(labels), as_array_list(preds)
    return labels, preds


def pairs(labels: Arrays, preds: Arrays) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield label and prediction as tensors on the prediction's device."""
    labels, preds = check_label_shapes(labels, preds, True)
    for label, pred in zip(labels, preds, strict=True):
        scores = as_tensor(pred)
        yield as_tensor(label).to(scores.device), scores


def as_tensor(array: Any) -> Tensor:
    """Return the detached tensor of an array of any library."""
    if isinstance(array, Handle):
        sparse: Any = None if getattr(array, "stype", "default") == "default" else array
        return plain(array if sparse is None else sparse.tostype("default"))
    if isinstance(array, Tensor):
        return array.detach()
    return torch.from_numpy(np.array(array))  # a copy: torch does not support read-only memory


def as_float(tensor: Tensor) -> Tensor:
    """Convert to a data type that can be summed."""
    if tensor.dtype in _HALVES:
        return tensor.float()
    return tensor if tensor.is_floating_point() else tensor.to(wide(tensor))


def wide(tensor: Tensor) -> torch.dtype:
    """Return the widest floating-point type of the tensor's device."""
    return accelerator.widest_float(tensor.device)


def stays_on_device(tensor: Tensor) -> bool:
    """Return whether reading the tensor would wait for its device."""
    return not tensor.is_cpu


def quotient(total: Any, count: Any) -> Any:
    """Return total / count as a Python float, NaN for a count of 0."""
    if isinstance(count, int | float | np.generic) and count == 0:
        return math.nan
    value: Any = total / count
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    try:
        return float(value)
    except TypeError:  # a subclass may have several counts
        return value


def as_array_list(arrays: Arrays) -> Any:
    """Return a single array as a list of one, and lists unchanged."""
    return [arrays] if isinstance(arrays, Handle | Tensor | np.ndarray) else arrays


def _as_pairs(name: Any, value: Any) -> list[tuple[str, float]]:
    names = name if isinstance(name, list) else [name]
    values = value if isinstance(value, list) else [value]
    return list(zip(names, values, strict=True))


def _unzip(parts: Iterator[list[tuple[str, float]]]) -> tuple[list[str], list[float]]:
    rows = [row for part in parts for row in part]
    return [name for name, _ in rows], [value for _, value in rows]
