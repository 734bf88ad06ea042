"""Arithmetic of ONNX that MXNet does not have: bits, remainders, running products."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from ..attributes import DType
from ..declare import op
from ..shapes import broadcast, same


@op("_onnx_bit_shift", shape=broadcast)
def bit_shift(
    data: Tensor, count: Tensor, *, direction: Literal["LEFT", "RIGHT"] = "LEFT"
) -> Tensor:
    """Shift the bits of integers.

    Parameters
    ----------
    count
        Number of places to shift by.
    direction
        Which way to go.

    >>> x, n = mx.nd.array([1, 4], dtype="int32"), mx.nd.array([2, 1], dtype="int32")
    >>> mx.nd._internal._onnx_bit_shift(x, n).asnumpy()
    array([4, 8], dtype=int32)
    """
    if direction == "LEFT":
        return torch.bitwise_left_shift(data, count)
    return torch.bitwise_right_shift(data, count)


@op("_onnx_bit_cast", types="T -> @dtype", shape=same)
def bit_cast(data: Tensor, *, dtype: DType) -> Tensor:
    """Read the bits of numbers as numbers of another type of the same size.

    >>> mx.nd._internal._onnx_bit_cast(mx.nd.ones((1,)), dtype="int32").asnumpy()
    array([1065353216], dtype=int32)
    """
    return data.view(dtype).clone()


@op("_onnx_mod", shape=broadcast)
def mod(data: Tensor, divisor: Tensor) -> Tensor:
    """Remainder with the sign of the divisor; that of a division by 0 is NaN.

    Parameters
    ----------
    divisor
        What to divide by.

    >>> x, y = mx.nd.array([-7, 7]), mx.nd.array([3, -3])
    >>> mx.nd._internal._onnx_mod(x, y).asnumpy()
    array([ 2., -2.], dtype=float32)
    """
    return torch.remainder(data, divisor)


@op("_onnx_fmod", shape=broadcast)
def fmod(data: Tensor, divisor: Tensor) -> Tensor:
    """Remainder with the sign of the dividend.

    Parameters
    ----------
    divisor
        What to divide by.

    >>> x, y = mx.nd.array([-7, 7]), mx.nd.array([3, -3])
    >>> mx.nd._internal._onnx_fmod(x, y).asnumpy()
    array([-1.,  1.], dtype=float32)
    """
    return torch.fmod(data, divisor)


@op("_onnx_cumprod", shape=same)
def cumprod(
    data: Tensor, *, axis: int = 0, is_exclusive: bool = False, is_reverse: bool = False
) -> Tensor:
    """Running products, forward or backward, with or without the element itself.

    Parameters
    ----------
    is_exclusive
        Whether to leave the element itself out.
    is_reverse
        Whether to start at the end.

    >>> mx.nd._internal._onnx_cumprod(mx.nd.array([2, 3, 4]), is_exclusive=True).asnumpy()
    array([1., 2., 6.], dtype=float32)
    """
    line = data.flip(axis) if is_reverse else data
    if is_exclusive:
        ones = torch.ones_like(line.narrow(axis, 0, 1))
        line = torch.cat([ones, line.narrow(axis, 0, line.shape[axis] - 1)], axis)
    made = torch.cumprod(line, axis, dtype=data.dtype)
    return made.flip(axis) if is_reverse else made
