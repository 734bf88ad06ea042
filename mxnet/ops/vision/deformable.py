"""Deformable convolution (columns by `grid_sample`, then one product) and correlation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ...error import ShapeError
from ..attributes import Count, Shape
from ..declare import op
from ..shapes import UNKNOWN

Layout = Literal["NCDHW", "NCHW", "NCW"]


def _pair(value: Shape, default: int) -> Shape:
    return value or (default, default)


def _output_size(size: int, kernel: int, stride: int, dilate: int, pad: int) -> int:
    return (
        UNKNOWN if size == UNKNOWN else (size + 2 * pad - dilate * (kernel - 1) - 1) // stride + 1
    )


def _by_axis(shape: Shape, window: tuple[Shape, ...]) -> Iterator[tuple[int, Shape]]:
    """Return size and window parameters of height and of width."""
    return zip(shape[2:], zip(*window, strict=True), strict=True)


def _places(
    offset: Tensor, groups: int, kernel: Shape, stride: Shape, dilate: Shape, pad: Shape
) -> tuple[Tensor, Tensor]:
    """Return y and x of each kernel point: ``(batch * groups, points, height, width)``."""
    height, width = offset.shape[2:]
    points = kernel[0] * kernel[1]
    moved = offset.reshape(-1, points, 2, height, width)
    kind = {"dtype": offset.dtype, "device": offset.device}
    row = torch.arange(height, **kind) * stride[0] - pad[0]
    column = torch.arange(width, **kind) * stride[1] - pad[1]
    down = (torch.arange(kernel[0], **kind) * dilate[0]).repeat_interleave(kernel[1])
    right = (torch.arange(kernel[1], **kind) * dilate[1]).repeat(kernel[0])
    y = moved[:, :, 0] + (down.view(-1, 1) + row).unsqueeze(-1)
    x = moved[:, :, 1] + (right.view(-1, 1) + column).unsqueeze(-2)
    return y, x


def _sample(data: Tensor, y: Tensor, x: Tensor, groups: int, padding: str) -> Tensor:
    """Sample the data at positions: ``(batch * groups, channels / groups, points, h, w)``."""
    batch, channels, height, width = data.shape
    points, out_height, out_width = y.shape[1:]
    grid = torch.stack([(2 * x + 1) / width - 1, (2 * y + 1) / height - 1], -1)
    result = F.grid_sample(
        data.reshape(batch * groups, channels // groups, height, width),
        grid.reshape(-1, points * out_height, out_width, 2),
        padding_mode=padding,
        align_corners=False,
    )
    return result.reshape(batch * groups, -1, points, out_height, out_width)


def _multiply(
    columns: Tensor, weight: Tensor, bias: Tensor | None, batch: int, groups: int
) -> Tensor:
    height, width = columns.shape[-2:]
    filters = weight.shape[0]
    columns = columns.reshape(batch, groups, -1, height * width)
    out = torch.matmul(weight.reshape(groups, filters // groups, -1), columns)
    out = out.reshape(batch, filters, height, width)
    return out if bias is None else out + bias.view(-1, 1, 1)


def _check(
    name: str, data: Tensor, offset: Tensor, kernel: Shape, size: Shape, groups: int
) -> None:
    needed = (data.shape[0], 2 * kernel[0] * kernel[1] * groups, *size)
    if tuple(offset.shape) != needed:
        raise ShapeError(
            f"Shape inconsistent in {name}: offset is {list(offset.shape)}, but data "
            f"{list(data.shape)} and kernel {kernel} need {list(needed)}."
        )


@op(
    "_contrib_DeformableConvolution",
    optional={"bias": lambda a: not a["no_bias"]},
    precision="full",
    names_output=True,
)
def deformable_convolution(
    data: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    num_filter: int,
    num_group: int = 1,
    num_deformable_group: int = 1,
    workspace: Count = 1024,
    no_bias: bool = False,
    layout: Layout | None = None,
) -> Tensor:
    """Compute a convolution with kernel points moved by `offset` at each position.

    Parameters
    ----------
    weight
        Kernels of shape ``(num_filter, channels / num_group, *kernel)``.

    >>> x, offset = mx.nd.ones((1, 1, 2, 2)), mx.nd.zeros((1, 2, 2, 2))
    >>> mx.nd.contrib.DeformableConvolution(x, offset, mx.nd.ones((1, 1, 1, 1)), kernel=(1, 1),
    ...                                     num_filter=1, no_bias=True).asnumpy()
    array([[[[1., 1.],
             [1., 1.]]]], dtype=float32)
    """
    window = (kernel, _pair(stride, 1), _pair(dilate, 1), _pair(pad, 0))
    height, width = data.shape[2:]
    size = tuple(_output_size(n, *w) for n, w in _by_axis(data.shape, window))
    _check("_contrib_DeformableConvolution", data, offset, kernel, size, num_deformable_group)
    y, x = _places(offset, num_deformable_group, *window)
    columns = _sample(data, y, x, num_deformable_group, "border")
    # Points outside the image contribute 0; between the last pixel and the edge they are clamped.
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    columns = columns * inside.unsqueeze(1)
    if weight.shape[0] != num_filter:
        raise ShapeError(f"weight has {weight.shape[0]} kernels, but num_filter={num_filter}.")
    return _multiply(columns, weight, bias, data.shape[0], num_group)


@op("_contrib_ModulatedDeformableConvolution", optional={"bias": lambda a: not a["no_bias"]})
def modulated_deformable_convolution(
    data: Tensor,
    offset: Tensor,
    mask: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    num_filter: Count,
    num_group: Count = 1,
    num_deformable_group: Count = 1,
    workspace: Count = 1024,
    no_bias: bool = False,
    im2col_step: Count = 64,
    layout: Layout | None = None,
) -> Tensor:
    """Compute a convolution with kernel points moved by `offset` and weighted by `mask`.

    Parameters
    ----------
    weight
        Kernels of shape ``(num_filter, channels / num_group, *kernel)``.
    mask
        Weight of each kernel point at each position.
    im2col_step
        Accepted for compatibility; has no effect.

    >>> x, offset = mx.nd.ones((1, 1, 2, 2)), mx.nd.zeros((1, 2, 2, 2))
    >>> weight = mx.nd.ones((1, 1, 1, 1))
    >>> mx.nd.contrib.ModulatedDeformableConvolution(x, offset, x / 2, weight,
    ...     kernel=(1, 1), num_filter=1, no_bias=True).asnumpy()
    array([[[[0.5, 0.5],
             [0.5, 0.5]]]], dtype=float32)
    """
    window = (kernel, _pair(stride, 1), _pair(dilate, 1), _pair(pad, 0))
    size = tuple(_output_size(n, *w) for n, w in _by_axis(data.shape, window))
    name = "_contrib_ModulatedDeformableConvolution"
    _check(name, data, offset, kernel, size, num_deformable_group)
    y, x = _places(offset, num_deformable_group, *window)
    columns = _sample(data, y, x, num_deformable_group, "zeros")
    columns = columns * mask.reshape(len(columns), 1, -1, *size)
    return _multiply(columns, weight, bias, data.shape[0], num_group)


def _window_inputs(
    data: Shape | None,
    kernel: Shape,
    stride: Shape,
    dilate: Shape,
    pad: Shape,
    num_filter: int,
    num_group: int,
    num_deformable_group: int,
) -> dict[str, Shape]:
    results: dict[str, Shape] = {"bias": (num_filter,)}
    if data is None:
        return results
    window = (kernel, _pair(stride, 1), _pair(dilate, 1), _pair(pad, 0))
    size = tuple(_output_size(n, *w) for n, w in _by_axis(data, window))
    points = kernel[0] * kernel[1] * num_deformable_group
    results["offset"] = (data[0], 2 * points, *size)
    results["mask"] = (data[0], points, *size)
    channels = UNKNOWN if data[1] == UNKNOWN else data[1] // num_group
    results["weight"] = (num_filter, channels, *kernel)
    return results


_WINDOW = (
    "kernel", "stride", "dilate", "pad", "num_filter", "num_group", "num_deformable_group",
)  # fmt: skip


@deformable_convolution.infer_inputs
@modulated_deformable_convolution.infer_inputs
def deformable_inputs(data: Shape | None, *_: Shape | None, **attrs: Any) -> dict[str, Shape]:
    """Infer offsets (and masks) for each kernel point and position, and the weights."""
    return _window_inputs(data, **{k: attrs[k] for k in _WINDOW})


@deformable_convolution.infer_outputs
@modulated_deformable_convolution.infer_outputs
def deformable_shape(data: Shape | None, *_: Shape | None, **attrs: Any) -> Shape | None:
    """The shape of a convolution's output."""
    if data is None:
        return None
    result = _window_inputs(data, **{k: attrs[k] for k in _WINDOW})
    return (data[0], attrs["num_filter"], *result["offset"][2:])


def _sizes(size: int, kernel: int, reach: int, stride: int, pad: int) -> int:
    """Return the number of positions along an axis."""
    if size == UNKNOWN:
        return UNKNOWN
    return -((2 * (reach + (kernel - 1) // 2) - size - 2 * pad) // stride)


@op("Correlation", outputs=("output",), total=3, precision="widest", gradients_by_input=True)
def correlation(
    data1: Tensor,
    data2: Tensor,
    *,
    kernel_size: Count = 1,
    max_displacement: Count = 1,
    stride1: Count = 1,
    stride2: Count = 1,
    pad_size: Count = 0,
    is_multiply: bool = True,
) -> Tensor:
    """Compute the correlation of patches of two feature maps at all displacements.

    Each channel of the result is the mean product (or absolute difference) at one displacement.

    Parameters
    ----------
    data1
        The first map, of shape ``(batch, channels, height, width)``.
    data2
        The second map, of the same shape.
    kernel_size
        Size of the patches, an odd number.
    max_displacement
        Largest displacement.
    stride1
        Step over the first map.
    stride2
        Step between displacements.
    pad_size
        Number of zeros around both maps.
    is_multiply
        Whether to multiply patches; otherwise their absolute differences are used.

    >>> x = mx.nd.array([[[[1, 2, 3]]]])
    >>> mx.nd.Correlation(x, x, pad_size=1).asnumpy()[0, 3:6, 0]
    array([[0., 2., 6.],
           [1., 4., 9.],
           [2., 6., 0.]], dtype=float32)
    """
    if data1.shape != data2.shape or data1.ndim != 4:
        raise ShapeError(
            f"Shape inconsistent in Correlation: needs two equal arrays of 4 axes, got "
            f"{list(data1.shape)} and {list(data2.shape)}."
        )
    high = _sizes(data1.shape[2], kernel_size, max_displacement, stride1, pad_size)
    wide = _sizes(data1.shape[3], kernel_size, max_displacement, stride1, pad_size)
    if high < 1 or wide < 1:
        raise ShapeError(
            f"Correlation cannot be done with {list(data1.shape)}: kernel_size={kernel_size} and "
            f"max_displacement={max_displacement} need more padding than pad_size={pad_size}."
        )
    first, second = (F.pad(x, [pad_size] * 4) for x in (data1, data2))
    tall, broad = ((n - 1) * stride1 + kernel_size for n in (high, wide))
    # A kernel of 1 needs no neighbors: select the required positions.
    step = stride1 if kernel_size == 1 else 1

    def window(x: Tensor, down: int, right: int) -> Tensor:
        top, left = max_displacement + down, max_displacement + right
        return x[:, :, top : top + tall : step, left : left + broad : step]

    here = window(first, 0, 0)
    radius = max_displacement // stride2
    moves = [stride2 * i for i in range(-radius, radius + 1)]
    results = []
    for down in moves:
        for right in moves:
            there = window(second, down, right)
            match = here * there if is_multiply else _distance(here, there)
            results.append(match.mean(1))
    out = torch.stack(results, 1)
    return out if kernel_size == 1 else F.avg_pool2d(out, kernel_size, stride1)


def _distance(first: Tensor, second: Tensor) -> Tensor:
    """Return ``|first - second|``, whose gradient at 0 is that of ``first - second``."""
    difference = first - second
    return torch.where(difference >= 0, difference, -difference)


@correlation.infer_outputs
def correlation_shape(
    data1: Shape | None,
    data2: Shape | None,
    *,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    pad_size: int,
    **_: object,
) -> Shape | None:
    """One channel per displacement."""
    data = data1 or data2
    if data is None:
        return None
    sizes = (_sizes(n, kernel_size, max_displacement, stride1, pad_size) for n in data[2:])
    return (data[0], (2 * (max_displacement // stride2) + 1) ** 2, *sizes)
