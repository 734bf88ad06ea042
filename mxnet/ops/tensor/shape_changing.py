"""Operators that change or return the shape of an array.

Reshape codes: ``0`` copies a size, ``-1`` is inferred, ``-2`` copies all remaining sizes, ``-3``
merges two sizes, ``-4`` splits one into the two numbers that follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ...error import ShapeError
from ..attributes import Shape
from ..declare import op
from ..shapes import UNKNOWN, Shapes, unify
from .identity import may_share, own

_INFER = None  # marks a -1 code, distinct from unknown sizes


@lru_cache(maxsize=4096)
def resolve_reshape(shape: Shape, codes: Shape, reverse: bool = False) -> Shape | None:
    """Resolve the codes to a shape; None if the number of elements does not match.

    `reverse` matches codes and sizes from the right. Unknown sizes (-1) stay unknown.

    >>> resolve_reshape((2, 3, 4), (-1, 0)), resolve_reshape((2, 3, 4), (-1, 0), True)
    ((8, 3), (6, 4))
    >>> resolve_reshape((2, 3, 4), (-4, 1, -1, -3)), resolve_reshape((2, 3), (5, -1))
    ((1, 2, 12), None)
    """
    if reverse:
        return _fit(shape, _read_codes(shape[::-1], codes[::-1])[::-1])
    return _fit(shape, _read_codes(shape, codes))


def _read_codes(shape: Shape, codes: Shape) -> list[int | None]:
    items: list[int | None] = []
    source = 0  # the next size of the input
    pending = iter(codes)
    for code in pending:
        if code == -1:
            if _INFER in items:
                raise ShapeError(f"Reshape: only one size can be -1, but shape is {codes}.")
            items.append(_INFER)
            source += 1
        elif code == 0:
            items.append(_size(shape, source, codes))
            source += 1
        elif code == -2:
            items.extend(shape[source:])
            source = len(shape)
        elif code == -3:
            items.append(_times(_size(shape, source, codes), _size(shape, source + 1, codes)))
            source += 2
        elif code == -4:
            items.extend(_split(_size(shape, source, codes), pending, codes))
            source += 1
        elif code > 0:
            items.append(code)
            source += 1
        else:
            raise ShapeError(f"Reshape: {code} in shape={codes} is not one of 0, -1, -2, -3, -4.")
    return items


def _size(shape: Shape, position: int, codes: Shape) -> int:
    if position >= len(shape):
        raise ShapeError(f"Reshape: shape={codes} asks for more sizes than {list(shape)} has.")
    return shape[position]


def _times(first: int, second: int) -> int:
    return UNKNOWN if UNKNOWN in (first, second) else first * second


def _split(size: int, pending: Iterator[int], codes: Shape) -> tuple[int, int]:
    first, second = next(pending, None), next(pending, None)
    if first is None or second is None:
        raise ShapeError(f"Reshape: two sizes must follow -4 in shape={codes}.")
    if first == second == -1:
        raise ShapeError(f"Reshape: the two sizes after -4 cannot both be -1 in shape={codes}.")
    if size == UNKNOWN:
        return first, second
    if first == -1:
        first = size // second
    elif second == -1:
        second = size // first
    if first * second != size:
        raise ShapeError(f"Reshape: {first} and {second} do not split {size}, in shape={codes}.")
    return first, second


def _fit(shape: Shape, wanted: list[Any]) -> Shape | None:
    """Fill in the inferred size, and check the number of elements."""
    if UNKNOWN in shape:
        return tuple(UNKNOWN if n is _INFER else n for n in wanted)
    total = math.prod(shape)
    rest = math.prod(n for n in wanted if n is not _INFER)
    if _INFER in wanted:
        if total % rest if rest else total:
            return None
        result = total // rest if rest else 0
        return tuple(result if n is _INFER else n for n in wanted)
    return tuple(wanted) if rest == total else None


@lru_cache(maxsize=256)
def resolve_target(shape: Shape, target: Shape, keep_highest: bool) -> Shape | None:
    """Resolve the old ``target_shape``, in which 0 is inferred.

    >>> resolve_target((2, 3, 4), (0, 6), False), resolve_target((2, 3, 4), (9, 0), True)
    ((4, 6), (2, 12))
    """
    expected: list[int | None] = [_INFER if n == 0 else n for n in target]
    if keep_highest and expected:
        expected[0] = shape[0]
    if expected.count(_INFER) > 1:
        raise ShapeError(f"Reshape: only one size can be 0 in target_shape={target}.")
    return _fit(shape, expected)


def complete_by_size(shape: Shape, other: Shape) -> Shape:
    """Infer the one unknown size from another shape with the same number of elements.

    >>> complete_by_size((-1, 3, 4), (2, 12))
    (2, 3, 4)
    """
    if shape.count(UNKNOWN) != 1 or UNKNOWN in other:
        return shape
    rest = math.prod(n for n in shape if n != UNKNOWN)
    if not rest or math.prod(other) % rest:
        return shape
    result = math.prod(other) // rest
    return tuple(result if n == UNKNOWN else n for n in shape)


def axis_within(axis: int, ndim: int, name: str) -> int:
    """Return a non-negative axis; raise if it is out of range.

    >>> axis_within(-1, 3, "stack")
    2
    """
    if not -ndim <= axis < ndim:
        raise ShapeError(f"{name}: axis {axis} exceeds the input dimension of {ndim}.")
    return axis % ndim


def product(sizes: Shape) -> int:
    """Return the number of elements, unknown if a size is."""
    return UNKNOWN if UNKNOWN in sizes else math.prod(sizes)


@lru_cache(maxsize=4096)
def _reshape_target(
    data: Shape, shape: Shape, reverse: bool, target_shape: Shape, keep_highest: bool
) -> Shape:
    if shape or not target_shape:
        expected = resolve_reshape(data, shape, reverse)
    else:
        expected = resolve_target(data, target_shape, keep_highest)
    if expected is None:
        raise ShapeError(
            f"Reshape: an array of shape {tuple(data)} ({math.prod(data)} elements) does not fit "
            f"into {shape or target_shape}."
        )
    return expected


def _reshaped(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    if ins[0] is None:
        return ins, outs
    out = unify(_reshape_target(ins[0], **attrs), outs[0], "the output")
    return [complete_by_size(ins[0], out)], [out]


@may_share
@op("Reshape", "reshape", shape=_reshaped, method=True, repeatable=True)
def reshape(
    data: Tensor,
    *,
    shape: Shape = (),
    reverse: bool = False,
    target_shape: Shape = (),
    keep_highest: bool = False,
) -> Tensor:
    """Change the shape of the array; the number of elements is unchanged.

    In ``shape``, 0 copies a size, -1 is inferred, -2 copies all remaining sizes, -3 merges two
    sizes, and -4 splits one into the two numbers that follow.

    Parameters
    ----------
    shape
        The new shape; numbers from 0 to -4 are codes.
    reverse
        Whether to match sizes from the right.
    target_shape
        The new shape in old programs; use `shape`.
    keep_highest
        Whether `target_shape` keeps the first axis.

    >>> mx.nd.Reshape(mx.nd.zeros((2, 3, 4)), shape=(0, -1)).shape
    (2, 12)
    """
    return data.reshape(_reshape_target(data.shape, shape, reverse, target_shape, keep_highest))


@reshape.variant("call")
def _reshape_directly(attrs: dict[str, Any], dtype: torch.dtype) -> Callable | None:
    shape = attrs.get("shape", ())
    return None if len(attrs) > 1 else copy_in_shape(shape)


def copy_in_shape(shape: Shape) -> Callable[[Tensor], Tensor] | None:
    """Return the function that copies into a shape without codes."""
    if not shape or min(shape) < -1 or 0 in shape:
        return None
    # Torch parses numbers faster than a tuple.
    return lambda data: own(data.reshape(*shape))


@may_share
@op("Flatten", "_npx_batch_flatten", "flatten", method=True, keeps_finite=True, repeatable=True)
def flatten(data: Tensor) -> Tensor:
    """Merge all axes but the first.

    >>> mx.nd.Flatten(mx.nd.zeros((2, 3, 4))).shape
    (2, 12)
    """
    return data.flatten(1) if data.ndim > 1 else data.reshape(-1, 1)


@flatten.infer_outputs
def flatten_shape(data: Shape | None) -> Shape | None:
    """Keep the first size and multiply the others, once all are known, as in MXNet."""
    return None if data is None or UNKNOWN in data else (data[0], product(data[1:]))


def _transposed(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    data, out = ins[0], outs[0]
    shape = data if data is not None else out
    if shape is None:
        return ins, outs
    axes = attrs["axes"] or tuple(reversed(range(len(shape))))
    if sorted(a % len(shape) for a in axes) != list(range(len(shape))):
        raise ShapeError(f"transpose: axes={axes} is not a permutation of {len(shape)} axes.")
    axes = [a % len(shape) for a in axes]
    out = shape if data is None else unify(tuple(data[a] for a in axes), out, "the output")
    back = tuple(out[axes.index(i)] for i in range(len(axes)))
    return [unify(back, data, "data")], [out]


@may_share
@op("transpose", shape=_transposed, method=True, repeatable=True)
def transpose(data: Tensor, *, axes: Shape = ()) -> Tensor:
    """Permute the axes, by default in reverse order.

    Parameters
    ----------
    axes
        The new order of the axes; by default reversed.

    >>> mx.nd.transpose(mx.nd.array([[1, 2], [3, 4]])).asnumpy()
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    return data.permute(axes or tuple(range(data.ndim - 1, -1, -1)))


@transpose.variant("call")
def permute_directly(attrs: dict[str, Any], dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    """Return the permutation for fixed axes; torch parses numbers faster than a tuple."""
    axes = attrs.get("axes")
    if axes:
        return lambda data: own(data.permute(*axes))
    return lambda data: own(data.t())  # raises for more than two axes


def _swapped(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    shape = ins[0] if ins[0] is not None else outs[0]
    if shape is None:
        return ins, outs
    axes = list(range(len(shape)))
    first, second = (axis_within(attrs[k], len(shape), "SwapAxis") for k in ("dim1", "dim2"))
    axes[first], axes[second] = axes[second], axes[first]
    return _transposed(ins, outs, {"axes": tuple(axes)})


@may_share
@op(
    "SwapAxis",
    "_npi_swapaxes",
    "swapaxes",
    shape=_swapped,
    method=True,
    names_single_input=True,
    gradients_by_input=True,
    names_output=True,
    repeatable=True,
)
def swap_axis(data: Tensor, *, dim1: int = 0, dim2: int = 0) -> Tensor:
    """Exchange two axes.

    Parameters
    ----------
    dim1
        The first axis.
    dim2
        The second axis.

    >>> mx.nd.SwapAxis(mx.nd.zeros((2, 3, 4)), dim1=0, dim2=2).shape
    (4, 3, 2)
    """
    return data.swapaxes(dim1, dim2)


def _expanded(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    data, out = ins[0], outs[0]
    if data is not None:
        at = axis_within(attrs["axis"], len(data) + 1, "expand_dims")
        out = unify((*data[:at], 1, *data[at:]), out, "the output")
    if out is None:
        return ins, outs
    at = axis_within(attrs["axis"], len(out), "expand_dims")
    return [unify(out[:at] + out[at + 1 :], data, "data")], [out]


@may_share
@op("expand_dims", "_npi_expand_dims", shape=_expanded, method=True, repeatable=True)
def expand_dims(data: Tensor, *, axis: int) -> Tensor:
    """Insert a new axis of size 1.

    Parameters
    ----------
    axis
        Position of the new axis in the result; a negative one counts from the last.

    >>> mx.nd.expand_dims(mx.nd.zeros((2, 3)), axis=1).shape
    (2, 1, 3)
    """
    return data.unsqueeze(axis)


def _squeezed_axes(shape: Shape, axis: Shape | None) -> list[int]:
    if axis is None:
        return [i for i, n in enumerate(shape) if n == 1]
    axes = [axis_within(a, len(shape), "squeeze") for a in axis]
    for a in axes:
        if shape[a] not in (1, UNKNOWN):
            raise ShapeError(
                f"squeeze: cannot select an axis to squeeze out which has size={shape[a]} not "
                f"equal to one (axis {a} of {list(shape)})."
            )
    if len(set(axes)) < len(axes):
        raise ShapeError(f"squeeze: duplicate value in axis={axis}.")
    return axes


@may_share
@op("squeeze", method=True, names_single_input=True, repeatable=True)
def squeeze(data: Tensor, *, axis: Shape | None = None) -> Tensor:
    """Remove axes of size 1. At least one axis remains.

    Parameters
    ----------
    axis
        The axes to remove; None: all axes of size 1.

    >>> mx.nd.squeeze(mx.nd.zeros((1, 2, 1))).shape, mx.nd.squeeze(mx.nd.zeros((1, 1))).shape
    ((2,), (1,))
    """
    axes = _squeezed_axes(data.shape, axis)
    if len(axes) == data.ndim and axes:
        return data.reshape(1)
    return data.squeeze(axes)


@squeeze.infer_outputs
def squeeze_shape(data: Shape | None, *, axis: Shape | None) -> Shape | None:
    """Remove the axes."""
    if data is None or (axis is None and UNKNOWN in data):
        return None
    axes = _squeezed_axes(data, axis)
    return tuple(n for i, n in enumerate(data) if i not in axes) or (1,)


def _section(begin: int | None, end: int | None, ndim: int, which: str) -> tuple[int, int]:
    first = 0 if begin is None else begin + ndim if begin < 0 else begin
    last = ndim if end is None else end + ndim if end < 0 else end
    if not 0 <= first < last <= ndim:
        raise ShapeError(
            f"reshape_like: {which}_begin={begin}, {which}_end={end} is no part of {ndim} axes."
        )
    return first, last


def _like_shape(
    lhs: Shape,
    rhs: Shape,
    lhs_begin: int | None,
    lhs_end: int | None,
    rhs_begin: int | None,
    rhs_end: int | None,
) -> Shape:
    if lhs_begin is lhs_end is rhs_begin is rhs_end is None:
        return tuple(rhs)
    first, last = _section(lhs_begin, lhs_end, len(lhs), "lhs")
    start, stop = _section(rhs_begin, rhs_end, len(rhs), "rhs")
    return (*lhs[:first], *rhs[start:stop], *lhs[last:])


@may_share
@op(
    "reshape_like",
    "_npx_reshape_like",
    types="T L -> T",
    method=True,
    gradient_names=("output",),
    without_gradient=("rhs",),
    repeatable=True,
)
def reshape_like(
    lhs: Tensor,
    rhs: Tensor,
    *,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
) -> Tensor:
    """Reshape the first array to the shape of the second, completely or for ranges of axes.

    Parameters
    ----------
    lhs
        The array to reshape.
    rhs
        The array whose sizes it gets.
    lhs_begin
        First axis of `lhs` to reshape; by default 0.
    lhs_end
        Axis of `lhs` to stop before; by default all.
    rhs_begin
        First axis of `rhs` to use; by default 0.
    rhs_end
        Axis of `rhs` to stop before; by default all.

    >>> x, y = mx.nd.zeros((6, 5)), mx.nd.zeros((2, 3, 7))
    >>> mx.nd.reshape_like(x, y, lhs_end=1, rhs_end=2).shape
    (2, 3, 5)
    """
    expected = _like_shape(lhs.shape, rhs.shape, lhs_begin, lhs_end, rhs_begin, rhs_end)
    if math.prod(expected) != lhs.numel():
        raise ShapeError(
            f"reshape_like: cannot reshape lhs with shape {list(lhs.shape)} to new shape "
            f"{list(expected)} because they have different size."
        )
    return lhs.reshape(expected)


@reshape_like.infer_outputs
def reshape_like_shape(
    lhs: Shape | None, rhs: Shape | None, **sections: int | None
) -> Shape | None:
    """Replace the range of axes of the first array by that of the second."""
    if rhs is None or (lhs is None and any(s is not None for s in sections.values())):
        return None
    return _like_shape(lhs or (), rhs, **sections)


def _check_blocks(name: str, shape: Shape, multiples: dict[int, int]) -> None:
    if len(shape) != 4:
        raise ShapeError(f"{name} requires exactly a 4D array, but data is {list(shape)}.")
    if 0 in shape:
        raise ShapeError(f"{name}: sizes must not be 0, but data is {list(shape)}.")
    for axis, multiple in multiples.items():
        if multiple < 1 or (shape[axis] != UNKNOWN and shape[axis] % multiple):
            raise ShapeError(
                f"{name}: size {shape[axis]} of axis {axis} is not a multiple of {multiple}."
            )


@op("depth_to_space", method=True, names_single_input=True)
def depth_to_space(data: Tensor, *, block_size: int) -> Tensor:
    """Rearrange blocks of channels into height and width.

    >>> mx.nd.depth_to_space(mx.nd.arange(4).reshape((1, 4, 1, 1)), block_size=2).asnumpy()
    array([[[[0., 1.],
             [2., 3.]]]], dtype=float32)
    """
    b = block_size
    _check_blocks("depth_to_space", data.shape, {1: b * b})
    n, c, h, w = data.shape
    blocks = data.reshape(n, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2)
    return blocks.reshape(n, c // (b * b), h * b, w * b)


@op("space_to_depth", method=True, names_single_input=True)
def space_to_depth(data: Tensor, *, block_size: int) -> Tensor:
    """Rearrange blocks of height and width into channels.

    >>> mx.nd.space_to_depth(mx.nd.arange(4).reshape((1, 1, 2, 2)), block_size=2).shape
    (1, 4, 1, 1)
    """
    b = block_size
    _check_blocks("space_to_depth", data.shape, {2: b, 3: b})
    n, c, h, w = data.shape
    blocks = data.reshape(n, c, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4)
    return blocks.reshape(n, c * b * b, h // b, w // b)


def _ratio(size: int, by: int) -> int:
    return UNKNOWN if size == UNKNOWN else size // by


def _multiple(size: int, by: int) -> int:
    return UNKNOWN if size == UNKNOWN else size * by


@depth_to_space.infer_outputs
def depth_to_space_shape(data: Shape | None, *, block_size: int) -> Shape | None:
    """Divide the channels, multiply height and width."""
    if data is None:
        return None
    b = block_size
    _check_blocks("depth_to_space", data, {1: b * b})
    return data[0], _ratio(data[1], b * b), _multiple(data[2], b), _multiple(data[3], b)


@space_to_depth.infer_outputs
def space_to_depth_shape(data: Shape | None, *, block_size: int) -> Shape | None:
    """Multiply the channels, divide height and width."""
    if data is None:
        return None
    b = block_size
    _check_blocks("space_to_depth", data, {2: b, 3: b})
    return data[0], _multiple(data[1], b * b), _ratio(data[2], b), _ratio(data[3], b)


@may_share
@op("diag", method=True, names_single_input=True)
def diag(data: Tensor, *, k: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Extract the ``k``-th diagonal of two axes, or create a diagonal matrix from a vector.

    Parameters
    ----------
    data
        A vector, or an array with matrices on two axes.

    >>> mx.nd.diag(mx.nd.array([[1, 2], [3, 4]])).asnumpy()
    array([1., 4.], dtype=float32)
    """
    if data.ndim == 1:
        return torch.diag_embed(data, k)
    diag_shape(data.shape, k=k, axis1=axis1, axis2=axis2)
    return data.diagonal(k, axis1, axis2)


@diag.infer_outputs
def diag_shape(data: Shape | None, *, k: int, axis1: int, axis2: int) -> Shape | None:
    """Append the length of the diagonal to the other sizes."""
    if data is None:
        return None
    if len(data) == 1:
        return (data[0] if data[0] == UNKNOWN else data[0] + abs(k),) * 2
    first, second = (axis_within(a, len(data), "diag") for a in (axis1, axis2))
    rows, columns = data[first], data[second]
    length = UNKNOWN
    if UNKNOWN not in (rows, columns):
        length = min(rows, columns - k) if k >= 0 else min(rows + k, columns)
        if length < 0:  # the diagonal just outside the matrix exists and is empty
            raise ShapeError(f"diag: diagonal k={k} does not exist in {list(data)}.")
    return (*(n for i, n in enumerate(data) if i not in (first, second)), length)


@op("shape_array", "_npx_shape_array", types="T -> int64", method=True)
def shape_array(data: Tensor) -> Tensor:
    """Return the shape as an array.

    >>> mx.nd.shape_array(mx.nd.zeros((2, 3))).asnumpy()
    array([2, 3])
    """
    return torch.tensor(data.shape, dtype=torch.int64, device=data.device)


@shape_array.infer_outputs
def shape_array_shape(data: Shape | None) -> Shape | None:
    """The output has one element for each axis."""
    return None if data is None else (len(data),)


@op("size_array", types="T -> int64", method=True)
def size_array(data: Tensor) -> Tensor:
    """Return the number of elements as an array.

    >>> mx.nd.size_array(mx.nd.zeros((2, 3))).asnumpy()
    array([6])
    """
    return torch.tensor([data.numel()], dtype=torch.int64, device=data.device)


@size_array.infer_outputs
def size_array_shape(data: Shape | None) -> Shape:
    """The output has one element."""
    return (1,)
