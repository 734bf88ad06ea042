"""Rows of quantization, and of 8-bit layers between DequantizeLinear and QuantizeLinear (QDQ).

Runtimes replace such a group by one integer operator. MXNet's 32-bit sums with a range are real
numbers for the row of `requantize`; the sums are exported only if they are used.

MXNet's quantized arrays have a range; the scale is determined by its end of larger magnitude, and
the zero point is 0. As in MXNet 1.9.1, some operators use 127 and 255 steps, others 127.5 and
255.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from ..builder import Builder, Call, row
from .layers import convolution, fully_connected, pooling

FLOAT = torch.float32
STEPS = {torch.int8: 127.0, torch.uint8: 255.0}
HALF_STEPS = {torch.int8: 127.5, torch.uint8: 255.5}
INT32_STEPS = 2147483647.0
LAYER_STEPS = {**STEPS, torch.int32: INT32_STEPS}


def _vector(g: Builder, value: float) -> str:
    return g.array(np.array([value], np.float32))


def larger_end(g: Builder, low: str, high: str) -> str:
    """Return the larger of the absolute values of both ends."""
    return g.Max(g.Abs(low), g.Abs(high))


def quantize(
    g: Builder, x: str, low: str, high: str, dtype: torch.dtype, steps: float
) -> list[str]:
    """Return the quantized array and the range that it represents."""
    range_ends = constant(g, low, high)
    if range_ends is not None and _larger(range_ends) > 0:
        end = _larger(range_ends)
        output = g.QuantizeLinear(x, g.scalar(end / steps, FLOAT), g.scalar(0, dtype))
        if dtype is torch.int8:
            low, high = (_vector(g, e) for e in (-end, end))
        return [output, low, high]
    end = larger_end(g, low, high)
    # An empty range has no steps: all values become 0.
    is_empty = g.Equal(end, g.scalar(0, FLOAT))
    scale = g.Where(is_empty, g.scalar(1, FLOAT), g.Div(end, g.scalar(steps, FLOAT)))
    output = g.QuantizeLinear(x, g.reshape(scale, []), g.scalar(0, dtype))
    ends = [low, high] if dtype is torch.uint8 else [g.Neg(end), end]
    return [output, *(g.reshape(e, [1]) for e in ends)]


def _ends(g: Builder, call: Call, x: str) -> list[str]:
    """Return the calibrated range, or else the array's own range."""
    low, high = call.attrs["min_calib_range"], call.attrs["max_calib_range"]
    if low is None or high is None:
        return [g.reduce(k, x, None, False) for k in ("ReduceMin", "ReduceMax")]
    return [_vector(g, end) for end in (low, high)]


def constant(g: Builder, *names: str) -> list[np.ndarray] | None:
    """Return the values of names that are constants, None if any is not."""
    values = [g.initializers.get(name) for name in names]
    return None if any(f is None for f in values) else [f for f in values if f is not None]


def scale_of(g: Builder, low: str, high: str, steps: float) -> str:
    """Return the scale of a step as a scalar; a constant if the range is constant."""
    ends = constant(g, low, high)
    if ends is None:
        return g.reshape(g.Div(larger_end(g, low, high), g.scalar(steps, FLOAT)), [])
    return g.scalar(_larger(ends) / steps, FLOAT)


def _larger(ends: list[np.ndarray]) -> float:
    return float(np.maximum(*(np.abs(e) for e in ends)).max())


@row("_contrib_quantize")
def quantize_by_inputs(g: Builder, call: Call, x: str, low: str, high: str) -> list[str]:
    """Quantize to a range that is given as arrays."""
    dtype = call.out_dtypes[0]
    return quantize(g, x, low, high, dtype, STEPS[dtype])


@row("_contrib_quantize_v2")
def quantize_v2(g: Builder, call: Call, x: str) -> list[str]:
    """Quantize to the calibrated range, or to the array's own range."""
    dtype = call.out_dtypes[0]
    low, high = _ends(g, call, x)
    return quantize(g, x, low, high, dtype, HALF_STEPS[dtype])


@row("_contrib_dequantize")
def dequantize(g: Builder, call: Call, x: str, low: str, high: str) -> str:
    """Dequantize an array."""
    scale = scale_of(g, low, high, HALF_STEPS[call.dtype])
    return g.DequantizeLinear(x, scale, g.scalar(0, call.dtype))


@row("_contrib_requantize")
def requantize(g: Builder, call: Call, x: str, low: str, high: str) -> list[str]:
    """Return an int32 array as int8."""
    maker = call.node.inputs[0].node.name
    real = g.real_sums.get(maker) or _real_sums(g, call, x, low, high)
    dtype = call.out_dtypes[0]
    low, high = _ends(g, call, real)
    output, _, _ = quantize(g, real, low, high, dtype, STEPS[dtype])
    constants = constant(g, low, high)
    if constants is not None:
        end = _larger(constants)
        ends = (0.0 if dtype is torch.uint8 else -end, end)
        return [output, *(_vector(g, e) for e in ends)]
    end = g.reshape(larger_end(g, low, high), [1])
    return [output, g.Mul(end, g.scalar(0, FLOAT)) if dtype is torch.uint8 else g.Neg(end), end]


def _real_sums(g: Builder, call: Call, x: str, low: str, high: str) -> str:
    scale = g.Div(larger_end(g, low, high), g.scalar(INT32_STEPS, FLOAT))
    if len(call.shapes) > 1 and call.shapes[1] != (1,):  # one for each channel
        scale = g.reshape(scale, [-1, *[1] * (call.ndim - 2)])
    return g.Mul(g.cast(x, call.dtype, FLOAT), scale)


def _real(g: Builder, x: str, dtype: torch.dtype, ends: Sequence[str], steps: dict) -> str:
    """Return the real numbers of an 8-bit array with one range."""
    low, high = ends
    return g.DequantizeLinear(x, scale_of(g, low, high, steps[dtype]), g.scalar(0, dtype))


def _sums(g: Builder, call: Call, real: str, step: str) -> list[str]:
    """Return 32-bit sums and their range; `requantize` takes the real numbers instead."""
    ends = [g.Mul(step, g.scalar(sign * INT32_STEPS, FLOAT)) for sign in (-1, 1)]
    g.real_sums[call.name] = real
    steps = g.reshape(step, [-1, *[1] * (len(call.out_shapes[0]) - 2)])
    return [g.cast(g.Round(g.Div(real, steps)), FLOAT, torch.int32), *ends]


def _steps(
    g: Builder,
    call: Call,
    names: tuple[str, ...],
    at: int,
    dtype: torch.dtype,
    ratio: float = 1.0,
) -> str:
    """Return the steps of a parameter whose range begins at an input, a constant if it is one."""
    low, high = call.constant(at), call.constant(at + 1)
    if low is None or high is None:
        end = larger_end(g, *names[at : at + 2])
        return g.Div(end, g.scalar(LAYER_STEPS[dtype] / ratio, FLOAT))
    end = np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
    return g.array((end / LAYER_STEPS[dtype] * ratio).astype(np.float32).reshape(-1))


def _weights(g: Builder, weight: str, steps: str, count: int) -> str:
    if count == 1:
        number = g.initializers.get(steps)
        scale = g.reshape(steps, []) if number is None else g.array(number.reshape(()))
        return g.DequantizeLinear(weight, scale, g.scalar(0, torch.int8))
    return g.DequantizeLinear(weight, steps, g.array(np.zeros(count, np.int8)), axis=0)


def _bias(g: Builder, call: Call, bias: str, bias_step: str, step: np.ndarray | None) -> str:
    """Return the real bias; in steps of the sums if these are known, as runtimes require."""
    integers, bias_number = call.constant(2), g.initializers.get(bias_step)
    if integers is None or bias_number is None or step is None:
        return g.Mul(g.cast(bias, call.dtypes[2], FLOAT), bias_step)
    real = integers.astype(np.float64) * bias_number
    scale = np.broadcast_to(step, real.shape)
    limit = INT32_STEPS
    sums = np.clip(np.round(real / scale), -limit, limit).astype(np.int32)
    zeros, scales = np.zeros(scale.shape, np.int32), scale.astype(np.float32)
    return g.DequantizeLinear(g.array(sums), g.array(scales), g.array(zeros), axis=0)


def _layer_inputs(g: Builder, call: Call, names: tuple[str, ...]) -> tuple[list[str], str]:
    """Return data, weight and bias as real numbers, and the step of the sums."""
    at = 2 if call.attrs["no_bias"] else 3
    low, high = names[at : at + 2]
    data_scale = scale_of(g, low, high, LAYER_STEPS[call.dtype])
    filter_steps = _steps(g, call, names, at + 2, torch.int8)
    data = g.DequantizeLinear(names[0], data_scale, g.scalar(0, call.dtype))
    inputs = [data, _weights(g, names[1], filter_steps, max(call.shapes[at + 2]))]
    constants = constant(g, data_scale, filter_steps)
    step = None if constants is None else constants[0].astype(np.float64) * constants[1]
    if at == 3:
        ratio = HALF_STEPS[call.dtype] / STEPS[call.dtype]  # `quantize_v2` has more steps
        bias_step = _steps(g, call, names, 7, call.dtypes[2], ratio)
        inputs.append(_bias(g, call, names[2], bias_step, step))
    return inputs, g.Mul(g.reshape(data_scale, [1]), filter_steps)


def _as_float(call: Call) -> Call:
    return replace(call, dtypes=[FLOAT] * len(call.dtypes))


def _layer(name: str, write: Callable[..., str]) -> None:
    @row(name, since=13)
    def write_between(g: Builder, call: Call, *names: str) -> list[str]:
        inputs, step = _layer_inputs(g, call, names)
        return _sums(g, call, write(g, _as_float(call), *inputs), step)


_layer("_contrib_quantized_conv", convolution)
_layer("_contrib_quantized_fully_connected", fully_connected)


@row("_contrib_quantized_elemwise_add", since=13)
def quantized_elemwise_add(g: Builder, call: Call, lhs: str, rhs: str, *ends: str) -> list[str]:
    """Write Add between conversions."""
    left = _real(g, lhs, call.dtypes[0], ends[:2], HALF_STEPS)
    right = _real(g, rhs, call.dtypes[1], ends[2:], HALF_STEPS)
    total = g.Add(left, right)
    if call.attrs["min_calib_range"] is None or call.attrs["max_calib_range"] is None:
        end = g.Add(larger_end(g, *ends[:2]), larger_end(g, *ends[2:]))
        return _sums(g, call, total, g.Div(end, g.scalar(INT32_STEPS, FLOAT)))
    low, high = (_vector(g, call.attrs[k]) for k in ("min_calib_range", "max_calib_range"))
    dtype = call.out_dtypes[0]
    return quantize(g, total, low, high, dtype, STEPS[dtype])


@row("_contrib_quantized_pooling", since=13)
def quantized_pooling(g: Builder, call: Call, x: str, low: str, high: str) -> list[str]:
    """Write the pooling of real numbers between conversions of one scale."""
    scale, zero = scale_of(g, low, high, LAYER_STEPS[call.dtype]), g.scalar(0, call.dtype)
    output = pooling(g, _as_float(call), g.DequantizeLinear(x, scale, zero))
    return [g.QuantizeLinear(output, scale, zero), low, high]


row("_contrib_quantized_flatten", since=13)(
    lambda g, call, x, low, high: [g.Flatten(x, axis=1), low, high]
)
row("_contrib_quantized_act", since=13)(
    lambda g, call, x, low, high: [g.Max(x, g.scalar(0, call.dtype)), low, high]
)


@row("_contrib_quantized_concat", since=13)
def quantized_concat(g: Builder, call: Call, *names: str) -> list[str]:
    """Join real numbers between conversions."""
    count = call.attrs["num_args"]
    ends = names[count:]
    reals = [
        _real(g, x, call.dtypes[i], ends[2 * i : 2 * i + 2], LAYER_STEPS)
        for i, x in enumerate(names[:count])
    ]
    lows, highs = constant(g, *ends[::2]), constant(g, *ends[1::2])
    if lows is None or highs is None:
        low, high = g.Min(*ends[::2]), g.Max(*ends[1::2])
    else:
        low = g.array(np.min(lows, axis=0))
        high = g.array(np.max(highs, axis=0))
    dtype = call.out_dtypes[0]
    joined = g.Concat(*reals, axis=call.attrs["dim"])
    return [quantize(g, joined, low, high, dtype, STEPS[dtype])[0], low, high]
