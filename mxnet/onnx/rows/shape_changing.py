"""Rows of operators that change shapes, join and split."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..builder import UNKNOWN, Builder, Call
from ..table import row

# Runtimes move blocks of these types with other nodes only.
WHOLE = (torch.int32, torch.int64)


@row("Reshape")
def reshape(g: Builder, call: Call, x: str) -> str:
    """Reshape; MXNet's codes were resolved when shapes were inferred, unless sizes are dynamic."""
    target = call.out_shapes[0]
    if target.count(UNKNOWN) > 1 and call.attrs["shape"] and not call.attrs["reverse"]:
        return g.Reshape(x, g.Concat(*_sizes_by_codes(g, call, x), axis=0))
    return g.reshape_to(call, x, call.shape, target)


def _sizes_by_codes(g: Builder, call: Call, x: str) -> list[str]:
    """Return the target of a Reshape as vectors that are computed when the model runs."""
    codes, made, at = list(call.attrs["shape"]), [], 0
    while codes:
        code = codes.pop(0)
        if code == -2:
            made += [g.size_of(x, i) for i in range(at, call.ndim)]
            at = call.ndim
        elif code == -3:
            made.append(g.Mul(g.size_of(x, at), g.size_of(x, at + 1)))
            at += 2
        elif code == -4:
            first, second = codes.pop(0), codes.pop(0)
            whole = g.size_of(x, at)
            made.append(g.Div(whole, g.ints(second)) if first == -1 else g.ints(first))
            made.append(g.Div(whole, g.ints(first)) if second == -1 else g.ints(second))
            at += 1
        else:
            made.append(g.size_of(x, at) if code == 0 else g.ints(code))
            at += 1
    return made


@row("Flatten")
def flatten(g: Builder, call: Call, x: str) -> str:
    """Keep axis 0 and join the others."""
    return g.Flatten(x, axis=1)


@row("transpose")
def transpose(g: Builder, call: Call, x: str) -> str:
    """Permute the axes, by default to the reverse order."""
    axes = call.attrs["axes"] or range(call.ndim - 1, -1, -1)
    return g.Transpose(x, perm=[a % call.ndim for a in axes])


@row("SwapAxis")
def swap_axis(g: Builder, call: Call, x: str) -> str:
    """Exchange two axes."""
    perm = list(range(call.ndim))
    a, b = call.attrs["dim1"] % call.ndim, call.attrs["dim2"] % call.ndim
    perm[a], perm[b] = perm[b], perm[a]
    return g.Transpose(x, perm=perm)


@row("expand_dims")
def expand_dims(g: Builder, call: Call, x: str) -> str:
    """Insert an axis of size 1."""
    return g.unsqueeze(x, call.attrs["axis"] % (call.ndim + 1))


@row("squeeze")
def squeeze(g: Builder, call: Call, x: str) -> str:
    """Drop axes of size 1."""
    axes = call.attrs["axis"]
    if axes is None:
        axes = [i for i, n in enumerate(call.shape) if n == 1]
    if not axes:
        return g.Identity(x)
    if len(axes) == call.ndim:
        return g.reshape(x, [1])
    return g.squeeze(x, *(a % call.ndim for a in axes))


@row("reshape_like")
def reshape_like(g: Builder, call: Call, x: str, like: str) -> str:
    """Take the shape of another array, or a part of it."""
    if UNKNOWN not in call.out_shapes[0]:
        return g.reshape(x, call.out_shapes[0])
    if all(call.attrs[k] is None for k in ("lhs_begin", "lhs_end", "rhs_begin", "rhs_end")):
        return g.Reshape(x, g.Shape(like))
    return g.reshape_to(call, x, call.shape, call.out_shapes[0])


@row("Concat", "_rnn_param_concat")
def concat(g: Builder, call: Call, *xs: str) -> str:
    """Join along an axis."""
    return g.Concat(*xs, axis=call.attrs["dim"])


@row("stack")
def stack(g: Builder, call: Call, *xs: str) -> str:
    """Join along a new axis."""
    axis = call.attrs["axis"] % (call.ndim + 1)
    return g.Concat(*(g.unsqueeze(x, axis) for x in xs), axis=axis)


def _sections(call: Call, axis: int, count: int) -> list[int]:
    size = call.shape[axis]
    if size == UNKNOWN:
        raise call.unsupported("splits an axis whose size is known only when the model runs.")
    return [size // count] * count


@row("SliceChannel")
def split(g: Builder, call: Call, x: str) -> list[str]:
    """Split into equal parts."""
    axis = call.attrs["axis"] % call.ndim
    parts = g.split(x, _sections(call, axis, call.attrs["num_outputs"]), axis)
    return [g.squeeze(p, axis) for p in parts] if call.attrs["squeeze_axis"] else parts


@row("_split_v2")
def split_v2(g: Builder, call: Call, x: str) -> list[str]:
    """Split into equal parts, or at the given places."""
    axis = call.attrs["axis"] % call.ndim
    if call.attrs["sections"]:
        sizes = _sections(call, axis, call.attrs["sections"])
        if not call.attrs["squeeze_axis"]:  # the last part may be a smaller one
            sizes = [shape[axis] for shape in call.out_shapes]
        parts = g.split(x, sizes, axis)
    else:
        size = call.shape[axis]
        places = list(call.attrs["indices"])
        ends = [*places[1:], size if size != UNKNOWN else math.inf]
        ends = [min(e, 2**62) for e in ends]
        parts = [g.slice(x, [s], [int(e)], [axis]) for s, e in zip(places, ends, strict=True)]
    return [g.squeeze(p, axis) for p in parts] if call.attrs["squeeze_axis"] else parts


@row("tile")
def tile(g: Builder, call: Call, x: str) -> str:
    """Repeat the whole array along axes."""
    reps = list(call.attrs["reps"])
    if len(reps) > call.ndim:
        x = g.unsqueeze(x, *range(len(reps) - call.ndim))
    reps = [1] * (call.ndim - len(reps)) + reps
    return g.Tile(x, g.ints(*reps))


@row("repeat")
def repeat(g: Builder, call: Call, x: str) -> str:
    """Repeat each element along an axis, or of the flattened array."""
    axis, times = call.attrs["axis"], call.attrs["repeats"]
    shape = call.shape
    if axis is None:
        x, axis, shape = g.reshape(x, [-1]), 0, (UNKNOWN,)
    axis %= len(shape)
    wide = g.unsqueeze(x, axis + 1)
    wide = g.Tile(wide, g.ints(*[1] * (axis + 1), times, *[1] * (len(shape) - axis - 1)))
    if sum(n == UNKNOWN for i, n in enumerate(shape) if i != axis) == 0:
        return g.reshape(wide, [*shape[:axis], -1, *shape[axis + 1 :]])
    factors = [times if i == axis else 1 for i in range(len(shape))]
    return g.Reshape(wide, g.Mul(g.Shape(x), g.ints(*factors)))


@row("broadcast_to")
def broadcast_to(g: Builder, call: Call, x: str) -> str:
    """Repeat axes of size 1; 0 in the attribute keeps a size."""
    return g.Expand(x, g.ints(*(1 if n == UNKNOWN else n for n in call.out_shapes[0])))


@row("broadcast_axis")
def broadcast_axis(g: Builder, call: Call, x: str) -> str:
    """Repeat some axes of size 1."""
    sizes = [1] * call.ndim
    for axis, size in zip(call.attrs["axis"], call.attrs["size"], strict=True):
        sizes[axis % call.ndim] = size
    return g.Expand(x, g.ints(*sizes))


@row("broadcast_like")
def broadcast_like(g: Builder, call: Call, x: str, like: str) -> str:
    """Repeat axes of size 1 to the shape of another array."""
    left, right = call.attrs["lhs_axes"], call.attrs["rhs_axes"]
    if UNKNOWN not in call.out_shapes[0]:
        return g.Expand(x, g.ints(*call.out_shapes[0]))
    if not left:
        return g.Expand(x, g.Shape(like))
    rank = len(call.shapes[1])
    wanted = {a % call.ndim: b % rank for a, b in zip(left, right, strict=True)}
    sizes = [g.size_of(like, wanted[i]) if i in wanted else g.ints(1) for i in range(call.ndim)]
    return g.Expand(x, g.Concat(*sizes, axis=0))


@row("depth_to_space")
def depth_to_space(g: Builder, call: Call, x: str) -> str:
    """Move channels into blocks of height and width."""
    block = call.attrs["block_size"]
    if call.dtype not in WHOLE:
        return g.DepthToSpace(x, blocksize=block, mode="DCR")
    _, depth, height, width = call.shape
    _known(call)
    apart = g.reshape(x, [-1, block, block, depth // block**2, height, width])
    mixed = g.transpose(apart, 0, 3, 4, 1, 5, 2)
    return g.reshape(mixed, [-1, depth // block**2, height * block, width * block])


@row("space_to_depth")
def space_to_depth(g: Builder, call: Call, x: str) -> str:
    """Move blocks of height and width into channels."""
    block = call.attrs["block_size"]
    if call.dtype not in WHOLE:
        return g.SpaceToDepth(x, blocksize=block)
    _, depth, height, width = call.shape
    _known(call)
    apart = g.reshape(x, [-1, depth, height // block, block, width // block, block])
    mixed = g.transpose(apart, 0, 3, 5, 1, 2, 4)
    return g.reshape(mixed, [-1, depth * block**2, height // block, width // block])


def _known(call: Call) -> None:
    if UNKNOWN in call.shape[1:]:
        raise call.unsupported("of integers needs all sizes but the first as numbers.")


@row("Pad")
def pad(g: Builder, call: Call, x: str) -> str:
    """Pad with a constant, the edge or a reflection."""
    widths = call.attrs["pad_width"]
    value = g.scalar(call.attrs["constant_value"], call.dtype)
    around = g.ints(*widths[::2], *widths[1::2])
    mode = call.attrs["mode"]
    if mode == "constant":
        return g.Pad(x, around, value, mode=mode)
    return g.Pad(x, around, mode=mode)


@row("reverse")
def reverse(g: Builder, call: Call, x: str) -> str:
    """Reverse the order along axes."""
    axes = call.attrs["axis"]
    axes = [a % call.ndim for a in ((axes,) if isinstance(axes, int) else axes)]
    count = len(axes)
    return g.slice(x, [-1] * count, [-(2**62)] * count, axes, [-1] * count)


@row("shape_array")
def shape_array(g: Builder, call: Call, x: str) -> str:
    """The shape as an array."""
    return g.Shape(x)


@row("size_array")
def size_array(g: Builder, call: Call, x: str) -> str:
    """The number of elements as an array."""
    return g.reshape(g.Size(x), [1])


@row("diag")
def diag(g: Builder, call: Call, x: str) -> str:
    """A diagonal of two axes, or a matrix with the vector as its diagonal."""
    k = call.attrs["k"]
    if UNKNOWN in call.shape:
        raise call.unsupported("needs all sizes as numbers.")
    if call.ndim == 1:
        size = call.shape[0] + abs(k)
        dtype = call.dtype
        mask = g.array(_eye(size, k))
        line = g.pad(x, [max(k, 0)], [max(-k, 0)], g.scalar(0, dtype))
        zero = g.scalar(0, dtype)
        return g.Where(mask, g.reshape(line, [1, size]), zero)
    a, b = call.attrs["axis1"] % call.ndim, call.attrs["axis2"] % call.ndim
    rest = [i for i in range(call.ndim) if i not in (a, b)]
    moved = g.transpose(x, a, b, *rest)
    count = call.out_shapes[0][-1]
    places = [[max(-k, 0) + i, max(k, 0) + i] for i in range(count)]
    picked = g.GatherND(moved, g.array(_int64(places).reshape(count, 2)))
    return g.transpose(picked, *range(1, len(rest) + 1), 0)


def _int64(values: list) -> np.ndarray:
    return torch.tensor(values, dtype=torch.int64).numpy()


def _eye(size: int, k: int) -> np.ndarray:
    return torch.diag_embed(torch.ones(size - abs(k)), k).bool().numpy()


@row("Crop")
def crop(g: Builder, call: Call, x: str, *like: str) -> str:
    """Cut height and width, to given sizes or to those of another image."""
    if UNKNOWN in call.shape[2:] or UNKNOWN in call.out_shapes[0][2:]:
        raise call.unsupported("needs height and width as numbers.")
    sizes = call.out_shapes[0][2:]
    if call.attrs["center_crop"]:
        starts = [(have - want) // 2 for have, want in zip(call.shape[2:], sizes, strict=True)]
    else:
        starts = list(call.attrs["offset"])
    ends = [s + n for s, n in zip(starts, sizes, strict=True)]
    return g.slice(x, starts, ends, [2, 3])
