"""Arithmetic of ONNX: bits, remainders, running products, 8-bit products, Fourier transforms."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from ..attributes import DType, Shape
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
        Number of bits to shift by.
    direction
        Direction.

    >>> x, n = mx.nd.array([1, 4], dtype="int32"), mx.nd.array([2, 1], dtype="int32")
    >>> mx.nd._internal._onnx_bit_shift(x, n).asnumpy()
    array([4, 8], dtype=int32)
    """
    if direction == "LEFT":
        return torch.bitwise_left_shift(data, count)
    return torch.bitwise_right_shift(data, count)


@op("_onnx_bit_cast", types="T -> @dtype", shape=same)
def bit_cast(data: Tensor, *, dtype: DType) -> Tensor:
    """Reinterpret the bits as a different type of the same size.

    >>> mx.nd._internal._onnx_bit_cast(mx.nd.ones((1,)), dtype="int32").asnumpy()
    array([1065353216], dtype=int32)
    """
    return data.view(dtype).clone()


@op("_onnx_mod", shape=broadcast)
def mod(data: Tensor, divisor: Tensor) -> Tensor:
    """Remainder with the sign of the divisor; NaN for a divisor of 0.

    Parameters
    ----------
    divisor
        The divisor.

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
        The divisor.

    >>> x, y = mx.nd.array([-7, 7]), mx.nd.array([3, -3])
    >>> mx.nd._internal._onnx_fmod(x, y).asnumpy()
    array([-1.,  1.], dtype=float32)
    """
    return torch.fmod(data, divisor)


@op("_onnx_cumprod", shape=same)
def cumprod(
    data: Tensor, *, axis: int = 0, is_exclusive: bool = False, is_reverse: bool = False
) -> Tensor:
    """Cumulative products, forward or backward, with or without the element itself.

    Parameters
    ----------
    is_exclusive
        Whether to exclude the element itself.
    is_reverse
        Whether to start at the end.

    >>> mx.nd._internal._onnx_cumprod(mx.nd.array([2, 3, 4]), is_exclusive=True).asnumpy()
    array([1., 2., 6.], dtype=float32)
    """
    line = data.flip(axis) if is_reverse else data
    if is_exclusive:
        ones = torch.ones_like(line.narrow(axis, 0, 1))
        line = torch.cat([ones, line.narrow(axis, 0, line.shape[axis] - 1)], axis)
    output = torch.cumprod(line, axis, dtype=data.dtype)
    return output.flip(axis) if is_reverse else output


def _center(data: Tensor, zero: Tensor, *, is_row: bool = False) -> Tensor:
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
    product = torch.matmul(_center(a, a_zero, is_row=True), _center(b, b_zero))
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
        Padding before all axes, then after them.

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
    output = kernel(
        padded, weight.double() - weight_zero.double(), None, stride, 0, dilate, num_group
    )
    return output.to(torch.int32)


@op("_onnx_dynamic_quantize", types="T -> uint8 T uint8", outputs=3)
def dynamic_quantize(data: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return 8-bit numbers, their scale and their zero point, by the range of the data.

    >>> y, scale, zero = mx.nd._internal._onnx_dynamic_quantize(mx.nd.array([0, 255]))
    >>> y.asnumpy(), zero.asnumpy()
    (array([  0, 255], dtype=uint8), array(0, dtype=uint8))
    """
    low, high = data.amin().clamp(max=0), data.amax().clamp(min=0)
    scale = (high - low) / 255
    safe = torch.where(scale == 0, 1, scale)
    zero = (-low / safe).round().clamp(0, 255)
    output = ((data / safe).round() + zero).clamp(0, 255).to(torch.uint8)
    return output, scale, zero.to(torch.uint8)


def _as_complex(data: Tensor) -> Tensor:
    """Return complex numbers from a last axis of size 1 or 2."""
    if data.shape[-1] == 2:
        return torch.view_as_complex(data.contiguous())
    return data.squeeze(-1)


@op("_onnx_dft")
def dft(
    data: Tensor,
    *,
    axis: int = -2,
    length: int | None = None,
    inverse: bool = False,
    onesided: bool = False,
) -> Tensor:
    """Discrete Fourier transform along an axis; `onesided` keeps, or takes, half of it.

    Parameters
    ----------
    length
        Number of elements to transform; the axis is truncated or padded with 0.
    inverse
        Whether to compute the inverse transform.
    onesided
        Whether to use only the first half of the frequencies.

    >>> x = mx.nd.ones((1, 4, 1))
    >>> mx.nd._internal._onnx_dft(x, axis=1).asnumpy()[0, :, 0]
    array([4., 0., 0., 0.], dtype=float32)
    """
    at = axis % data.ndim
    values = _as_complex(data)
    if inverse and onesided:
        return torch.fft.irfft(values, length, at).unsqueeze(-1)
    if onesided:
        frequencies = torch.fft.rfft(values, length, at)
    else:
        frequencies = (torch.fft.ifft if inverse else torch.fft.fft)(values, length, at)
    return torch.view_as_real(frequencies).clone()


@op("_onnx_stft", optional={"window": lambda a: a["has_window"]})
def stft(
    data: Tensor,
    window: Tensor | None = None,
    *,
    frame_step: int,
    frame_length: int,
    onesided: bool = True,
    has_window: bool = False,
) -> Tensor:
    """Fourier transforms of frames: ``(batch, frames, frequencies, 2)``.

    Parameters
    ----------
    window
        Factors of the elements of a frame.
    frame_step
        Elements between frames.
    frame_length
        Elements of a frame.
    onesided
        Whether to use only the first half of the frequencies.
    has_window
        Whether `window` is given.

    >>> x = mx.nd.ones((1, 8, 1))
    >>> mx.nd._internal._onnx_stft(x, frame_step=4, frame_length=4).shape
    (1, 2, 3, 2)
    """
    frames = _as_complex(data).unfold(1, frame_length, frame_step)
    if window is not None:
        frames = frames * window
    frequencies = torch.fft.rfft(frames) if onesided else torch.fft.fft(frames)
    return torch.view_as_real(frequencies).clone()
