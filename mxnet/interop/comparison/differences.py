"""Differences of two outputs: elementwise, or as sets of rows.

It imports only torch, because processes without MXNext load it too.
"""

from __future__ import annotations

import torch
from torch import Tensor

INFINITE = (float("inf"), float("inf"))
ROWS_AT_ONCE = 256  # whose distances to all others are in memory


def difference(result: Tensor, reference: Tensor, scale: float = 0.0) -> tuple[float, float]:
    """Return the largest absolute error, and the same relative to the largest number."""
    if result.shape != reference.shape:
        return INFINITE
    a, b = result.detach().double(), reference.double()
    same = (a == b) | (a.isnan() & b.isnan())
    if bool(same.all()):
        return 0.0, 0.0
    if not bool(a[~same].isfinite().all()) or not bool(b[~same].isfinite().all()):
        return INFINITE
    absolute = float((a - b)[~same].abs().max())
    return absolute, absolute / max(_largest(b), scale, 1e-30)


def difference_of_sets(result: Tensor, reference: Tensor) -> tuple[float, float]:
    """Return the largest distance of a row of one side to the nearest of the other.

    The order of rows with nearly equal scores is undefined; rows that start with -1 are empty. The
    elementwise difference is used if it is smaller.
    """
    if result.shape != reference.shape:
        return INFINITE
    ordered = difference(result, reference)
    if ordered == (0.0, 0.0) or reference.ndim < 2:
        return ordered
    pairs = zip(_as_sets(result.detach().double()), _as_sets(reference.double()), strict=True)
    errors = [_distance(a[a[:, 0] != -1], b[b[:, 0] != -1]) for a, b in pairs]
    worst = max(error[0] for error in errors), max(error[1] for error in errors)
    return min(ordered, worst, key=lambda error: error[1])


def _as_sets(tensor: Tensor) -> Tensor:
    """Return sets of rows: of the last axes, or of whole regions such as (region, C, H, W)."""
    if tensor.ndim > 3:
        return tensor.reshape(1, len(tensor), -1)
    return tensor.reshape(-1, *tensor.shape[-2:])


def _distance(a: Tensor, b: Tensor) -> tuple[float, float]:
    if len(a) != len(b):
        return INFINITE
    if not a.numel():
        return 0.0, 0.0
    absolute = max(_farthest(a, b), _farthest(b, a))
    return absolute, absolute / max(_largest(b), 1e-30)


def _farthest(a: Tensor, b: Tensor) -> float:
    """Return the largest distance of a row of `a` to the nearest row of `b`."""
    farthest = 0.0
    for rows in a.split(ROWS_AT_ONCE):
        x, y = rows[:, None], b[None]
        same = (x == y) | (x.isnan() & y.isnan())
        steps = (x - y).abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
        nearest = steps.masked_fill(same, 0.0).amax(2).amin(1)
        farthest = max(farthest, float(nearest.max()))
    return farthest


def _largest(tensor: Tensor) -> float:
    finite = tensor[tensor.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0
