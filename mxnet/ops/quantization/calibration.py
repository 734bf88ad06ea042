"""Calibration thresholds that minimize the KL divergence."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ...error import ShapeError
from ..declare import op
from .conversions import _check_dtype

MIN_COUNT = 1e-4  # value of an empty bin, so that divergences are finite
MAX_EXACT = 2**24  # largest exact integer count in float32
BATCH = 32  # number of thresholds per batch


def least_divergence(
    hist: np.ndarray, edges: np.ndarray, quantized_bins: int
) -> tuple[float, float]:
    """Return the threshold with the least divergence, and that divergence.

    >>> hist, edges = np.histogram(np.linspace(-1, 1, 9000), bins=801, range=(-1, 1))
    >>> 0.9 < least_divergence(hist, edges, 255)[0] <= 1
    True
    """
    divergences = _Divergences(hist.astype(np.float32), quantized_bins)
    zero = len(hist) // 2
    best, threshold = np.inf, float(edges[-1])
    for first in range(quantized_bins // 2, zero + 1, BATCH):
        reaches = np.arange(first, min(first + BATCH, zero + 1))
        stops = np.minimum(zero + reaches + 1, len(hist))
        values = divergences.within(zero - reaches, stops)
        index = int(np.argmin(values))
        if values[index] < best:
            best, threshold = values[index], float(edges[stops[index]])
    return threshold, float(best)


class _Divergences:
    """Kullback-Leibler divergences of quantized from clipped distributions.

    As in 1.9.1, the first bin of the quantized distribution is skipped and float32 numbers are
    summed sequentially: neighboring thresholds differ by less than the rounding errors of other
    orders. NumPy sums the rows of a matrix in this order; each column is a distribution, padded
    with zeros.
    """

    def __init__(self, hist: np.ndarray, quantized_bins: int) -> None:
        self.hist, self.numbers = hist, np.arange(quantized_bins)
        self.left = np.add.accumulate(hist)
        self.counts = np.append(0.0, np.cumsum(hist, dtype=np.float64))
        self.filled = np.append(0, np.cumsum(hist != 0))

    def within(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return the divergences for clipping outside of bins, the widest range last."""
        base, sizes = starts[-1], stops - starts
        begins, ends = starts - base, stops - base
        p, q = self._clipped(starts, stops), self._quantized(starts, stops)
        empty = p == 0
        _clear(empty, begins, ends)
        good = _smooth(p, empty, sizes) & _smooth(q, empty | (q == 0), sizes)
        _clear(p, begins, ends)
        _clear(q, begins, ends)
        with np.errstate(all="ignore"):  # zero padding of the distributions
            p /= np.add.reduce(p, axis=0)
            q /= np.add.reduce(q, axis=0)
            np.divide(p, q, out=q)
            _into_logarithms(q, empty.all(axis=1))
            p *= q
        _clear(p, begins, ends)
        return np.where(good, np.add.reduce(p, axis=0), np.float32(np.inf))

    def _clipped(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return the bins, with outside counts added to the first and last."""
        base = starts[-1]
        columns = np.repeat(self.hist[base : stops[-1], None], len(starts), axis=1)
        for column, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            right = np.float32(self.counts[-1] - self.counts[stop])
            if right > MAX_EXACT:
                right = np.add.accumulate(self.hist[stop:])[-1]
            columns[start - base, column] += self.left[start - 1] if start else 0
            columns[stop - 1 - base, column] += right
        return columns

    def _quantized(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return the merged bins, each with its share of the counts."""
        base = starts[-1]
        rows = np.ones((len(starts), stops[-1] - base), np.float32)
        for row, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            ends = np.append(start + self.numbers * ((stop - start) // len(self.numbers)), stop)
            counts, filled = np.diff(self.counts[ends]), np.diff(self.filled[ends])
            counts[0] -= self.hist[start]
            filled[0] -= self.hist[start] != 0
            shares = counts.astype(np.float32) / np.maximum(filled, 1).astype(np.float32)
            rows[row, start - base : stop - base] = np.repeat(shares, np.diff(ends))
        return np.ascontiguousarray(rows.T)


def _into_logarithms(ratios: np.ndarray, empty: np.ndarray) -> None:
    """Replace ratios by their logarithms, correctly rounded; all rows of empty bins are equal."""
    alike = np.flatnonzero(empty)
    rows = np.append(np.flatnonzero(~empty), alike[:1])
    ratios[rows] = np.log(ratios[rows].astype(np.float64))
    if len(alike) > 1:
        ratios[alike] = ratios[alike[0]]


def _clear(columns: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> None:
    """Write zeros before the beginning and after the end of each column."""
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        columns[:begin, number] = 0
        columns[end:, number] = 0


def _smooth(
    counts: np.ndarray, empty: np.ndarray, sizes: int | np.ndarray, eps: float = MIN_COUNT
) -> np.ndarray:
    """Move a small amount from other bins to empty bins in place; return where that is possible."""
    n_empty = np.count_nonzero(empty, axis=0)
    n_filled = sizes - n_empty
    taken = np.float32(eps) * np.float32(n_empty) / np.float32(np.maximum(n_filled, 1))
    counts -= taken
    np.putmask(counts, empty, np.float32(eps))
    return (n_filled > 0) & (taken < 1)


def smooth_distribution(counts: np.ndarray, eps: float = MIN_COUNT) -> np.ndarray | None:
    """Move a small amount from other bins to empty bins; None if not possible.

    >>> smooth_distribution(np.array([0, 2, 3], "float32"))
    array([1.00000e-04, 1.99995e+00, 2.99995e+00], dtype=float32)
    """
    smoothed = counts.copy()
    return smoothed if _smooth(smoothed, smoothed == 0, len(smoothed), eps) else None


@op(
    "_contrib_calibrate_entropy",
    outputs=("threshold", "divergence"),
    types="float32 -> float32",
    shape=lambda ins, outs, attrs: (ins, [(1,), (1,)]),
)
def calibrate_entropy(
    hist: Tensor, hist_edges: Tensor, *, num_quantized_bins: int = 255
) -> tuple[Tensor, Tensor]:
    """Return the threshold that minimizes the KL divergence of the quantized distribution.

    Parameters
    ----------
    hist
        Histogram counts; the number of bins is odd and the bins are centered at 0.
    hist_edges
        Bin edges; one more than there are bins.
    num_quantized_bins
        Number of values of the quantized type.

    >>> values = np.linspace(-1, 1, 9000)
    >>> hist, edges = np.histogram(values, bins=801, range=(-1, 1))
    >>> threshold, _ = mx.nd.contrib.calibrate_entropy(mx.nd.array(hist), mx.nd.array(edges))
    >>> bool(threshold.asscalar() > 0.9)
    True
    """
    name = "_contrib_calibrate_entropy"
    for array in (hist, hist_edges):
        _check_dtype(name, array, torch.float32)
    if hist.ndim != 1 or hist_edges.shape != (len(hist) + 1,):
        raise ShapeError(
            f"{name}: a histogram of n bins has n + 1 edges, got {tuple(hist.shape)} and "
            f"{tuple(hist_edges.shape)}."
        )
    numbers = least_divergence(
        hist.detach().cpu().numpy(), hist_edges.detach().cpu().numpy(), num_quantized_bins
    )
    threshold, left = (hist.new_tensor([value]) for value in numbers)
    return threshold, left
