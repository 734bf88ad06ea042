"""A convolution that computes with channels last in memory, for training."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ..attributes import Count, PositiveCount
from ..attributes import Shape as ShapeAttribute
from ..declare import op
from ..nn.convolution import convolution, convolution_inputs, convolution_shapes, convolution_work
from ..shapes import Shapes

LAST = torch.channels_last
Pair = tuple[int, ...]

# Of elements in data to elements in the weight that is copied: where the data is copied too, and
# where it has channels last already and would have to be copied if it should not.
LEAST_RATIO, LEAST_RATIO_OF_LAST = 2, 0.5
MOST_ROWS, LEAST_MATRIX = 256, 1_000_000  # of a product of windows by a weight so large


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

    The weight is copied into that order on every call: one that is large compared with its data
    is used as it is.

    >>> x, w = mx.nd.array([[[[1, -2]]]]), mx.nd.array([[[[3]]]])
    >>> mx.nd._internal._convolution_channels_last(x, w, kernel=(1, 1), num_filter=1,
    ...                                            no_bias=True).asnumpy()
    array([[[[ 3., -6.]]]], dtype=float32)
    """
    if data.ndim == 4 and weight.ndim == 4:
        place = (tuple(stride) or (1, 1), tuple(pad) or (0, 0), tuple(dilate) or (1, 1))
        is_plain = num_group == 1 and weight.shape == (num_filter, data.shape[1], *kernel)
        if is_plain and _is_small_product(data, weight, *place):
            return _multiply_windows(data, weight, bias, *place)
        if _pays(data, weight):
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


def _pays(data: Tensor, weight: Tensor) -> bool:
    """Return whether channels last are worth a copy of the weight."""
    if not data.is_contiguous(memory_format=LAST):
        return data.numel() >= LEAST_RATIO * weight.numel()
    # The weight of one pixel is in both orders.
    return weight[0, 0].numel() == 1 or data.numel() >= LEAST_RATIO_OF_LAST * weight.numel()


def _output_sizes(data: Tensor, weight: Tensor, stride: Pair, pad: Pair, dilate: Pair) -> Pair:
    windows = zip(data.shape[2:], weight.shape[2:], stride, pad, dilate, strict=True)
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in windows)


def _is_small_product(data: Tensor, weight: Tensor, stride: Pair, pad: Pair, dilate: Pair) -> bool:
    """Return whether few windows meet a large weight, as in the last layers on small images.

    oneDNN reorders such a weight, and its gradient, for longer than it convolves.
    """
    if weight.numel() < LEAST_MATRIX or weight[0, 0].numel() == 1 or not data.is_cpu:
        return False
    if data.dtype is not weight.dtype:
        return False
    height, width = _output_sizes(data, weight, stride, pad, dilate)
    return height > 0 < width and 0 < len(data) * height * width <= MOST_ROWS


def _multiply_windows(
    data: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, pad: Pair, dilate: Pair
) -> Tensor:
    """Convolve by one product of matrices, a row for each window."""
    sizes = _output_sizes(data, weight, stride, pad, dilate)
    windows = F.unfold(data, weight.shape[2:], dilate, pad, stride)
    rows = windows.transpose(1, 2).flatten(0, 1)
    out = F.linear(rows, weight.flatten(1), bias)
    return out.view(len(data), *sizes, len(weight)).permute(0, 3, 1, 2)


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
