"""Rows of operators that make arrays, constant or random."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..builder import INT64, UNKNOWN, Builder, Call, is_float, numpy_dtype, onnx_dtype
from ..table import row


def _constant(g: Builder, call: Call, value: np.ndarray) -> str:
    return g.Identity(g.array(value.astype(numpy_dtype(call.out_dtypes[0]))))


def _filled(name: str, value: float) -> None:
    @row(name)
    def emit(g: Builder, call: Call) -> str:
        number = g.scalar(value, call.out_dtypes[0])
        return g.Expand(number, g.ints(*call.out_shapes[0]))


_filled("_zeros", 0)
_filled("_zeros_without_dtype", 0)
_filled("_ones", 1)


@row("_full")
def full(g: Builder, call: Call) -> str:
    """One number everywhere."""
    number = g.scalar(call.attrs["value"], call.out_dtypes[0])
    return g.Expand(number, g.ints(*call.out_shapes[0]))


def _like(name: str, value: float) -> None:
    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        number = g.scalar(value, call.out_dtypes[0])
        return g.Expand(number, g.sizes(x, call.shape))


_like("zeros_like", 0)
_like("ones_like", 1)


def _typed(number: float, dtype: torch.dtype) -> float:
    """Return a start or step as MXNet takes it: whole for integers."""
    return number if is_float(dtype) else int(number)


@row("_arange")
def arange(g: Builder, call: Call) -> str:
    """Numbers at equal distances."""
    start, stop, step = (call.attrs[k] for k in ("start", "stop", "step"))
    if stop is None and not call.attrs["infer_range"]:
        start = 0.0
    count = call.out_shapes[0][0] // call.attrs["repeat"]
    start, step = (_typed(n, call.out_dtypes[0]) for n in (start, step))
    values = start + step * np.arange(count)
    return _constant(g, call, np.repeat(values, call.attrs["repeat"]))


@row("_linspace")
def linspace(g: Builder, call: Call) -> str:
    """A number of values from one end to the other."""
    a = call.attrs
    return _constant(g, call, np.linspace(a["start"], a["stop"], a["num"], a["endpoint"]))


@row("_eye")
def eye(g: Builder, call: Call) -> str:
    """Ones on a diagonal."""
    a = call.attrs
    return _constant(g, call, np.eye(int(a["N"]), int(a["M"]) or int(a["N"]), int(a["k"])))


@row("_contrib_arange_like")
def arange_like(g: Builder, call: Call, x: str) -> str:
    """Numbers at equal distances, as many as an axis or an array has."""
    a, dtype = call.attrs, call.out_dtypes[0]
    sizes = call.shape if a["axis"] is None else (call.shape[a["axis"]],)
    start, step, repeat = _typed(a["start"], dtype), _typed(a["step"], dtype), a["repeat"]
    if UNKNOWN not in sizes:
        count = int(np.prod(sizes))
        values = start + step * (np.arange(count) // repeat)
        return _constant(g, call, values.reshape(call.out_shapes[0]))
    if repeat != 1 or (a["axis"] is None and call.ndim != 1):
        raise call.unsupported("needs the sizes as numbers, unless it counts along one axis.")
    size = g.squeeze(g.size_of(x, (a["axis"] or 0) % call.ndim), 0)
    zero, one = (g.array(np.array(n, np.int64)) for n in (0, 1))
    steps = g.cast(g.Range(zero, size, one), INT64, dtype)
    return g.Add(g.Mul(steps, g.scalar(step, dtype)), g.scalar(start, dtype))


def _drawn(g: Builder, call: Call, op_type: str, *like: str, **options: Any) -> str:
    """Draw numbers; runtimes draw in 32 or 64 bits only."""
    dtype = call.out_dtypes[0]
    kind = dtype if dtype is torch.float64 else torch.float32
    return g.cast(g.add(op_type, *like, dtype=onnx_dtype(kind), **options), kind, dtype)


@row("_random_uniform")
def random_uniform(g: Builder, call: Call) -> str:
    """Random numbers, evenly distributed."""
    a = call.attrs
    shape = list(call.out_shapes[0])
    return _drawn(g, call, "RandomUniform", low=a["low"], high=a["high"], shape=shape)


@row("_random_normal")
def random_normal(g: Builder, call: Call) -> str:
    """Random numbers, normally distributed."""
    a = call.attrs
    shape = list(call.out_shapes[0])
    return _drawn(g, call, "RandomNormal", mean=a["loc"], scale=a["scale"], shape=shape)


@row("_random_uniform_like")
def random_uniform_like(g: Builder, call: Call, x: str) -> str:
    """Evenly distributed numbers in the shape of an array."""
    a = call.attrs
    return _drawn(g, call, "RandomUniformLike", x, low=a["low"], high=a["high"])


@row("_random_normal_like")
def random_normal_like(g: Builder, call: Call, x: str) -> str:
    """Normally distributed numbers in the shape of an array."""
    a = call.attrs
    return _drawn(g, call, "RandomNormalLike", x, mean=a["loc"], scale=a["scale"])


@row("_random_randint")
def random_randint(g: Builder, call: Call) -> str:
    """Random integers: the whole part of evenly distributed ones."""
    a = call.attrs
    drawn = g.RandomUniform(
        low=float(a["low"]),
        high=float(a["high"]),
        shape=list(call.out_shapes[0]),
        dtype=onnx_dtype(torch.float32),
    )
    return g.cast(g.Floor(drawn), torch.float32, call.out_dtypes[0])


@row("_sample_multinomial")
def multinomial(g: Builder, call: Call, x: str) -> str:
    """Random classes by their shares."""
    if call.attrs["get_prob"]:
        raise call.unsupported("has no ONNX form with get_prob=True.")
    count = int(np.prod(call.attrs["shape"] or (1,)))
    logs = g.Log(g.cast(x, call.dtype, torch.float32))
    if call.ndim == 1:
        logs = g.unsqueeze(logs, 0)
    dtype = call.out_dtypes[0]
    kept = dtype if dtype in (torch.int32, torch.int64) else torch.int32
    drawn = g.Multinomial(logs, sample_size=count, dtype=onnx_dtype(kept))
    return g.cast(g.reshape_to(call, drawn, call.shape, call.out_shapes[0]), kept, dtype)
