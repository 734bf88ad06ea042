"""Thresholds of least divergence: where to clip a distribution before quantizing it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ...error import ShapeError
from ..declare import op
from .conversions import _check_dtype

SMALLEST = 1e-4  # what an empty bin gets, so that divergences stay finite


def least_divergence(
    hist: np.ndarray, edges: np.ndarray, quantized_bins: int
) -> tuple[float, float]:
    """Return the threshold whose clipped, quantized distribution diverges least, and by how much.

    >>> hist, edges = np.histogram(np.linspace(-1, 1, 9000), bins=801, range=(-1, 1))
    >>> 0.9 < least_divergence(hist, edges, 255)[0] <= 1
    True
    """
    hist = hist.astype(np.float32)
    zero = len(hist) // 2
    half = quantized_bins // 2
    best, threshold = np.inf, float(edges[-1])
    for reach in range(half, zero + 1):
        start, stop = zero - reach, min(zero + reach + 1, len(hist))
        found = divergence(hist, start, stop, quantized_bins)
        if found < best:
            best, threshold = found, float(edges[stop])
    return threshold, float(best)


def divergence(hist: np.ndarray, start: int, stop: int, quantized_bins: int) -> np.float32:
    """Return the Kullback-Leibler divergence of the quantized from the clipped distribution.

    Like 1.9.1 it leaves the first bin out of the quantized distribution, and adds up float32
    numbers one by one: neighboring thresholds differ by less than what other orders round away.
    """
    inside = hist[start:stop]
    clipped = inside.copy()
    clipped[0] += _total(hist[:start])
    clipped[-1] += _total(hist[stop:])
    counted = inside.copy()
    counted[0] = 0
    merged = len(inside) // quantized_bins
    firsts = np.arange(quantized_bins) * merged
    counts = np.add.reduceat(counted, firsts)
    filled = np.add.reduceat((counted != 0).astype(np.float32), firsts)
    share = np.divide(counts, filled, out=np.zeros_like(counts), where=filled > 0)
    quantized = np.repeat(share, np.diff(np.append(firsts, len(inside))))
    quantized[clipped == 0] = 0
    p, q = smooth_distribution(clipped), smooth_distribution(quantized)
    if p is None or q is None:
        return np.float32(np.inf)
    p, q = p / _total(p), q / _total(q)
    logarithms = np.log((p / q).astype(np.float64)).astype(np.float32)  # correctly rounded
    return _total(p * logarithms)


def _total(values: np.ndarray) -> np.float32:
    return np.add.accumulate(values)[-1] if len(values) else np.float32(0)


def smooth_distribution(counts: np.ndarray, eps: float = SMALLEST) -> np.ndarray | None:
    """Give empty bins a little of the others; None if there is nothing to take.

    >>> smooth_distribution(np.array([0, 2, 3], "float32"))
    array([1.00000e-04, 1.99995e+00, 2.99995e+00], dtype=float32)
    """
    empty = counts == 0
    n_empty, n_filled = np.float32(empty.sum()), np.float32((~empty).sum())
    if not n_filled:
        return None
    taken = np.float32(eps) * n_empty / n_filled
    if taken >= 1.0:
        return None
    return np.where(empty, np.float32(eps), counts - taken)


@op(
    "_contrib_calibrate_entropy",
    outputs=("threshold", "divergence"),
    types="float32 -> float32",
    shape=lambda ins, outs, attrs: (ins, [(1,), (1,)]),
)
def calibrate_entropy(
    hist: Tensor, hist_edges: Tensor, *, num_quantized_bins: int = 255
) -> tuple[Tensor, Tensor]:
    """Return the threshold whose clipped, quantized distribution diverges least from a histogram.

    Parameters
    ----------
    hist
        Numbers of values in an odd number of bins around 0.
    hist_edges
        The ends of the bins, one more than bins.
    num_quantized_bins
        How many values the quantized distribution has.

    >>> values = np.linspace(-1, 1, 9000)
    >>> hist, edges = np.histogram(values, bins=801, range=(-1, 1))
    >>> threshold, _ = mx.nd.contrib.calibrate_entropy(mx.nd.array(hist), mx.nd.array(edges))
    >>> bool(threshold.asscalar() > 0.9)
    True
    """
    name = "_contrib_calibrate_entropy"
    for given in (hist, hist_edges):
        _check_dtype(name, given, torch.float32)
    if hist.ndim != 1 or hist_edges.shape != (len(hist) + 1,):
        raise ShapeError(
            f"{name}: a histogram of n bins has n + 1 edges, got {tuple(hist.shape)} and "
            f"{tuple(hist_edges.shape)}."
        )
    found = least_divergence(
        hist.detach().cpu().numpy(), hist_edges.detach().cpu().numpy(), num_quantized_bins
    )
    threshold, left = (hist.new_tensor([value]) for value in found)
    return threshold, left
