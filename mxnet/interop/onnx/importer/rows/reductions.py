"""Import rows of reductions, softmax, losses, running sums and order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..value import F, OnnxNode, Value, as_scalar, imports, internal


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
    "ReduceL2": (F.square, F.sum, F.sqrt),
    "ReduceSumSquare": (F.square, F.sum, _same),
    "ReduceLogSum": (_same, F.sum, F.log),
}
# What the largest and the smallest of nothing is.
EMPTY = {"ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceLogSumExp": -np.inf}


def _reduce_nothing(node: OnnxNode, x: Value, axes: tuple[int, ...] | None, keepdims: bool) -> Any:
    gone = range(x.rank) if axes is None else axes
    shape = [(1 if i in gone else n) for i, n in enumerate(x.sizes) if keepdims or i not in gone]
    value = EMPTY[node.op_type]
    if x.is_bool:
        value = value > 0
    elif not x.is_float:
        limits = np.iinfo(x.dtype)
        value = limits.min if value < 0 else limits.max
    return np.full(shape, value, x.dtype)


def _axes(node: OnnxNode, x: Value, axes: Value | None) -> tuple[tuple[int, ...] | None, bool]:
    """Return the axes (None is all) and whether the reduction is a no-op."""
    chosen = node.ints("axes", axes)
    if not chosen:
        return None, node.flag("noop_with_empty_axes")
    return tuple(x.axis(a) for a in chosen), False


def _reduction(op_type: str, before: Any, function: Any, after: Any) -> None:
    @imports(op_type)
    def reduce(node: OnnxNode, x: Value, axes: Value | None = None) -> Any:
        (chosen, is_identity), keepdims = _axes(node, x, axes), node.flag("keepdims", 1)
        symbol = F.cast(x.symbol, dtype="int32") if x.is_bool else x.symbol
        if is_identity:
            return after(before(symbol)) if op_type != "ReduceMean" else F.identity(symbol)
        if op_type in EMPTY and x.shape is not None and 0 in x.shape:
            return _reduce_nothing(node, x, chosen, keepdims)
        output = after(function(before(symbol), axis=chosen, keepdims=keepdims))
        if not keepdims and (chosen is None or len(chosen) == x.rank):
            output = as_scalar(output)
        return F.cast(output, dtype="bool") if x.is_bool else F.identity(output, name=node.name)


for _op_type, _parts in REDUCTIONS.items():
    _reduction(_op_type, *_parts)


@imports("ReduceLogSumExp")
def log_sum_exp(node: OnnxNode, x: Value, axes: Value | None = None) -> Any:
    """``log(sum(exp(x)))`` without overflow."""
    (axis, is_identity), keepdims = _axes(node, x, axes), node.flag("keepdims", 1)
    if is_identity:
        return F.identity(x.symbol, name=node.name)
    if x.shape is not None and 0 in x.shape:
        return _reduce_nothing(node, x, axis, keepdims)
    top = F.max(x.symbol, axis=axis, keepdims=True)
    total = F.sum(F.exp(F.broadcast_sub(x.symbol, top)), axis=axis, keepdims=True)
    output = F.log(total) + top
    if keepdims:
        return F.identity(output, name=node.name)
    return F.squeeze(output, axis=axis or tuple(range(x.rank)), name=node.name)


# -- running sums and order -----------------------------------------------------------------


@imports("CumSum")
def cumsum(node: OnnxNode, x: Value, axis: Value) -> Any:
    """Running sums, forward or backward, with or without the element itself."""
    along, is_reverse = x.axis(int(node.item(axis, "axis"))), node.flag("reverse")
    symbol = F.reverse(x.symbol, axis=along) if is_reverse else x.symbol
    output = internal._np_cumsum(symbol, axis=along)
    if node.flag("exclusive"):
        output = output - symbol
    output = F.reverse(output, axis=along) if is_reverse else output
    return F.identity(output, name=node.name)


@imports("CumProd")
def cumprod(node: OnnxNode, x: Value, axis: Value) -> Any:
    """Running products, forward or backward, with or without the element itself."""
    return internal._onnx_cumprod(
        x.symbol,
        axis=x.axis(int(node.item(axis, "axis"))),
        is_exclusive=node.flag("exclusive"),
        is_reverse=node.flag("reverse"),
        name=node.name,
    )


def _position(op_type: str, function: Any) -> None:
    @imports(op_type)
    def find(node: OnnxNode, x: Value) -> Any:
        axis, keepdims = node.get("axis", 0), node.flag("keepdims", 1)
        is_last = node.flag("select_last_index")
        symbol = F.reverse(x.symbol, axis=x.axis(axis)) if is_last else x.symbol
        index = F.cast(function(symbol, axis=axis, keepdims=keepdims), dtype="int64")
        return F.identity(x.sizes[axis] - 1 - index if is_last else index, name=node.name)


_position("ArgMax", F.argmax)
_position("ArgMin", F.argmin)


@imports("TopK")
def topk(node: OnnxNode, x: Value, k: Value | None = None) -> Any:
    """The largest or smallest elements and their indices."""
    axis, is_largest = node.get("axis", -1), node.flag("largest", 1)
    if k is not None and k.constant is None:
        both = internal._onnx_topk(
            x.symbol, k.symbol, axis=axis, largest=is_largest, name=node.name
        )
        return [both[0], both[1]]
    both = F.topk(
        x.symbol,
        axis=axis,
        k=int(node.item(k, "k")) if k is not None else node.get("k"),
        ret_typ="both",
        is_ascend=not is_largest,
        dtype="int64",
        name=node.name,
    )
    return [both[0], both[1]]


# -- softmax and losses ---------------------------------------------------------------------


def _on_merged_axes(x: Value, axis: int, compute: Any) -> Any:
    """Compute along all axes from `axis` on, as if they were one."""
    merged = F.reshape(x.symbol, shape=(0,) * axis + (-1,))
    return F.reshape_like(compute(merged), x.symbol)


def _softmax(op_type: str, function: Any) -> None:
    @imports(op_type)
    def apply(node: OnnxNode, x: Value) -> Any:
        if node.opset >= 13:
            return function(x.symbol, axis=node.get("axis", -1), name=node.name)
        axis = x.axis(node.get("axis", 1))
        if axis == x.rank - 1:
            return function(x.symbol, axis=-1, name=node.name)
        return _on_merged_axes(x, axis, lambda merged: function(merged, axis=-1))


_softmax("Softmax", F.softmax)
_softmax("LogSoftmax", F.log_softmax)


@imports("Hardmax")
def hardmax(node: OnnxNode, x: Value) -> Any:
    """1 at the first largest element, 0 elsewhere."""
    dtype = "float32" if x.dtype is None else x.dtype.name
    axis = x.axis(node.get("axis", -1 if node.opset >= 13 else 1))
    if node.opset < 13 and axis != x.rank - 1:
        return _on_merged_axes(x, axis, lambda merged: _hardmax(merged, axis, axis + 1, dtype))
    return _hardmax(x.symbol, axis, x.rank, dtype)


def _hardmax(x: Any, axis: int, rank: int, dtype: str) -> Any:
    """Compare positions with that of the largest element, which works for unknown sizes."""
    positions = F.contrib.arange_like(F.cast(x, dtype="float32"), axis=axis)
    positions = F.reshape(positions, shape=(1,) * axis + (-1,) + (1,) * (rank - 1 - axis))
    largest = F.cast(F.argmax(x, axis=axis, keepdims=True), dtype="float32")
    return F.cast(F.broadcast_equal(positions, largest), dtype=dtype)


def _nll(node: OnnxNode, logs: Any, x: Value, target: Value, weight: Value | None) -> Any:
    ignored, shares = node.get("ignore_index"), None
    classes = F.cast(target.symbol, dtype="int64")
    if weight is not None:
        shares = F.take(weight.symbol, F.relu(classes))
    if ignored is not None:
        is_used = F.cast(classes != ignored, dtype=x.dtype.name)
        shares = is_used if shares is None else shares * is_used
    if x.rank > 2:
        logs = F.transpose(logs, axes=(0, *range(2, x.rank), 1))
    chosen = F.pick(logs, F.relu(classes), axis=-1)
    loss = F.negative(chosen if shares is None else chosen * shares)
    how = node.get("reduction", "mean")
    if how == "none":
        return loss
    total = F.sum(loss)
    if how == "mean":
        count = F.ones_like(loss) if shares is None else shares
        total = F.broadcast_div(total, F.sum(count))
    return as_scalar(total)


@imports("NegativeLogLikelihoodLoss")
def nll_loss(node: OnnxNode, x: Value, target: Value, weight: Value | None = None) -> Any:
    """The negative logarithm of the probability of the right class."""
    return _nll(node, x.symbol, x, target, weight)


@imports("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(
    node: OnnxNode, x: Value, target: Value, weight: Value | None = None
) -> Any:
    """Cross entropy of scores; the second output is the log-probabilities."""
    logs = F.log_softmax(x.symbol, axis=1)
    loss = _nll(node, logs, x, target, weight)
    return [loss, logs][: len(node.output_names)]
