"""Pooling over regions of interest.

A pooled value is a weighted sum, or a maximum, of a few pixels: ``embedding_bag`` over the
pixels as rows of channels, which gathers and reduces without storing what it gathered.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from ...error import ShapeError
from ...torch_private import bag_maximum
from ..attributes import Fraction, Shape
from ..declare import op
from ..shapes import UNKNOWN
from ..tensor.identity import in_row_order
from ..tracing import is_traced
from .roi_dense import Bins, Samples, max_of_bins, max_samples, mean_of_bins, weigh_pixels

# How many times as large as the feature map regions of a traced program may be. Samples of rotated
# ones are gathered one by one, those of others cost little.
MAX_EXTENT, MAX_ROTATED_EXTENT = 16, 2
# Pixels looked up in one go, so that index tables stay small.
MAX_LOOKUPS = 1 << 21


def _check_rois(name: str, data: Tensor, rois: Tensor, columns: int = 5) -> None:
    if data.ndim != 4 or rois.ndim != 2 or rois.shape[1] != columns:
        raise ShapeError(
            f"Shape inconsistent in {name}: needs data (batch, channels, height, width) and rois "
            f"(count, {columns}), got {list(data.shape)} and {list(rois.shape)}."
        )


def _pixels(data: Tensor) -> Tensor:
    """Return every pixel as a row of channels: ``(batch * height * width, channels)``."""
    return _rows(data.flatten(2))


def _rows(planes: Tensor) -> Tensor:
    """Return the last axis' places, of all images, as rows of the second axis' channels."""
    # For one image `reshape` gives a view; the fast kernel of `embedding_bag` needs whole rows.
    return planes.movedim(1, -1).reshape(-1, planes.shape[1]).contiguous()


def _chunks(count: int, lookups_each: int) -> Iterator[slice]:
    step = max(1, MAX_LOOKUPS // max(1, lookups_each))
    return (slice(i, i + step) for i in range(0, count, step))


def _pooled_shape(
    data: Shape | None, rois: Shape | None, *, pooled_size: Shape, **_: object
) -> Shape | None:
    if data is None or rois is None:
        return None
    return (rois[0], data[1], *pooled_size)


@op(
    "ROIPooling",
    "_npx_roi_pooling",
    outputs=("output",),
    total=2,
    gradients_by_input=True,
    without_gradient=("rois",),
)
def roi_pooling(
    data: Tensor, rois: Tensor, *, pooled_size: Shape, spatial_scale: Fraction
) -> Tensor:
    """Take the maximum over an even grid of bins in each region ``(image, x1, y1, x2, y2)``.

    >>> x, rois = mx.nd.arange(16).reshape((1, 1, 4, 4)), mx.nd.array([[0, 0, 0, 3, 3]])
    >>> mx.nd.ROIPooling(x, rois, pooled_size=(2, 2), spatial_scale=1.0).asnumpy()
    array([[[[ 5.,  7.],
             [13., 15.]]]], dtype=float32)
    """
    _check_rois("ROIPooling", data, rois)
    batch, channels, height, width = data.shape
    with torch.no_grad():
        corners = rois[:, 1:] * spatial_scale
        # C rounds half away from zero.
        corners = torch.trunc(corners + torch.where(corners < 0, -0.5, 0.5)).long()
        x1, y1, x2, y2 = corners.unbind(1)
        top, bottom = _bins(y1, y2, pooled_size[0], height)
        left, right = _bins(x1, x2, pooled_size[1], width)
        image = rois[:, 0].long()
        present = (image >= 0) & (image < batch)
        image = image.clamp(0, batch - 1)
    if is_traced():
        bins = Bins(top, bottom.where(present.unsqueeze(1), top), left, right)
        return _assemble([max_of_bins(data, image, bins)], data, len(rois), channels, pooled_size)
    tall, wide = _longest(top, bottom), _longest(left, right)
    pixels, parts = _pixels(data), []
    each = pooled_size[0] * pooled_size[1] * tall * wide
    for part in _chunks(len(rois), each):
        with torch.no_grad():
            y = top[part].unsqueeze(-1) + torch.arange(tall, device=data.device)
            x = left[part].unsqueeze(-1) + torch.arange(wide, device=data.device)
            inside_y, inside_x = y < bottom[part].unsqueeze(-1), x < right[part].unsqueeze(-1)
            inside_y = inside_y & present[part].view(-1, 1, 1)
            y = y + image[part].view(-1, 1, 1) * height
            lookup = y[:, :, None, :, None] * width + x[:, None, :, None, :]
            inside = inside_y[:, :, None, :, None] & inside_x[:, None, :, None, :]
        parts.append(_bag(pixels, lookup, inside, None, "max"))
    return _assemble(parts, data, len(rois), channels, pooled_size)


def _bins(start: Tensor, end: Tensor, count: int, limit: int) -> tuple[Tensor, Tensor]:
    """Return first and last-but-one pixel of the bins along one axis."""
    size = (end - start + 1).clamp(min=1).to(torch.float32) / count
    bins = torch.arange(count, device=start.device, dtype=torch.float32)
    size, start = size.unsqueeze(1), start.unsqueeze(1)
    first = torch.floor(bins * size).long() + start
    last = torch.ceil((bins + 1) * size).long() + start
    return first.clamp(0, limit), last.clamp(0, limit)


def _longest(first: Tensor, last: Tensor) -> int:
    return max(1, int((last - first).max())) if first.numel() else 1


def _bag(
    pixels: Tensor, lookup: Tensor, inside: Tensor, weight: Tensor | None, mode: str
) -> Tensor:
    """Reduce the pixels of each bin (the last two axes); bins without any give zero."""
    bins = inside.shape[0] * inside.shape[1] * inside.shape[2]
    inside = inside.reshape(bins, -1)
    if is_traced() and weight is not None:  # what is outside weighs nothing
        lookup = lookup.expand(-1, -1, -1, *lookup.shape[3:]).reshape(bins, -1)
        weight = weight.reshape(bins, -1) * inside
        return F.embedding_bag(lookup, pixels, mode="sum", per_sample_weights=weight)
    counts = inside.sum(1)
    chosen = inside.flatten().nonzero().squeeze(1)
    index = lookup.expand(-1, -1, -1, *lookup.shape[3:]).reshape(-1)[chosen]
    offsets = counts.cumsum(0) - counts
    if mode == "max":
        return _MaxOfRows.apply(pixels, index, offsets)
    weight = None if weight is None else weight.reshape(-1)[chosen]
    return F.embedding_bag(index, pixels, offsets, mode=mode, per_sample_weights=weight)


class _MaxOfRows(torch.autograd.Function):
    """`embedding_bag` by maximum, with a backward many times faster than torch's own."""

    @staticmethod
    def forward(ctx, rows: Tensor, index: Tensor, offsets: Tensor) -> Tensor:
        out, sizes, winner = bag_maximum(rows, index, offsets)
        ctx.empty = (sizes == 0).unsqueeze(1)
        ctx.winner = winner.masked_fill_(ctx.empty, 0)
        ctx.count = len(rows)
        return out

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None, None]:
        (grad,) = grads
        sums = grad.new_zeros((ctx.count, grad.shape[1]))
        return sums.scatter_add(0, ctx.winner, grad.masked_fill(ctx.empty, 0.0)), None, None


def _assemble(
    parts: list[Tensor], data: Tensor, count: int, channels: int, pooled_size: Shape
) -> Tensor:
    if not parts:
        return data.new_zeros((0, channels, *pooled_size))
    rows = torch.cat(parts) if len(parts) > 1 else parts[0]
    return rows.reshape(count, *pooled_size, channels).permute(0, 3, 1, 2).contiguous()


roi_pooling.infer_outputs(_pooled_shape)


@op("_contrib_ROIAlign", precision="widest", without_gradient=("rois",), names_output=True)
def roi_align(
    data: Tensor,
    rois: Tensor,
    *,
    pooled_size: Shape,
    spatial_scale: float,
    sample_ratio: int = -1,
    position_sensitive: bool = False,
    aligned: bool = False,
) -> Tensor:
    """Average bilinear samples over an even grid of bins in each region, without rounding.

    Parameters
    ----------
    sample_ratio
        Number of samples along each side of a bin; 0 or negative: depends on the region's size.
    position_sensitive
        Whether each bin reads channels of its own.
    aligned
        Whether coordinates are shifted by half a pixel, so that pixels are centers.

    >>> x, rois = mx.nd.arange(16).reshape((1, 1, 4, 4)), mx.nd.array([[0, 0, 0, 2, 2]])
    >>> mx.nd.contrib.ROIAlign(x, rois, pooled_size=(1, 1), spatial_scale=1.0).asnumpy()
    array([[[[5.]]]], dtype=float32)
    """
    _check_rois("_contrib_ROIAlign", data, rois)
    batch, channels, height, width = data.shape
    high, wide = pooled_size
    with torch.no_grad():
        corners = rois[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)
        start = corners[:, :2]
        size = corners[:, 2:] - start
        if not aligned:
            size = size.clamp(min=1.0)
        image = rois[:, 0].long()
        y = _samples(start[:, 1], size[:, 1], high, sample_ratio, height)
        x = _samples(start[:, 0], size[:, 0], wide, sample_ratio, width)
        present = (image >= 0) & (image < batch)
        image = image.clamp(0, batch - 1)
    if is_traced():
        rows = Samples(y[0], y[1] * present.view(-1, 1, 1))
        pooled = weigh_pixels(data, image, rows, Samples(*x))
        return _take_own_channels(pooled) if position_sensitive else pooled
    if position_sensitive:
        channels //= high * wide
        pixels = _rows(data.reshape(batch, channels, high * wide, height * width))
        cell = torch.arange(high * wide, device=data.device).view(1, high, wide, 1, 1)
    else:
        pixels, cell = _pixels(data), None
    parts = []
    for part in _chunks(len(rois), high * wide * y[0].shape[2] * x[0].shape[2]):
        with torch.no_grad():
            (row, row_weight), (column, column_weight) = ([t[part] for t in a] for a in (y, x))
            row_weight = row_weight * present[part].view(-1, 1, 1)
            position = image[part].view(-1, 1, 1, 1, 1)
            if cell is not None:
                position = position * (high * wide) + cell
            lookup = row[:, :, None, :, None] * width + column[:, None, :, None, :]
            lookup = lookup + position * (height * width)
            weight = row_weight[:, :, None, :, None] * column_weight[:, None, :, None, :]
            weight = weight.to(data.dtype)
        parts.append(_bag(pixels, lookup, weight != 0, weight, "sum"))
    return _assemble(parts, data, len(rois), channels, pooled_size)


def _take_own_channels(pooled: Tensor) -> Tensor:
    """Return for each bin the channels that belong to its place in the grid."""
    count, _, high, wide = pooled.shape
    grouped = pooled.reshape(count, -1, high * wide, high * wide)
    return grouped.diagonal(dim1=2, dim2=3).reshape(count, -1, high, wide)


def _samples(
    start: Tensor, size: Tensor, bins: int, ratio: int, limit: int
) -> tuple[Tensor, Tensor]:
    """Return pixels and weights, ``(rois, bins, samples)``, of the mean over a bin on one axis.

    A bilinear sample is two pixels; samples beyond a region's own number weigh nothing.
    """
    step = (size / bins).view(-1, 1, 1)
    count = torch.ceil(step) if ratio <= 0 else torch.full_like(step, ratio)
    most = _most_samples(count, ratio, bins, limit, MAX_EXTENT)
    index = torch.arange(most, device=start.device, dtype=start.dtype)
    bin_start = torch.arange(bins, device=start.device, dtype=start.dtype).view(1, -1, 1) * step
    position = start.view(-1, 1, 1) + bin_start + (index + 0.5) * (step / count)
    used = (index < count) & (position >= -1.0) & (position <= limit)
    low, high, part = bilinear_neighbors(position, limit)
    share = used / count.clamp(min=1)
    return torch.cat([low, high], -1), torch.cat([(1 - part) * share, part * share], -1)


def _most_samples(count: Tensor, ratio: int, bins: int, limit: int, extent: int) -> int:
    if is_traced():
        return max_samples(count, ratio, bins, limit * extent)
    return max(1, int(count.max())) if count.numel() else 1


def bilinear_neighbors(position: Tensor, limit: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the two pixels around places, held inside the image, and the second one's share."""
    position = position.clamp(0, limit - 1)
    low = position.floor()
    part = position - low
    low = low.long()
    return low, (low + 1).clamp(max=limit - 1), part


@roi_align.infer_outputs
def roi_align_shape(
    data: Shape | None,
    rois: Shape | None,
    *,
    pooled_size: Shape,
    position_sensitive: bool,
    **_: object,
) -> Shape | None:
    """A grid of bins for each region."""
    if data is None or rois is None:
        return None
    channels = data[1]
    if position_sensitive and channels != UNKNOWN:
        channels //= pooled_size[0] * pooled_size[1]
    return (rois[0], channels, *pooled_size)


@op("_contrib_RROIAlign", without_gradient=("rois",))
def rroi_align(
    data: Tensor,
    rois: Tensor,
    *,
    pooled_size: Shape,
    spatial_scale: float,
    sampling_ratio: int = -1,
) -> Tensor:
    """Average bilinear samples in rotated regions ``(image, x, y, width, height, degrees)``.

    Parameters
    ----------
    rois
        Regions of shape ``(regions, 6)``: index of the image, center x, y, width, height, degrees.
    sampling_ratio
        Number of samples along each side of a bin; 0 or negative: depends on the region's size.

    >>> x, rois = mx.nd.arange(16).reshape((1, 1, 4, 4)), mx.nd.array([[0, 1, 1, 2, 2, 0]])
    >>> mx.nd.contrib.RROIAlign(x, rois, pooled_size=(1, 1), spatial_scale=1.0).asnumpy()
    array([[[[5.]]]], dtype=float32)
    """
    _check_rois("_contrib_RROIAlign", data, rois, 6)
    _, channels, height, width = data.shape
    high, wide = pooled_size
    with torch.no_grad():
        image = rois[:, 0].long()
        center = rois[:, 1:3] * spatial_scale
        size = (rois[:, 3:5] * spatial_scale).clamp(min=1.0)
        angle = (rois[:, 5] * (torch.pi / 180.0)).view(-1, 1, 1)
        step_y, step_x = (size[:, 1] / high).view(-1, 1, 1), (size[:, 0] / wide).view(-1, 1, 1)
        dy, used_y = _offsets(size[:, 1], step_y, high, sampling_ratio, height)
        dx, used_x = _offsets(size[:, 0], step_x, wide, sampling_ratio, width)
        share = 1.0 / (used_y.sum(2).amax(1) * used_x.sum(2).amax(1)).clamp(min=1)
    pixels, parts = _pixels(data), []
    for part in _chunks(len(rois), high * wide * dy.shape[2] * dx.shape[2] * 4):
        with torch.no_grad():
            y = dy[part][:, :, None, :, None]
            x = dx[part][:, None, :, None, :]
            cos, sin = (t[part].view(-1, 1, 1, 1, 1) for t in (angle.cos(), angle.sin()))
            used = used_y[part][:, :, None, :, None] & used_x[part][:, None, :, None, :]
            place_x = x * cos + y * sin + center[part, 0].view(-1, 1, 1, 1, 1)
            place_y = y * cos - x * sin + center[part, 1].view(-1, 1, 1, 1, 1)
            used = used & (place_y >= -1) & (place_y <= height)
            used = used & (place_x >= -1) & (place_x <= width)
            weight = used * share[part].view(-1, 1, 1, 1, 1)
            lookup, weight = corner_pixels(place_y, place_x, weight, height, width)
            lookup = lookup + image[part].view(-1, *[1] * (lookup.ndim - 1)) * (height * width)
        parts.append(_bag(pixels, lookup, weight != 0, weight.to(data.dtype), "sum"))
    return _assemble(parts, data, len(rois), channels, pooled_size)


def _offsets(
    size: Tensor, step: Tensor, bins: int, ratio: int, limit: int
) -> tuple[Tensor, Tensor]:
    """Return the offsets of samples from the center of a region, and a mask of valid ones."""
    count = torch.ceil(step) if ratio <= 0 else torch.full_like(step, ratio)
    most = _most_samples(count, ratio, bins, limit, MAX_ROTATED_EXTENT)
    index = torch.arange(most, device=size.device, dtype=size.dtype)
    bin_start = torch.arange(bins, device=size.device, dtype=size.dtype).view(1, -1, 1) * step
    position = bin_start - (size / 2).view(-1, 1, 1) + (index + 0.5) * (step / count)
    return position, (index < count).expand_as(position)


def corner_pixels(
    y: Tensor, x: Tensor, weight: Tensor, height: int, width: int
) -> tuple[Tensor, Tensor]:
    """Return the four pixels around each position, along a new last axis, and their weights."""
    low_y, high_y, part_y = bilinear_neighbors(y, height)
    low_x, high_x, part_x = bilinear_neighbors(x, width)
    above, below = low_y * width, high_y * width
    lookup = torch.stack([above + low_x, above + high_x, below + low_x, below + high_x], -1)
    top, bottom = weight * (1 - part_y), weight * part_y
    weights = [top * (1 - part_x), top * part_x, bottom * (1 - part_x), bottom * part_x]
    return lookup, torch.stack(weights, -1)


rroi_align.infer_outputs(_pooled_shape)


@op("_contrib_PSROIPooling", precision="widest", without_gradient=("rois",), names_output=True)
def psroi_pooling(
    data: Tensor,
    rois: Tensor,
    *,
    spatial_scale: float,
    output_dim: int,
    pooled_size: int,
    group_size: int = 0,
) -> Tensor:
    """Position-sensitive RoI pooling: average over bins, each with its own group of channels.

    Parameters
    ----------
    pooled_size
        Number of bins along each side.
    group_size
        Number of channel groups along each side; 0 means `pooled_size`.

    >>> x, rois = mx.nd.ones((1, 4, 4, 4)), mx.nd.array([[0, 0, 0, 3, 3]])
    >>> mx.nd.contrib.PSROIPooling(x, rois, spatial_scale=1.0, output_dim=1,
    ...                            pooled_size=2).asnumpy()
    array([[[[1., 1.],
             [1., 1.]]]], dtype=float32)
    """
    _check_rois("_contrib_PSROIPooling", data, rois)
    height, width = data.shape[2:]
    grid, bins = group_size or pooled_size, pooled_size
    pixels = _grouped_pixels("_contrib_PSROIPooling", data, output_dim, grid)
    with torch.no_grad():
        corners = rois[:, 1:]
        corners = torch.trunc(corners + torch.where(corners < 0, -0.5, 0.5))
        low, high = corners[:, :2] * spatial_scale, (corners[:, 2:] + 1.0) * spatial_scale
        step = ((high - low).clamp(min=0.1) / bins).unsqueeze(2)
        index = torch.arange(bins, device=data.device, dtype=step.dtype)
        limit = torch.tensor([[width], [height]], device=data.device)
        first = torch.floor(index * step + low.unsqueeze(2)).long().clamp(min=0).minimum(limit)
        last = torch.ceil((index + 1) * step + low.unsqueeze(2)).long().clamp(min=0).minimum(limit)
        (left, top), (right, bottom) = first.unbind(1), last.unbind(1)
        cell = _cells(bins, grid, data.device)
        image = rois[:, 0].long()
    if is_traced():
        planes = pixels.reshape(-1, height, width, output_dim).movedim(-1, 1)
        plane = image.view(-1, 1, 1) * (grid * grid) + cell.view(1, bins, bins)
        means = mean_of_bins(planes, Bins(top, bottom, left, right), plane)
        return _assemble([means], data, len(rois), output_dim, (bins, bins))
    tall, wide = _longest(top, bottom), _longest(left, right)
    parts = []
    for part in _chunks(len(rois), bins * bins * tall * wide):
        with torch.no_grad():
            y = top[part].unsqueeze(-1) + torch.arange(tall, device=data.device)
            x = left[part].unsqueeze(-1) + torch.arange(wide, device=data.device)
            inside_y, inside_x = y < bottom[part].unsqueeze(-1), x < right[part].unsqueeze(-1)
            position = (image[part].view(-1, 1, 1, 1, 1) * (grid * grid) + cell) * (height * width)
            lookup = position + y[:, :, None, :, None] * width + x[:, None, :, None, :]
            inside = inside_y[:, :, None, :, None] & inside_x[:, None, :, None, :]
        parts.append(_bag(pixels, lookup, inside, None, "mean"))
    return _assemble(parts, data, len(rois), output_dim, (bins, bins))


def _grouped_pixels(name: str, data: Tensor, output_dim: int, grid: int) -> Tensor:
    """Return rows of `output_dim` channels for each image, grid cell and pixel."""
    batch, channels, height, width = data.shape
    if channels != output_dim * grid * grid:
        raise ShapeError(
            f"Shape inconsistent in {name}: data has {channels} channels, but output_dim="
            f"{output_dim} and a grid of {grid} x {grid} need {output_dim * grid * grid}."
        )
    return _rows(data.reshape(batch, output_dim, grid * grid, height * width))


def _cells(bins: int, grid: int, device: torch.device) -> Tensor:
    """Return the cell of the grid for each bin, as ``(1, bins, bins, 1, 1)``."""
    line = torch.arange(bins, device=device) * grid // bins
    return (line.view(-1, 1) * grid + line).view(1, bins, bins, 1, 1)


@psroi_pooling.infer_outputs
def psroi_pooling_shape(
    data: Shape | None, rois: Shape | None, *, output_dim: int, pooled_size: int, **_: object
) -> Shape | None:
    """One square grid of bins per region."""
    return None if rois is None else (rois[0], output_dim, pooled_size, pooled_size)


@in_row_order
@op(
    "_contrib_DeformablePSROIPooling",
    outputs=("output",),
    total=2,
    optional={"trans": lambda a: not a["no_trans"]},
    precision="full",
    without_gradient=("rois",),
)
def deformable_psroi_pooling(
    data: Tensor,
    rois: Tensor,
    trans: Tensor | None = None,
    *,
    spatial_scale: float,
    output_dim: int,
    group_size: int,
    pooled_size: int,
    part_size: int = 0,
    sample_per_part: int = 1,
    trans_std: float = 0.0,
    no_trans: bool = False,
) -> Tensor:
    """Deformable position-sensitive RoI pooling: average samples of bins with learned offsets.

    Parameters
    ----------
    trans
        Learned offsets of the parts; absent with ``no_trans=True``.
    group_size
        Number of channel groups along each side of the grid.
    pooled_size
        Number of bins along each side.
    part_size
        Number of parts along each side; each part has one offset. 0 means `pooled_size`.
    sample_per_part
        Number of samples along each side of a bin.
    trans_std
        Factor of the offsets.
    no_trans
        Whether there are no offsets.

    >>> x, rois = mx.nd.ones((1, 1, 4, 4)), mx.nd.array([[0, 0, 0, 3, 3]])
    >>> mx.nd.contrib.DeformablePSROIPooling(x, rois, spatial_scale=1.0, output_dim=1,
    ...     group_size=1, pooled_size=1, sample_per_part=2, no_trans=True).asnumpy()
    array([[[[1.]]]], dtype=float32)
    """
    _check_rois("_contrib_DeformablePSROIPooling", data, rois)
    batch, _, height, width = data.shape
    bins, grid, samples = pooled_size, group_size, sample_per_part
    with torch.no_grad():
        corners = rois[:, 1:]
        corners = torch.trunc(corners + torch.where(corners < 0, -0.5, 0.5))
        low = corners[:, :2] * spatial_scale - 0.5
        size = ((corners[:, 2:] + 1.0) * spatial_scale - 0.5 - low).clamp(min=0.1)
        line = torch.arange(bins, device=data.device, dtype=data.dtype).view(-1, 1)
        inner = torch.arange(samples, device=data.device, dtype=data.dtype) / samples
        # (rois, 2, bins, samples) positions along x and y without offsets
        step = (size / bins).view(-1, 2, 1, 1)
        position = (line + inner) * step + low.view(-1, 2, 1, 1)
        x, y = position[:, 0][:, None, None, :, None, :], position[:, 1][:, None, :, None, :, None]
        cell = _cells(bins, grid, data.device)
        image = rois[:, 0].long().view(-1, 1, 1, 1)
    classes = 1
    if trans is not None:
        classes = trans.shape[1] // 2
        part = part_size or bins
        at = torch.arange(bins, device=data.device) * part // bins
        shift = trans.reshape(-1, classes, 2, part, part)[:, :, :, at][..., at] * trans_std
        shift = shift * size.view(-1, 1, 2, 1, 1)
        x, y = x + shift[:, :, 0, :, :, None, None], y + shift[:, :, 1, :, :, None, None]
    x, y = torch.broadcast_tensors(x, y)  # (rois, classes, bins, bins, samples, samples)
    used = (x >= -0.5) & (x <= width - 0.5) & (y >= -0.5) & (y <= height - 0.5)
    share = used / used.sum((4, 5), keepdim=True).clamp(min=1)
    lookup, weight = corner_pixels(y, x, share, height, width)
    lookup, weight = lookup.flatten(4), weight.flatten(4).to(data.dtype)
    each = output_dim // classes
    out = []
    for k in range(classes):
        own = data.reshape(batch, output_dim, -1, height, width)[:, k * each : (k + 1) * each]
        rows = _grouped_pixels("_contrib_DeformablePSROIPooling", own.flatten(1, 2), each, grid)
        base = (image * (grid * grid) + cell.view(1, bins, bins, 1)) * (height * width)
        index = (lookup[:, k] + base).flatten(0, 2)
        result = F.embedding_bag(
            index, rows, mode="sum", per_sample_weights=weight[:, k].flatten(0, 2)
        )
        out.append(result.reshape(-1, bins, bins, each).permute(0, 3, 1, 2))
    return torch.cat(out, 1)


@deformable_psroi_pooling.infer_outputs
def deformable_psroi_pooling_shape(
    data: Shape | None,
    rois: Shape | None,
    trans: Shape | None,
    *,
    output_dim: int,
    pooled_size: int,
    **_: object,
) -> Shape | None:
    """One square grid of bins per region."""
    return None if rois is None else (rois[0], output_dim, pooled_size, pooled_size)
