"""Rows of operators that read or write by ranges, by arrays of indices and by lengths."""

from __future__ import annotations

import numpy as np
import torch

from ..builder import FAR, INT64, Builder, Call, row


def _within(g: Builder, index: str, size: str, mode: str) -> str:
    """Clip or wrap indices to an axis; `size` is a vector of one number."""
    if mode == "wrap":
        return g.Mod(index, size)
    last = g.Sub(size, g.ints(1))
    return g.Max(g.ints(0), g.Min(index, last))


@row("slice")
def slice_ranges(g: Builder, call: Call, x: str) -> str:
    """``begin:end:step`` of the leading axes."""
    begin, end = call.attrs["begin"], call.attrs["end"]
    steps = [s or 1 for s in (call.attrs["step"] or [1] * len(begin))]
    starts = [(0 if s > 0 else FAR) if b is None else b for b, s in zip(begin, steps, strict=True)]
    ends = [(FAR if s > 0 else -FAR) if e is None else e for e, s in zip(end, steps, strict=True)]
    return g.slice(x, starts, ends, list(range(len(begin))), steps)


@row("slice_axis")
def slice_axis(g: Builder, call: Call, x: str) -> str:
    """``begin:end`` of one axis."""
    end = call.attrs["end"]
    axis = call.axis
    return g.slice(x, [call.attrs["begin"]], [FAR if end is None else end], [axis])


@row("slice_like")
def slice_like(g: Builder, call: Call, x: str, like: str) -> str:
    """Slice to the sizes of another array."""
    axes = call.attrs["axes"]
    if axes is None:
        return g.Identity(x)
    axes = [a % call.ndim for a in axes] if axes else list(range(call.ndim))
    ends = [g.axis_size(like, call.shapes[1], a) for a in axes]
    return g.Slice(x, g.ints(*[0] * len(axes)), g.Concat(*ends, axis=0), g.ints(*axes))


@row("take")
def take(g: Builder, call: Call, x: str, indices: str) -> str:
    """Take slices along an axis."""
    axis = call.axis
    index = g.cast(indices, call.dtypes[1], INT64)
    if call.attrs["mode"] != "raise":
        index = _within(g, index, g.axis_size(x, call.shape, axis), call.attrs["mode"])
    if not call.shapes[1]:
        index = g.reshape(index, [])
    return g.Gather(x, index, axis=axis)


@row("Embedding", "_contrib_SparseEmbedding")
def embedding(g: Builder, call: Call, x: str, weight: str) -> str:
    """Look up a row for each index; indices out of range are clipped."""
    index = g.cast(x, call.dtype, INT64)
    last = g.scalar(call.attrs["input_dim"] - 1, INT64)
    return g.Gather(weight, g.Clip(index, g.scalar(0, INT64), last), axis=0)


@row("one_hot")
def one_hot(g: Builder, call: Call, indices: str) -> str:
    """One-hot rows; zeros for indices out of range."""
    depth, dtype = call.attrs["depth"], call.out_dtypes[0]
    positions = g.unsqueeze(g.cast(indices, call.dtype, INT64), call.ndim)
    hit = g.Equal(positions, g.array(np.arange(depth, dtype=np.int64)))
    on, off = (g.scalar(call.attrs[k], dtype) for k in ("on_value", "off_value"))
    return g.Where(hit, on, off)


@row("pick")
def pick(g: Builder, call: Call, x: str, index: str) -> str:
    """Pick one element along an axis."""
    axis = call.axis
    indices = g.cast(index, call.dtypes[1], INT64)
    has_axis = len(call.shapes[1]) == call.ndim and (call.ndim > 1 or call.shapes[1] == (1,))
    if not has_axis:
        indices = g.unsqueeze(indices, axis)
    indices = _within(g, indices, g.axis_size(x, call.shape, axis), call.attrs["mode"])
    output = g.GatherElements(x, indices, axis=axis)
    return output if call.attrs["keepdims"] or call.ndim == 1 else g.squeeze(output, axis)


@row("batch_take")
def batch_take(g: Builder, call: Call, x: str, indices: str) -> str:
    """Take one element of each row."""
    positions = g.reshape(g.cast(indices, call.dtypes[1], INT64), [-1, 1])
    positions = _within(g, positions, g.axis_size(x, call.shape, 1), "clip")
    return g.reshape(g.GatherElements(x, positions, axis=1), call.out_shapes[0])


def _index_rows(g: Builder, call: Call, indices: str, position: int) -> str:
    """Transpose indices ``(axes, ...)`` to ONNX's ``(..., axes)``."""
    rank = len(call.shapes[position])
    positions = g.cast(indices, call.dtypes[position], INT64)
    return g.transpose(positions, *range(1, rank), 0)


row("gather_nd")(lambda g, call, x, indices: g.GatherND(x, _index_rows(g, call, indices, 1)))


@row("scatter_nd")
def scatter_nd(g: Builder, call: Call, data: str, indices: str) -> str:
    """Write elements into zeros; the last of equal positions wins."""
    zeros = g.Expand(g.scalar(0, call.dtype), g.ints(*call.attrs["shape"]))
    return g.ScatterND(zeros, _index_rows(g, call, indices, 1), data)


@row("_scatter_set_nd")
def scatter_set_nd(g: Builder, call: Call, lhs: str, rhs: str, indices: str) -> str:
    """Write elements into an array."""
    return g.ScatterND(lhs, _index_rows(g, call, indices, 2), rhs)


@row("_contrib_index_copy")
def index_copy(g: Builder, call: Call, old: str, index: str, new: str) -> str:
    """Replace rows."""
    return g.ScatterND(old, g.unsqueeze(g.cast(index, call.dtypes[1], INT64), 1), new)


@row("_contrib_boolean_mask")
def boolean_mask(g: Builder, call: Call, data: str, index: str) -> str:
    """Keep the slices whose mask is not 0."""
    condition = g.cast(index, call.dtypes[1], torch.bool)
    return g.Compress(data, condition, axis=call.attrs["axis"])


@row("_contrib_index_array")
def index_array(g: Builder, call: Call, x: str) -> str:
    """The indices of each element."""
    call.require_sizes(call.shape)
    axes = call.attrs["axes"] or range(call.ndim)
    return g.output(call, np.moveaxis(np.indices(call.shape), 0, -1)[..., list(axes)])


@row("fill_element_0index")
def fill_element(g: Builder, call: Call, data: str, values: str, index: str) -> str:
    """Replace one element of each row."""
    indices = g.reshape(g.cast(index, call.dtypes[2], INT64), [-1, 1])
    steps = g.reshape(g.array(np.arange(call.shape[1], dtype=np.int64)), [1, -1])
    return g.Where(g.Equal(indices, steps), g.reshape(values, [-1, 1]), data)


def _linear_ranges(call: Call) -> np.ndarray:
    """Return the positions that a slice writes, as indices of all its axes."""
    call.require_sizes(call.shape)
    begin, end = call.attrs["begin"], call.attrs["end"]
    steps = call.attrs["step"] or (1,) * len(begin)
    ranges = [
        np.arange(n)[slice(b, e, s)]
        for n, b, e, s in zip(call.shape, begin, end, steps, strict=False)
    ]
    ranges += [np.arange(n) for n in call.shape[len(begin) :]]
    return np.stack(np.meshgrid(*ranges, indexing="ij"), -1).astype(np.int64)


@row("_slice_assign")
def slice_assign(g: Builder, call: Call, lhs: str, rhs: str) -> str:
    """Assign an array to a slice."""
    indices = _linear_ranges(call)
    return g.ScatterND(lhs, g.array(indices), g.reshape(rhs, indices.shape[:-1]))


@row("_slice_assign_scalar")
def slice_assign_scalar(g: Builder, call: Call, x: str) -> str:
    """Assign a number to a slice."""
    indices = _linear_ranges(call)
    value = g.scalar(call.attrs["scalar"], call.dtype)
    return g.ScatterND(x, g.array(indices), g.Expand(value, g.ints(*indices.shape[:-1])))


def _strides(call: Call) -> np.ndarray:
    return np.cumprod([1, *call.attrs["shape"][:0:-1]])[::-1].astype(np.int64)


@row("_ravel_multi_index")
def ravel_multi_index(g: Builder, call: Call, x: str) -> str:
    """Indices of axes as indices of the flattened array."""
    factors = _strides(call).reshape(-1, *[1] * (call.ndim - 1))
    parts = g.Mul(g.cast(x, call.dtype, INT64), g.array(factors))
    return g.cast(g.reduce("ReduceSum", parts, [0], False), INT64, call.out_dtypes[0])


@row("_unravel_index")
def unravel_index(g: Builder, call: Call, x: str) -> str:
    """Indices of the flattened array as indices of axes."""
    rest, rows = g.cast(x, call.dtype, INT64), []
    for stride in _strides(call):
        step = g.scalar(stride, INT64)
        rows.append(g.unsqueeze(g.Div(rest, step), 0))
        rest = g.Sub(rest, g.Mul(g.Div(rest, step), step))
    return g.cast(g.Concat(*rows, axis=0), INT64, call.out_dtypes[0])


@row("_npx_nonzero")
def nonzero(g: Builder, call: Call, x: str) -> str:
    """The indices of elements other than 0, one in each row."""
    x = x if call.ndim else g.reshape(x, [1])  # treat a number as one row
    indices = g.NonZero(g.cast(x, call.dtype, torch.bool))
    return g.cast(g.Transpose(indices, perm=[1, 0]), INT64, call.out_dtypes[0])


@row("_npi_unique")
def unique(g: Builder, call: Call, x: str) -> list[str]:
    """Distinct elements in order, with indices and counts on demand."""
    a = call.attrs
    outputs = g.Unique(x, sorted=1, outputs=4, axis=a["axis"])
    requested = [True, a["return_index"], a["return_inverse"], a["return_counts"]]
    return [name for name, is_on in zip(outputs, requested, strict=True) if is_on]


# -- sequences of different lengths ---------------------------------------------------------


@row("SequenceMask")
def sequence_mask(g: Builder, call: Call, x: str, lengths: str = "") -> str:
    """Replace the elements after the end of each sequence."""
    if not lengths:
        return g.Identity(x)
    axis = call.attrs["axis"]
    steps = g.unsqueeze(g.positions(x, call.shape, axis), 1 - axis)
    ends = g.unsqueeze(g.cast(lengths, call.dtypes[1], INT64), axis)
    inside = g.Less(steps, ends)
    if call.ndim > 2:
        inside = g.unsqueeze(inside, *range(2, call.ndim))
    return g.Where(inside, x, g.scalar(call.attrs["value"], call.dtype))


@row("SequenceLast")
def sequence_last(g: Builder, call: Call, x: str, lengths: str = "") -> str:
    """Take the last element of each sequence."""
    axis = call.attrs["axis"]
    if not lengths:
        return g.Gather(x, g.scalar(-1, INT64), axis=axis)
    last = g.Sub(g.cast(lengths, call.dtypes[1], INT64), g.ints(1))
    last = g.unsqueeze(g.Max(last, g.ints(0)), 1)
    if axis == 0:
        x = g.Transpose(x, perm=[1, 0, *range(2, call.ndim)])
    return g.GatherND(x, last, batch_dims=1)


@row("SequenceReverse")
def sequence_reverse(g: Builder, call: Call, x: str, lengths: str = "") -> str:
    """Reverse each sequence in time."""
    axis = call.attrs["axis"]
    if not lengths:
        return g.flip(x, [axis])
    ends = g.cast(lengths, call.dtypes[1], INT64)
    return g.ReverseSequence(x, ends, time_axis=axis, batch_axis=1 - axis)
