"""Import rows of shapes, indices, creation and sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .....base import is_np_shape
from ...library import load_onnx
from ..folding import elements_of
from ..reading import tensor_to_numpy
from ..value import (
    MAX_ELEMENTS,
    F,
    OnnxNode,
    SequenceValue,
    Value,
    as_scalar,
    axis_within,
    direct,
    imports,
    internal,
)

direct("Concat", F.concat, dim=("axis", 1))
direct("GatherElements", internal._onnx_gather_elements, axis=0)
direct("GatherND", internal._onnx_gather_nd, batch_dims=0)
direct("NonZero", internal._onnx_nonzero)
direct("Scatter", internal._onnx_scatter_elements, axis=0, reduction="none")
direct("ScatterElements", internal._onnx_scatter_elements, axis=0, reduction="none")
direct("ScatterND", internal._onnx_scatter_nd, reduction="none")
direct("Transpose", F.transpose, axes=("perm", ()))


def _is_dynamic(*values: Value | None) -> bool:
    """Return whether one of the values is known only at run time."""
    return any(v is not None and v.constant is None for v in values)


@imports("Reshape")
def reshape(node: OnnxNode, x: Value, shape: Value | None = None) -> Any:
    """Reshape; 0 copies a size and -1 is the rest, as in MXNet."""
    if shape is not None and shape.constant is None:
        codes = _codes(node, x, shape)
        if codes is not None:
            return F.reshape(x.symbol, shape=codes, name=node.name)
        allowzero = node.flag("allowzero")
        return internal._onnx_reshape(x.symbol, shape.symbol, allowzero=allowzero, name=node.name)
    sizes = node.required_ints("shape", shape)
    if node.flag("allowzero") and 0 in sizes:
        target = node.parameter(np.array(sizes), "shape")
        return internal._onnx_reshape(x.symbol, target, allowzero=True, name=node.name)
    if not sizes:
        return as_scalar(x.symbol, node.name)
    return F.reshape(x.symbol, shape=tuple(sizes), name=node.name)


def _codes(node: OnnxNode, x: Value, shape: Value) -> tuple[int, ...] | None:
    """Return a shape in MXNet's codes if at most one of its sizes has to be computed."""
    elements = elements_of(shape)
    if elements is None:
        return None
    names = node.importer.dims.get(x.name) or ()
    codes: list[int] = []
    for i, element in enumerate(elements):
        if isinstance(element, int):
            codes.append(element)
        elif element is not None and i < len(names) and names[i] == element:
            codes.append(0)
        else:
            codes.append(-1)
    return tuple(codes) if codes.count(-1) <= 1 and min(codes) >= -1 else None


@imports("Flatten")
def flatten(node: OnnxNode, x: Value) -> Any:
    """Flatten to a matrix: axes before `axis`, and the others."""
    axis = node.get("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    if not 0 <= axis <= x.rank:
        raise IndexError(f"axis {axis} of {x.rank} axes")
    if axis == 1:
        return F.Flatten(x.symbol, name=node.name)
    rows = math.prod(x.sizes[:axis]) if axis else 1
    return F.reshape(x.symbol, shape=(rows, -1), name=node.name)


@imports("Squeeze")
def squeeze(node: OnnxNode, x: Value, axes: Value | None = None) -> Any:
    """Drop axes of size 1."""
    chosen = node.ints("axes", axes)
    return F.squeeze(x.symbol, axis=tuple(chosen) if chosen else None, name=node.name)


@imports("Unsqueeze")
def unsqueeze(node: OnnxNode, x: Value, axes: Value | None = None) -> Any:
    """Insert axes of size 1."""
    chosen = node.required_ints("axes", axes)
    rank, output = x.rank + len(chosen), x.symbol
    if x.rank == 0:
        return F.reshape(output, shape=(1,) * rank, name=node.name)
    for axis in sorted(axis_within(a, rank) for a in chosen):
        output = F.expand_dims(output, axis=axis)
    return output


@imports("Shape")
def shape(node: OnnxNode, x: Value) -> Any:
    """The shape, or the sizes of some axes."""
    start, end, _ = slice(node.get("start"), node.get("end")).indices(x.rank)
    if start >= end:
        return np.empty(0, dtype=np.int64)
    if (start, end) == (0, x.rank):
        return F.shape_array(x.symbol, name=node.name)
    return F.slice_axis(F.shape_array(x.symbol), axis=0, begin=start, end=end, name=node.name)


@imports("Size")
def size(node: OnnxNode, x: Value) -> Any:
    """The number of elements."""
    if x.shape is not None and None not in x.shape:
        return np.array(math.prod(x.shape), dtype=np.int64)
    return F.size_array(x.symbol, name=node.name)


@imports("DepthToSpace", "SpaceToDepth")
def move_blocks(node: OnnxNode, x: Value) -> Any:
    """Move blocks of channels into height and width, or back."""
    block, is_to_space = node.get("blocksize"), node.op_type == "DepthToSpace"
    if node.get("mode", "DCR") == "DCR":
        function = F.depth_to_space if is_to_space else F.space_to_depth
        return function(x.symbol, block_size=block, name=node.name)
    n, c, h, w = x.sizes
    if is_to_space:
        depth = c // (block * block)
        split, order = (n, depth, block, block, h, w), (0, 1, 4, 2, 5, 3)
        target = (n, depth, h * block, w * block)
    else:
        split, order = (n, c, h // block, block, w // block, block), (0, 1, 3, 5, 2, 4)
        target = (n, c * block * block, h // block, w // block)
    moved = F.transpose(F.reshape(x.symbol, shape=split), axes=order)
    return F.reshape(moved, shape=target, name=node.name)


# -- ranges ---------------------------------------------------------------------------------


@imports("Split")
def split(node: OnnxNode, x: Value, sizes: Value | None = None) -> Any:
    """Split along an axis."""
    axis, count = x.axis(node.get("axis", 0)), len(node.output_names)
    parts = node.ints("split", sizes)
    if parts is None:
        total = x.sizes[axis]
        each = -(-total // count)
        parts = [each] * (count - 1) + [total - each * (count - 1)]
    if len(parts) > 1 and len(set(parts)) == 1 and parts[0] > 0:
        return list(F.split(x.symbol, num_outputs=count, axis=axis, name=node.name))
    ends = np.cumsum(parts).tolist()
    return [_part(node, x, axis, e - n, e) for n, e in zip(parts, ends, strict=True)]


def _part(node: OnnxNode, x: Value, axis: int, begin: int, end: int) -> Any:
    if begin < end:
        return F.slice_axis(x.symbol, axis=axis, begin=begin, end=end)
    bounds = [node.parameter(np.array([n], np.int64), "range") for n in (begin, end, axis, 1)]
    return internal._onnx_slice(x.symbol, *bounds)


@imports("Slice")
def slice_ranges(
    node: OnnxNode,
    x: Value,
    starts: Value | None = None,
    ends: Value | None = None,
    axes: Value | None = None,
    steps: Value | None = None,
) -> Any:
    """Ranges of some axes."""
    if _is_dynamic(starts, ends, axes, steps):
        return _dynamic_slice(node, x, starts, ends, axes, steps)
    begin, end = node.required_ints("starts", starts), node.required_ints("ends", ends)
    chosen = node.ints("axes", axes) or list(range(len(begin)))
    by = node.ints("steps", steps) or [1] * len(begin)
    rank = max(x.axis(a) for a in chosen) + 1
    low: list[int | None] = [None] * rank
    high: list[int | None] = [None] * rank
    step = [1] * rank
    for b, e, a, s in zip(begin, end, chosen, by, strict=True):
        axis = x.axis(a)
        step[axis] = s
        low[axis], high[axis] = _bounds(b, e, s, x.shape[axis])
    if any(a is not None and a == b for a, b in zip(low, high, strict=True)):  # an empty result
        ranges = [node.parameter(np.array(v, np.int64), "range") for v in (begin, end, chosen, by)]
        return internal._onnx_slice(x.symbol, *ranges, name=node.name)
    bounds = {"begin": tuple(low), "end": tuple(high), "step": tuple(step)}
    return F.slice(x.symbol, name=node.name, **bounds)


def _dynamic_slice(node: OnnxNode, x: Value, starts: Any, ends: Any, axes: Any, steps: Any) -> Any:
    """Slices whose ranges are known only at run time."""
    count = starts.sizes[0] if starts.shape and starts.shape[0] else ends.sizes[0]
    inputs = (("starts", starts, ()), ("ends", ends, ()))
    inputs += (("axes", axes, range(count)), ("steps", steps, [1] * count))
    bounds = [
        node.parameter(np.array(default, np.int64), what)
        if value is None
        else F.cast(value.symbol, dtype="int64")
        for what, value, default in inputs
    ]
    return internal._onnx_slice(x.symbol, *bounds, name=node.name)


def _bounds(begin: int, end: int, step: int, size: int | None) -> tuple[int | None, int | None]:
    """Convert bounds of a slice to MXNet's. Bounds outside the axis become None."""
    far = 2**31 - 1
    if size is not None:
        begin, end, _ = slice(begin, end, step).indices(size)
        return begin, None if end < 0 else end
    low = None if (step > 0 and begin == 0) or abs(begin) >= far else begin
    return low, None if abs(end) >= far else end


# -- repetition and padding -----------------------------------------------------------------


@imports("Expand")
def expand(node: OnnxNode, x: Value, shape: Value) -> Any:
    """Broadcast with a shape."""
    if shape.constant is None:
        return internal._onnx_expand(x.symbol, shape.symbol, name=node.name)
    target = [int(n) for n in node.constant(shape, "shape")]
    rank = max(x.rank, len(target))
    output = x.with_rank(rank)
    new = [1] * (rank - len(target)) + target
    old = [1] * (rank - x.rank) + list(x.shape)
    pairs = list(zip(new, old, strict=True))
    if any(None not in pair and 1 not in pair and pair[0] != pair[1] for pair in pairs):
        raise node.unsupported(f"of {x.shape} to {target} cannot be broadcast.")
    if None in old or 0 in new:
        return internal._onnx_expand(x.symbol, shape.symbol, name=node.name)
    axes = [i for i, (n, o) in enumerate(pairs) if o == 1 and n != 1]
    if not axes:
        return F.identity(output, name=node.name)
    return F.broadcast_axis(output, axis=axes, size=[new[a] for a in axes], name=node.name)


@imports("Tile")
def tile(node: OnnxNode, x: Value, repeats: Value) -> Any:
    """Repeat the array along axes."""
    if repeats.constant is None:
        return internal._onnx_tile(x.symbol, repeats.symbol, name=node.name)
    return F.tile(x.symbol, reps=tuple(node.required_ints("repeats", repeats)), name=node.name)


@imports("Pad")
def pad(
    node: OnnxNode,
    x: Value,
    pads: Value | None = None,
    value: Value | None = None,
    axes: Value | None = None,
) -> Any:
    """Pad with a constant, the edge, a reflection, or wraparound."""
    if _is_dynamic(pads, value):
        return _dynamic_pad(node, x, pads, value, axes)
    widths = node.required_ints("pads", pads)
    chosen, rank = node.ints("axes", axes), x.rank
    chosen = list(range(rank)) if chosen is None else [x.axis(a) for a in chosen]
    before, after = [0] * rank, [0] * rank
    half = len(widths) // 2
    for i, axis in enumerate(chosen):
        before[axis], after[axis] = widths[i], widths[half + i]
    fill = node.get("value", 0.0) if value is None else float(node.item(value, "value"))
    output = x.symbol
    for axis, (b, a) in enumerate(zip(before, after, strict=True)):
        if b < 0 or a < 0:  # negative pads take away
            output = F.slice_axis(output, axis=axis, begin=max(-b, 0), end=a if a < 0 else None)
    for axis in range(rank):
        b, a = max(before[axis], 0), max(after[axis], 0)
        if b or a:
            output = _pad_axis(node, x, output, axis, b, a, fill)
    return F.identity(output, name=node.name)


def _dynamic_pad(node: OnnxNode, x: Value, pads: Any, value: Any, axes: Value | None) -> Any:
    """Pad with widths or a value that are known only at run time."""
    widths = pads.symbol
    if axes is not None:
        chosen = [x.axis(a) for a in node.required_ints("axes", axes)]
        zeros = node.parameter(np.zeros(2 * x.rank, np.int64), "zeros")
        indices = np.array(chosen + [x.rank + a for a in chosen], np.int64)
        widths = internal._onnx_scatter_elements(zeros, node.parameter(indices, "places"), widths)
    if value is not None:
        fill = F.reshape(value.symbol, shape=(1,))
    else:
        fill = node.parameter(np.zeros(1, x.dtype), "value")
    mode = node.get("mode", "constant")
    return internal._onnx_pad(x.symbol, widths, fill, mode=mode, name=node.name)


def pad_ends(x: Any, axis: int, before: int, after: int, fill: float | None = None) -> Any:
    """Pad one axis of a symbol with a number; None is 0 in the symbol's type."""
    line = F.slice_axis(x, axis=axis, begin=0, end=1) * 0
    line = line if fill is None else line + fill
    blocks = [F.repeat(line, repeats=n, axis=axis) if n else None for n in (before, after)]
    return F.concat(*(p for p in (blocks[0], x, blocks[1]) if p is not None), dim=axis)


def _pad_axis(
    node: OnnxNode, x: Value, padded: Any, axis: int, before: int, after: int, fill: float
) -> Any:
    mode = node.get("mode", "constant")
    if mode == "constant":
        return pad_ends(padded, axis, before, after, fill)
    size = x.sizes[axis]
    indices = np.arange(-before, size + after)
    if mode == "edge":
        indices = indices.clip(0, size - 1)
    elif mode == "wrap":
        indices = indices % size
    else:
        period = 2 * (size - 1)
        indices = np.abs((indices + period) % period) if period else indices * 0
        indices = np.where(indices >= size, period - indices, indices)
    return F.take(padded, node.parameter(indices.astype(np.int64), "indices"), axis=axis)


@imports("CenterCropPad")
def center_crop_pad(node: OnnxNode, x: Value, shape: Value) -> Any:
    """Crop or pad to sizes, equally on both sides."""
    axes = node.ints("axes") or list(range(x.rank))
    output = x.symbol
    for a, size in zip(axes, node.required_ints("shape", shape), strict=True):
        axis = x.axis(a)
        old = x.sizes[axis]
        if size < old:
            start = (old - size) // 2
            output = F.slice_axis(output, axis=axis, begin=start, end=start + size)
        elif size > old:
            before = (size - old) // 2
            output = pad_ends(output, axis, before, size - old - before)
    return F.identity(output, name=node.name)


# -- indices --------------------------------------------------------------------------------


@imports("Gather")
def gather(node: OnnxNode, x: Value, indices: Value) -> Any:
    """Take slices along an axis; negative indices count from its end."""
    axis = x.axis(node.get("axis", 0))
    if indices.constant is not None:
        numbers = indices.constant
        if (numbers < 0).any():
            numbers = np.where(numbers < 0, numbers + x.sizes[axis], numbers)
        if numbers.ndim == 0:
            index = int(numbers)
            part = F.slice_axis(x.symbol, axis=axis, begin=index, end=index + 1)
            return F.reshape(part, shape=_without(x, axis), name=node.name)
        return F.take(x.symbol, node.parameter(numbers, "indices"), axis=axis, name=node.name)
    output = internal._onnx_gather(x.symbol, indices.symbol, axis=axis, name=node.name)
    if indices.shape == () and not is_np_shape():  # 0-d indices have one axis here
        return F.squeeze(output, axis=axis) if x.rank > 1 else output
    return output


def _without(x: Value, axis: int) -> tuple[int, ...]:
    """Return MXNet's codes for a shape without one axis of size 1."""
    if x.rank == 1:
        return () if is_np_shape() else (1,)
    codes = [0] * (x.rank - 1)
    codes[min(axis, x.rank - 2)] = -3  # joins this axis, of size 1, with its neighbor
    return tuple(codes)


@imports("OneHot")
def one_hot(node: OnnxNode, indices: Value, depth: Value, values: Value) -> Any:
    """One-hot vectors."""
    count = int(node.item(depth, "depth"))
    if count * math.prod(n for n in indices.shape or () if n is not None) > MAX_ELEMENTS:
        raise node.unsupported(f"with a depth of {count} makes too many elements.")
    off, on = node.constant(values, "values").tolist()
    numbers = F.cast(indices.symbol, dtype="int64")
    numbers = F.where(numbers < 0, numbers + count, numbers)
    hot = F.one_hot(numbers, depth=count, on_value=on, off_value=off, dtype=values.dtype.name)
    rank = indices.rank + 1
    axis = axis_within(node.get("axis", -1), rank)
    order = [*range(axis), rank - 1, *range(axis, rank - 1)]
    return F.transpose(hot, axes=order, name=node.name)


@imports("Compress")
def compress(node: OnnxNode, x: Value, condition: Value) -> Any:
    """Keep slices whose condition holds; without an axis, elements of the flattened data."""
    axis = node.get("axis")
    data = F.reshape(x.symbol, shape=(-1,)) if axis is None else x.symbol
    indices = internal._onnx_nonzero(F.reshape(condition.symbol, shape=(-1,)))
    indices = F.reshape(indices, shape=(-1,))
    return F.take(data, indices, axis=0 if axis is None else axis, name=node.name)


@imports("Unique")
def unique(node: OnnxNode, x: Value) -> Any:
    """Distinct elements, their first indices, the index of each, and counts."""
    axis = node.get("axis")
    symbol = F.cast(x.symbol, dtype="uint8") if x.is_bool else x.symbol
    outputs = internal._npi_unique(
        symbol,
        return_index=True,
        return_inverse=True,
        return_counts=True,
        axis=axis,
        name=node.name,
    )
    values, first, inverse, counts = (outputs[i] for i in range(4))
    if not node.flag("sorted", 1):  # in the order of first occurrence
        order = F.argsort(first, dtype="int64")
        values = F.take(values, order, axis=0 if axis is None else axis)
        inverse = F.take(F.argsort(order, dtype="int64"), inverse)
        first, counts = F.take(first, order), F.take(counts, order)
    values = F.cast(values, dtype="bool") if x.is_bool else values
    return [values, first, inverse, counts][: len(node.output_names)]


@imports("TensorScatter")
def tensor_scatter(node: OnnxNode, cache: Value, update: Value, at: Value | None = None) -> Any:
    """Write an update into a cache."""
    if at is not None:
        starts = at.symbol
    else:
        starts = node.parameter(np.zeros(cache.sizes[0], np.int64), "start")
    axis, mode = node.get("axis", -2), node.get("mode", "linear")
    inputs = (cache.symbol, update.symbol, starts)
    return internal._onnx_tensor_scatter(*inputs, axis=axis, mode=mode, name=node.name)


@imports("ReverseSequence")
def reverse_sequence(node: OnnxNode, x: Value, lengths: Value) -> Any:
    """Reverse each sequence in time."""
    is_time_first = (node.get("time_axis", 0), node.get("batch_axis", 1)) == (0, 1)
    symbol = x.symbol if is_time_first else F.swapaxes(x.symbol, dim1=0, dim2=1)
    ends = F.cast(lengths.symbol, dtype="int32")
    output = F.SequenceReverse(symbol, ends, use_sequence_length=True)
    return output if is_time_first else F.swapaxes(output, dim1=0, dim2=1)


@imports("Trilu")
def trilu(node: OnnxNode, x: Value, k: Value | None = None) -> Any:
    """The upper or lower triangle."""
    offset = 0 if k is None else int(node.item(k, "k"))
    if not node.flag("upper", 1):
        return internal._npi_tril(x.symbol, k=offset, name=node.name)
    last = {"dim1": x.rank - 2, "dim2": x.rank - 1}
    lower = internal._npi_tril(F.swapaxes(x.symbol, **last), k=-offset)
    return F.swapaxes(lower, **last, name=node.name)


# -- creation -------------------------------------------------------------------------------

CONSTANTS = {
    "value_float": np.float32,
    "value_int": np.int64,
    "value_floats": np.float32,
    "value_ints": np.int64,
}


@imports("Constant")
def constant(node: OnnxNode) -> Any:
    """An array that is written in the file."""
    if node.get("value") is not None:
        return tensor_to_numpy(node.get("value"))
    for key, dtype in CONSTANTS.items():
        if node.get(key) is not None:
            return np.array(node.get(key), dtype=dtype)
    raise node.unsupported("holds text or a sparse tensor.")


@imports("ConstantOfShape")
def constant_of_shape(node: OnnxNode, shape: Value) -> Any:
    """A constant array."""
    value = node.get("value")
    fill = np.zeros(1, np.float32) if value is None else tensor_to_numpy(value)
    if shape.constant is None:
        number = node.parameter(fill.reshape(()), "value")
        return internal._onnx_expand(number, F.cast(shape.symbol, dtype="int64"), name=node.name)
    sizes = tuple(int(n) for n in node.constant(shape, "shape"))
    if math.prod(sizes) > MAX_ELEMENTS:
        raise node.unsupported(f"makes {sizes}, more than {MAX_ELEMENTS} elements.")
    if not sizes:
        return fill.reshape(())
    if fill.dtype.kind == "b":
        number = F.full(sizes, float(fill.item()), dtype="int32")
        return F.cast(number, dtype="bool", name=node.name)
    return F.full(sizes, fill.item(), dtype=fill.dtype.name, name=node.name)


@imports("Range")
def arange(node: OnnxNode, start: Value, limit: Value, delta: Value) -> Any:
    """Evenly spaced numbers."""
    if _is_dynamic(start, limit, delta):
        ends = [F.reshape(v.symbol, shape=(1,)) for v in (start, limit, delta)]
        return internal._onnx_range(*ends, name=node.name)
    first, last = node.item(start, "start"), node.item(limit, "limit")
    step = node.item(delta, "delta")
    if step == 0 or (last - first) / step > MAX_ELEMENTS:
        raise node.unsupported(f"goes from {first} to {last} by {step}: too many elements.")
    return np.arange(first, last, step, dtype=start.dtype)


@imports("EyeLike")
def eye_like(node: OnnxNode, x: Value) -> Any:
    """Ones on a diagonal."""
    if math.prod(x.sizes) > MAX_ELEMENTS:
        raise node.unsupported(f"makes {x.sizes}, more than {MAX_ELEMENTS} elements.")
    return np.eye(*x.sizes, k=node.get("k", 0)).astype(node.output_dtype() or x.dtype)


def _draw(op_type: str, function: Any, first: tuple[str, float], second: tuple[str, float]) -> None:
    @imports(op_type, f"{op_type}Like")
    def draw(node: OnnxNode, like: Value | None = None) -> Any:
        shape = tuple(like.sizes) if like is not None else tuple(node.get("shape"))
        dtype = "float32" if like is None else like.dtype.name
        if node.get("dtype") is not None:
            dtype = load_onnx().helper.tensor_dtype_to_np_dtype(node.get("dtype")).name
        return function(node.get(*first), node.get(*second), shape=shape, dtype=dtype)


_draw("RandomUniform", F.random.uniform, ("low", 0.0), ("high", 1.0))
_draw("RandomNormal", F.random.normal, ("mean", 0.0), ("scale", 1.0))


@imports("Multinomial")
def multinomial(node: OnnxNode, x: Value) -> Any:
    """Random classes by their log-probabilities."""
    dtype = load_onnx().helper.tensor_dtype_to_np_dtype(node.get("dtype", 6)).name
    shape = (node.get("sample_size", 1),)
    return F.sample_multinomial(F.softmax(x.symbol), shape=shape, dtype=dtype)


@imports("Bernoulli")
def bernoulli(node: OnnxNode, x: Value) -> Any:
    """Random ones and zeros by the probability of ones."""
    dtype = node.output_dtype() or x.dtype or np.dtype(np.float32)
    drawn = (
        F.random.uniform_like(x.symbol)
        if x.shape is None
        else F.random.uniform(shape=tuple(x.sizes))
    )
    return F.cast(F.broadcast_lesser(F.cast(drawn, dtype=x.dtype.name), x.symbol), dtype=dtype.name)


# -- sequences and optional values ----------------------------------------------------------
# They exist at import only: a sequence is a list of tensors, so its operators leave no trace in the
# graph. Lengths and positions must be known.


def _items(node: OnnxNode, sequence: Any) -> list[Value]:
    if not isinstance(sequence, SequenceValue):
        raise node.unsupported("needs a sequence whose length is known at import.")
    return sequence.items


def _sequence(node: OnnxNode, items: list[Any]) -> SequenceValue:
    name = node.output_names[0]
    values = [
        item if isinstance(item, Value) else node.importer.complete(Value(f"{name}_{i}", item))
        for i, item in enumerate(items)
    ]
    return SequenceValue(name, values)


def _position(node: OnnxNode, at: Value, count: int) -> int:
    position = int(node.item(at, "position"))
    if not -count <= position <= count:
        raise node.unsupported(f"uses position {position} of a sequence of {count}.")
    return position + count if position < 0 else position


imports("SequenceEmpty")(lambda node: _sequence(node, []))
imports("SequenceConstruct")(lambda node, *values: _sequence(node, list(values)))
imports("SequenceLength")(lambda node, items: np.array(len(_items(node, items)), dtype=np.int64))


@imports("SequenceAt")
def sequence_at(node: OnnxNode, sequence: Any, at: Value) -> Any:
    """The tensor at a position."""
    items = _items(node, sequence)
    position = _position(node, at, len(items))
    if position == len(items):
        raise node.unsupported(f"uses position {position} of a sequence of {len(items)}.")
    return items[position]


@imports("SequenceInsert")
def sequence_insert(node: OnnxNode, sequence: Any, value: Value, at: Value | None = None) -> Any:
    """The sequence with one more tensor, by default at its end."""
    items = list(_items(node, sequence))
    items.insert(len(items) if at is None else _position(node, at, len(items)), value)
    return _sequence(node, items)


@imports("SequenceErase")
def sequence_erase(node: OnnxNode, sequence: Any, at: Value | None = None) -> Any:
    """The sequence without one tensor, by default its last."""
    items = list(_items(node, sequence))
    del items[len(items) - 1 if at is None else _position(node, at, len(items))]
    return _sequence(node, items)


@imports("ConcatFromSequence")
def concat_from_sequence(node: OnnxNode, sequence: Any) -> Any:
    """All tensors joined along an axis, or stacked along a new one."""
    symbols = [v.symbol for v in _items(node, sequence)]
    axis = node.get("axis")
    if node.flag("new_axis"):
        return F.stack(*symbols, axis=axis, name=node.name)
    return F.concat(*symbols, dim=axis, name=node.name)


@imports("SplitToSequence")
def split_to_sequence(node: OnnxNode, x: Value, split: Value | None = None) -> Any:
    """Parts of an axis; without sizes each slice is a tensor, optionally without the axis."""
    axis = x.axis(node.get("axis", 0))
    size = x.sizes[axis]
    sizes = [1] * size
    if split is not None:
        numbers = node.constant(split, "split")
        sizes = [int(n) for n in numbers.ravel()]
        if numbers.ndim == 0:  # equal parts, of which the last may be smaller
            step = sizes[0]
            sizes = [step] * (size // step) + [size % step] * (size % step > 0)
    ends = np.cumsum(sizes).tolist()
    parts = [
        F.slice_axis(x.symbol, axis=axis, begin=end - n, end=end)
        for n, end in zip(sizes, ends, strict=True)
    ]
    if split is None and not node.flag("keepdims", 1):
        parts = [F.squeeze(p, axis=axis) for p in parts]
    return _sequence(node, parts)


@imports("SequenceMap")
def sequence_map(node: OnnxNode, sequence: Any, *rest: Any) -> Any:
    """The results of a body for each tensor; further sequences are iterated in parallel."""
    graph, first = node.attrs["body"], _items(node, sequence)
    names = [i.name for i in graph.input]
    rows = []
    for i, item in enumerate(first):
        others = [r.items[i] if isinstance(r, SequenceValue) else r for r in rest]
        rows.append(node.importer.run_body(graph, dict(zip(names, [item, *others], strict=True))))
    return [
        SequenceValue(name, [row[i] for row in rows]) for i, name in enumerate(node.output_names)
    ]


@imports("Optional")
def optional(node: OnnxNode, value: Any = None) -> Any:
    """A value that may be absent."""
    return value if value is None or isinstance(value, SequenceValue) else [value]


imports("OptionalHasElement")(lambda node, value=None: np.array(value is not None))


@imports("OptionalGetElement")
def optional_get_element(node: OnnxNode, value: Any) -> Any:
    """The value, which must be there."""
    if value is None:
        raise node.unsupported("reads a value that is absent.")
    return value
