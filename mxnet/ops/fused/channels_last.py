"""A convolution that computes with channels last in memory, for training."""

from __future__ import annotations

import torch
from torch import Tensor

from ..attributes import Count, PositiveCount
from ..attributes import Shape as ShapeAttribute
from ..declare import op
from ..nn.convolutions.convolution import (
    convolution,
    convolution_inputs,
    convolution_shapes,
    convolution_work,
)
from ..shapes import Shapes

LAST = torch.channels_last
LEAST_RATIO = 2  # of elements in data to elements in the weight


def _shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    return convolution_shapes(ins, outs, {**attrs, "layout": None})


@op(
    "_convolution_channels_last",
    optional={"bias": lambda a: not a["no_bias"]},
    shape=_shapes,
    layout="channels_last",
    overwritable=True,
)
def convolution_channels_last(
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
    no_bias: bool = False,
) -> Tensor:
    """Convolve two-dimensional data (N, C, H, W) with channels last in memory where that pays.

    The weight is copied into that order on every call: one that is large beside its data is used
    as it is.

    >>> x, w = mx.nd.array([[[[1, -2]]]]), mx.nd.array([[[[3]]]])
    >>> mx.nd._internal._convolution_channels_last(x, w, kernel=(1, 1), num_filter=1,
    ...                                            no_bias=True).asnumpy()
    array([[[[ 3., -6.]]]], dtype=float32)
    """
    if data.ndim == 4 and weight.ndim == 4:
        if data.numel() >= LEAST_RATIO * weight.numel():
            data, weight = _channels_last(data), weight.contiguous(memory_format=LAST)
        else:
            data = data.contiguous()
    return convolution.function(
        data,
        weight,
        bias,
        kernel=kernel,
        stride=stride,
        dilate=dilate,
        pad=pad,
        num_filter=num_filter,
        num_group=num_group,
    )


def _channels_last(data: Tensor) -> Tensor:
    if data.shape[1] > 1:
        return data.contiguous(memory_format=LAST)
    # The order of a single channel shows in nothing but strides.
    n, c, h, w = data.shape
    return data.contiguous().as_strided((n, c, h, w), (h * w, 1, w, 1))


@convolution_channels_last.infer_inputs
def convolution_channels_last_inputs(*shapes: tuple | None, **attrs: object) -> dict:
    """Infer weight and bias from the channels of data."""
    return convolution_inputs(*shapes, **{**attrs, "layout": None})


convolution_channels_last.work(convolution_work)
