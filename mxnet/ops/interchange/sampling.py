"""Sampling of images and volumes at given positions, and pooling with dilations and indices."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from ..attributes import Shape
from ..declare import op
from ..shapes import UNKNOWN
from ..shapes import Shape as KnownShape


def source_positions(
    new: int, old: int, scale: float, transform: str, device: torch.device | None = None
) -> Tensor:
    """Return for each new position the position in the old axis."""
    position = torch.arange(new, dtype=torch.float64, device=device)
    if transform == "asymmetric":
        return position / scale
    if transform == "align_corners":
        length = old * scale  # not rounded where scales are given
        return position * ((old - 1) / (length - 1)) if length > 1 else position * 0
    if transform == "pytorch_half_pixel" and new == 1:
        return position * 0
    return (position + 0.5) / scale - 0.5


ROUNDINGS = {
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round_prefer_ceil": lambda x: torch.floor(x + 0.5),
    "round_prefer_floor": lambda x: torch.ceil(x - 0.5),
}


def kernel_weights(distance: Tensor, mode: str, a: float) -> Tensor:
    """Return the interpolation weights of pixels at these distances from the sampling position.

    `a` is the cubic coefficient.
    """
    x = distance.abs()
    if mode == "linear":
        return (1 - x).clamp(min=0)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = a * (((x - 5) * x + 8) * x - 4)
    return torch.where(x <= 1, near, torch.where(x < 2, far, 0))


@op("_onnx_resize", types="T U -> T", value_dependent=True)
def resize(
    data: Tensor,
    target: Tensor,
    *,
    mode: Literal["nearest", "linear", "cubic"] = "nearest",
    transform: Literal[
        "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"
    ] = "half_pixel",
    rounding: Literal[
        "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"
    ] = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
) -> Tensor:
    """Resize every axis to sizes (integers) or by scales (floats) that are an array.

    Parameters
    ----------
    target
        Sizes or scales of all axes.
    mode
        Interpolation or padding mode.
    transform
        Coordinate transformation from result to data.
    rounding
        Rounding mode of ``nearest``.
    cubic_coeff_a
        Coefficient of the cubic kernel.

    >>> x, twice = mx.nd.array([[1, 2]]), mx.nd.array([1, 2])
    >>> mx.nd._internal._onnx_resize(x, twice, transform="asymmetric", rounding="floor").asnumpy()
    array([[1., 1., 2., 2.]], dtype=float32)
    """
    is_scale = target.is_floating_point()
    for axis, goal in enumerate(target.tolist()):
        old = data.shape[axis]
        new = int(old * goal) if is_scale else int(goal)
        if new == old:
            continue
        scale = goal if is_scale else new / old
        position = source_positions(new, old, scale, transform, data.device)
        if mode == "nearest":
            at = ROUNDINGS[rounding](position).clamp(0, old - 1).long()
            data = data.index_select(axis, at)
        else:
            data = _weighted(data, axis, position, mode, cubic_coeff_a)
    return data.clone()


def _weighted(data: Tensor, axis: int, position: Tensor, mode: str, a: float) -> Tensor:
    reach = 1 if mode == "linear" else 2
    base = position.floor()
    shape = [-1 if i == axis else 1 for i in range(data.ndim)]
    total = torch.zeros((), dtype=data.dtype, device=data.device)
    for offset in range(1 - reach, reach + 1):
        at = base + offset
        share = kernel_weights(position - at, mode, a).to(data.dtype).reshape(shape)
        pixels = data.index_select(axis, at.clamp(0, data.shape[axis] - 1).long())
        total = total + pixels * share
    return total


@resize.infer_outputs
def resize_shape(data: KnownShape | None, target: KnownShape | None, **_: object) -> Any:
    """Only the rank is known statically."""
    return None if data is None else (UNKNOWN,) * len(data)


@op("_onnx_grid_sample")
def grid_sample(
    data: Tensor,
    grid: Tensor,
    *,
    mode: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """Sample ``(batch, channels, ...)`` at a grid ``(batch, ..., 2 or 3)`` of places in [-1, 1].

    Parameters
    ----------
    grid
        Positions to sample at.
    mode
        Interpolation or padding mode.
    padding_mode
        Padding outside of the image.
    align_corners
        Whether -1 and 1 are the centers of the outer pixels instead of their edges.

    >>> x, middle = mx.nd.array([[[[1, 3]]]]), mx.nd.zeros((1, 1, 1, 2))
    >>> mx.nd._internal._onnx_grid_sample(x, middle).asnumpy().ravel()
    array([2.], dtype=float32)
    """
    return functional.grid_sample(data, grid, mode, padding_mode, align_corners)


@op("_onnx_roi_align_max", types="T T I -> T")
def roi_align_max(
    data: Tensor,
    rois: Tensor,
    images: Tensor,
    *,
    pooled_size: Shape,
    spatial_scale: float = 1.0,
    sample_ratio: int = 0,
    aligned: bool = True,
) -> Tensor:
    """Largest weighted corner of bilinear samples over bins of regions ``(x1, y1, x2, y2)``.

    Parameters
    ----------
    rois
        Regions.
    images
        Image of each region.
    pooled_size
        Number of bins.
    spatial_scale
        Factor from regions to the data.
    sample_ratio
        Samples per bin and axis; 0 follows from the size.
    aligned
        Whether pixels have their centers at halves.

    >>> x, roi = mx.nd.ones((1, 1, 4, 4)), mx.nd.array([[0, 0, 4, 4]])
    >>> image = mx.nd.array([0], dtype="int64")
    >>> mx.nd._internal._onnx_roi_align_max(x, roi, image, pooled_size=(2, 2)).shape
    (1, 1, 2, 2)
    """
    shift = 0.5 if aligned else 0.0
    regions = []
    for box, image in zip(rois * spatial_scale - shift, images.tolist(), strict=True):
        x1, y1, x2, y2 = box.unbind()
        extent = (y2 - y1, x2 - x1)
        if not aligned:
            extent = tuple(e.clamp(min=1) for e in extent)
        lines = [
            _bin_places(start, e / n, n, sample_ratio)
            for start, e, n in zip((y1, x1), extent, pooled_size, strict=True)
        ]
        regions.append(_largest(data[image], *lines))
    return torch.stack(regions) if regions else data.new_zeros((0, data.shape[1], *pooled_size))


@roi_align_max.infer_outputs
def roi_align_max_shape(
    data: KnownShape | None, rois: KnownShape | None, *_: object, pooled_size: Shape, **__: object
) -> KnownShape | None:
    """Return one image of bins for each region."""
    if data is None or rois is None:
        return None
    return (rois[0], data[1], *pooled_size)


def _bin_places(start: Tensor, size: Tensor, count: int, ratio: int) -> Tensor:
    """Return the positions of samples as ``(bins, samples)``."""
    samples = ratio or max(int(torch.ceil(size).item()), 1)
    bins = torch.arange(count, device=start.device)[:, None]
    inside = (torch.arange(samples, device=start.device) + 0.5) / samples
    return start + (bins + inside) * size


def _largest(image: Tensor, ys: Tensor, xs: Tensor) -> Tensor:
    height, width = image.shape[-2:]
    (y_low, y_high, y_far, y_on), (x_low, x_high, x_far, x_on) = (
        _corners(line, n) for line, n in ((ys, height), (xs, width))
    )
    largest = None
    for rows, share_y in ((y_low, 1 - y_far), (y_high, y_far)):
        for columns, share_x in ((x_low, 1 - x_far), (x_high, x_far)):
            values = image[:, rows][..., columns]  # (channels, bins, samples, bins, samples)
            shares = share_y[..., None, None] * share_x * y_on[..., None, None] * x_on
            part = values * shares
            largest = part if largest is None else torch.maximum(largest, part)
    assert largest is not None
    return largest.amax((2, 4))


def _corners(line: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    is_on = ((line >= -1) & (line <= size)).to(line.dtype)
    at = line.clamp(0, size - 1)
    low = at.floor().long()
    return low, (low + 1).clamp(max=size - 1), at - low, is_on


def _windows(data: Tensor, kernel: Shape, stride: Shape, dilate: Shape, pads: Shape, fill: float):
    """Return ``(batch, channels, *places, *kernel)`` of padded data."""
    rank = len(kernel)
    around = [n for i in reversed(range(rank)) for n in (pads[i], pads[rank + i])]
    windows = functional.pad(data, around, value=fill) if any(around) else data
    for axis, (size, step, gap) in enumerate(zip(kernel, stride, dilate, strict=True), 2):
        reach = (size - 1) * gap + 1
        windows = windows.unfold(axis, reach, step)[..., ::gap]
    return windows


def _lowest(data: Tensor) -> float:
    return -math.inf if data.is_floating_point() else torch.iinfo(data.dtype).min


@op("_onnx_max_pool", types="T -> T int64", outputs=2)
def max_pool(
    data: Tensor,
    *,
    kernel: Shape,
    stride: Shape,
    dilate: Shape,
    pads: Shape,
    storage_order: int = 0,
) -> tuple[Tensor, Tensor]:
    """Maximum over windows and its index in the flattened data.

    Parameters
    ----------
    pads
        Padding before all axes, then after them.
    storage_order
        Whether indices are column-major (1) instead of row-major (0).

    >>> out, places = mx.nd._internal._onnx_max_pool(
    ...     mx.nd.array([[[1, 5, 2]]]), kernel=(2,), stride=(1,), dilate=(1,), pads=(0, 0))
    >>> out.asnumpy().ravel(), places.asnumpy().ravel()
    (array([5., 5.], dtype=float32), array([1, 1]))
    """
    rank, sizes = len(kernel), data.shape[2:]
    windows = _windows(data, kernel, stride, dilate, pads, _lowest(data)).flatten(2 + rank)
    best, at = windows.max(-1)
    indices = torch.zeros_like(at)
    steps, scale = [], 1
    for size in sizes if storage_order else reversed(sizes):
        steps.append(scale)
        scale *= size
    steps = steps if storage_order else steps[::-1]
    for i in reversed(range(rank)):
        inside, at = at % kernel[i], at // kernel[i]
        shape = [-1 if axis == 2 + i else 1 for axis in range(2 + rank)]
        starts = torch.arange(best.shape[2 + i], device=data.device).reshape(shape)
        indices += (starts * stride[i] - pads[i] + inside * dilate[i]) * steps[i]
    planes = torch.arange(data.shape[0] * data.shape[1], device=data.device)
    front = planes.reshape(*data.shape[:2], *[1] * rank) * math.prod(sizes)
    return best, indices + front


@op("_onnx_reduce_pool")
def reduce_pool(
    data: Tensor,
    *,
    kernel: Shape,
    stride: Shape,
    dilate: Shape,
    pads: Shape,
    extra: Shape = (),
    kind: Literal["avg", "lp"] = "avg",
    p: int = 2,
    count_include_pad: bool = False,
) -> Tensor:
    """Mean or p-norm over windows; `extra` is padding by rounding up, which is always excluded.

    Parameters
    ----------
    pads
        Padding before all axes, then after them.
    extra
        Padding at the end that is always excluded.
    kind
        Type of layer.
    p
        Order of the norm.
    count_include_pad
        Whether averages include the padding.

    >>> mx.nd._internal._onnx_reduce_pool(
    ...     mx.nd.array([[[1, 5, 3]]]), kernel=(2,), stride=(1,), dilate=(2,), pads=(0, 0)
    ... ).asnumpy().ravel()
    array([2.], dtype=float32)
    """
    rank = len(kernel)
    more = extra or (0,) * rank
    whole = (*pads[:rank], *(a + e for a, e in zip(pads[rank:], more, strict=True)))
    shape = (kernel, stride, dilate)
    axes = tuple(range(-rank, 0))
    if kind == "lp":
        return _windows(data.abs() ** p, *shape, whole, 0).sum(axes) ** (1 / p)
    ones = torch.ones_like(data[:1, :1])
    if count_include_pad:
        around = [n for i in reversed(range(rank)) for n in (pads[i], pads[rank + i])]
        ones = functional.pad(ones, around, value=1)
        counts = _windows(ones, *shape, (*[0] * rank, *more), 0).sum(axes)
    else:
        counts = _windows(ones, *shape, whole, 0).sum(axes)
    return _windows(data, *shape, whole, 0).sum(axes) / counts
