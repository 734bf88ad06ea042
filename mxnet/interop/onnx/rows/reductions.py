"""Rows of operators that reduce, order or accumulate along axes."""

from __future__ import annotations

import math

import torch

from ..builder import INT64, UNKNOWN, Builder, Call, is_float, row

INT32 = torch.int32
SMALL_TYPES = (torch.int8, torch.uint8, torch.bool)
NEEDS_REDUCED_SIZES = "needs the reduced sizes as numbers."


def _axes(call: Call, key: str = "axis") -> list[int]:
    """Return the reduced axes in order: all if none are given, the others with `exclude`."""
    axes, rank = call.attrs[key], call.ndim
    if not axes and not isinstance(axes, int):
        return list(range(rank))
    chosen = sorted(set(call.axes(key)))
    return [a for a in range(rank) if a not in chosen] if call.attrs.get("exclude") else chosen


def _with_axis(g: Builder, call: Call, value: str) -> str:
    """Reshape a full reduction, which has no axes in ONNX, to MXNet's shape."""
    is_partial = call.attrs.get("keepdims") or len(_axes(call)) < call.ndim
    return value if is_partial or call.out_shapes[0] != (1,) else g.reshape(value, [1])


def _reduce(g: Builder, call: Call, op_type: str, x: str) -> str:
    """Reduce over the axes of a node; small integers are computed in a wider type."""
    axes = _axes(call)
    if not axes:
        return g.Identity(x)
    dtype = INT32 if call.dtype in SMALL_TYPES else call.dtype
    value = g.cast(x, call.dtype, dtype)
    output = _with_axis(g, call, g.reduce(op_type, value, axes, call.attrs["keepdims"]))
    return g.cast(output, dtype, call.out_dtypes[0])


@row("mean")
def mean(g: Builder, call: Call, x: str) -> str:
    """Mean; of integers, the sum with wraparound, then truncating division."""
    if is_float(call.dtype):
        return _reduce(g, call, "ReduceMean", x)
    total = _reduce(g, call, "ReduceSum", x)
    sizes = [call.shape[a] for a in _axes(call)]
    if UNKNOWN in sizes or call.dtype is torch.bool:
        raise call.unsupported("of integers needs the reduced sizes as numbers.")
    wide = g.cast(total, call.dtype, INT64)
    return g.cast(g.Div(wide, g.scalar(math.prod(sizes), INT64)), INT64, call.out_dtypes[0])


def _reduction(name: str, op_type: str) -> None:
    row(name)(lambda g, call, x: _reduce(g, call, op_type, x))


_reduction("sum", "ReduceSum")
_reduction("prod", "ReduceProd")
_reduction("max", "ReduceMax")
_reduction("min", "ReduceMin")


@row("_square_sum")
def square_sum(g: Builder, call: Call, x: str) -> str:
    """Sum of squares."""
    output = g.reduce("ReduceSumSquare", x, _axes(call), call.attrs["keepdims"])
    return _with_axis(g, call, output)


def _without_nan(name: str, op_type: str, neutral: float) -> None:
    @row(name)
    def reduce(g: Builder, call: Call, x: str) -> str:
        if is_float(call.dtype):
            x = g.Where(g.IsNaN(x), g.scalar(neutral, call.dtype), x)
        return _reduce(g, call, op_type, x)


_without_nan("nansum", "ReduceSum", 0.0)
_without_nan("nanprod", "ReduceProd", 1.0)


@row("norm")
def norm(g: Builder, call: Call, x: str) -> str:
    """L1 or L2 norm."""
    op_type = "ReduceL1" if call.attrs["ord"] == 1 else "ReduceL2"
    dtype = call.dtype if is_float(call.dtype) else torch.float32
    x = g.cast(x, call.dtype, dtype)
    output = _with_axis(g, call, g.reduce(op_type, x, _axes(call), call.attrs["keepdims"]))
    return g.cast(output, dtype, call.out_dtypes[0])


@row("moments")
def moments(g: Builder, call: Call, x: str) -> list[str]:
    """Mean and variance."""
    axes = _axes(call, "axes")
    mean = g.reduce("ReduceMean", x, axes, True)
    distance = g.Sub(x, mean)
    variance = g.reduce("ReduceMean", g.Mul(distance, distance), axes, True)
    if call.attrs["keepdims"]:
        return [mean, variance]
    flat = [g.squeeze(v, *axes) for v in (mean, variance)]
    return [g.reshape(v, [1]) for v in flat] if len(axes) == call.ndim else flat


@row("multi_sum_sq")
def multi_sum_sq(g: Builder, call: Call, *xs: str) -> str:
    """Sum of squares of each array."""
    sums = []
    for x, dtype in zip(xs, call.dtypes, strict=True):
        wide = g.reshape(g.cast(x, dtype, torch.float32), [-1])
        sums.append(g.reduce("ReduceSum", g.Mul(wide, wide), [0], True))
    return g.Concat(*sums, axis=0)


# -- `mx.np` --------------------------------------------------------------------------------

WIDENING = ("ReduceSum", "ReduceProd", "ReduceMean")


def _numpy_reduction(name: str, op_type: str) -> None:
    @row(name)
    def reduce(g: Builder, call: Call, x: str) -> str:
        if call.attrs.get("initial") is not None:
            raise call.unsupported("with initial= has no ONNX form.")
        target = call.out_dtypes[0]
        dtype = INT32 if call.dtype in SMALL_TYPES else call.dtype
        if op_type in WIDENING and target not in SMALL_TYPES and not is_float(call.dtype):
            dtype = target
        axes = call.axes()
        value = g.cast(x, call.dtype, dtype)
        output = (
            g.reduce(op_type, value, axes, call.attrs["keepdims"]) if axes else g.Identity(value)
        )
        return g.cast(output, dtype, target)


_numpy_reduction("_np_sum", "ReduceSum")
_numpy_reduction("_np_prod", "ReduceProd")
_numpy_reduction("_np_max", "ReduceMax")
_numpy_reduction("_np_min", "ReduceMin")
_numpy_reduction("_npi_mean", "ReduceMean")


def _truth(name: str, op_type: str) -> None:
    @row(name)
    def reduce(g: Builder, call: Call, x: str) -> str:
        number = g.cast(g.cast(x, call.dtype, torch.bool), torch.bool, INT32)
        if 0 in call.shape:
            raise call.unsupported("of an empty array has no ONNX form.")
        if call.axes():
            number = g.reduce(op_type, number, call.axes(), call.attrs["keepdims"])
        return g.cast(number, INT32, call.out_dtypes[0])


_truth("_np_all", "ReduceMin")
_truth("_np_any", "ReduceMax")


@row("_npi_var", "_npi_std")
def spread(g: Builder, call: Call, x: str) -> str:
    """Variance, or its root."""
    axes, target = call.axes(), call.out_dtypes[0]
    dtype = target if is_float(target) else torch.float32
    if not axes or not is_float(call.dtype):
        raise call.unsupported("of integers, or over no axes, has no ONNX form.")
    sizes = [call.shape[a] for a in axes]
    call.require_sizes(sizes, NEEDS_REDUCED_SIZES)
    value = g.cast(x, call.dtype, dtype)
    distance = g.Sub(value, g.reduce("ReduceMean", value, axes, True))
    total = g.reduce("ReduceSum", g.Mul(distance, distance), axes, call.attrs["keepdims"])
    variance = g.Div(total, g.scalar(math.prod(sizes) - call.attrs["ddof"], dtype))
    return g.cast(g.Sqrt(variance) if call.op.name == "_npi_std" else variance, dtype, target)


@row("_npi_average")
def average(g: Builder, call: Call, x: str, *weights: str) -> list[str]:
    """Weighted mean, and the sum of the weights."""
    axes, dtype = call.axes(), call.out_dtypes[0]
    data = g.cast(x, call.dtype, dtype)
    if not weights:
        sizes = [call.shape[a] for a in axes]
        call.require_sizes(sizes, NEEDS_REDUCED_SIZES)
        total = g.scalar(math.prod(sizes), dtype)
        sums = g.reduce("ReduceSum", data, axes, False)
    else:
        shares = g.cast(weights[0], call.dtypes[1], dtype)
        is_vector = call.shapes[1] != call.shape
        if is_vector:
            shares = g.reshape(shares, [-1 if i == axes[0] else 1 for i in range(call.ndim)])
        total = g.reduce("ReduceSum", shares, None if is_vector else axes, False)
        sums = g.reduce("ReduceSum", g.Mul(data, shares), axes, False)
    return [g.Div(sums, total), g.Identity(total)][: len(call.out_shapes)]


@row("_np_cumsum")
def cumsum(g: Builder, call: Call, x: str) -> str:
    """Running sums."""
    dtype = call.out_dtypes[0]
    inner = INT32 if dtype in SMALL_TYPES else dtype
    inner = torch.float32 if dtype is torch.float16 else inner
    value = g.cast(x, call.dtype, inner)
    axis = call.attrs["axis"]
    if axis is None:
        value, axis = g.reshape(value, [-1]), 0
    return g.cast(g.CumSum(value, g.scalar(axis, INT64)), inner, dtype)


@row("_npi_norm")
def numpy_norm(g: Builder, call: Call, x: str) -> str:
    """Norms of vectors, and of matrices where no singular values are needed."""
    a = call.attrs
    order, keepdims, flag = a["ord"], a["keepdims"], a["flag"]
    axes = call.axes() if a["axis"] else list(range(call.ndim))[-2 if flag == -1 else 0 :]
    dtype = call.out_dtypes[0]
    if not is_float(dtype):
        raise call.unsupported("of integers has no ONNX form.")
    value = g.cast(x, call.dtype, dtype)
    if flag in (0, 2) or (flag == -1 and len(axes) == 2):
        return _matrix_norm(g, call, value, order, axes, keepdims)
    return _vector_norm(g, call, value, order if flag == -1 else 2, axes, keepdims)


def _matrix_norm(g: Builder, call: Call, x: str, order: float, axes: list, keepdims: bool) -> str:
    if call.attrs["flag"] == 2 or abs(order) == 2:
        raise call.unsupported("of matrices needs singular values, which ONNX has not.")
    first, second = axes if abs(order) == 1 else axes[::-1]
    sums = g.reduce("ReduceSum", g.Abs(x), [first], True)
    most = g.reduce("ReduceMax" if order > 0 else "ReduceMin", sums, [second], True)
    return g.Identity(most) if keepdims else g.squeeze(most, *axes)


def _vector_norm(g: Builder, call: Call, x: str, order: float, axes: list, keepdims: bool) -> str:
    size, dtype = g.Abs(x), call.out_dtypes[0]
    if not axes:
        return size
    if order == 0:
        is_on = g.cast(g.Greater(size, g.scalar(0, dtype)), torch.bool, dtype)
        return g.reduce("ReduceSum", is_on, axes, keepdims)
    if math.isinf(order):
        return g.reduce("ReduceMax" if order > 0 else "ReduceMin", size, axes, keepdims)
    if order == 2:
        return g.Sqrt(g.reduce("ReduceSum", g.Mul(x, x), axes, keepdims))
    powers = g.Pow(size, g.scalar(order, dtype))
    return g.Pow(g.reduce("ReduceSum", powers, axes, keepdims), g.scalar(1 / order, dtype))


# -- positions and order --------------------------------------------------------------------


def _position(op_type: str, *names: str) -> None:
    @row(*names)
    def find(g: Builder, call: Call, x: str) -> str:
        axis, keepdims = call.attrs["axis"], call.attrs["keepdims"]
        if not is_float(call.dtype):
            x = g.cast(x, call.dtype, INT32)
        if axis is not None:
            index = g.add(op_type, x, axis=axis, keepdims=int(keepdims))
        else:
            is_numpy = call.op.name.startswith("_np")
            index = g.add(op_type, g.reshape(x, [-1]), axis=0, keepdims=int(not is_numpy))
            index = g.reshape(index, [1] * call.ndim) if keepdims else index
        if call.out_shapes[0] == (1,) and call.ndim == 1 and not keepdims:
            index = g.reshape(index, [1])
        return g.cast(index, INT64, call.out_dtypes[0])


_position("ArgMax", "argmax", "_npi_argmax")
_position("ArgMin", "argmin", "_npi_argmin")


@row("argmax_channel")
def argmax_channel(g: Builder, call: Call, x: str) -> str:
    """Index of the maximum along axis 1."""
    return g.cast(g.ArgMax(x, axis=1, keepdims=0), INT64, call.out_dtypes[0])


def _top(g: Builder, call: Call, x: str, k: int = 0) -> tuple[str, str, str, int]:
    """Return the first `k` values in order (0 is all), their indices, the data and its axis."""
    axis, shape, dtype = call.attrs["axis"], call.shape, call.dtype
    if axis is None:
        size = UNKNOWN if UNKNOWN in shape else math.prod(shape)
        x, axis, shape = g.reshape(x, [-1]), 0, (size,)
    axis %= len(shape)
    count = g.ints(k) if k > 0 else g.axis_size(x, shape, axis)
    is_small = dtype in (torch.int8, torch.uint8)
    wide = g.cast(x, dtype, INT32) if is_small else x
    largest = int(not call.attrs["is_ascend"])
    values, indices = g.TopK(wide, count, axis=axis, largest=largest, outputs=2)
    return g.cast(values, INT32, dtype) if is_small else values, indices, x, axis


row("sort")(lambda g, call, x: _top(g, call, x)[0])
row("argsort")(lambda g, call, x: g.cast(_top(g, call, x)[1], INT64, call.out_dtypes[0]))


@row("topk", first_suffix=lambda call: "0" if call.attrs["ret_typ"] in ("value", "both") else "")
def topk(g: Builder, call: Call, x: str) -> str | list[str]:
    """The largest elements: their values, indices or a mask."""
    values, indices, line, axis = _top(g, call, x, call.attrs["k"])
    kind = call.attrs["ret_typ"]
    if kind == "value":
        return values
    if kind == "mask":
        zeros = g.Mul(line, g.scalar(0, call.dtype))
        ones = g.Add(g.Mul(values, g.scalar(0, call.dtype)), g.scalar(1, call.dtype))
        mask = g.ScatterElements(zeros, indices, ones, axis=axis)
        return g.Reshape(mask, g.Shape(x)) if call.attrs["axis"] is None else mask
    where = g.cast(indices, INT64, call.out_dtypes[-1])
    return where if kind == "indices" else [values, where]
