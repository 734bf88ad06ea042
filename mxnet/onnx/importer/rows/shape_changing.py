"""Import rows of operators that change shapes, join and split."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....base import is_np_shape
from ..elements import elements_of
from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value
from .axes import axis_within, wide

internal: Any = F._internal


@imports("Reshape")
def reshape(node: OnnxNode, x: Value, shape: Value | None = None) -> Any:
    """Reshape; 0 copies a size and -1 is the rest, as in MXNet."""
    if shape is not None and shape.constant is None:
        codes = _codes(node, x, shape)
        if codes is not None:
            return F.reshape(x.symbol, shape=codes, name=node.name)
        return internal._onnx_reshape(
            x.symbol, shape.symbol, allowzero=bool(node.get("allowzero", 0)), name=node.name
        )
    sizes = node.required_ints("shape", shape)
    if node.get("allowzero", 0) and 0 in sizes:
        target = node.importer.constant(np.array(sizes), f"{node.name}_shape")
        return internal._onnx_reshape(x.symbol, target, allowzero=True, name=node.name)
    if not sizes:
        return F.reshape(x.symbol, shape=() if is_np_shape() else (1,), name=node.name)
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
    """A matrix of the axes before and from `axis` on."""
    axis = node.get("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    if not 0 <= axis <= x.rank:
        raise IndexError(f"axis {axis} of {x.rank} axes")
    if axis == 1:
        return F.Flatten(x.symbol, name=node.name)
    if axis == 0:
        return F.reshape(x.symbol, shape=(1, -1), name=node.name)
    rows = math.prod(x.sizes[:axis])
    return F.reshape(x.symbol, shape=(rows, -1), name=node.name)


@imports("Transpose")
def transpose(node: OnnxNode, x: Value) -> Any:
    """Permute the axes."""
    return F.transpose(x.symbol, axes=tuple(node.get("perm") or ()), name=node.name)


@imports("Squeeze")
def squeeze(node: OnnxNode, x: Value, axes: Value | None = None) -> Any:
    """Drop axes of size 1."""
    chosen = node.ints("axes", axes)
    return F.squeeze(x.symbol, axis=tuple(chosen) if chosen else None, name=node.name)


@imports("Unsqueeze")
def unsqueeze(node: OnnxNode, x: Value, axes: Value | None = None) -> Any:
    """Insert axes of size 1."""
    chosen = node.required_ints("axes", axes)
    rank = x.rank + len(chosen)
    made = x.symbol
    if x.rank == 0:
        return F.reshape(made, shape=(1,) * rank, name=node.name)
    for axis in sorted(axis_within(a, rank) for a in chosen):
        made = F.expand_dims(made, axis=axis)
    return made


@imports("Concat")
def concat(node: OnnxNode, *values: Value) -> Any:
    """Join along an axis."""
    return F.concat(*(v.symbol for v in values), dim=node.get("axis", 1), name=node.name)


@imports("Split")
def split(node: OnnxNode, x: Value, sizes: Value | None = None) -> Any:
    """Split along an axis."""
    axis, count = axis_within(node.get("axis", 0), x.rank), len(node.output_names)
    parts = node.ints("split", sizes)
    if parts is None:
        total = x.sizes[axis]
        each = -(-total // count)
        parts = [each] * (count - 1) + [total - each * (count - 1)]
    ends = np.cumsum(parts).tolist()
    starts = [0, *ends[:-1]]
    if 0 in parts:
        return [_empty_or_part(node, x, axis, b, e) for b, e in zip(starts, ends, strict=True)]
    return [
        F.slice_axis(x.symbol, axis=axis, begin=b, end=e) for b, e in zip(starts, ends, strict=True)
    ]


def _empty_or_part(node: OnnxNode, x: Value, axis: int, begin: int, end: int) -> Any:
    """Return a range of an axis that may have no elements."""
    if begin < end:
        return F.slice_axis(x.symbol, axis=axis, begin=begin, end=end)
    bounds = [
        node.importer.constant(np.array([n], np.int64), f"{node.name}_range")
        for n in (begin, end, axis, 1)
    ]
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
    if any(v is not None and v.constant is None for v in (starts, ends, axes, steps)):
        return _dynamic_slice(node, x, starts, ends, axes, steps)
    begin, end = node.required_ints("starts", starts), node.required_ints("ends", ends)
    chosen = node.ints("axes", axes) or list(range(len(begin)))
    by = node.ints("steps", steps) or [1] * len(begin)
    rank = max(axis_within(a, x.rank) for a in chosen) + 1
    low: list[int | None] = [None] * rank
    high: list[int | None] = [None] * rank
    step = [1] * rank
    for b, e, axis, s in zip(begin, end, chosen, by, strict=True):
        at = axis_within(axis, x.rank)
        size = x.shape[at]
        step[at] = s
        low[at], high[at] = _bounds(b, e, s, size)
    if any(a is not None and a == b for a, b in zip(low, high, strict=True)):  # an empty result
        given = [
            node.importer.constant(np.array(v, np.int64), f"{node.name}_range")
            for v in (begin, end, chosen, by)
        ]
        return internal._onnx_slice(x.symbol, *given, name=node.name)
    bounds = {"begin": tuple(low), "end": tuple(high), "step": tuple(step)}
    return F.slice(x.symbol, name=node.name, **bounds)


def _dynamic_slice(node: OnnxNode, x: Value, starts: Any, ends: Any, axes: Any, steps: Any) -> Any:
    """Ranges that are known only when the model runs."""
    count = starts.sizes[0] if starts.shape and starts.shape[0] else ends.sizes[0]

    def given(value: Value | None, default: Any, what: str) -> Any:
        if value is not None:
            return F.cast(value.symbol, dtype="int64")
        return node.importer.constant(np.array(default, np.int64), f"{node.name}_{what}")

    return internal._onnx_slice(
        x.symbol,
        given(starts, None, "starts"),
        given(ends, None, "ends"),
        given(axes, range(count), "axes"),
        given(steps, [1] * count, "steps"),
        name=node.name,
    )


def _bounds(begin: int, end: int, step: int, size: int | None) -> tuple[int | None, int | None]:
    """Return bounds as MXNet takes them; what lies outside an axis is open."""
    far = 2**31 - 1
    if size is not None:
        begin, end, _ = slice(begin, end, step).indices(size)
        return begin, None if end < 0 else end
    low = None if (step > 0 and begin == 0) or abs(begin) >= far else begin
    high = None if abs(end) >= far else end
    return low, high


@imports("Expand")
def expand(node: OnnxNode, x: Value, shape: Value) -> Any:
    """Broadcast with a shape."""
    if shape.constant is None:
        return internal._onnx_expand(x.symbol, shape.symbol, name=node.name)
    wanted = [int(n) for n in node.constant(shape, "shape")]
    rank = max(x.rank, len(wanted))
    made = wide(x, rank)
    sizes = [1] * (rank - len(wanted)) + wanted
    have = [1] * (rank - x.rank) + list(x.shape)
    if any(
        None not in (n, h) and 1 not in (n, h) and n != h for n, h in zip(sizes, have, strict=True)
    ):
        raise node.unsupported(f"of {x.shape} to {wanted} cannot be broadcast.")
    if None in have or 0 in sizes:
        return internal._onnx_expand(x.symbol, shape.symbol, name=node.name)
    axes = [i for i, (n, h) in enumerate(zip(sizes, have, strict=True)) if h == 1 and n != 1]
    if not axes:
        return F.identity(made, name=node.name)
    return F.broadcast_axis(made, axis=axes, size=[sizes[a] for a in axes], name=node.name)


@imports("Tile")
def tile(node: OnnxNode, x: Value, repeats: Value) -> Any:
    """Repeat the array along axes."""
    if repeats.constant is None:
        return internal._onnx_tile(x.symbol, repeats.symbol, name=node.name)
    reps = [int(n) for n in node.constant(repeats, "repeats")]
    return F.tile(x.symbol, reps=tuple(reps), name=node.name)


@imports("Shape")
def shape(node: OnnxNode, x: Value) -> Any:
    """The shape, a constant where it is known."""
    rank = x.rank
    start, end, _ = slice(node.get("start"), node.get("end")).indices(rank)
    if None not in x.shape[start:end]:
        return np.array(x.shape[start:end], dtype=np.int64)
    made = F.shape_array(x.symbol)
    if (start, end) == (0, rank):
        return F.identity(made, name=node.name)
    return F.slice_axis(made, axis=0, begin=start, end=end, name=node.name)


@imports("Size")
def size(node: OnnxNode, x: Value) -> Any:
    """The number of elements."""
    if x.shape is not None and None not in x.shape:
        return np.array(math.prod(x.shape), dtype=np.int64)
    return F.size_array(x.symbol, name=node.name)


@imports("DepthToSpace")
def depth_to_space(node: OnnxNode, x: Value) -> Any:
    """Move blocks of channels into height and width."""
    block = node.get("blocksize")
    if node.get("mode", "DCR") == "DCR":
        return F.depth_to_space(x.symbol, block_size=block, name=node.name)
    n, c, h, w = x.sizes
    kept = c // (block * block)
    split_up = F.reshape(x.symbol, shape=(n, kept, block, block, h, w))
    moved = F.transpose(split_up, axes=(0, 1, 4, 2, 5, 3))
    return F.reshape(moved, shape=(n, kept, h * block, w * block), name=node.name)


@imports("SpaceToDepth")
def space_to_depth(node: OnnxNode, x: Value) -> Any:
    """Move blocks of height and width into channels."""
    block = node.get("blocksize")
    if node.get("mode", "DCR") == "DCR":
        return F.space_to_depth(x.symbol, block_size=block, name=node.name)
    n, c, h, w = x.sizes
    split_up = F.reshape(x.symbol, shape=(n, c, h // block, block, w // block, block))
    moved = F.transpose(split_up, axes=(0, 1, 3, 5, 2, 4))
    shape = (n, c * block * block, h // block, w // block)
    return F.reshape(moved, shape=shape, name=node.name)


@imports("Pad")
def pad(
    node: OnnxNode,
    x: Value,
    pads: Value | None = None,
    value: Value | None = None,
    axes: Value | None = None,
) -> Any:
    """Pad with a constant, the edge, a reflection, or around."""
    if any(v is not None and v.constant is None for v in (pads, value)):
        return _dynamic_pad(node, x, pads, value, axes)
    widths = node.required_ints("pads", pads)
    chosen = node.ints("axes", axes)
    rank = x.rank
    chosen = list(range(rank)) if chosen is None else [axis_within(a, rank) for a in chosen]
    before, after = [0] * rank, [0] * rank
    half = len(widths) // 2
    for i, axis in enumerate(chosen):
        before[axis], after[axis] = widths[i], widths[half + i]
    fill = node.get("value", 0.0)
    if value is not None:
        fill = float(node.constant(value, "value").item())
    mode = node.get("mode", "constant")
    made = _cropped(x, before, after)
    for axis in range(rank):
        b, a = max(before[axis], 0), max(after[axis], 0)
        if b or a:
            made = _padded(node, x, made, axis, b, a, mode, fill)
    return F.identity(made, name=node.name)


def _dynamic_pad(node: OnnxNode, x: Value, pads: Any, value: Any, axes: Value | None) -> Any:
    """Widths or a number that are known only when the model runs."""
    widths = pads.symbol
    if axes is not None:
        chosen = [axis_within(a, x.rank) for a in node.required_ints("axes", axes)]
        places = np.array(chosen + [x.rank + a for a in chosen], np.int64)
        zeros = node.importer.constant(np.zeros(2 * x.rank, np.int64), f"{node.name}_zeros")
        at = node.importer.constant(places, f"{node.name}_places")
        widths = internal._onnx_scatter_elements(zeros, at, widths)
    if value is not None:
        fill = F.reshape(value.symbol, shape=(1,))
    else:
        fill = node.importer.constant(np.zeros(1, x.dtype), f"{node.name}_value")
    mode = node.get("mode", "constant")
    return internal._onnx_pad(x.symbol, widths, fill, mode=mode, name=node.name)


def _cropped(x: Value, before: list[int], after: list[int]) -> Any:
    """Negative pads take away."""
    made = x.symbol
    for axis, (b, a) in enumerate(zip(before, after, strict=True)):
        if b < 0 or a < 0:
            made = F.slice_axis(made, axis=axis, begin=max(-b, 0), end=a if a < 0 else None)
    return made


def _padded(
    node: OnnxNode, x: Value, made: Any, axis: int, b: int, a: int, mode: str, fill: float
) -> Any:
    if mode == "constant":
        line = F.slice_axis(made, axis=axis, begin=0, end=1) * 0 + fill
        blocks = [F.repeat(line, repeats=n, axis=axis) if n else None for n in (b, a)]
        return F.concat(*(p for p in (blocks[0], made, blocks[1]) if p is not None), dim=axis)
    size = x.sizes[axis]
    indices = np.arange(-b, size + a)
    if mode == "edge":
        indices = indices.clip(0, size - 1)
    elif mode == "wrap":
        indices = indices % size
    else:
        period = 2 * (size - 1)
        indices = np.abs((indices + period) % period) if period else indices * 0
        indices = np.where(indices >= size, period - indices, indices)
    chosen = node.importer.constant(indices.astype(np.int64), f"{node.name}_indices")
    return F.take(made, chosen, axis=axis)
