"""Rows of reductions."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..builder import UNKNOWN, Builder, Call, is_float
from ..table import row


def axes_of(call: Call, key: str = "axis") -> list[int]:
    """Return the axes that are reduced, counted from the front."""
    axes, rank = call.attrs[key], call.ndim
    if isinstance(axes, int):
        axes = (axes,)
    chosen = sorted({a % rank for a in axes}) if axes else list(range(rank))
    if call.attrs.get("exclude"):
        chosen = [a for a in range(rank) if a not in chosen] if axes else chosen
    return chosen


def finish(g: Builder, call: Call, value: str, output: int = 0) -> str:
    """Give a full reduction, which has no axes in ONNX, MXNet's shape."""
    wanted = call.out_shapes[output]
    if call.attrs.get("keepdims") or wanted != (1,) or len(axes_of(call)) < call.ndim:
        return value
    return g.reshape(value, [1])


REDUCTIONS = {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd"}
EXTREMES = {"max": "ReduceMax", "min": "ReduceMin"}


def _reduced(g: Builder, call: Call, op_type: str, x: str) -> str:
    """Reduce over the axes of a node; small integers are computed in a wider type."""
    axes = axes_of(call)
    if not axes:
        return g.Identity(x)
    dtype = torch.int32 if call.dtype in (torch.int8, torch.uint8, torch.bool) else call.dtype
    value = g.cast(x, call.dtype, dtype)
    made = finish(g, call, g.reduce(op_type, value, axes, call.attrs["keepdims"]))
    return g.cast(made, dtype, call.out_dtypes[0])


def _whole_mean(g: Builder, call: Call, x: str) -> str:
    """Return the mean of integers: their sum, wrapped in their type, divided and cut."""
    total = _reduced(g, call, "ReduceSum", x)
    sizes = [call.shape[a] for a in axes_of(call)]
    if UNKNOWN in sizes or call.dtype is torch.bool:
        raise call.unsupported("of integers needs the reduced sizes as numbers.")
    wide = g.cast(total, call.dtype, torch.int64)
    mean = g.Div(wide, g.array(np.array(math.prod(sizes), np.int64)))
    return g.cast(mean, torch.int64, call.out_dtypes[0])


def _reduction(name: str, op_type: str) -> None:
    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        if op_type == "ReduceMean" and not is_float(call.dtype):
            return _whole_mean(g, call, x)
        return _reduced(g, call, op_type, x)


for _name, _op_type in {**REDUCTIONS, **EXTREMES}.items():
    _reduction(_name, _op_type)


@row("_square_sum")
def square_sum(g: Builder, call: Call, x: str) -> str:
    """Sum of squares."""
    made = g.reduce("ReduceSumSquare", x, axes_of(call), call.attrs["keepdims"])
    return finish(g, call, made)


def _without_nan(name: str, op_type: str, neutral: float) -> None:
    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        if is_float(call.dtype):
            x = g.Where(g.IsNaN(x), g.scalar(neutral, call.dtype), x)
        return _reduced(g, call, op_type, x)


_without_nan("nansum", "ReduceSum", 0.0)
_without_nan("nanprod", "ReduceProd", 1.0)


@row("norm")
def norm(g: Builder, call: Call, x: str) -> str:
    """L1 or L2 norm."""
    op_type = "ReduceL1" if call.attrs["ord"] == 1 else "ReduceL2"
    dtype = call.dtype if is_float(call.dtype) else torch.float32
    x = g.cast(x, call.dtype, dtype)
    made = finish(g, call, g.reduce(op_type, x, axes_of(call), call.attrs["keepdims"]))
    return g.cast(made, dtype, call.out_dtypes[0])


@row("moments")
def moments(g: Builder, call: Call, x: str) -> list[str]:
    """Mean and variance."""
    axes, kept = axes_of(call, "axes"), call.attrs["keepdims"]
    mean = g.reduce("ReduceMean", x, axes, True)
    distance = g.Sub(x, mean)
    variance = g.reduce("ReduceMean", g.Mul(distance, distance), axes, True)
    if kept:
        return [mean, variance]
    shape = [n for i, n in enumerate(call.shape) if i not in axes] or [1]
    flat = [g.squeeze(v, *axes) for v in (mean, variance)]
    return [g.reshape(v, [1]) for v in flat] if len(axes) == call.ndim and shape == [1] else flat


def _position(name: str, op_type: str) -> None:
    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        axis, kept = call.attrs["axis"], call.attrs["keepdims"]
        if not is_float(call.dtype):
            x = g.cast(x, call.dtype, torch.int32)
        if axis is None:
            x, axis = g.reshape(x, [-1]), 0
            found = g.add(op_type, x, axis=0, keepdims=1)
            if kept:
                found = g.reshape(found, [1] * call.ndim)
        else:
            found = g.add(op_type, x, axis=axis, keepdims=int(kept))
        if call.out_shapes[0] == (1,) and call.ndim == 1 and not kept:
            found = g.reshape(found, [1])
        return g.cast(found, torch.int64, call.out_dtypes[0])


_position("argmax", "ArgMax")
_position("argmin", "ArgMin")


@row("argmax_channel")
def argmax_channel(g: Builder, call: Call, x: str) -> str:
    """Index of the maximum along axis 1."""
    found = g.ArgMax(x, axis=1, keepdims=0)
    return g.cast(found, torch.int64, call.out_dtypes[0])


@row("softmax_cross_entropy")
def softmax_cross_entropy(g: Builder, call: Call, data: str, label: str) -> str:
    """Sum of the negative logarithms of the shares of the labels."""
    classes = g.cast(label, call.dtypes[1], torch.int64)
    logs = g.LogSoftmax(data, axis=1)
    picked = g.GatherElements(logs, g.unsqueeze(classes, 1), axis=1)
    return g.reshape(g.Neg(g.reduce("ReduceSum", picked, None, False)), [1])
