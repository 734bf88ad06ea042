"""Rows of quantization: QuantizeLinear and DequantizeLinear.

A quantized array of MXNet travels with the range it stands for; its scale follows from the larger
end of the range, and the zero point is 0. Like MXNet 1.9.1, some operators count 127 and 255
steps, others 127.5 and 255.5.
"""

from __future__ import annotations

import numpy as np
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
    known = constant(g, low, high)
    if known is not None and _larger(known) > 0:
        end = _larger(known)
        made = g.QuantizeLinear(x, g.scalar(end / steps, FLOAT), g.scalar(0, dtype))
        if dtype is torch.int8:
            low, high = (g.array(np.float32([e])) for e in (-end, end))
        return [made, low, high]
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
    return [g.array(np.float32([end])) for end in (low, high)]


def constant(g: Builder, *names: str) -> list[np.ndarray] | None:
    """Return the values of names that are constants, None if any is not."""
    found = [g.initializers.get(name) for name in names]
    return None if any(f is None for f in found) else [f for f in found if f is not None]


def scale_of(g: Builder, low: str, high: str, steps: float) -> str:
    """Return the real number of a step, as a scalar; a constant where the range is one."""
    known = constant(g, low, high)
    if known is None:
        return g.reshape(g.Div(larger_end(g, low, high), g.scalar(steps, FLOAT)), [])
    return g.scalar(_larger(known) / steps, FLOAT)


def _larger(ends: list[np.ndarray]) -> float:
    return float(np.maximum(*(np.abs(e) for e in ends)).max())


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
    scale = scale_of(g, low, high, HALF_STEPS[call.dtype])
    return g.DequantizeLinear(x, scale, g.scalar(0, call.dtype))


@row("_contrib_requantize")
def requantize(g: Builder, call: Call, x: str, low: str, high: str) -> list[str]:
    """Return an int32 array as int8."""
    maker = call.node.inputs[0].node.name
    real = g.real_sums.get(maker) or _real_sums(g, call, x, low, high)
    dtype = call.out_dtypes[0]
    low, high = _ends(g, call, real)
    made, _, _ = quantize(g, real, low, high, dtype, STEPS[dtype])
    known = constant(g, low, high)
    if known is not None:
        end = _larger(known)
        ends = (0.0 if dtype is torch.uint8 else -end, end)
        return [made, *(g.array(np.float32([e])) for e in ends)]
    end = g.reshape(larger_end(g, low, high), [1])
    return [made, g.Mul(end, g.scalar(0, FLOAT)) if dtype is torch.uint8 else g.Neg(end), end]


def _real_sums(g: Builder, call: Call, x: str, low: str, high: str) -> str:
    scale = g.Div(larger_end(g, low, high), g.scalar(INT32_STEPS, FLOAT))
    if len(call.shapes) > 1 and call.shapes[1] != (1,):  # one for each channel
        scale = g.reshape(scale, [-1, *[1] * (call.ndim - 2)])
    return g.Mul(g.cast(x, call.dtype, FLOAT), scale)
