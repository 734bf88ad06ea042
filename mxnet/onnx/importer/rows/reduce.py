"""Import rows of reductions, softmax and positions of extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value
from .axes import as_scalar, axis_within


def _square(x: Any) -> Any:
    return F.square(x)


def _same(x: Any) -> Any:
    return x


# ONNX operator: what happens before, the reduction, what happens after.
REDUCTIONS = {
    "ReduceSum": (_same, F.sum, _same),
    "ReduceMean": (_same, F.mean, _same),
    "ReduceProd": (_same, F.prod, _same),
    "ReduceMax": (_same, F.max, _same),
    "ReduceMin": (_same, F.min, _same),
    "ReduceL1": (F.abs, F.sum, _same),
    "ReduceL2": (_square, F.sum, F.sqrt),
    "ReduceSumSquare": (_square, F.sum, _same),
    "ReduceLogSum": (_same, F.sum, F.log),
}


# What the largest and the smallest of nothing is.
EMPTY = {"ReduceMax": -np.inf, "ReduceMin": np.inf}


def _of_nothing(node: OnnxNode, x: Value, op_type: str, axes: list[int] | None, kept: bool) -> Any:
    gone = range(x.rank) if axes is None else axes
    shape = [(1 if i in gone else n) for i, n in enumerate(x.sizes) if kept or i not in gone]
    value = EMPTY[op_type]
    if x.is_bool:
        value = value > 0
    elif not x.is_float:
        limits = np.iinfo(x.dtype)
        value = limits.min if value < 0 else limits.max
    return np.full(shape, value, x.dtype)


def reduced(node: OnnxNode, x: Value, axes: Value | None) -> tuple[list[int] | None, bool, bool]:
    """Return the axes (None is all), whether they are kept, and whether nothing happens."""
    chosen = node.ints("axes", axes)
    kept = bool(node.get("keepdims", 1))
    if not chosen:
        return None, kept, bool(node.get("noop_with_empty_axes", 0))
    return [axis_within(a, x.rank) for a in chosen], kept, False


def _reduction(op_type: str, before: Any, function: Any, after: Any) -> None:
    @imports(op_type)
    def build(node: OnnxNode, x: Value, axes: Value | None = None) -> Any:
        chosen, kept, is_identity = reduced(node, x, axes)
        symbol = F.cast(x.symbol, dtype="int32") if x.is_bool else x.symbol
        if is_identity:
            return after(before(symbol)) if op_type != "ReduceMean" else F.identity(symbol)
        if op_type in EMPTY and x.shape is not None and 0 in x.shape:
            return _of_nothing(node, x, op_type, chosen, kept)
        made = after(function(before(symbol), axis=_axis(chosen), keepdims=kept))
        if not kept and (chosen is None or len(chosen) == x.rank):
            made = as_scalar(made)
        return F.cast(made, dtype="bool") if x.is_bool else F.identity(made, name=node.name)


@imports("CumProd")
def cumprod(node: OnnxNode, x: Value, axis: Value) -> Any:
    """Running products, forward or backward, with or without the element itself."""
    at = axis_within(int(node.constant(axis, "axis").item()), x.rank)
    return F._internal._onnx_cumprod(
        x.symbol,
        axis=at,
        is_exclusive=bool(node.get("exclusive", 0)),
        is_reverse=bool(node.get("reverse", 0)),
        name=node.name,
    )


def _axis(axes: list[int] | None) -> Any:
    return None if axes is None else tuple(axes)


for _op_type, _parts in REDUCTIONS.items():
    _reduction(_op_type, *_parts)


@imports("ReduceLogSumExp")
def log_sum_exp(node: OnnxNode, x: Value, axes: Value | None = None) -> Any:
    """``log(sum(exp(x)))`` without overflow."""
    chosen, kept, is_identity = reduced(node, x, axes)
    if is_identity:
        return F.identity(x.symbol, name=node.name)
    axis = _axis(chosen)
    if x.shape is not None and 0 in x.shape:
        return _of_nothing(node, x, "ReduceMax", chosen, kept)
    top = F.max(x.symbol, axis=axis, keepdims=True)
    total = F.sum(F.exp(F.broadcast_sub(x.symbol, top)), axis=axis, keepdims=True)
    made = F.log(total) + top
    if kept:
        return F.identity(made, name=node.name)
    gone = tuple(chosen) if chosen else tuple(range(x.rank))
    return F.squeeze(made, axis=gone, name=node.name)


def _position(op_type: str, function: Any) -> None:
    @imports(op_type)
    def build(node: OnnxNode, x: Value) -> Any:
        axis, kept = node.get("axis", 0), bool(node.get("keepdims", 1))
        symbol = x.symbol
        if node.get("select_last_index", 0):
            size = x.sizes[axis]
            last = F.reverse(symbol, axis=axis_within(axis, x.rank))
            made = size - 1 - F.cast(function(last, axis=axis, keepdims=kept), dtype="int64")
        else:
            made = F.cast(function(symbol, axis=axis, keepdims=kept), dtype="int64")
        return F.identity(made, name=node.name)


_position("ArgMax", F.argmax)
_position("ArgMin", F.argmin)


def _softmax(op_type: str, function: Any) -> None:
    @imports(op_type)
    def build(node: OnnxNode, x: Value) -> Any:
        if node.opset >= 13:
            return function(x.symbol, axis=node.get("axis", -1), name=node.name)
        axis = axis_within(node.get("axis", 1), x.rank)
        if axis == x.rank - 1:
            return function(x.symbol, axis=-1, name=node.name)
        return _flat(x, axis, lambda flat: function(flat, axis=-1))


def _flat(x: Value, axis: int, compute: Any) -> Any:
    """Compute on a matrix of all axes before and all axes from `axis` on."""
    sizes = x.sizes
    rows = int(np.prod(sizes[:axis]))
    made = compute(F.reshape(x.symbol, shape=(rows, -1)))
    return F.reshape(made, shape=sizes)


_softmax("Softmax", F.softmax)
_softmax("LogSoftmax", F.log_softmax)


@imports("Hardmax")
def hardmax(node: OnnxNode, x: Value) -> Any:
    """1 at the first largest element, 0 elsewhere."""
    axis = axis_within(node.get("axis", -1 if node.opset >= 13 else 1), x.rank)
    if node.opset < 13 and axis != x.rank - 1:
        depth = int(np.prod(x.sizes[axis:]))
        return _flat(x, axis, lambda flat: F.one_hot(F.argmax(flat, axis=1), depth=depth))
    depth = x.sizes[axis]
    hot = F.one_hot(F.argmax(x.symbol, axis=axis), depth=depth)
    order = [*range(axis), x.rank - 1, *range(axis, x.rank - 1)]
    return F.transpose(hot, axes=order, name=node.name)


@imports("CumSum")
def cumsum(node: OnnxNode, x: Value, axis: Value) -> Any:
    """Running sums, forward or backward, with or without the element itself."""
    at = axis_within(int(node.constant(axis, "axis").item()), x.rank)
    symbol = F.reverse(x.symbol, axis=at) if node.get("reverse", 0) else x.symbol
    made = F._internal._np_cumsum(symbol, axis=at)
    if node.get("exclusive", 0):
        made = made - symbol
    made = F.reverse(made, axis=at) if node.get("reverse", 0) else made
    return F.identity(made, name=node.name)


@imports("TopK")
def topk(node: OnnxNode, x: Value, k: Value | None = None) -> Any:
    """The largest or smallest elements and their places."""
    if k is not None and k.constant is None:
        made = F._internal._onnx_topk(
            x.symbol,
            k.symbol,
            axis=node.get("axis", -1),
            largest=bool(node.get("largest", 1)),
            name=node.name,
        )
        return [made[0], made[1]]
    count = int(node.constant(k, "k").item()) if k is not None else node.get("k")
    both = F.topk(
        x.symbol,
        axis=node.get("axis", -1),
        k=count,
        ret_typ="both",
        is_ascend=not node.get("largest", 1),
        dtype="int64",
        name=node.name,
    )
    return [both[0], both[1]]
