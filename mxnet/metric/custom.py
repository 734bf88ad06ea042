"""Metrics from user functions, and the mean of losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..error import InvalidType
from ..ops.documentation import inherits_parameters
from .base import (
    Arrays,
    EvalMetric,
    Feval,
    as_array_list,
    as_float,
    as_tensor,
    check_label_shapes,
    register,
)
from .classification import Names


@register
@inherits_parameters
class Loss(EvalMetric):
    """The mean of all elements of the outputs; labels are ignored.

    >>> metric = mx.metric.Loss()
    >>> metric.update(None, [nd.array([1, 2, 6])])
    >>> metric.get()
    ('loss', 3.0)
    """

    def __init__(
        self, name: str = "loss", output_names: Names = None, label_names: Names = None
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, _: Any, preds: Arrays) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # MXNet's name
        """Update with losses."""
        for pred in as_array_list(preds):
            losses = as_tensor(pred)
            self._tally(as_float(losses).sum(), losses.numel())


@register
@inherits_parameters
class Torch(Loss):
    """`Loss` under the name 'torch'.

    >>> mx.metric.Torch().name
    'torch'
    """

    def __init__(
        self, name: str = "torch", output_names: Names = None, label_names: Names = None
    ) -> None:
        super().__init__(name, output_names, label_names)


@register
@inherits_parameters
class Caffe(Loss):
    """`Loss` under the name 'caffe'.

    >>> mx.metric.Caffe().name
    'caffe'
    """

    def __init__(
        self, name: str = "caffe", output_names: Names = None, label_names: Names = None
    ) -> None:
        super().__init__(name, output_names, label_names)


@register
@inherits_parameters
class CustomMetric(EvalMetric):
    """A metric from a function of NumPy arrays ``feval(label, pred)``.

    The function returns the value of a batch, or a pair (sum, count).

    Parameters
    ----------
    feval : callable
        Function of a label and a prediction, both NumPy arrays.
    name : str, optional
        Name of the metric; by default the function's own.
    allow_extra_outputs : bool
        Whether there may be more predictions than labels; extra ones are ignored. An array that is
        not in a list is then treated as a list of its rows, as in MXNet.

    >>> metric = mx.metric.CustomMetric(lambda label, pred: abs(label - pred).max(), name="worst")
    >>> metric.update(nd.array([1, 2]), nd.array([1, 5]))
    >>> metric.get()
    ('worst', 3.0)
    """

    def __init__(
        self,
        feval: Feval,
        name: str | None = None,
        allow_extra_outputs: bool = False,
        output_names: Names = None,
        label_names: Names = None,
    ) -> None:
        if name is None:
            own = str(getattr(feval, "__name__", type(feval).__name__))
            name = f"custom({own})" if "<" in own else own
        super().__init__(
            name,
            output_names,
            label_names,
            feval=feval,
            allow_extra_outputs=allow_extra_outputs,
            has_global_stats=True,
        )
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs

    def update(self, labels: Arrays, preds: Arrays) -> None:
        """Update with labels and predictions."""
        if not self._allow_extra_outputs:
            check_label_shapes(labels, preds)
            labels, preds = as_array_list(labels), as_array_list(preds)
        for label, pred in zip(labels, preds, strict=False):  # the rows of a bare array
            result = self._feval(_on_host(label), _on_host(pred))
            total, count = result if isinstance(result, tuple) else (result, 1)
            if isinstance(total, str) or total is None:
                raise InvalidType(
                    f"The function of metric {self.name!r} returned {result!r}: it must return a "
                    "number, or (sum, count)."
                )
            self._add(total, count)

    def get_config(self) -> dict[str, Any]:
        """Not supported: a function has no configuration."""
        raise NotImplementedError("CustomMetric cannot be serialized")


def _on_host(array: Any) -> numpy.ndarray:
    return array.asnumpy() if hasattr(array, "asnumpy") else numpy.asarray(array)


def np(
    numpy_feval: Feval, name: str | None = None, allow_extra_outputs: bool = False
) -> CustomMetric:
    """Create a metric from a function of NumPy arrays ``numpy_feval(label, pred)``.

    Parameters
    ----------
    numpy_feval
        Function of a label and a prediction, both NumPy arrays.
    name
        Name of the metric; by default the function's own.
    allow_extra_outputs
        Whether there may be more predictions than labels; extra ones are ignored.

    >>> def share_of_ones(label, pred):
    ...     return (pred == 1).mean()
    >>> mx.metric.np(share_of_ones).name
    'share_of_ones'
    """
    feval: Callable[..., Any] = numpy_feval
    return CustomMetric(feval, name, allow_extra_outputs)
