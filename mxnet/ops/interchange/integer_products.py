"""Products of integers that add up in 32 bits, and dynamic quantization."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ..attributes import Shape
from ..declare import op


def _centered(data: Tensor, zero: Tensor, *, is_row: bool = False) -> Tensor:
    """Subtract zero points; doubles hold all sums of 8-bit products exactly."""
    if is_row and zero.ndim == 1 and zero.numel() > 1:
        zero = zero.unsqueeze(-1)
    return data.double() - zero.double()


@op("_onnx_matmul_integer", types="A B A B -> int32")
def matmul_integer(a: Tensor, b: Tensor, a_zero: Tensor, b_zero: Tensor) -> Tensor:
    """Matrix product of 8-bit numbers less their zero points.

    Parameters
    ----------
    b
        Second matrices.
    a_zero
        Zero point of the first.
    b_zero
        Zero point of the second.

    >>> x = mx.nd.array([[3, 5]], dtype="uint8")
    >>> one = mx.nd.array([1], dtype="uint8")
    >>> mx.nd._internal._onnx_matmul_integer(x, x.T, one, one).asnumpy()
    array([[20]], dtype=int32)
    """
    product = torch.matmul(_centered(a, a_zero, is_row=True), _centered(b, b_zero))
    return product.to(torch.int32)


@op("_onnx_conv_integer", types="A B A B -> int32")
def conv_integer(
    data: Tensor,
    weight: Tensor,
    data_zero: Tensor,
    weight_zero: Tensor,
    *,
    stride: Shape,
    pads: Shape,
    dilate: Shape,
    num_group: int = 1,
) -> Tensor:
    """Convolution of 8-bit numbers less their zero points; `pads` are those before, then after.

    Parameters
    ----------
    data_zero
        Zero point of the data.
    weight_zero
        Zero point of the weights.
    pads
        Widths before all axes, then after them.

    >>> x = mx.nd.array([2, 3], dtype="uint8").reshape((1, 1, 2))
    >>> zero = mx.nd.array([0], dtype="uint8")
    >>> mx.nd._internal._onnx_conv_integer(
    ...     x, x, zero, zero, stride=(1,), pads=(0, 0), dilate=(1,)).asnumpy().ravel()
    array([13], dtype=int32)
    """
    rank = len(stride)
    if weight_zero.numel() > 1:
        weight_zero = weight_zero.reshape((-1,) + (1,) * (rank + 1))
    centered = data.double() - data_zero.double()
    around = [n for i in reversed(range(rank)) for n in (pads[i], pads[rank + i])]
    kernel = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]
    padded = functional.pad(centered, around)
    made = kernel(
        padded, weight.double() - weight_zero.double(), None, stride, 0, dilate, num_group
    )
    return made.to(torch.int32)


@op("_onnx_dynamic_quantize", types="T -> uint8 T uint8", outputs=3)
def dynamic_quantize(data: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return 8-bit numbers, their scale and their zero point, by the range of the data.

    >>> y, scale, zero = mx.nd._internal._onnx_dynamic_quantize(mx.nd.array([0, 255]))
    >>> y.asnumpy(), zero.asnumpy()
    (array([  0, 255], dtype=uint8), array(0, dtype=uint8))
    """
    low, high = data.amin().clamp(max=0), data.amax().clamp(min=0)
    scale = (high - low) / 255
    zero = (-low / torch.where(scale == 0, 1, scale)).round().clamp(0, 255)
    safe = torch.where(scale == 0, 1, scale)
    made = ((data / safe).round() + zero).clamp(0, 255).to(torch.uint8)
    return made, scale, zero.to(torch.uint8)
