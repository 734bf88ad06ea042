"""Transposed convolution."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ....error import ShapeError
from ...attributes import Count, PositiveCount
from ...attributes import Shape as ShapeAttribute
from ...declare import op
from ...shapes import UNKNOWN, KnownShapes, Shape
from .convolution import ConvLayout, CudnnTune
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
    """Return the pad and adj that make the output the wanted size."""
    surplus = [
        full - wanted
        for full, wanted in zip(
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
    """Spread each input over a kernel: the gradient of a convolution, used to enlarge images.

    The weight is (channels, num_filter / groups, k..). `target_shape` overrides `pad` and `adj`.

    Parameters
    ----------
    data
        Batch of shape ``(batch, channels, width)``, ``(.., height, width)`` or ``(.., depth,
        height, width)``.
    weight
        Kernels of shape ``(channels, num_filter / num_group, *kernel)``.
    stride
        Distance in the result between neighboring inputs along each axis; 1 by default.
    pad
        Number of elements cut off at both ends of each axis of the result; 0 by default.
    adj
        Number of elements added at the far end of each axis, less than the stride.
    target_shape
        Spatial size of the result; if given, `pad` and `adj` follow from it.

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
    if any(target_shape):  # zeros, as old files have them, mean that none is given
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
    """Every input element takes one multiply-add for each weight of its filter."""
    return math.prod(ins[0]) * (math.prod(ins[1]) // ins[1][0])
