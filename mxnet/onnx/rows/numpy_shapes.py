"""Rows of `mx.np`: shapes, joining, products, choosing and making arrays."""

from __future__ import annotations

import string

import numpy as np
import torch

from ..builder import INT64, UNKNOWN, Builder, Call, numpy_dtype
from ..table import row
from .shape_changing import split_v2


@row("_np_reshape", "_npx_reshape")
def reshape(g: Builder, call: Call, x: str) -> str:
    """Reshape; codes were resolved when shapes were inferred."""
    if call.attrs["order"] != "C":
        raise call.unsupported("reads in another order than C, which ONNX cannot.")
    if 0 in call.shape:
        raise call.unsupported("of an empty array has no ONNX form.")
    return g.reshape_to(call, x, call.shape, call.out_shapes[0])


@row("_np_copy")
def copy(g: Builder, call: Call, x: str) -> str:
    """Pass a value on."""
    return g.Identity(x)


@row("_np_transpose")
def transpose(g: Builder, call: Call, x: str) -> str:
    """Permute the axes, by default to the reverse order."""
    axes = call.attrs["axes"] or range(call.ndim - 1, -1, -1)
    if call.ndim < 2:
        return g.Identity(x)
    return g.Transpose(x, perm=[a % call.ndim for a in axes])


@row("_np_moveaxis")
def moveaxis(g: Builder, call: Call, x: str) -> str:
    """Move axes to other places."""
    pairs = [
        (v,) if isinstance(v, int) else v for v in (call.attrs["source"], call.attrs["destination"])
    ]
    return g.Transpose(x, perm=_moved(call.ndim, *pairs))


def _moved(rank: int, source: tuple[int, ...], target: tuple[int, ...]) -> list[int]:
    moved, places = ([a % rank for a in axes] for axes in (source, target))
    order = [a for a in range(rank) if a not in moved]
    for at, axis in sorted(zip(places, moved, strict=True)):
        order.insert(at, axis)
    return order


@row("_np_squeeze")
def squeeze(g: Builder, call: Call, x: str) -> str:
    """Drop axes of size 1."""
    axes = call.attrs["axis"]
    if axes is None:
        axes = [i for i, n in enumerate(call.shape) if n == 1]
    axes = [axes] if isinstance(axes, int) else axes
    return g.squeeze(x, *(a % call.ndim for a in axes)) if axes else g.Identity(x)


@row("_npi_broadcast_to")
def broadcast_to(g: Builder, call: Call, x: str) -> str:
    """Repeat axes of size 1."""
    return g.Expand(x, g.ints(*(1 if n == UNKNOWN else n for n in call.out_shapes[0])))


def _same_type(g: Builder, call: Call, xs: tuple[str, ...]) -> list[str]:
    wanted = call.out_dtypes[0]
    return [g.cast(x, t, wanted) for x, t in zip(xs, call.dtypes, strict=True)]


@row("_npi_concatenate")
def concatenate(g: Builder, call: Call, *xs: str) -> str:
    """Join along an axis, or all elements in one line."""
    parts, axis = _same_type(g, call, xs), call.attrs["axis"]
    if axis is None:
        return g.Concat(*(g.reshape(p, [-1]) for p in parts), axis=0)
    return g.Concat(*parts, axis=axis)


@row("_npi_stack")
def stack(g: Builder, call: Call, *xs: str) -> str:
    """Join along a new axis."""
    axis = call.attrs["axis"] % (call.ndim + 1)
    parts = [g.unsqueeze(x, axis) for x in _same_type(g, call, xs)]
    return g.Concat(*parts, axis=axis)


def _at_least(g: Builder, x: str, rank: int, wanted: int) -> str:
    if rank >= wanted:
        return x
    if wanted == 3 and rank == 2:
        return g.unsqueeze(x, 2)
    if wanted == 3 and rank == 1:
        return g.unsqueeze(x, 0, 2)
    return g.unsqueeze(x, *range(wanted - rank))


def _stacked(name: str, wanted: int, axis: int) -> None:
    @row(name)
    def emit(g: Builder, call: Call, *xs: str) -> str:
        parts = _same_type(g, call, xs)
        ranks = [len(s) for s in call.shapes]
        wide = [_at_least(g, p, r, wanted) for p, r in zip(parts, ranks, strict=True)]
        at = 0 if name == "_npi_hstack" and max(ranks) <= 1 else axis
        return g.Concat(*wide, axis=at)


_stacked("_npi_vstack", 2, 0)
_stacked("_npi_hstack", 1, 1)
_stacked("_npi_dstack", 3, 2)


@row("_npi_column_stack")
def column_stack(g: Builder, call: Call, *xs: str) -> str:
    """Vectors as columns beside matrices."""
    parts = [
        g.reshape(p, [-1, 1]) if len(s) <= 1 else p
        for p, s in zip(_same_type(g, call, xs), call.shapes, strict=True)
    ]
    return g.Concat(*parts, axis=1)


row("_npi_hsplit", "_npi_dsplit")(split_v2)


@row("_npi_flip")
def flip(g: Builder, call: Call, x: str) -> str:
    """Reverse the order along axes."""
    axes = call.attrs["axis"]
    axes = [a % call.ndim for a in ((axes,) if isinstance(axes, int) else axes)]
    count = len(axes)
    if not count:
        return g.Identity(x)
    return g.slice(x, [-1] * count, [-(2**62)] * count, axes, [-1] * count)


@row("_npi_where")
def where(g: Builder, call: Call, condition: str, x: str, y: str) -> str:
    """Choose by a condition."""
    wanted = call.out_dtypes[0]
    left, right = (g.cast(v, t, wanted) for v, t in zip((x, y), call.dtypes[1:], strict=True))
    return g.Where(g.cast(condition, call.dtype, torch.bool), left, right)


def _einsum(g: Builder, call: Call, equation: str, xs: tuple[str, ...]) -> str:
    return g.Einsum(*_same_type(g, call, xs), equation=equation)


@row("_npi_einsum")
def einsum(g: Builder, call: Call, *xs: str) -> str:
    """Sums of products by letters."""
    return _einsum(g, call, call.attrs["subscripts"], xs)


@row("_npi_matmul")
def matmul(g: Builder, call: Call, a: str, b: str) -> str:
    """Matrix product."""
    return g.MatMul(*_same_type(g, call, (a, b)))


@row("_np_dot")
def dot(g: Builder, call: Call, a: str, b: str) -> str:
    """NumPy's dot: the last axis of one with the last but one of the other."""
    left, right = (len(s) for s in call.shapes)
    if not left or not right:
        return g.Mul(*_same_type(g, call, (a, b)))
    if right <= 2:
        return g.MatMul(*_same_type(g, call, (a, b)))
    letters = string.ascii_lowercase
    first, second = letters[:left], letters[left : left + right]
    second = f"{second[:-2]}{first[-1]}{second[-1]}"
    out = first[:-1] + second[:-2] + second[-1]
    return _einsum(g, call, f"{first},{second}->{out}", (a, b))


def _contracted(g: Builder, call: Call, a: str, b: str, left: list[int], right: list[int]) -> str:
    ranks = [len(s) for s in call.shapes]
    first = list(string.ascii_lowercase[: ranks[0]])
    second = list(string.ascii_lowercase[ranks[0] : sum(ranks)])
    for i, j in zip(left, right, strict=True):
        second[j % ranks[1]] = first[i % ranks[0]]
    shared = {first[i % ranks[0]] for i in left}
    out = [c for c in (*first, *second) if c not in shared]
    return _einsum(g, call, f"{''.join(first)},{''.join(second)}->{''.join(out)}", (a, b))


@row("_npi_tensordot")
def tensordot(g: Builder, call: Call, a: str, b: str) -> str:
    """Sum over pairs of axes."""
    axes = [list(call.attrs[k]) for k in ("a_axes_summed", "b_axes_summed")]
    return _contracted(g, call, a, b, *axes)


@row("_npi_tensordot_int_axes")
def tensordot_int(g: Builder, call: Call, a: str, b: str) -> str:
    """Sum over the last axes of one and the first of the other."""
    count, rank = call.attrs["axes"], call.ndim
    return _contracted(g, call, a, b, list(range(rank - count, rank)), list(range(count)))


@row("_npi_tril")
def tril(g: Builder, call: Call, x: str) -> str:
    """The lower triangle."""
    if UNKNOWN in call.shape[-2:]:
        raise call.unsupported("needs the last two sizes as numbers.")
    if call.ndim < 2:
        raise call.unsupported("of a vector has no ONNX form.")
    rows, columns = call.shape[-2:]
    mask = np.tri(rows, columns, call.attrs["k"]) > 0
    return g.Where(g.array(mask), x, g.scalar(0, call.dtype))


def _filled(name: str, value: float) -> None:
    @row(name)
    def emit(g: Builder, call: Call) -> str:
        return g.Expand(g.scalar(value, call.out_dtypes[0]), g.ints(*call.out_shapes[0]))


_filled("_npi_zeros", 0)
_filled("_npi_ones", 1)


@row("_npi_full_like")
def full_like(g: Builder, call: Call, x: str) -> str:
    """One number in the shape of an array."""
    number = g.scalar(call.attrs["fill_value"], call.out_dtypes[0])
    return g.Expand(number, g.sizes(x, call.shape))


@row("_npi_arange", "_npi_eye", "_npi_identity", "_npi_indices", "_npi_logspace")
def constant(g: Builder, call: Call) -> str:
    """An array that attributes say: computed at export."""
    extra = call.op.context_for(False, torch.device("cpu"))
    made = call.op.kernel(**call.attrs, **extra)
    return g.Identity(g.array(made.numpy().astype(numpy_dtype(call.out_dtypes[0]))))


@row("_npx_nonzero")
def nonzero(g: Builder, call: Call, x: str) -> str:
    """The places of elements other than 0, one in each row."""
    x = x if call.ndim else g.reshape(x, [1])  # a number counts as one row
    found = g.NonZero(g.cast(x, call.dtype, torch.bool))
    return g.cast(g.Transpose(found, perm=[1, 0]), INT64, call.out_dtypes[0])
