"""Differences of two outputs: elementwise, or as sets of rows.

It imports only torch, because processes without MXNext load it too.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

INFINITE = (float("inf"), float("inf"))
EMPTY = -1  # the class of rows without a box
NEAR = 1e-5  # distance of scores to a threshold, relative to the largest
MAX_COLUMNS = 8  # of rows of classes, scores and boxes
MIN_SCALE = 1e-3  # of a column, relative to the largest
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
    ordered = difference_of_rows(result, reference)
    if result.shape != reference.shape or not ordered[1] or reference.ndim < 2:
        return ordered
    pairs = zip(_as_sets(result.detach().double()), _as_sets(reference.double()), strict=True)
    errors = [_distance(a[a[:, 0] != -1], b[b[:, 0] != -1]) for a, b in pairs]
    worst = max(error[0] for error in errors), max(error[1] for error in errors)
    return min(ordered, worst, key=lambda error: error[1])


def difference_of_rows(
    result: Tensor, reference: Tensor, columns: Sequence[int] = ()
) -> tuple[float, float]:
    """Return the largest error of rows; that of scores is not relative to the pixels of boxes.

    `columns` are those of the class and the score, if rows have them. Then rows of the lowest
    score may be empty on one side alone: rounding decides whether they reach a threshold.
    """
    if len(columns) == 2 and min(columns) >= 0 and result.shape == reference.shape:
        result = _without_cuts(result.detach(), reference, *columns)
    absolute, relative = difference(result, reference)
    if not 0 < relative < INFINITE[1] or reference.ndim < 2:
        return absolute, relative
    scale = _column_sizes(reference.double())
    return absolute, difference(result.detach() / scale, reference / scale, 1.0)[1]


def _without_cuts(result: Tensor, reference: Tensor, kind: int, score: int) -> Tensor:
    """Return rows in which those that only a threshold decides are as in the reference."""
    empty = [t[..., kind] == EMPTY for t in (result, reference)]
    is_cut, is_kept = empty[0] != empty[1], ~empty[0] & ~empty[1]
    if not bool(is_cut.any()) or not bool(is_kept.any()):
        return result
    scores = torch.maximum(result[..., score], reference[..., score])
    lowest, largest = scores[is_kept].min(), scores[is_kept].max()
    is_low = scores <= lowest + NEAR * largest
    return torch.where((is_cut & is_low)[..., None], reference, result)


def _column_sizes(rows: Tensor) -> Tensor:
    """Return the largest number of each column; of long rows, that of all."""
    largest = rows.nan_to_num(posinf=0.0, neginf=0.0).abs().flatten(0, -2).amax(0)
    if len(largest) > MAX_COLUMNS:
        return largest.amax().clamp(min=1e-30)
    return largest.clamp(min=max(MIN_SCALE * float(largest.amax()), 1e-30))


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
    scale = _column_sizes(b)
    absolute, relative = (
        max(_farthest(x, y), _farthest(y, x)) for x, y in ((a, b), (a / scale, b / scale))
    )
    return absolute, relative


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
