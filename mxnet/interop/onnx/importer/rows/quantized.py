"""Import rows of quantization (QDQ pairs, products of 8-bit numbers) and of signals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..value import F, OnnxNode, Value, direct, imports, internal
from .layers import window

LIMITS = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
}


def _match_axes(node: OnnxNode, value: Value, x: Value) -> Any:
    """Return a scale or zero point, reshaped to broadcast with the data."""
    block = node.get("block_size", 0)
    if value.shape is None or len(value.shape) == 0 or x.rank == 0:
        return F.reshape(value.symbol, shape=(1,) * max(x.rank, 1))
    axis = node.get("axis", 1) % x.rank
    if block and len(value.shape) == x.rank:
        wide = F.repeat(value.symbol, repeats=block, axis=axis)
        return F.slice_axis(wide, axis=axis, begin=0, end=x.sizes[axis])
    if len(value.shape) == x.rank and x.rank > 1:
        return value.symbol
    shape = [1] * x.rank
    if value.sizes[0] > 1:
        shape[axis] = -1
    return F.reshape(value.symbol, shape=tuple(shape))


@imports("DequantizeLinear")
def dequantize(node: OnnxNode, x: Value, scale: Value, zero: Value | None = None) -> Any:
    """``(x - zero) scale``."""
    dtype = scale.dtype.name
    output = F.cast(x.symbol, dtype=dtype)
    if zero is not None:
        output = F.broadcast_sub(output, F.cast(_match_axes(node, zero, x), dtype=dtype))
    return F.broadcast_mul(output, _match_axes(node, scale, x), name=node.name)


def _saturate(node: OnnxNode, x: Any, dtype: str) -> Any:
    """Return rounded numbers clipped to a type, stored in it or in MXNet's wider type."""
    low, high = LIMITS[dtype]
    held = node.importer.integers.widen_type(np.dtype(dtype))
    return F.cast(F.clip(x, a_min=low, a_max=high), dtype=held.name, name=node.name)


def _check_type(node: OnnxNode, dtype: str) -> None:
    if dtype not in LIMITS:
        raise node.unsupported(f"to {dtype} has no row.")


@imports("QuantizeLinear")
def quantize(node: OnnxNode, x: Value, scale: Value, zero: Value | None = None) -> Any:
    """``round(x / scale) + zero``, clipped to the type."""
    dtype = node.stored_dtype()
    name = dtype.name if dtype is not None else "uint8"
    _check_type(node, name)
    ratio = F.broadcast_div(x.symbol, F.cast(_match_axes(node, scale, x), dtype=x.dtype.name))
    output = internal._npi_around(ratio)
    if zero is not None:
        output = F.broadcast_add(output, F.cast(_match_axes(node, zero, x), dtype=x.dtype.name))
    return _saturate(node, output, name)


direct("DynamicQuantizeLinear", internal._onnx_dynamic_quantize, outputs=3)


def _zero_point(node: OnnxNode, value: Value | None, dtype: Any) -> Any:
    if value is None:
        return node.parameter(np.zeros(1, dtype), "zero")
    return F.reshape(value.symbol, shape=(1,)) if value.shape == () else value.symbol


@imports("MatMulInteger")
def matmul_integer(
    node: OnnxNode, a: Value, b: Value, a_zero: Value | None = None, b_zero: Value | None = None
) -> Any:
    """Matrix product of 8-bit numbers."""
    zeros = _zero_point(node, a_zero, a.dtype), _zero_point(node, b_zero, b.dtype)
    return internal._onnx_matmul_integer(a.symbol, b.symbol, *zeros, name=node.name)


@imports("ConvInteger")
def conv_integer(
    node: OnnxNode, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None
) -> Any:
    """Convolution of 8-bit numbers."""
    zeros = _zero_point(node, x_zero, x.dtype), _zero_point(node, w_zero, w.dtype)
    attrs = _conv_attrs(node, x, w)
    return internal._onnx_conv_integer(x.symbol, w.symbol, *zeros, **attrs, name=node.name)


def _conv_attrs(node: OnnxNode, x: Value, w: Value) -> dict[str, Any]:
    where = window(node, x, w.sizes[2:])
    attrs = {**where.attrs(where.after), "num_group": node.get("group", 1)}
    del attrs["kernel"]
    return attrs


def _requantize(node: OnnxNode, total: Any, factor: Any, zero: Value, rank: int) -> Any:
    name = zero.dtype.name
    _check_type(node, name)
    scaled = F.broadcast_mul(F.cast(total, dtype="float32"), factor)
    shift = F.reshape(F.cast(zero.symbol, dtype="float32"), shape=(1,) * max(rank, 1))
    output = F.broadcast_add(internal._npi_around(scaled), shift)
    return _saturate(node, output, name)


def _as_float(value: Value, shape: tuple[int, ...]) -> Any:
    return F.reshape(F.cast(value.symbol, dtype="float32"), shape=shape)


@imports("QLinearMatMul")
def qlinear_matmul(node: OnnxNode, *values: Value) -> Any:
    """Matrix product of quantized matrices, quantized again."""
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = values
    zeros = _zero_point(node, a_zero, a.dtype), _zero_point(node, b_zero, b.dtype)
    total = internal._onnx_matmul_integer(a.symbol, b.symbol, *zeros)
    rank = max(a.rank, b.rank)
    one = (1,) * rank
    rows = (*one[:-2], -1, 1) if a_scale.shape and a_scale.shape[0] != 1 else one
    columns = (*one[:-1], -1) if b_scale.shape and b_scale.shape[0] != 1 else one
    factor = F.broadcast_mul(_as_float(a_scale, rows), _as_float(b_scale, columns))
    factor = F.broadcast_div(factor, _as_float(scale, one))
    return _requantize(node, total, factor, zero, rank)


@imports("QLinearConv")
def qlinear_conv(node: OnnxNode, *values: Value) -> Any:
    """Convolution of quantized arrays, quantized again."""
    x, x_scale, x_zero, w, w_scale, w_zero, scale, zero, *rest = values
    zeros = _zero_point(node, x_zero, x.dtype), _zero_point(node, w_zero, w.dtype)
    total = internal._onnx_conv_integer(x.symbol, w.symbol, *zeros, **_conv_attrs(node, x, w))
    one = (1,) * x.rank
    channels = (1, -1, *one[2:])
    if rest and rest[0] is not None:
        total = F.broadcast_add(total, F.reshape(rest[0].symbol, shape=channels))
    factor = F.broadcast_mul(_as_float(x_scale, one), _as_float(w_scale, channels))
    factor = F.broadcast_div(factor, _as_float(scale, one))
    return _requantize(node, total, factor, zero, x.rank)


# -- signals --------------------------------------------------------------------------------


@imports("DFT")
def dft(node: OnnxNode, x: Value, length: Value | None = None, axis: Value | None = None) -> Any:
    """Discrete Fourier transform."""
    if node.opset >= 20:
        at = -2 if axis is None else int(node.item(axis, "axis"))
    else:
        at = node.get("axis", 1)
    count = None if length is None else int(node.item(length, "dft_length"))
    return internal._onnx_dft(
        x.symbol,
        axis=at,
        length=count,
        inverse=node.flag("inverse"),
        onesided=node.flag("onesided"),
        name=node.name,
    )


@imports("STFT")
def stft(
    node: OnnxNode,
    x: Value,
    step: Value,
    window: Value | None = None,
    length: Value | None = None,
) -> Any:
    """Fourier transforms of frames."""
    if length is not None:
        count = int(node.item(length, "frame_length"))
    else:
        count = window.sizes[0] if window is not None else x.sizes[1]
    inputs = [x.symbol] + ([window.symbol] if window is not None else [])
    return internal._onnx_stft(
        *inputs,
        frame_step=int(node.item(step, "frame_step")),
        frame_length=count,
        onesided=node.flag("onesided", 1),
        has_window=window is not None,
        name=node.name,
    )
