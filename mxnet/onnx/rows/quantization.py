"""Rows of quantization: QuantizeLinear and DequantizeLinear.

A quantized array of MXNet travels with the range it stands for; its scale follows from the larger
end of the range, and the zero point is 0. Like MXNet 1.9.1, some operators count 127 and 255
steps, others 127.5 and 255.5.
"""

from __future__ import annotations

import torch

from ..builder import Builder, Call
from ..table import row

FLOAT = torch.float32
STEPS = {torch.int8: 127.0, torch.uint8: 255.0}
HALF_STEPS = {torch.int8: 127.5, torch.uint8: 255.5}
INT32_STEPS = 2147483647.0


def larger_end(g: Builder, low: str, high: str) -> str:
    """Return the larger of the absolute values of both ends."""
    return g.Max(g.Abs(low), g.Abs(high))


def quantize(
    g: Builder, x: str, low: str, high: str, dtype: torch.dtype, steps: float
) -> list[str]:
    """Return the quantized array and the range that it stands for."""
    end = larger_end(g, low, high)
    # A range of zeros only has no steps: everything becomes 0.
    is_empty = g.Equal(end, g.scalar(0, FLOAT))
    scale = g.Where(is_empty, g.scalar(1, FLOAT), g.Div(end, g.scalar(steps, FLOAT)))
    made = g.QuantizeLinear(x, g.reshape(scale, []), g.scalar(0, dtype))
    ends = [low, high] if dtype is torch.uint8 else [g.Neg(end), end]
    return [made, *(g.reshape(e, [1]) for e in ends)]


def _ends(g: Builder, call: Call, x: str) -> list[str]:
    """Return the calibrated range, or else that of the array itself."""
    low, high = call.attrs["min_calib_range"], call.attrs["max_calib_range"]
    if low is None or high is None:
        return [g.reduce(k, x, None, False) for k in ("ReduceMin", "ReduceMax")]
    return [g.scalar(low, FLOAT), g.scalar(high, FLOAT)]


@row("_contrib_quantize")
def quantize_by_inputs(g: Builder, call: Call, x: str, low: str, high: str) -> list[str]:
    """Quantize to a range that is given as arrays."""
    dtype = call.out_dtypes[0]
    return quantize(g, x, low, high, dtype, STEPS[dtype])


@row("_contrib_quantize_v2")
def quantize_v2(g: Builder, call: Call, x: str) -> list[str]:
    """Quantize to a range that calibration found, or to that of the array itself."""
    dtype = call.out_dtypes[0]
    low, high = _ends(g, call, x)
    return quantize(g, x, low, high, dtype, HALF_STEPS[dtype])


@row("_contrib_dequantize")
def dequantize(g: Builder, call: Call, x: str, low: str, high: str) -> str:
    """Return the floats that a quantized array stands for."""
    steps = g.scalar(HALF_STEPS[call.dtype], FLOAT)
    scale = g.Div(larger_end(g, low, high), steps)
    return g.DequantizeLinear(x, g.reshape(scale, []), g.scalar(0, call.dtype))


@row("_contrib_requantize")
def requantize(g: Builder, call: Call, x: str, low: str, high: str) -> list[str]:
    """Return an int32 array as int8."""
    scale = g.Div(larger_end(g, low, high), g.scalar(INT32_STEPS, FLOAT))
    real = g.Mul(g.cast(x, call.dtype, FLOAT), scale)
    dtype = call.out_dtypes[0]
    low, high = _ends(g, call, real)
    made, _, _ = quantize(g, real, low, high, dtype, STEPS[dtype])
    end = g.reshape(larger_end(g, low, high), [1])
    return [made, g.Mul(end, g.scalar(0, FLOAT)) if dtype is torch.uint8 else g.Neg(end), end]
