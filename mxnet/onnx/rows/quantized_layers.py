"""Rows of 8-bit layers: float operators between DequantizeLinear and QuantizeLinear (QDQ).

Runtimes replace such a group by one integer operator. What MXNet keeps as 32-bit sums with a range
are real numbers for the row of `requantize`; the sums themselves are written where they are read.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from ..builder import Builder, Call
from ..table import row
from .convolution import convolution
from .dense import fully_connected
from .pooling import pooling
from .quantization import FLOAT, HALF_STEPS, STEPS, constant, larger_end, quantize, scale_of

INT32_STEPS = 2147483647.0
LAYER_STEPS = {**STEPS, torch.int32: INT32_STEPS}


def _real(g: Builder, x: str, dtype: torch.dtype, low: str, high: str, steps: dict) -> str:
    """Return the real numbers of an 8-bit array with one range."""
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
    """Return the real weights."""
    if count == 1:
        known = g.initializers.get(steps)
        scale = g.reshape(steps, []) if known is None else g.array(known.reshape(()))
        return g.DequantizeLinear(weight, scale, g.scalar(0, torch.int8))
    return g.DequantizeLinear(weight, steps, g.array(np.zeros(count, np.int8)), axis=0)


def _bias(g: Builder, call: Call, bias: str, bias_step: str, step: np.ndarray | None) -> str:
    """Return the real bias; in steps of the sums where these are known, as runtimes want it."""
    integers, known = call.constant(2), g.initializers.get(bias_step)
    if integers is None or known is None or step is None:
        return g.Mul(g.cast(bias, call.dtypes[2], FLOAT), bias_step)
    real = integers.astype(np.float64) * known
    scale = np.broadcast_to(step, real.shape)
    limit = INT32_STEPS
    made = np.clip(np.round(real / scale), -limit, limit).astype(np.int32)
    zeros, scales = np.zeros(scale.shape, np.int32), scale.astype(np.float32)
    return g.DequantizeLinear(g.array(made), g.array(scales), g.array(zeros), axis=0)


def _layer_inputs(g: Builder, call: Call, names: tuple[str, ...]) -> tuple[list[str], str]:
    """Return data, weight and bias as real numbers, and the step of the sums."""
    at = 2 if call.attrs["no_bias"] else 3
    low, high = names[at : at + 2]
    data_scale = scale_of(g, low, high, LAYER_STEPS[call.dtype])
    filter_steps = _steps(g, call, names, at + 2, torch.int8)
    data = g.DequantizeLinear(names[0], data_scale, g.scalar(0, call.dtype))
    found = [data, _weights(g, names[1], filter_steps, max(call.shapes[at + 2]))]
    known = constant(g, data_scale, filter_steps)
    step = None if known is None else known[0].astype(np.float64) * known[1]
    if at == 3:
        ratio = HALF_STEPS[call.dtype] / STEPS[call.dtype]  # `quantize_v2` has more steps
        bias_step = _steps(g, call, names, 7, call.dtypes[2], ratio)
        found.append(_bias(g, call, names[2], bias_step, step))
    return found, g.Mul(g.reshape(data_scale, [1]), filter_steps)


def _as_float(call: Call, **attrs: object) -> Call:
    return replace(call, dtypes=[FLOAT] * len(call.dtypes), attrs={**call.attrs, **attrs})


@row("_contrib_quantized_conv", since=13)
def quantized_conv(g: Builder, call: Call, *names: str) -> list[str]:
    """Write Conv between conversions."""
    inputs, step = _layer_inputs(g, call, names)
    return _sums(g, call, convolution(g, _as_float(call), *inputs), step)


@row("_contrib_quantized_fully_connected", since=13)
def quantized_fully_connected(g: Builder, call: Call, *names: str) -> list[str]:
    """Write Gemm or MatMul between conversions."""
    inputs, step = _layer_inputs(g, call, names)
    return _sums(g, call, fully_connected(g, _as_float(call), *inputs), step)


@row("_contrib_quantized_elemwise_add", since=13)
def quantized_elemwise_add(g: Builder, call: Call, lhs: str, rhs: str, *ends: str) -> list[str]:
    """Write Add between conversions."""
    left = _real(g, lhs, call.dtypes[0], *ends[:2], HALF_STEPS)
    right = _real(g, rhs, call.dtypes[1], *ends[2:], HALF_STEPS)
    total = g.Add(left, right)
    if call.attrs["min_calib_range"] is None or call.attrs["max_calib_range"] is None:
        end = g.Add(larger_end(g, *ends[:2]), larger_end(g, *ends[2:]))
        return _sums(g, call, total, g.Div(end, g.scalar(INT32_STEPS, FLOAT)))
    low, high = (
        g.array(np.float32([call.attrs[k]])) for k in ("min_calib_range", "max_calib_range")
    )
    dtype = call.out_dtypes[0]
    return quantize(g, total, low, high, dtype, STEPS[dtype])


@row("_contrib_quantized_pooling", since=13)
def quantized_pooling(g: Builder, call: Call, x: str, low: str, high: str) -> list[str]:
    """Write the pooling of real numbers between conversions of one scale."""
    scale, zero = scale_of(g, low, high, LAYER_STEPS[call.dtype]), g.scalar(0, call.dtype)
    made = pooling(g, _as_float(call), g.DequantizeLinear(x, scale, zero))
    return [g.QuantizeLinear(made, scale, zero), low, high]


@row("_contrib_quantized_flatten", since=13)
def quantized_flatten(g: Builder, call: Call, x: str, low: str, high: str) -> list[str]:
    """Flatten the integers."""
    return [g.Flatten(x, axis=1), low, high]


@row("_contrib_quantized_act", since=13)
def quantized_act(g: Builder, call: Call, x: str, low: str, high: str) -> list[str]:
    """Replace negative integers by 0."""
    return [g.Max(x, g.scalar(0, call.dtype)), low, high]


@row("_contrib_quantized_concat", since=13)
def quantized_concat(g: Builder, call: Call, *names: str) -> list[str]:
    """Join real numbers between conversions."""
    count = call.attrs["num_args"]
    ends = names[count:]
    reals = [
        _real(g, x, call.dtypes[i], *ends[2 * i : 2 * i + 2], LAYER_STEPS)
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
