"""Quantization to 8 bits and dequantization.

A quantized array has a range of two numbers. Zero is exact: the scale is determined by the end of
larger magnitude. Halves round to even; values out of range saturate. (As in 1.9.1, some operators
use 127 and 255 steps, others 127.5 and 255.5.)
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from ...error import DTypeError, ShapeError
from ..declare import op
from ..shapes import Shapes, TypePattern, unify

EightBit = Literal["int8", "uint8"]
EightBitOrAuto = Literal["auto", "int8", "uint8"]
LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}
DTYPES = {"int8": torch.int8, "uint8": torch.uint8}
STEPS = {"int8": 127.0, "uint8": 255.0}
HALF_STEPS = {"int8": 127.5, "uint8": 255.5}
INT32_STEPS = 2147483647.0
# For layers and sums; MXNet's 127.5 and 255.5 steps of `quantize_v2` differ by less than half a
# step.
QUANTIZED_STEPS = {torch.int8: 127.5, torch.uint8: 255.5}
LAYER_STEPS = {torch.int8: 127.0, torch.uint8: 255.0, torch.int32: INT32_STEPS}


def _ranged(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """The first output has the shape of the data; ranges have one element per end."""
    data = unify(ins[0], outs[0], "the output")
    return [data, *(r or (1,) for r in ins[1:])], [data, *[(1,)] * (len(outs) - 1)]


def _check_ranges(name: str, *ranges: Tensor, channels: int = 1) -> None:
    for ends in ranges:
        if ends.shape not in ((1,), (channels,)):
            expected = "(1,)" if channels == 1 else f"(1,) or ({channels},)"
            raise ShapeError(
                f"{name}: Shape inconsistent, the range must have shape {expected}, "
                f"got {tuple(ends.shape)}."
            )


def _check_dtype(name: str, data: Tensor, *dtypes: torch.dtype) -> None:
    if data.dtype not in dtypes:
        names = " or ".join(str(d).removeprefix("torch.") for d in dtypes)
        raise DTypeError(
            f"{name}: the input data type must be {names}, "
            f"got {str(data.dtype).removeprefix('torch.')}."
        )


def _larger_end(low: Tensor, high: Tensor) -> Tensor:
    return torch.maximum(low.abs(), high.abs())


def range_step(data: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return the step of an integer array."""
    _check_dtype("quantized layer", data, *LAYER_STEPS)
    return _larger_end(low, high) / LAYER_STEPS[data.dtype]


def _scale(steps: float, end: Tensor) -> Tensor:
    """Return the number of steps per unit; 0 for an empty range."""
    return torch.where(end > 0, steps / end, 0.0)


def _round(scaled: Tensor, kind: EightBit) -> Tensor:
    return scaled.round_().clamp_(*LIMITS[kind]).to(DTYPES[kind])


@op("_contrib_quantize", outputs=3, types="float32 -> @out_type float32", shape=_ranged)
def quantize(
    data: Tensor, min_range: Tensor, max_range: Tensor, *, out_type: EightBit = "uint8"
) -> tuple[Tensor, Tensor, Tensor]:
    """Quantize to 8 bits within a given range; also return the range of the result.

    Parameters
    ----------
    min_range
        Lower end of the range, of shape ``(1,)``.
    max_range
        Upper end of the range, of shape ``(1,)``.
    out_type
        The 8-bit type of the result.

    >>> x, low, high = mx.nd.array([-1, 0, 0.5]), mx.nd.array([-1]), mx.nd.array([1])
    >>> [y.asnumpy() for y in mx.nd.contrib.quantize(x, low, high, out_type="int8")[:2]]
    [array([-127,    0,   64], dtype=int8), array([-1.], dtype=float32)]
    """
    _check_dtype("_contrib_quantize", data, torch.float32)
    _check_ranges("_contrib_quantize", min_range, max_range)
    end = _larger_end(min_range, max_range)
    integers = _round(data * _scale(STEPS[out_type], end), out_type)
    return (
        (integers, -end, end)
        if out_type == "int8"
        else (integers, min_range.clone(), max_range.clone())
    )


def chosen_type(out_type: EightBitOrAuto, low: float | None) -> EightBit:
    """Return uint8 if the calibrated minimum is not negative, else int8."""
    if out_type != "auto":
        return out_type
    return "uint8" if low is not None and low >= 0 else "int8"


class _EightBitTypes(TypePattern):
    """A dtype pattern in which ``out_type`` may be "auto"."""

    def _read(self, word: str, bound: dict, attrs: dict) -> Any:
        if word == "@out_type":
            return DTYPES[chosen_type(attrs["out_type"], attrs.get("min_calib_range"))]
        return super()._read(word, bound, attrs)


@op("_contrib_quantize_v2", outputs=3, shape=_ranged, names_single_input=True)
def quantize_v2(
    data: Tensor,
    *,
    out_type: EightBitOrAuto = "int8",
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Quantize to 8 bits within a calibrated range, by default that of the data.

    ``out_type="auto"`` is uint8 when the calibrated minimum is not negative, else int8. 8-bit data
    is unchanged.

    >>> x = mx.nd.array([-1, 0, 0.5])
    >>> [y.asnumpy() for y in mx.nd.contrib.quantize_v2(x)[:2]]
    [array([-128,    0,   64], dtype=int8), array([-1.], dtype=float32)]
    """
    _check_dtype("_contrib_quantize_v2", data, torch.float32, torch.int8, torch.uint8)
    kind = chosen_type(out_type, min_calib_range)
    if data.dtype is not torch.float32:
        return _pass_on(data, kind, min_calib_range, max_calib_range)
    if min_calib_range is None or max_calib_range is None:
        if not data.numel():
            raise ShapeError("_contrib_quantize_v2: an empty array has no range; calibrate it.")
        low, high = (end.reshape(1) for end in torch.aminmax(data.detach()))
    else:
        low, high = data.new_tensor([min_calib_range]), data.new_tensor([max_calib_range])
    end = _larger_end(low, high)
    integers = _round(data * _scale(HALF_STEPS[kind], end), kind)
    return (integers, -end, end) if kind == "int8" else (integers, low, high)


def _pass_on(
    data: Tensor, kind: str, low: float | None, high: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return 8-bit data unchanged, with its range."""
    if low is None or high is None:
        steps = QUANTIZED_STEPS[data.dtype]
        low, high = -steps if data.dtype is torch.int8 else 0.0, steps
    ends = torch.tensor([[low], [high]], dtype=torch.float32, device=data.device)
    return data.clone().to(DTYPES[kind]), ends[0].clone(), ends[1].clone()


quantize_v2.type_pattern = _EightBitTypes("T -> @out_type float32")


@op("_contrib_dequantize", types="T float32 -> float32", shape=_ranged)
def dequantize(
    data: Tensor,
    min_range: Tensor,
    max_range: Tensor,
    *,
    out_type: Literal["float32"] = "float32",
) -> Tensor:
    """Return the real numbers that an 8-bit array represents.

    Parameters
    ----------
    out_type
        Data type of the result; only float32.

    >>> x, low, high = mx.nd.array([-128, 0, 64], dtype="int8"), mx.nd.array([-1]), mx.nd.array([1])
    >>> mx.nd.contrib.dequantize(x, low, high).asnumpy()
    array([-1.0039216,  0.       ,  0.5019608], dtype=float32)
    """
    _check_dtype("_contrib_dequantize", data, torch.uint8, torch.int8)
    _check_ranges("_contrib_dequantize", min_range, max_range)
    steps = HALF_STEPS["uint8" if data.dtype is torch.uint8 else "int8"]
    return data.to(torch.float32).mul_(_larger_end(min_range, max_range) / steps)


@op(
    "_contrib_quantize_asym",
    outputs=("output", "scale", "shift"),
    types="float32 -> uint8 float32",
    shape=_ranged,
)
def quantize_asym(
    data: Tensor,
    *,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Quantize the range of the data to 0..255: ``data * scale + shift``.

    >>> [y.asnumpy() for y in mx.nd.contrib.quantize_asym(mx.nd.array([-1, 0, 1.55]))]
    [array([  0, 100, 255], dtype=uint8), array([100.], dtype=float32), array([100.], dtype=float32)]
    """  # noqa: E501 (one line of output)
    _check_dtype("_contrib_quantize_asym", data, torch.float32)
    if min_calib_range is None or max_calib_range is None:
        if not data.numel():
            raise ShapeError("_contrib_quantize_asym: an empty array has no range; calibrate it.")
        low, high = (end.reshape(1) for end in torch.aminmax(data.detach()))
    else:
        low, high = data.new_tensor([min_calib_range]), data.new_tensor([max_calib_range])
    scale = _scale(255.0, high - low)
    shift = 255.0 - high * scale
    return (data * scale + shift + 0.5).floor_().clamp_(0, 255).to(torch.uint8), scale, shift


def _channel_ends(data: Tensor, channels: int) -> tuple[Tensor, Tensor]:
    """Return minimum and maximum, per channel if there are several."""
    if channels == 1:
        return torch.aminmax(data)
    rows = data.transpose(0, 1).flatten(1)
    return rows.amin(1), rows.amax(1)


@op("_contrib_requantize", outputs=3, shape=_ranged)
def requantize(
    data: Tensor,
    min_range: Tensor,
    max_range: Tensor,
    *,
    out_type: EightBitOrAuto = "int8",
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Convert 32-bit results to 8 bits, within a calibrated range or that of the data.

    The range of the 32-bit numbers may be per channel (axis 1).

    Parameters
    ----------
    data
        32-bit integers.

    >>> x, end = mx.nd.array([-50, 0, 100], dtype="int32"), mx.nd.array([1])
    >>> mx.nd.contrib.requantize(x, -end, end)[0].asnumpy()
    array([-64,   0, 127], dtype=int8)
    """
    _check_dtype("_contrib_requantize", data, torch.int32)
    channels = data.shape[1] if data.ndim > 1 else 1
    _check_ranges("_contrib_requantize", min_range, max_range, channels=channels)
    kind = chosen_type(out_type, min_calib_range)
    step = _larger_end(min_range, max_range) / INT32_STEPS
    if min_calib_range is None or max_calib_range is None:
        largest = torch.stack(_channel_ends(data, len(step))).to(torch.float32).abs().amax(0)
        end = (largest * step).amax().reshape(1)
    else:
        end = step.new_tensor([max(abs(min_calib_range), abs(max_calib_range))])
    scale = step * _scale(STEPS[kind], end)
    if len(scale) > 1:
        scale = scale.reshape(-1, *(1,) * (data.ndim - 2))
    integers = _round(data.to(torch.float32) * scale, kind)
    return integers, (-end if kind == "int8" else torch.zeros_like(end)), end


requantize.type_pattern = _EightBitTypes("int32 float32 -> @out_type float32")
