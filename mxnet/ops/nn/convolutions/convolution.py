"""Convolution over one, two or three spatial axes."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from ....error import ShapeError
from ...attributes import Count, PositiveCount
from ...attributes import Shape as ShapeAttribute
from ...declare import op
from ...shapes import UNKNOWN, KnownShapes, Shape, Shapes, unify
from .layouts import (
    CHANNELS_LAST,
    channels_first,
    channels_last,
    check_data,
    check_weight,
    for_each_axis,
    shape_channels_first,
    shape_channels_last,
)

ConvLayout = Literal["NCDHW", "NCHW", "NCW", "NDHWC", "NHWC"]
CudnnTune = Literal["fastest", "limited_workspace", "off"]
CONVOLUTIONS = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
# With fewer channels, laid out last, oneDNN writes beyond the end of the gradient of a 1x1 weight
# when it strides. Such a kernel looks at nothing but every n-th number: they are picked before.
FEW_CHANNELS = 8


def _extent(kernel: int, dilation: int) -> int:
    """Return how far a dilated kernel reaches."""
    return dilation * (kernel - 1) + 1


def _output_size(size: int, extent: int, stride: int, pad: int) -> int:
    if size == UNKNOWN:
        return UNKNOWN
    if extent > size + 2 * pad:
        raise ShapeError(
            f"Convolution: kernel size exceed input: it reaches over {extent}, but the input "
            f"padded to both sides has {size + 2 * pad}."
        )
    return (size + 2 * pad - extent) // stride + 1


def _input_size(size: int, found: int, extent: int, stride: int, pad: int) -> int:
    """Return a missing input size; with strides above 1 several fit, so it stays unknown."""
    if size != UNKNOWN or found == UNKNOWN or stride != 1:
        return size
    return found + extent - 1 - 2 * pad


def convolution_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """Infer the output from the data, and the data from the output where that is possible."""
    data, kernel = ins[0], attrs["kernel"]
    if data is None:
        return ins, outs
    check_data("Convolution", data, kernel)
    last = attrs["layout"] in CHANNELS_LAST
    if last:
        data = shape_channels_first(data)
    extents = [
        _extent(k, d)
        for k, d in zip(kernel, for_each_axis(attrs["dilate"], 1, kernel), strict=True)
    ]
    strides = for_each_axis(attrs["stride"], 1, kernel)
    pads = for_each_axis(attrs["pad"], 0, kernel)
    out = (data[0], attrs["num_filter"], *map(_output_size, data[2:], extents, strides, pads))
    if last:
        out = shape_channels_last(out)
    out = unify(out, outs[0], "the output of Convolution")
    if UNKNOWN in data:
        known = shape_channels_first(out) if last else out
        sizes = map(_input_size, data[2:], known[2:], extents, strides, pads)
        data = (known[0], data[1], *sizes)
    return [shape_channels_last(data) if last else data, *ins[1:]], [out]


@op(
    "Convolution",
    "_npx_convolution",
    "Convolution_v1",
    optional={"bias": lambda a: not a["no_bias"]},
    shape=convolution_shapes,
    precision="half",
    overwritable=True,
)
def convolution(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    kernel: ShapeAttribute,
    stride: ShapeAttribute = (),
    dilate: ShapeAttribute = (),
    pad: ShapeAttribute = (),
    num_filter: PositiveCount,
    num_group: Count = 1,
    workspace: Count = 1024,
    no_bias: bool = False,
    cudnn_tune: CudnnTune | None = None,
    cudnn_off: bool = False,
    layout: ConvLayout | None = None,
) -> Tensor:
    """Slide `num_filter` kernels over the data; the weight is (num_filter, channels / groups, k..).

    With a channels-last layout the weight is (num_filter, k.., channels / groups).

    Parameters
    ----------
    data
        Batch of shape ``(batch, channels, width)``, ``(.., height, width)`` or ``(.., depth,
        height, width)``.
    weight
        Kernels of shape ``(num_filter, channels / num_group, *kernel)``.

    >>> mx.nd.Convolution(mx.nd.array([[[1, 2, 3, 4]]]), mx.nd.array([[[1, -1]]]), no_bias=True,
    ...                   kernel=(2,), stride=(2,), num_filter=1).asnumpy()
    array([[[-1., -1.]]], dtype=float32)
    """
    last = layout in CHANNELS_LAST
    if last:
        data, weight = channels_first(data), channels_first(weight)
    shape = data.shape
    if len(shape) != len(kernel) + 2:
        check_data("Convolution", shape, kernel)
    if weight.shape != (num_filter, shape[1] // num_group, *kernel):
        check_weight(
            "Convolution", shape, weight.shape, (num_filter, shape[1] // num_group, *kernel)
        )
    if kernel == (1, 1) and stride and shape[1] < FEW_CHANNELS and not any(pad):
        data, stride = data[:, :, :: stride[0], :: stride[1]], ()
    out = CONVOLUTIONS[len(kernel)](
        data, weight, bias, stride or 1, pad or 0, dilate or 1, num_group
    )
    return channels_last(out) if last else out


@convolution.infer_inputs
def convolution_inputs(
    data: Shape | None,
    weight: Shape | None,
    bias: Shape | None,
    *,
    kernel: Shape,
    num_filter: int,
    num_group: int,
    layout: str | None,
    **_: object,
) -> dict[str, Shape]:
    """Infer weight and bias from the channels of data."""
    last = layout in CHANNELS_LAST
    channels = UNKNOWN
    if data is not None:
        check_data("Convolution", data, kernel)
        channels = data[-1 if last else 1]
    if channels != UNKNOWN:
        if channels % num_group:
            raise ShapeError(
                f"Convolution: {channels} input channels cannot be divided into {num_group} groups"
            )
        channels //= num_group
    needed = (num_filter, *kernel, channels) if last else (num_filter, channels, *kernel)
    return {"weight": needed, "bias": (num_filter,)}


@convolution.work
def convolution_work(ins: KnownShapes, outs: KnownShapes, attrs: dict) -> int:
    """Every output element takes one multiply-add for each weight of its filter."""
    return math.prod(outs[0]) * (math.prod(ins[1]) // ins[1][0])
