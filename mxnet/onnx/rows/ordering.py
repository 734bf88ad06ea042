"""Rows of sorting and of the largest elements."""

from __future__ import annotations

import torch

from ..builder import INT64, UNKNOWN, Builder, Call
from ..table import row


def _line(g: Builder, call: Call, x: str) -> tuple[str, int, tuple[int, ...]]:
    axis = call.attrs["axis"]
    if axis is None:
        size = UNKNOWN if UNKNOWN in call.shape else int(torch.Size(call.shape).numel())
        return g.reshape(x, [-1]), 0, (size,)
    return x, axis % call.ndim, call.shape


def _top(g: Builder, call: Call, x: str, axis: int, count: str, ascending: bool) -> tuple[str, str]:
    dtype = call.dtype
    if dtype in (torch.int8, torch.uint8):
        x = g.cast(x, dtype, torch.int32)
    values, places = g.TopK(x, count, axis=axis, largest=int(not ascending), outputs=2)
    if dtype in (torch.int8, torch.uint8):
        values = g.cast(values, torch.int32, dtype)
    return values, places


def _count(g: Builder, x: str, shape: tuple[int, ...], axis: int, k: int) -> str:
    if k > 0:
        return g.ints(k)
    return g.size_of(x, axis) if shape[axis] == UNKNOWN else g.ints(shape[axis])


@row("sort")
def sort(g: Builder, call: Call, x: str) -> str:
    """Sort along an axis."""
    x, axis, shape = _line(g, call, x)
    return _top(g, call, x, axis, _count(g, x, shape, axis, 0), call.attrs["is_ascend"])[0]


@row("argsort")
def argsort(g: Builder, call: Call, x: str) -> str:
    """The indices that sort along an axis."""
    x, axis, shape = _line(g, call, x)
    places = _top(g, call, x, axis, _count(g, x, shape, axis, 0), call.attrs["is_ascend"])[1]
    return g.cast(places, INT64, call.out_dtypes[0])


@row("topk")
def topk(g: Builder, call: Call, x: str) -> str | list[str]:
    """The largest elements: what or where they are, or a mask."""
    line, axis, shape = _line(g, call, x)
    count = _count(g, line, shape, axis, call.attrs["k"])
    values, places = _top(g, call, line, axis, count, call.attrs["is_ascend"])
    kind = call.attrs["ret_typ"]
    if kind == "value":
        return values
    if kind == "mask":
        zeros = g.Mul(line, g.scalar(0, call.dtype))
        ones = g.Add(g.Mul(values, g.scalar(0, call.dtype)), g.scalar(1, call.dtype))
        mask = g.ScatterElements(zeros, places, ones, axis=axis)
        return g.Reshape(mask, g.Shape(x)) if call.attrs["axis"] is None else mask
    where = g.cast(places, INT64, call.out_dtypes[-1])
    return where if kind == "indices" else [values, where]
