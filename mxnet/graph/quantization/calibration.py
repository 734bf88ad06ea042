"""Collectors of the ranges of layer outputs, and the choice of thresholds."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from ...error import InvalidValue
from ...ops.quantization.calibration import least_divergence, smooth_distribution

if TYPE_CHECKING:
    from ...ndarray import NDArray

Histogram = tuple[np.ndarray, np.ndarray, float, float, float]
Ranges = dict[str, tuple[float, float]]
QUANTIZED_BINS = 255


class LayerOutputCollector:
    """Base class of collectors of layer outputs.

    `collect` is called with each output, `post_collect` returns the ranges. Pass a subclass as
    ``LayerOutputCollector=`` to `quantize_net_v2`.

    Parameters
    ----------
    include_layer
        Names of the outputs to collect; by default all.
    logger
        Logger; by default none.

    >>> collectors = mx.contrib.quantization
    >>> issubclass(collectors.LayerOutputMinMaxCollector, collectors.LayerOutputCollector)
    True
    """

    def __init__(self, include_layer: Collection[str] | None = None, logger: Any = None) -> None:
        self.include_layer = include_layer
        self.logger = logger
        self.min_max_dict: Ranges = {}

    def collect(self, name: str, arr: NDArray) -> None:
        """Process one output of a batch."""
        raise NotImplementedError(f"{type(self).__name__} must define collect(name, arr)")

    def post_collect(self) -> Ranges:
        """Return the range of every output, after all batches."""
        return self.min_max_dict

    def includes(self, name: str) -> bool:
        """Return whether an output is calibrated."""
        return self.include_layer is None or name in self.include_layer


class LayerOutputMinMaxCollector(LayerOutputCollector):
    """Collects the minimum and maximum of each output.

    Parameters
    ----------
    quantized_dtype
        ``'int8'``, ``'uint8'`` or ``'auto'``.
    include_layer
        Names of the outputs to collect; by default all.
    logger
        Logger; by default none.

    >>> collector = mx.contrib.quantization.LayerOutputMinMaxCollector("int8")
    >>> collector.collect("fc_output", mx.nd.array([-1, 3]))
    >>> collector.min_max_dict
    {'fc_output': (-1.0, 3.0)}
    """

    def __init__(
        self,
        quantized_dtype: str,
        include_layer: Collection[str] | None = None,
        logger: Any = None,
    ) -> None:
        super().__init__(include_layer, logger)
        self.quantized_dtype = quantized_dtype

    def collect(self, name: str, arr: NDArray) -> None:
        """Extend the range of an output by the values of a batch."""
        if not self.includes(name):
            return
        values = arr.asnumpy()
        low, high = float(values.min()), float(values.max())
        if name in self.min_max_dict:
            before = self.min_max_dict[name]
            low, high = min(low, before[0]), max(high, before[1])
        self.min_max_dict[name] = low, high


class LayerHistogramCollector(LayerOutputCollector):
    """Collects a histogram of each output; the thresholds minimize the KL divergence.

    Nonnegative outputs use unsigned ranges, unless `quantized_dtype` is ``"int8"``.

    Parameters
    ----------
    num_bins
        Number of bins of a histogram.
    include_layer
        Names of the outputs to collect; by default all.
    logger
        Logger; by default none.
    quantized_dtype
        ``'int8'``, ``'uint8'`` or ``'auto'``.

    >>> collector = mx.contrib.quantization.LayerHistogramCollector(num_bins=101)
    >>> collector.collect("fc_output", mx.nd.array([-1, 3]))
    """

    def __init__(
        self,
        num_bins: int = 8001,
        include_layer: Collection[str] | None = None,
        logger: Any = None,
        quantized_dtype: str = "auto",
    ) -> None:
        super().__init__(include_layer, logger)
        self.num_bins = num_bins
        self.quantized_dtype = quantized_dtype
        self.hist_dict: dict[str, Histogram] = {}

    def collect(self, name: str, arr: NDArray) -> None:
        """Add a batch to the histogram of an output."""
        if not self.includes(name):
            return
        values = arr.asnumpy()
        low, high = float(values.min()), float(values.max())
        end = max(abs(low), abs(high))
        if name in self.hist_dict:
            self.hist_dict[name] = combine_histogram(self.hist_dict[name], values, low, high, end)
            return
        limit = end or 1.0
        hist, edges = np.histogram(values, bins=self.num_bins, range=(-limit, limit))
        self.hist_dict[name] = hist, edges, low, high, limit

    def post_collect(self) -> Ranges:
        """Return the thresholds of all outputs."""
        for name, hist in self.hist_dict.items():
            self.min_max_dict[name] = _threshold_range(hist, self.quantized_dtype, QUANTIZED_BINS)
            if self.logger is not None:
                self.logger.log(logging.DEBUG, f"layer={name}, range={self.min_max_dict[name]}")
        return self.min_max_dict


def combine_histogram(
    old_hist: Histogram, arr: np.ndarray, new_min: float, new_max: float, new_th: float
) -> Histogram:
    """Add the values of an array to a histogram, extending it by whole bins.

    Parameters
    ----------
    old_hist
        Counts, edges, minimum, maximum and threshold of the histogram.
    arr
        The new values.
    new_min
        Minimum of the new values.
    new_max
        Maximum of the new values.
    new_th
        Maximum absolute value of the new values.

    >>> old = np.array([1, 2, 3]), np.array([-3.0, -1, 1, 3]), -2, 2.5, 3.0
    >>> mx.contrib.quantization.combine_histogram(old, np.array([-4, 0.5, 5]), -4, 5, 5.0)[0]
    array([0, 1, 1, 3, 3, 0, 1])
    """
    hist, edges, old_min, old_max, old_th = old_hist
    low, high = min(old_min, new_min), max(old_max, new_max)
    if new_th <= old_th:
        added, _ = np.histogram(arr, bins=len(hist), range=(-old_th, old_th))
        return hist + added, edges, low, high, old_th
    width = 2 * old_th / len(hist)
    more = int((new_th - old_th) // width + 1)
    limit = more * width + old_th
    total, edges = np.histogram(arr, bins=len(hist) + 2 * more, range=(-limit, limit))
    total[more : len(total) - more] += hist
    return total, edges, low, high, limit


def find_threshold(
    hist: np.ndarray, edges: np.ndarray, quantized_bins: int = QUANTIZED_BINS
) -> float:
    """Return the threshold that minimizes the KL divergence of the quantized distribution.

    `mx.nd.contrib.calibrate_entropy` also returns the divergence.

    Parameters
    ----------
    hist
        Counts of the histogram.
    edges
        Bin edges of the histogram.
    quantized_bins
        Number of values of the 8-bit type.

    >>> hist, edges = np.histogram(np.linspace(-1, 1, 9000), bins=801, range=(-1, 1))
    >>> 0.9 < mx.contrib.quantization.find_threshold(hist, edges) <= 1
    True
    """
    return least_divergence(hist, edges, quantized_bins)[0]


def _get_optimal_threshold(
    hist_data: Histogram, quantized_dtype: str, num_quantized_bins: int = QUANTIZED_BINS
) -> tuple[float, float, float, float]:
    """Return minimum and maximum of the data, the best threshold and its divergence."""
    hist, edges, low, high, _ = hist_data
    if low >= 0 and quantized_dtype in ("auto", "uint8"):
        num_quantized_bins = 2 * num_quantized_bins + 1  # the negative steps are available
    return low, high, *least_divergence(np.asarray(hist), np.asarray(edges), num_quantized_bins)


def _smooth_distribution(p: np.ndarray, eps: float = 0.0001) -> np.ndarray:
    """Move a small amount from other bins to empty bins."""
    smoothed = smooth_distribution(np.asarray(p, "float32"), eps)
    if smoothed is None:
        raise InvalidValue(
            "The discrete probability distribution is malformed: all entries are 0, or too few "
            f"are not for eps={eps}."
        )
    return smoothed


def _get_optimal_thresholds(
    hist_dict: dict[str, Histogram],
    quantized_dtype: str,
    num_quantized_bins: int = QUANTIZED_BINS,
    logger: Any = None,
) -> Ranges:
    """Return the calibrated range of each output."""
    return {
        name: _threshold_range(hist, quantized_dtype, num_quantized_bins)
        for name, hist in hist_dict.items()
    }


def _threshold_range(hist: Histogram, dtype: str, bins: int) -> tuple[float, float]:
    low, _, threshold, _ = _get_optimal_threshold(hist, dtype, bins)
    return (0.0 if low >= 0 and dtype != "int8" else -threshold), threshold
