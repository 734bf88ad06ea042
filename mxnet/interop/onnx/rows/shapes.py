"""Rows of operators that reshape, permute, join, split and create arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..builder import (
    FAR,
    INT64,
    UNKNOWN,
    Builder,
    Call,
    Shape,
    UnsizedFill,
    is_float,
    onnx_dtype,
    row,
)

# Maximum number of elements: keeps tables in files small.
MAX_ELEMENTS = 1 << 22
NEEDS_SHAPE = "needs the shape of its input as numbers."


@row("Reshape")
def reshape(g: Builder, call: Call, x: str) -> str:
    """Reshape; codes were resolved by shape inference, unless sizes are dynamic."""
    target = call.out_shapes[0]
    if target.count(UNKNOWN) > 1 and call.attrs["shape"] and not call.attrs["reverse"]:
        return g.Reshape(x, g.Concat(*_sizes_by_codes(g, call, x), axis=0))
    return g.reshape_to(call, x, call.shape, target)


def _sizes_by_codes(g: Builder, call: Call, x: str) -> list[str]:
    """Return the target of a Reshape as vectors computed at run time."""
    codes, sizes, axis = list(call.attrs["shape"]), [], 0
    while codes:
        code = codes.pop(0)
        if code == -2:
            sizes += [g.size_of(x, i) for i in range(axis, call.ndim)]
            axis = call.ndim
        elif code == -3:
            sizes.append(g.Mul(g.size_of(x, axis), g.size_of(x, axis + 1)))
            axis += 2
        elif code == -4:
            first, second = codes.pop(0), codes.pop(0)
            whole = g.size_of(x, axis)
            sizes.append(g.Div(whole, g.ints(second)) if first == -1 else g.ints(first))
            sizes.append(g.Div(whole, g.ints(first)) if second == -1 else g.ints(second))
            axis += 1
        else:
            sizes.append(g.size_of(x, axis) if code == 0 else g.ints(code))
            axis += 1
    return sizes


@row("_np_reshape", "_npx_reshape")
def numpy_reshape(g: Builder, call: Call, x: str) -> str:
    """Reshape; codes were resolved when shapes were inferred."""
    if call.attrs["order"] != "C":
        raise call.unsupported("reads in another order than C, which ONNX cannot.")
    if 0 in call.shape:
        raise call.unsupported("of an empty array has no ONNX form.")
    return g.reshape_to(call, x, call.shape, call.out_shapes[0])


@row("_np_atleast_1d", "_np_atleast_2d", "_np_atleast_3d")
def at_least(g: Builder, call: Call, *xs: str) -> list[str]:
    """Add axes of size 1 up to a rank."""
    shapes = zip(xs, call.shapes, call.out_shapes, strict=True)
    return [g.reshape_to(call, x, source, target) for x, source, target in shapes]


@row("reshape_like")
def reshape_like(g: Builder, call: Call, x: str, like: str) -> str:
    """Reshape to (a part of) the shape of another array."""
    if UNKNOWN not in call.out_shapes[0]:
        return g.reshape(x, call.out_shapes[0])
    if all(call.attrs[k] is None for k in ("lhs_begin", "lhs_end", "rhs_begin", "rhs_end")):
        return g.Reshape(x, g.Shape(like))
    return g.reshape_to(call, x, call.shape, call.out_shapes[0])


row("Flatten")(lambda g, call, x: g.Flatten(x, axis=1))
row("shape_array")(lambda g, call, x: g.Shape(x))
row("size_array")(lambda g, call, x: g.reshape(g.Size(x), [1]))
row("expand_dims")(lambda g, call, x: g.unsqueeze(x, call.attrs["axis"] % (call.ndim + 1)))


@row("squeeze", "_np_squeeze")
def squeeze(g: Builder, call: Call, x: str) -> str:
    """Drop axes of size 1."""
    axes = call.axes()
    if call.attrs["axis"] is None:
        axes = [i for i, n in enumerate(call.shape) if n == 1]
    if not axes:
        return g.Identity(x)
    if len(axes) == call.ndim and call.op.name == "squeeze":
        return g.reshape(x, [1])
    return g.squeeze(x, *axes)


# -- order of axes and elements -------------------------------------------------------------


@row("transpose", "_np_transpose")
def transpose(g: Builder, call: Call, x: str) -> str:
    """Permute the axes, by default to the reverse order."""
    if call.ndim < 2 and call.op.name != "transpose":
        return g.Identity(x)
    axes = call.attrs["axes"] or range(call.ndim - 1, -1, -1)
    return g.Transpose(x, perm=[a % call.ndim for a in axes])


def _swapped(rank: int, a: int, b: int) -> list[int]:
    order = list(range(rank))
    order[a], order[b] = order[b], order[a]
    return order


@row("SwapAxis")
def swap_axis(g: Builder, call: Call, x: str) -> str:
    """Exchange two axes."""
    a, b = call.attrs["dim1"] % call.ndim, call.attrs["dim2"] % call.ndim
    return g.Transpose(x, perm=_swapped(call.ndim, a, b))


@row("_np_moveaxis")
def moveaxis(g: Builder, call: Call, x: str) -> str:
    """Move axes to other positions."""
    moved, targets = call.axes("source"), call.axes("destination")
    order = [a for a in range(call.ndim) if a not in moved]
    for position, axis in sorted(zip(targets, moved, strict=True)):
        order.insert(position, axis)
    return g.Transpose(x, perm=order)


@row("reverse", "_npi_flip")
def reverse(g: Builder, call: Call, x: str) -> str:
    """Reverse the order along axes."""
    axes = call.axes()
    return g.flip(x, axes) if axes else g.Identity(x)


@row("_npi_rot90")
def rot90(g: Builder, call: Call, x: str) -> str:
    """Quarter turns in the plane of two axes."""
    first, second = ((a % call.ndim) for a in (call.attrs["axes"] or (0, 1)))
    turns, swap = call.attrs["k"] % 4, _swapped(call.ndim, first, second)
    if turns == 0:
        return g.Identity(x)
    if turns == 2:
        return g.flip(x, [first, second])
    if turns == 1:
        return g.transpose(g.flip(x, [second]), *swap)
    return g.flip(g.transpose(x, *swap), [second])


@row("_np_roll")
def roll(g: Builder, call: Call, x: str) -> str:
    """Shift elements cyclically along axes."""
    shift, is_flat = call.attrs["shift"], call.attrs["axis"] is None
    if is_flat:
        output, axes, sizes = g.reshape(x, [-1]), [0], [math.prod(call.shape)]
    else:
        output, axes = x, call.axes()
        sizes = [call.shape[a] for a in axes]
    if UNKNOWN in sizes or min(sizes, default=0) < 0:
        raise call.unsupported("needs the sizes of rolled axes as numbers.")
    shifts = [shift] if isinstance(shift, int) else list(shift)
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    for axis, by, size in zip(axes * (len(shifts) // len(axes)), shifts, sizes, strict=True):
        start = -by % size if size else 0
        if start:
            tail, head = (
                g.slice(output, [start], [FAR], [axis]),
                g.slice(output, [0], [start], [axis]),
            )
            output = g.Concat(tail, head, axis=axis)
    return g.reshape(output, call.shape) if is_flat else g.Identity(output)


@row(
    *("_linalg_extractdiag", "_linalg_extracttrian", "_linalg_makediag", "_linalg_maketrian"),
    *("_np_diag", "_np_diagflat", "_np_diagonal", "im2col"),
)
def rearrange(g: Builder, call: Call, x: str) -> str:
    """Gather elements of the flattened array, with zeros where there is none.

    Each element's position depends on the shape: the operator is run on the element indices.
    """
    call.require_sizes(call.shape, NEEDS_SHAPE)
    count = math.prod(call.shape)
    if count > MAX_ELEMENTS:
        raise call.unsupported(f"moves {count} elements one by one: more than {MAX_ELEMENTS}.")
    numbers = torch.arange(1, count + 1, dtype=torch.float64).reshape(call.shape)
    sources = call.evaluate(numbers).numpy().astype(np.int64)  # 0 is a zero
    flat = g.reshape(x, [-1])
    output = g.Gather(flat, g.array(np.maximum(sources - 1, 0)), axis=0)
    if (sources > 0).all():
        return output
    return g.Where(g.array(sources > 0), output, g.scalar(0, call.dtype))


@row("_np_trace")
def trace(g: Builder, call: Call, x: str) -> str:
    """Sum of a diagonal."""
    a = call.attrs
    call.require_sizes(call.shape, NEEDS_SHAPE)
    numbers = np.arange(math.prod(call.shape)).reshape(call.shape)
    indices = np.diagonal(numbers, a["offset"], a["axis1"], a["axis2"])
    wide = g.cast(x, call.dtype, call.out_dtypes[0])
    if not indices.size:
        return g.Expand(g.scalar(0, call.out_dtypes[0]), g.ints(*indices.shape[:-1]))
    chosen = g.Gather(g.reshape(wide, [-1]), g.array(indices.astype(np.int64)), axis=0)
    return g.reduce("ReduceSum", chosen, [indices.ndim - 1], False)


@row("diag")
def diag(g: Builder, call: Call, x: str) -> str:
    """A diagonal of two axes, or a matrix with the vector as its diagonal."""
    k = call.attrs["k"]
    call.require_sizes(call.shape)
    if call.ndim == 1:
        size = call.shape[0] + abs(k)
        zero, mask = g.scalar(0, call.dtype), g.array(np.eye(size, k=k, dtype=bool))
        line = g.pad(x, [max(k, 0)], [max(-k, 0)], zero)
        return g.Where(mask, g.reshape(line, [1, size]), zero)
    a, b = call.attrs["axis1"] % call.ndim, call.attrs["axis2"] % call.ndim
    rest = [i for i in range(call.ndim) if i not in (a, b)]
    moved = g.transpose(x, a, b, *rest)
    line = np.arange(call.out_shapes[0][-1], dtype=np.int64)
    picked = g.GatherND(moved, g.array(np.stack([line + max(-k, 0), line + max(k, 0)], 1)))
    return g.transpose(picked, *range(1, len(rest) + 1), 0)


@row("_npi_tril")
def tril(g: Builder, call: Call, x: str) -> str:
    """The lower triangle."""
    if call.ndim < 2:
        raise call.unsupported("of a vector has no ONNX form.")
    if UNKNOWN in call.shape[-2:] and g.opset >= 14:
        return g.Trilu(x, g.scalar(call.attrs["k"], INT64), upper=0)
    call.require_sizes(call.shape[-2:], "needs the last two sizes as numbers.")
    rows, columns = call.shape[-2:]
    mask = np.tri(rows, columns, call.attrs["k"]) > 0
    return g.Where(g.array(mask), x, g.scalar(0, call.dtype))


def _move_blocks(
    g: Builder, call: Call, x: str, split: Sequence[int], order: Sequence[int], to: Sequence[int]
) -> str:
    """Write a transposition, because runtimes support the operator only for floats."""
    call.require_sizes(call.shape[1:], "of integers needs all sizes but the first as numbers.")
    return g.reshape(g.transpose(g.reshape(x, [-1, *split]), *order), [-1, *to])


@row("depth_to_space")
def depth_to_space(g: Builder, call: Call, x: str) -> str:
    """Move channels into blocks of height and width."""
    block = call.attrs["block_size"]
    if call.dtype not in (torch.int32, INT64):
        return g.DepthToSpace(x, blocksize=block, mode="DCR")
    _, depth, height, width = call.shape
    split = [block, block, depth // block**2, height, width]
    target = [depth // block**2, height * block, width * block]
    return _move_blocks(g, call, x, split, [0, 3, 4, 1, 5, 2], target)


@row("space_to_depth")
def space_to_depth(g: Builder, call: Call, x: str) -> str:
    """Move blocks of height and width into channels."""
    block = call.attrs["block_size"]
    if call.dtype not in (torch.int32, INT64):
        return g.SpaceToDepth(x, blocksize=block)
    _, depth, height, width = call.shape
    split = [depth, height // block, block, width // block, block]
    target = [depth * block**2, height // block, width // block]
    return _move_blocks(g, call, x, split, [0, 3, 5, 1, 2, 4], target)


# -- joining and splitting ------------------------------------------------------------------

row("Concat", "_rnn_param_concat")(lambda g, call, *xs: g.Concat(*xs, axis=call.attrs["dim"]))


@row("_npi_concatenate")
def concatenate(g: Builder, call: Call, *xs: str) -> str:
    """Join along an axis, or all elements in one line."""
    parts, axis = g.cast_all(call, xs, call.out_dtypes[0]), call.attrs["axis"]
    if axis is None:
        return g.Concat(*(g.reshape(p, [-1]) for p in parts), axis=0)
    return g.Concat(*parts, axis=axis)


@row("stack", "_npi_stack")
def stack(g: Builder, call: Call, *xs: str) -> str:
    """Join along a new axis."""
    axis = call.attrs["axis"] % (call.ndim + 1)
    parts = [g.unsqueeze(x, axis) for x in g.cast_all(call, xs, call.out_dtypes[0])]
    return g.Concat(*parts, axis=axis)


def _with_rank(g: Builder, x: str, rank: int, target: int) -> str:
    if rank >= target:
        return x
    if target == 3 and rank > 0:
        return g.unsqueeze(x, 2) if rank == 2 else g.unsqueeze(x, 0, 2)
    return g.unsqueeze(x, *range(target - rank))


def _stack(name: str, rank: int, axis: int) -> None:
    @row(name)
    def join(g: Builder, call: Call, *xs: str) -> str:
        parts = g.cast_all(call, xs, call.out_dtypes[0])
        ranks = [len(s) for s in call.shapes]
        wide = [_with_rank(g, p, r, rank) for p, r in zip(parts, ranks, strict=True)]
        return g.Concat(*wide, axis=0 if name == "_npi_hstack" and max(ranks) <= 1 else axis)


_stack("_npi_vstack", 2, 0)
_stack("_npi_hstack", 1, 1)
_stack("_npi_dstack", 3, 2)


@row("_npi_column_stack")
def column_stack(g: Builder, call: Call, *xs: str) -> str:
    """Vectors as columns beside matrices."""
    parts = zip(g.cast_all(call, xs, call.out_dtypes[0]), call.shapes, strict=True)
    return g.Concat(*(g.reshape(p, [-1, 1]) if len(s) <= 1 else p for p, s in parts), axis=1)


def _squeeze_parts(g: Builder, call: Call, parts: list[str], axis: int) -> list[str]:
    return [g.squeeze(p, axis) for p in parts] if call.attrs["squeeze_axis"] else parts


def _sections(call: Call, axis: int, count: int) -> list[int]:
    why = "splits an axis whose size is known only when the model runs."
    call.require_sizes([call.shape[axis]], why)
    return [call.shape[axis] // count] * count


@row("SliceChannel", first_suffix=lambda call: "0")
def split(g: Builder, call: Call, x: str) -> list[str]:
    """Split into equal parts."""
    axis = call.axis
    parts = g.split(x, _sections(call, axis, call.attrs["num_outputs"]), axis)
    return _squeeze_parts(g, call, parts, axis)


@row("_split_v2", "_npi_hsplit", "_npi_dsplit")
def split_v2(g: Builder, call: Call, x: str) -> list[str]:
    """Split into equal parts, or at the given indices."""
    axis = call.axis
    if call.attrs["sections"]:
        sizes = _sections(call, axis, call.attrs["sections"])
        if not call.attrs["squeeze_axis"]:  # the last part may be a smaller one
            sizes = [shape[axis] for shape in call.out_shapes]
        parts = g.split(x, sizes, axis)
    else:
        starts, size = list(call.attrs["indices"]), call.shape[axis]
        ends = [*starts[1:], FAR if size == UNKNOWN else size]
        parts = [g.slice(x, [s], [e], [axis]) for s, e in zip(starts, ends, strict=True)]
    return _squeeze_parts(g, call, parts, axis)


# -- repetition and padding -----------------------------------------------------------------


@row("tile")
def tile(g: Builder, call: Call, x: str) -> str:
    """Repeat the whole array along axes."""
    reps = list(call.attrs["reps"])
    if len(reps) > call.ndim:
        x = g.unsqueeze(x, *range(len(reps) - call.ndim))
    return g.Tile(x, g.ints(*[1] * (call.ndim - len(reps)), *reps))


@row("repeat")
def repeat(g: Builder, call: Call, x: str) -> str:
    """Repeat each element along an axis, or of the flattened array."""
    axis, times, shape = call.attrs["axis"], call.attrs["repeats"], call.shape
    if axis is None:
        x, axis, shape = g.reshape(x, [-1]), 0, (UNKNOWN,)
    axis %= len(shape)
    before, after = shape[:axis], shape[axis + 1 :]
    wide = g.Tile(g.unsqueeze(x, axis + 1), g.ints(*[1] * (axis + 1), times, *[1] * len(after)))
    if UNKNOWN not in (*before, *after):
        return g.reshape(wide, [*before, -1, *after])
    factors = [times if i == axis else 1 for i in range(len(shape))]
    return g.Reshape(wide, g.Mul(g.Shape(x), g.ints(*factors)))


@row("broadcast_to", "_npi_broadcast_to")
def broadcast_to(g: Builder, call: Call, x: str) -> str:
    """Broadcast axes of size 1; 0 in the attribute keeps a size."""
    return g.Expand(x, g.ints(*(1 if n == UNKNOWN else n for n in call.out_shapes[0])))


@row("broadcast_axis")
def broadcast_axis(g: Builder, call: Call, x: str) -> str:
    """Broadcast some axes of size 1."""
    sizes = [1] * call.ndim
    for axis, size in zip(call.axes(), call.attrs["size"], strict=True):
        sizes[axis] = size
    return g.Expand(x, g.ints(*sizes))


@row("broadcast_like")
def broadcast_like(g: Builder, call: Call, x: str, like: str) -> str:
    """Broadcast axes of size 1 to the shape of another array."""
    left, right = call.attrs["lhs_axes"], call.attrs["rhs_axes"]
    if UNKNOWN not in call.out_shapes[0]:
        return g.Expand(x, g.ints(*call.out_shapes[0]))
    if not left:
        return g.Expand(x, g.Shape(like))
    rank = len(call.shapes[1])
    sources = {a % call.ndim: b % rank for a, b in zip(left, right, strict=True)}
    sizes = [g.size_of(like, sources[i]) if i in sources else g.ints(1) for i in range(call.ndim)]
    return g.Expand(x, g.Concat(*sizes, axis=0))


@row("Pad")
def pad(g: Builder, call: Call, x: str) -> str:
    """Pad with a constant, the edge or a reflection."""
    widths, mode = call.attrs["pad_width"], call.attrs["mode"]
    value = g.scalar(call.attrs["constant_value"], call.dtype)
    fill = [value] if mode == "constant" else []
    return g.Pad(x, g.ints(*widths[::2], *widths[1::2]), *fill, mode=mode)


@row("_npi_pad")
def numpy_pad(g: Builder, call: Call, x: str) -> str:
    """Pad every axis."""
    mode, pairs = call.attrs["mode"], call.attrs["pad_width"]
    if mode == "symmetric":
        return _mirror(g, call, x)
    if mode not in ("constant", "edge", "reflect"):
        raise call.unsupported(f"with mode={mode!r} has no ONNX form.")
    if mode == "reflect" and any(n == 1 for n in call.shape):
        raise call.unsupported("cannot reflect an axis of one element.")
    widths = g.ints(*(p[0] for p in pairs), *(p[1] for p in pairs))
    inner = INT64 if not is_float(call.dtype) else call.dtype
    value = g.cast(x, call.dtype, inner)
    number = call.attrs["constant_value"]
    fill = [g.scalar(number if is_float(inner) else int(number), inner)]
    output = g.Pad(value, widths, *(fill if mode == "constant" else []), mode=mode)
    return g.cast(output, inner, call.dtype)


def _mirror(g: Builder, call: Call, x: str) -> str:
    """Pad axes symmetrically (reflection including the edge)."""
    call.require_sizes(call.shape, "needs the sizes of mirrored axes as numbers.")
    output = x
    for axis, (before, after) in enumerate(call.attrs["pad_width"]):
        size = call.shape[axis]
        if before or after:
            indices = np.arange(-before, size + after) % (2 * size)
            indices = np.where(indices < size, indices, 2 * size - 1 - indices)
            output = g.Gather(output, g.array(indices.astype(np.int64)), axis=axis)
    return g.Identity(output)


@row("Crop")
def crop(g: Builder, call: Call, x: str, *like: str) -> str:
    """Crop height and width to given sizes or those of another image."""
    sizes = call.out_shapes[0][2:]
    call.require_sizes((*call.shape[2:], *sizes), "needs height and width as numbers.")
    starts = list(call.attrs["offset"])
    if call.attrs["center_crop"]:
        starts = [(old - new) // 2 for old, new in zip(call.shape[2:], sizes, strict=True)]
    ends = [s + n for s, n in zip(starts, sizes, strict=True)]
    return g.slice(x, starts, ends, [2, 3])


@row("_npi_diff")
def diff(g: Builder, call: Call, x: str) -> str:
    """Differences of neighbors, several times."""
    output = x
    for _ in range(call.attrs["n"]):
        later = g.slice(output, [1], [FAR], [call.axis])
        output = g.Sub(later, g.slice(output, [0], [-1], [call.axis]))
    return g.Identity(output)


# -- creation -------------------------------------------------------------------------------


def _fill(g: Builder, call: Call, value: float) -> str:
    if UNKNOWN in call.out_shapes[0]:
        name = g.unique(call.name)
        g.unsized[name] = UnsizedFill(
            value, call.unsupported("has sizes that are known only when the model runs.")
        )
        return name
    return g.Expand(g.scalar(value, call.out_dtypes[0]), g.ints(*call.out_shapes[0]))


def _fill_like(g: Builder, call: Call, x: str, value: float) -> str:
    return g.Expand(g.scalar(value, call.out_dtypes[0]), g.sizes(x, call.shape))


row("_zeros", "_zeros_without_dtype", "_npi_zeros")(lambda g, call: _fill(g, call, 0))
row("_ones", "_npi_ones")(lambda g, call: _fill(g, call, 1))
row("_full")(lambda g, call: _fill(g, call, call.attrs["value"]))
row("zeros_like")(lambda g, call, x: _fill_like(g, call, x, 0))
row("ones_like")(lambda g, call, x: _fill_like(g, call, x, 1))
row("_npi_full_like")(lambda g, call, x: _fill_like(g, call, x, call.attrs["fill_value"]))


@row(
    *("_npi_arange", "_npi_eye", "_npi_identity", "_npi_indices", "_npi_logspace"),
    *("_npi_blackman", "_npi_hamming", "_npi_hanning"),
)
def constant(g: Builder, call: Call) -> str:
    """A constant array, computed at export."""
    return g.output(call, call.evaluate().numpy())


@row("_npi_diag_indices_from")
def diag_indices_from(g: Builder, call: Call, x: str) -> str:
    """Indices of the diagonal, which follow from the shape."""
    return g.output(call, np.stack([np.arange(call.shape[0])] * call.ndim))


def _typed(call: Call, key: str) -> float:
    """Return a start or step as MXNet takes it: an integer for integers."""
    return call.attrs[key] if is_float(call.out_dtypes[0]) else int(call.attrs[key])


@row("_arange")
def arange(g: Builder, call: Call) -> str:
    """Numbers at equal distances."""
    a = call.attrs
    is_stop_only = a["stop"] is None and not a["infer_range"]
    start = 0 if is_stop_only else _typed(call, "start")
    values = start + _typed(call, "step") * np.arange(call.out_shapes[0][0] // a["repeat"])
    return g.output(call, np.repeat(values, a["repeat"]))


@row("_linspace")
def linspace(g: Builder, call: Call) -> str:
    """A number of values from one end to the other."""
    a = call.attrs
    return g.output(call, np.linspace(a["start"], a["stop"], a["num"], a["endpoint"]))


@row("_eye")
def eye(g: Builder, call: Call) -> str:
    """Ones on a diagonal."""
    a = call.attrs
    return g.output(call, np.eye(int(a["N"]), int(a["M"]) or int(a["N"]), int(a["k"])))


@row("_contrib_arange_like")
def arange_like(g: Builder, call: Call, x: str) -> str:
    """Evenly spaced numbers, one per element of an axis or array."""
    a, dtype = call.attrs, call.out_dtypes[0]
    sizes: Shape = call.shape if a["axis"] is None else (call.shape[a["axis"]],)
    start, step, repeat = _typed(call, "start"), _typed(call, "step"), a["repeat"]
    if UNKNOWN not in sizes:
        values = start + step * (np.arange(math.prod(sizes)) // repeat)
        return g.output(call, values.reshape(call.out_shapes[0]))
    if repeat != 1 or (a["axis"] is None and call.ndim != 1):
        raise call.unsupported("needs the sizes as numbers, unless it counts along one axis.")
    positions = g.positions(x, call.shape, (a["axis"] or 0) % call.ndim)
    steps = g.cast(positions, INT64, dtype)
    return g.Add(g.Mul(steps, g.scalar(step, dtype)), g.scalar(start, dtype))


# -- random numbers -------------------------------------------------------------------------


def _draw(op_type: str, **attrs: str) -> Any:
    """Draw random numbers in 32 or 64 bits; `attrs` are ONNX's attributes."""

    def draw(g: Builder, call: Call, *like: str) -> str:
        dtype = call.out_dtypes[0]
        inner = dtype if dtype is torch.float64 else torch.float32
        shape = None if like else list(call.out_shapes[0])
        options = {theirs: call.attrs[ours] for ours, theirs in attrs.items()}
        drawn = g.add(op_type, *like, dtype=onnx_dtype(inner), shape=shape, **options)
        return g.cast(drawn, inner, dtype)

    return draw


row("_random_uniform")(_draw("RandomUniform", low="low", high="high"))
row("_random_uniform_like")(_draw("RandomUniformLike", low="low", high="high"))
row("_random_normal")(_draw("RandomNormal", loc="mean", scale="scale"))
row("_random_normal_like")(_draw("RandomNormalLike", loc="mean", scale="scale"))


@row("_random_randint")
def random_randint(g: Builder, call: Call) -> str:
    """Random integers: truncated uniform floats."""
    drawn = g.RandomUniform(
        low=float(call.attrs["low"]),
        high=float(call.attrs["high"]),
        shape=list(call.out_shapes[0]),
        dtype=onnx_dtype(torch.float32),
    )
    return g.cast(g.Floor(drawn), torch.float32, call.out_dtypes[0])


@row("_sample_multinomial")
def multinomial(g: Builder, call: Call, x: str) -> str:
    """Random classes by probability."""
    if call.attrs["get_prob"]:
        raise call.unsupported("has no ONNX form with get_prob=True.")
    count = math.prod(call.attrs["shape"] or (1,))
    logs = g.Log(g.cast(x, call.dtype, torch.float32))
    if call.ndim == 1:
        logs = g.unsqueeze(logs, 0)
    dtype = call.out_dtypes[0]
    inner = dtype if dtype in (torch.int32, INT64) else torch.int32
    drawn = g.Multinomial(logs, sample_size=count, dtype=onnx_dtype(inner))
    return g.cast(g.reshape_to(call, drawn, call.shape, call.out_shapes[0]), inner, dtype)
