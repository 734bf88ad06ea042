"""Rows of 8-bit layers: float operators between DequantizeLinear and QuantizeLinear (QDQ).

Runtimes replace such a group by one integer operator. What MXNet keeps as 32-bit sums with a range
are real numbers here, which the row of `requantize` rounds.
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
from .quantization import FLOAT, HALF_STEPS, STEPS, constant, quantize, scale_of

INT32_STEPS = 2147483647.0
LAYER_STEPS = {**STEPS, torch.int32: INT32_STEPS}


def _real(g: Builder, x: str, dtype: torch.dtype, low: str, high: str, steps: dict) -> str:
    """Return the real numbers of an 8-bit array with one range."""
    return g.DequantizeLinear(x, scale_of(g, low, high, steps[dtype]), g.scalar(0, dtype))


def _sums(g: Builder, call: Call, real: str) -> list[str]:
    """Return real numbers in the place of 32-bit sums, whose range nobody reads."""
    g.real_sums.add(call.name)
    end = g.array(np.float32([1.0]))
    return [real, end, end]


def _ends(call: Call, position: int) -> np.ndarray:
    """Return the larger end of the range that begins at an input; it must be a constant."""
    low, high = call.constant(position), call.constant(position + 1)
    if low is None or high is None:
        raise call.unsupported("needs weights and their ranges as parameters.")
    return np.maximum(np.abs(low), np.abs(high)).astype(np.float64)


def _weights(g: Builder, call: Call, weight: str, position: int) -> tuple[str, np.ndarray]:
    """Return the real weights, and the steps of their filters."""
    steps = _ends(call, position) / LAYER_STEPS[torch.int8]
    if steps.size == 1:
        scale, zero, axis = g.scalar(float(steps[0]), FLOAT), g.scalar(0, torch.int8), None
    else:
        scale = g.array(steps.astype(np.float32))
        zero, axis = g.array(np.zeros(steps.size, np.int8)), 0
    return g.DequantizeLinear(weight, scale, zero, axis=axis), steps


def _bias(g: Builder, call: Call, data_step: float | None, steps: np.ndarray) -> str:
    """Return the bias in steps of the sums where these are known, as runtimes want it."""
    integers = call.constant(2)
    if integers is None:
        raise call.unsupported("needs its bias as a parameter.")
    real = integers.astype(np.float64) * _ends(call, 7) / LAYER_STEPS[call.dtypes[2]]
    if data_step is None:
        return g.array(real.astype(np.float32))
    scale = np.broadcast_to(data_step * steps, real.shape)
    limit = INT32_STEPS
    made = np.clip(np.round(real / scale), -limit, limit).astype(np.int32)
    zero = np.zeros(scale.shape, np.int32)
    return g.DequantizeLinear(
        g.array(made), g.array(scale.astype(np.float32)), g.array(zero), axis=0
    )


def _layer_inputs(g: Builder, call: Call, x: str, weight: str, names: tuple[str, ...]) -> list[str]:
    """Return data, weight and bias as real numbers."""
    has_bias = not call.attrs["no_bias"]
    low, high = names[1:3] if has_bias else names[:2]
    known = constant(g, low, high)
    steps = LAYER_STEPS[call.dtype]
    data_step = None if known is None else float(max(abs(float(e[0])) for e in known)) / steps
    real = _real(g, x, call.dtype, low, high, LAYER_STEPS)
    weights, filter_steps = _weights(g, call, weight, 5 if has_bias else 4)
    found = [real, weights]
    return [*found, _bias(g, call, data_step, filter_steps)] if has_bias else found


def _as_float(call: Call, **attrs: object) -> Call:
    return replace(call, dtypes=[FLOAT] * len(call.dtypes), attrs={**call.attrs, **attrs})


@row("_contrib_quantized_conv", since=13)
def quantized_conv(g: Builder, call: Call, x: str, weight: str, *names: str) -> list[str]:
    """Write Conv between conversions."""
    inputs = _layer_inputs(g, call, x, weight, names)
    return _sums(g, call, convolution(g, _as_float(call), *inputs))


@row("_contrib_quantized_fully_connected", since=13)
def quantized_fully_connected(
    g: Builder, call: Call, x: str, weight: str, *names: str
) -> list[str]:
    """Write Gemm or MatMul between conversions."""
    inputs = _layer_inputs(g, call, x, weight, names)
    return _sums(g, call, fully_connected(g, _as_float(call), *inputs))


@row("_contrib_quantized_elemwise_add", since=13)
def quantized_elemwise_add(g: Builder, call: Call, lhs: str, rhs: str, *ends: str) -> list[str]:
    """Write Add between conversions."""
    left = _real(g, lhs, call.dtypes[0], *ends[:2], HALF_STEPS)
    right = _real(g, rhs, call.dtypes[1], *ends[2:], HALF_STEPS)
    total = g.Add(left, right)
    if call.attrs["min_calib_range"] is None or call.attrs["max_calib_range"] is None:
        return _sums(g, call, total)
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
