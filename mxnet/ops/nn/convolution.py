"""Convolution and transposed convolution, and conversions of the channel axis.

Kernels take channels first. Channels-last arrays are permuted views, whose memory order is torch's
fast ``channels_last``.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from ...error import ShapeError
from ..attributes import Count, PositiveCount
from ..attributes import Shape as ShapeAttribute
from ..declare import op
from ..shapes import UNKNOWN, KnownShapes, Shape, Shapes, unify

CHANNELS_LAST = frozenset({"NWC", "NHWC", "NDHWC"})


def channels_first(data: Tensor) -> Tensor:
    """Return a view of a channels-last array with its channels at axis 1."""
    return data.movedim(-1, 1)


def channels_last(data: Tensor) -> Tensor:
    """Return a view of a channels-first array with its channels at the end."""
    return data.movedim(1, -1)


def shape_channels_first(shape: Shape) -> Shape:
    """Return the shape with the last size at position 1."""
    return (shape[0], shape[-1], *shape[1:-1])


def shape_channels_last(shape: Shape) -> Shape:
    """Return the shape with the size at position 1 moved to the end."""
    return (shape[0], *shape[2:], shape[1])


def for_each_axis(value: Shape, default: int, kernel: Shape) -> Shape:
    """Return a stride, pad or dilation for every axis of the kernel; empty means the default."""
    return value or (default,) * len(kernel)


def check_data(name: str, shape: Shape, kernel: Shape) -> None:
    """Raise for empty kernels, and for data of the wrong number of dimensions."""
    if min(kernel, default=1) < 1:
        raise ShapeError(
            f"{name}: incorrect kernel size: {kernel} must be at least 1 on each axis."
        )
    if len(shape) != len(kernel) + 2:
        raise ShapeError(
            f"{name}: Input data should be {len(kernel) + 2}D for kernel {kernel} "
            f"(batch, channel and {len(kernel)} spatial axes), but its shape is {tuple(shape)}."
        )


def check_weight(name: str, data: Shape, shape: Shape, needed: Shape) -> None:
    """Raise if the weight's shape does not match the data and attributes."""
    if tuple(shape) != needed:
        raise ShapeError(
            f"Shape inconsistent in {name}, Provided = {list(shape)}, "
            f"inferred shape={list(needed)} for the weight: data {list(data)} has {data[1]} "
            "channels. Was the layer built for a different number of channels, or does the data "
            "have a different layout?"
        )


ConvLayout = Literal["NCDHW", "NCHW", "NCW", "NDHWC", "NHWC"]
CudnnTune = Literal["fastest", "limited_workspace", "off"]
CONVOLUTIONS = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
# With fewer channels in channels-last layout, oneDNN writes beyond the end of the gradient of a
# strided 1x1 weight. A strided 1x1 kernel reads every n-th pixel only, so the data is sliced first.
FEW_CHANNELS = 8


def _extent(kernel: int, dilation: int) -> int:
    """Return the extent of a dilated kernel."""
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


def _input_size(size: int, output: int, extent: int, stride: int, pad: int) -> int:
    """Return a missing input size; it stays unknown for strides above 1, which allow several."""
    if size != UNKNOWN or output == UNKNOWN or stride != 1:
        return size
    return output + extent - 1 - 2 * pad


def convolution_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """Infer the output from the data, and the data from the output if possible."""
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
        output = shape_channels_first(out) if last else out
        sizes = map(_input_size, data[2:], output[2:], extents, strides, pads)
        data = (output[0], data[1], *sizes)
    return [shape_channels_last(data) if last else data, *ins[1:]], [out]


@op(
    "Convolution",
    "_npx_convolution",
    "Convolution_v1",
    optional={"bias": lambda a: not a["no_bias"]},
    shape=convolution_shapes,
    precision="half",
    overwritable=True,
    names_output=True,
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
    """Compute a convolution; the weight has shape (num_filter, channels / groups, k..).

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
    """One multiply-add for each output element and each weight of its filter."""
    return math.prod(outs[0]) * (math.prod(ins[1]) // ins[1][0])


DECONVOLUTIONS = {
    1: torch.conv_transpose1d,
    2: torch.conv_transpose2d,
    3: torch.conv_transpose3d,
}


def _full_size(size: int, kernel: int, stride: int, dilation: int) -> int:
    return stride * (size - 1) + dilation * (kernel - 1) + 1


def _crop_to_target(
    spatial: Shape, kernel: Shape, stride: Shape, dilate: Shape, target: Shape
) -> tuple[Shape, Shape]:
    """Return the pad and adj for the requested output size."""
    surplus = [
        full - expected
        for full, expected in zip(
            map(_full_size, spatial, kernel, stride, dilate), target, strict=True
        )
    ]
    if min(surplus) < 0:
        raise ShapeError(
            f"Deconvolution: too big target shape {target}: an input of {tuple(spatial)} gives at "
            f"most {tuple(s + t for s, t in zip(surplus, target, strict=True))}."
        )
    return tuple((s + 1) // 2 for s in surplus), tuple(s % 2 for s in surplus)


@op(
    "Deconvolution",
    "_npx_deconvolution",
    optional={"bias": lambda a: not a["no_bias"]},
    precision="half",
    bfloat16="full",
    overwritable=True,
    names_output=True,
)
def deconvolution(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    kernel: ShapeAttribute,
    stride: ShapeAttribute = (),
    dilate: ShapeAttribute = (),
    pad: ShapeAttribute = (),
    adj: ShapeAttribute = (),
    target_shape: ShapeAttribute = (),
    num_filter: PositiveCount,
    num_group: Count = 1,
    workspace: Count = 512,
    no_bias: bool = True,
    cudnn_tune: CudnnTune | None = None,
    cudnn_off: bool = False,
    layout: ConvLayout | None = None,
) -> Tensor:
    """Compute a transposed convolution: the gradient of a convolution with respect to its data.

    The weight is (channels, num_filter / groups, k..). `target_shape` overrides `pad` and `adj`.

    Parameters
    ----------
    data
        Batch of shape ``(batch, channels, width)``, ``(.., height, width)`` or ``(.., depth,
        height, width)``.
    weight
        Kernels of shape ``(channels, num_filter / num_group, *kernel)``.
    stride
        Stride along each axis; 1 by default.
    pad
        Number of elements removed from both sides of each axis of the output; 0 by default.
    adj
        Number of elements added at the end of each axis of the output; less than the stride.
    target_shape
        Spatial size of the output; if given, it determines `pad` and `adj`.

    >>> mx.nd.Deconvolution(mx.nd.array([[[1, 2]]]), mx.nd.array([[[1, 1, 1]]]), kernel=(3,),
    ...                     stride=(2,), num_filter=1).asnumpy()
    array([[[1., 1., 3., 2., 2.]]], dtype=float32)
    """
    last = layout in CHANNELS_LAST
    if last:
        data, weight = channels_first(data), channels_first(weight)
    shape = data.shape
    if len(shape) != len(kernel) + 2:
        check_data("Deconvolution", shape, kernel)
    if weight.shape != (shape[1], num_filter // num_group, *kernel):
        check_weight(
            "Deconvolution", shape, weight.shape, (shape[1], num_filter // num_group, *kernel)
        )
    if any(target_shape):  # old files have zeros if there is none
        stride = for_each_axis(stride, 1, kernel)
        pad, adj = _crop_to_target(
            shape[2:], kernel, stride, for_each_axis(dilate, 1, kernel), target_shape
        )
    out = DECONVOLUTIONS[len(kernel)](
        data, weight, bias, stride or 1, pad or 0, adj or 0, num_group, dilate or 1
    )
    return channels_last(out) if last else out


@deconvolution.infer_inputs
def deconvolution_inputs(
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
        check_data("Deconvolution", data, kernel)
        channels = data[-1 if last else 1]
    filters = num_filter // num_group
    needed = (channels, *kernel, filters) if last else (channels, filters, *kernel)
    return {"weight": needed, "bias": (num_filter,)}


@deconvolution.infer_outputs
def deconvolution_output(
    data: Shape | None,
    weight: Shape | None,
    bias: Shape | None,
    *,
    kernel: Shape,
    stride: Shape,
    dilate: Shape,
    pad: Shape,
    adj: Shape,
    target_shape: Shape,
    num_filter: int,
    layout: str | None,
    **_: object,
) -> Shape | None:
    """Infer the enlarged size."""
    if data is None:
        return None
    last = layout in CHANNELS_LAST
    if last:
        data = shape_channels_first(data)
    if any(target_shape):
        sizes = target_shape
    else:
        sizes = tuple(
            UNKNOWN if n == UNKNOWN else _full_size(n, k, s, d) - 2 * p + a
            for n, k, s, d, p, a in zip(
                data[2:],
                kernel,
                for_each_axis(stride, 1, kernel),
                for_each_axis(dilate, 1, kernel),
                for_each_axis(pad, 0, kernel),
                for_each_axis(adj, 0, kernel),
                strict=True,
            )
        )
    out = (data[0], num_filter, *sizes)
    return shape_channels_last(out) if last else out


@deconvolution.work
def deconvolution_work(ins: KnownShapes, outs: KnownShapes, attrs: dict) -> int:
    """One multiply-add for each input element and each weight of its filter."""
    return math.prod(ins[0]) * (math.prod(ins[1]) // ins[1][0])
