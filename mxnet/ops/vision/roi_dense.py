"""Region pooling with arrays of fixed sizes, for traced programs that run on different regions.

The kernels of `roi.py` gather the pixels of the given regions. These forms have a fixed amount of
work: tables of maxima and sums for whole pixels, weight matrices for samples.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..tracing import check_values


class Bins(NamedTuple):
    """The first and one past the last pixel of every bin of every region, on each axis."""

    top: Tensor
    bottom: Tensor
    left: Tensor
    right: Tensor

    def is_empty(self) -> Tensor:
        """Return which bins have no pixel, as ``(regions, rows, columns)``."""
        return (self.bottom <= self.top).unsqueeze(2) | (self.right <= self.left).unsqueeze(1)


def max_of_bins(data: Tensor, image: Tensor, bins: Bins) -> Tensor:
    """Return the maximum of each bin as rows of channels, 0 for empty ones.

    A rectangle is covered by four overlapping ones whose sides are powers of two; a table has the
    maxima of all such rectangles.
    """
    height, width = data.shape[2:]
    batch, channels = data.shape[:2]
    levels_y, levels_x = height.bit_length(), width.bit_length()
    table = []
    for y in range(levels_y):
        columns = data if y == 0 else _maximum(table[-levels_x], 1 << (y - 1), -2)
        table.append(columns)
        for x in range(1, levels_x):
            table.append(_maximum(table[-1], 1 << (x - 1), -1))
    rows = torch.stack(table).movedim(2, -1).reshape(-1, channels)
    level_y, first_y, last_y = _cover(bins.top, bins.bottom, levels_y, height)
    level_x, first_x, last_x = _cover(bins.left, bins.right, levels_x, width)
    level = level_y.unsqueeze(2) * levels_x + level_x.unsqueeze(1)
    base = (level * batch + image.view(-1, 1, 1)) * height
    corners = [
        rows[(base + y.unsqueeze(2)) * width + x.unsqueeze(1)]
        for y in (first_y, last_y)
        for x in (first_x, last_x)
    ]
    return torch.stack(corners).amax(0).masked_fill(bins.is_empty().unsqueeze(-1), 0.0)


def _maximum(values: Tensor, shift: int, axis: int) -> Tensor:
    """Return the maximum of each element and the one `shift` after it."""
    shifted = values.narrow(axis, shift, values.shape[axis] - shift)
    pad = (0, shift) if axis == -1 else (0, 0, 0, shift)
    low = -torch.inf if values.is_floating_point() else torch.iinfo(values.dtype).min
    return torch.maximum(values, F.pad(shifted, pad, value=low))


def _cover(first: Tensor, end: Tensor, levels: int, limit: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the level of two ranges that cover one, and their starts."""
    length = (end - first).clamp(min=1)
    powers = torch.tensor([1 << i for i in range(1, levels)], device=first.device)
    level = (length.unsqueeze(-1) >= powers).sum(-1)
    size = torch.ones_like(level) << level
    return level, first.clamp(0, limit - 1), (end - size).clamp(0, limit - 1)


def mean_of_bins(planes: Tensor, bins: Bins, plane: Tensor) -> Tensor:
    """Return means as rows of channels: ``planes`` is ``(planes, channels, height, width)``.

    `plane` has the plane of every bin. Sums are differences of a summed-area table in double
    precision.
    """
    sums = F.pad(planes.double().cumsum(-1).cumsum(-2), (1, 0, 1, 0))
    _, channels, height, width = sums.shape
    rows = sums.movedim(1, -1).reshape(-1, channels)

    def up_to(y: Tensor, x: Tensor) -> Tensor:
        return rows[(plane * height + y.unsqueeze(2)) * width + x.unsqueeze(1)]

    top, bottom, left, right = bins
    total = up_to(bottom, right) - up_to(top, right) - up_to(bottom, left) + up_to(top, left)
    area = (bottom - top).unsqueeze(2) * (right - left).unsqueeze(1)
    mean = (total / area.clamp(min=1).unsqueeze(-1)).to(planes.dtype)
    return mean.masked_fill(bins.is_empty().unsqueeze(-1), 0.0)


def max_samples(count: Tensor, ratio: int, bins: int, limit: int) -> int:
    """Return the maximum number of samples per bin along one axis, for regions up to `limit`.

    A larger region raises an error at run time.
    """
    if ratio > 0:
        return ratio
    most = max(1, math.ceil(limit / bins))
    error = ValueError(
        f"a region is larger than {limit} pixels of the feature map, the limit of this program; "
        "convert the model with a sampling ratio above 0."
    )
    check_values((count <= most).all(), error)
    return most


class Samples(NamedTuple):
    """Pixels and weights, ``(regions, bins, samples)``, along one axis."""

    pixel: Tensor
    weight: Tensor

    def as_matrix(self, size: int, offset: Tensor | None = None) -> Tensor:
        """Return the weight of every pixel of an axis in every bin."""
        index = self.pixel if offset is None else self.pixel + offset.view(-1, 1, 1)
        matrix = self.weight.new_zeros((*index.shape[:2], size))
        return matrix.scatter_add(2, index, self.weight)


def weigh_pixels(data: Tensor, image: Tensor, y: Samples, x: Samples) -> Tensor:
    """Return weighted sums of pixels: ``(regions, channels, rows, columns)``."""
    batch, channels, height, width = data.shape
    down = y.as_matrix(batch * height, image * height).to(data.dtype)
    across = x.as_matrix(width).to(data.dtype)
    lines = data.permute(0, 2, 1, 3).reshape(batch * height, channels * width)
    count, rows = down.shape[:2]
    strips = (down.reshape(count * rows, -1) @ lines).reshape(count, rows * channels, width)
    pooled = strips @ across.transpose(1, 2)
    return pooled.reshape(count, rows, channels, -1).transpose(1, 2).contiguous()
