"""NumPy's operators that change shapes, join and split arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ...error import InvalidValue, MXNetError, ShapeError
from ..attributes import ArrayCount, Shape
from ..declare import Op, op
from ..families import document
from ..shapes import UNKNOWN, Shapes, TypePattern, given_shapes, is_known, same, unify
from ..tensor.identity import in_row_order, may_share
from ..tensor.joining import (
    _concatenated,
    _stacked,
    concatenation,
    split_v2,
    split_v2_shapes,
    stack_one_dtype,
)
from ..tensor.shape_changing import (
    _squeezed_axes,
    _transposed,
    axis_within,
    complete_by_size,
    copy_in_shape,
    permute_directly,
)
from .families import PromotedTypes, promote


@lru_cache(maxsize=4096)
def reshape_target(shape: Shape, target: Shape) -> Shape:
    """Return the shape with -1 replaced by the inferred size.

    >>> reshape_target((2, 3), (-1,)), reshape_target((1, 1), ())
    ((6,), ())
    """
    if target.count(-1) > 1:
        raise ShapeError(f"_np_reshape: can only specify one unknown dimension, got {target}.")
    if min(target, default=0) < -1:
        raise ShapeError(f"_np_reshape: the size to infer must be -1, got {target}.")
    if UNKNOWN in shape:
        return tuple(target)
    total, rest = math.prod(shape), math.prod(n for n in target if n != -1)
    if -1 in target and rest and total % rest == 0:
        return tuple(total // rest if n == -1 else n for n in target)
    if -1 in target or rest != total:
        raise ShapeError(
            f"_np_reshape: cannot reshape array of size {total} into shape {list(target)}."
        )
    return tuple(target)


def _reshaped(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    if ins[0] is None:
        return ins, outs
    out = unify(reshape_target(ins[0], attrs["newshape"]), outs[0], "the output")
    return [complete_by_size(ins[0], out)], [out]


@may_share
@op("_np_reshape", shape=_reshaped)
def reshape(a: Tensor, *, newshape: Shape, order: str = "C") -> Tensor:
    """Change the shape of the array; one size may be -1 (inferred).

    >>> mx.nd._internal._np_reshape(mx.nd.zeros((2, 6)), newshape=(3, -1)).shape
    (3, 4)
    """
    return a.reshape(reshape_target(tuple(a.shape), newshape))


@reshape.variant("call")
def _reshape_directly(attrs: dict[str, Any], dtype: torch.dtype) -> Callable | None:
    return copy_in_shape(attrs["newshape"])


def _np_transposed(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    return _transposed(ins, outs, {"axes": attrs["axes"]})


@may_share
@op("_np_transpose", shape=_np_transposed)
def transpose(a: Tensor, *, axes: Shape | None = None) -> Tensor:
    """Permute the axes, by default in reverse order.

    Parameters
    ----------
    axes
        The new order of the axes; None: reversed.

    >>> mx.nd._internal._np_transpose(mx.nd.zeros((2, 3, 4)), axes=(0, 2, 1)).shape
    (2, 4, 3)
    """
    if axes and len(set(axes)) < len(axes):
        raise InvalidValue(f"_np_transpose: repeated axis in axes={axes}.")
    return a.permute(axes or tuple(range(a.ndim - 1, -1, -1)))


transpose.variant("call")(permute_directly)


@may_share
@op("_np_squeeze")
def squeeze(a: Tensor, *, axis: Shape | None = None) -> Tensor:
    """Remove axes of size 1.

    Parameters
    ----------
    axis
        The axes to remove; None: all axes of size 1.

    >>> mx.nd._internal._np_squeeze(mx.nd.zeros((1, 2, 1))).shape
    (2,)
    """
    return a.squeeze(_removed_axes(a.shape, axis))


def _removed_axes(shape: Shape, axis: Shape | None) -> list[int]:
    """Return the removed axes; a scalar may be squeezed along axis 0 or -1."""
    return [] if not shape and axis in ((0,), (-1,)) else _squeezed_axes(shape, axis)


@squeeze.infer_outputs
def squeeze_shape(a: Shape | None, *, axis: Shape | None) -> Shape | None:
    """Remove the axes."""
    if a is None or (axis is None and UNKNOWN in a):
        return None
    axes = _removed_axes(a, axis)
    return tuple(n for i, n in enumerate(a) if i not in axes)


def _move_axes(ndim: int, source: Shape, destination: Shape) -> list[int]:
    """Return the order of axes after moving some."""
    name = "_np_moveaxis"
    if len(source) != len(destination):
        raise ShapeError(f"{name}: source={source} and destination={destination} differ in length.")
    come = [axis_within(a, ndim, name) for a in source]
    go = [axis_within(a, ndim, name) for a in destination]
    for which, axes in (("source", come), ("destination", go)):
        if len(set(axes)) < len(axes):
            raise ShapeError(f"{name}: repeated axis in `{which}` argument, {tuple(axes)}.")
    order = [a for a in range(ndim) if a not in come]
    for position, axis in sorted(zip(go, come, strict=True)):
        order.insert(position, axis)
    return order


@may_share
@op("_np_moveaxis")
def moveaxis(a: Tensor, *, source: Shape, destination: Shape) -> Tensor:
    """Move axes to new positions; the others keep their order.

    Parameters
    ----------
    source
        Positions of the axes to move.
    destination
        New positions of these axes.

    >>> mx.nd._internal._np_moveaxis(mx.nd.zeros((2, 3, 4)), source=0, destination=-1).shape
    (3, 4, 2)
    """
    return a.permute(_move_axes(a.ndim, source, destination))


@moveaxis.infer_outputs
def moveaxis_shape(a: Shape | None, *, source: Shape, destination: Shape) -> Shape | None:
    """Permute the sizes."""
    return None if a is None else tuple(a[i] for i in _move_axes(len(a), source, destination))


@op("_np_roll", shape=same, names_single_input=True)
def roll(data: Tensor, *, shift: Shape | None = None, axis: Shape | None = None) -> Tensor:
    """Shift elements cyclically along axes, or in the flattened array.

    Parameters
    ----------
    shift
        Number of positions to shift, for each axis.
    axis
        The axes to roll; None: the flattened array.

    >>> mx.nd._internal._np_roll(mx.nd.array([1, 2, 3]), shift=1).asnumpy()
    array([3., 1., 2.], dtype=float32)
    """
    if not shift:
        raise MXNetError("_np_roll: shift must be given, an int or a tuple.")
    if axis is None:
        if len(shift) != 1:
            raise MXNetError(f"_np_roll: shift must be an int without axis, got {shift}.")
        return torch.roll(data, shift[0]) if data.ndim else data.clone()
    axes = [axis_within(a, data.ndim, "_np_roll") for a in axis]
    if len(shift) == 1:
        shift = shift * len(axes)
    if len(shift) != len(axes):
        raise MXNetError(f"_np_roll: shift={shift} and axis={axis} must be of the same size.")
    return torch.roll(data, shift, axes)


@op("_npi_flip", shape=same, names_single_input=True)
def flip(data: Tensor, *, axis: Shape | None) -> Tensor:
    """Reverse the order of elements along axes.

    Parameters
    ----------
    axis
        The axes to reverse; None: all.

    >>> mx.nd._internal._npi_flip(mx.nd.array([1, 2, 3]), axis=0).asnumpy()
    array([3., 2., 1.], dtype=float32)
    """
    if axis is None or not data.ndim:
        return torch.flip(data, list(range(data.ndim)))
    return torch.flip(data, [axis_within(a, data.ndim, "_npi_flip") for a in axis])


def _plane(ndim: int, axes: Shape | None) -> tuple[int, int]:
    if axes is None or len(axes) != 2:
        raise MXNetError(f"_npi_rot90: the length of axes must be 2, got {axes}.")
    first, second = (axis_within(a, ndim, "_npi_rot90") for a in axes)
    if first == second:
        raise MXNetError(f"_npi_rot90: axes have duplicates {list(axes)}.")
    return first, second


@in_row_order
@op("_npi_rot90", names_single_input=True)
def rot90(data: Tensor, *, k: int = 1, axes: Shape | None = None) -> Tensor:
    """Rotate by 90 degrees ``k`` times, from the first toward the second of two axes.

    Parameters
    ----------
    k
        Number of rotations by 90 degrees; negative for the opposite direction.
    axes
        The two axes of the plane of rotation.

    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd._internal._npi_rot90(x, k=1, axes=(0, 1)).asnumpy()
    array([[2., 4.],
           [1., 3.]], dtype=float32)
    """
    return torch.rot90(data, k, _plane(data.ndim, axes))


@rot90.infer_outputs
def rot90_shape(data: Shape | None, *, k: int, axes: Shape | None) -> Shape | None:
    """Exchange two sizes if the number of rotations is odd."""
    if data is None:
        return None
    first, second = _plane(len(data), axes)
    sizes = list(data)
    if k % 2:
        sizes[first], sizes[second] = sizes[second], sizes[first]
    return tuple(sizes)


KEPT = -2  # code in the new shape: keep the size


@op("_npi_broadcast_to")
def broadcast_to(array: Tensor, *, shape: Shape = ()) -> Tensor:
    """Broadcast an array to a shape; -2 in the shape keeps the size.

    Parameters
    ----------
    array
        The input array.

    >>> mx.nd._internal._npi_broadcast_to(mx.nd.array([1, 2]), shape=(2, 2)).asnumpy()
    array([[1., 2.],
           [1., 2.]], dtype=float32)
    """
    return array.expand(broadcast_to_shape(tuple(array.shape), shape=shape)).clone()


@broadcast_to.infer_outputs
def broadcast_to_shape(array: Shape | None, *, shape: Shape) -> Shape:
    """The attribute, if the array can be broadcast to it."""
    sizes = array or ()
    if array is not None and KEPT in shape:
        front = len(shape) - len(sizes)
        shape = (
            *shape[:front],
            *(n if m == KEPT else m for n, m in zip(sizes, shape[front:], strict=False)),
        )
    elif KEPT in shape:
        return tuple(UNKNOWN if n == KEPT else n for n in shape)
    fits = len(sizes) <= len(shape) and KEPT not in shape
    for size, target in zip(reversed(sizes), reversed(shape), strict=False):
        fits = fits and (size in (target, 1) or size == UNKNOWN)
    if not fits:
        raise ShapeError(f"_npi_broadcast_to: {list(sizes)} is not broadcastable to {list(shape)}.")
    return shape


@op("_np_copy", shape=same)
def copy(a: Tensor) -> Tensor:
    """Return a copy.

    >>> mx.nd._internal._np_copy(mx.nd.array([1, 2])).asnumpy()
    array([1., 2.], dtype=float32)
    """
    return a.clone()


def _in_common_type(name: str, data: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    if not data:
        raise MXNetError(f"{name}: need at least one array.")
    first = data[0].dtype
    for x in data:
        if x.dtype is not first:
            break
    else:
        return data
    dtype = first
    for x in data[1:]:
        dtype = promote(name, dtype, x.dtype)
    return tuple(x.to(dtype) for x in data)


def join(name: str, data: tuple[Tensor, ...], axis: int) -> Tensor:
    """Concatenate arrays along an axis."""
    data = _in_common_type(name, data)
    ndim = data[0].ndim
    for other in data:
        if other.ndim != ndim:  # torch accepts empty vectors
            raise ShapeError(
                f"{name}: all arrays need the same number of axes, but got shapes "
                f"{list(data[0].shape)} and {list(other.shape)}."
            )
    if not -ndim <= axis < ndim:
        raise ShapeError(f"{name}: axis {axis} exceeds the input dimension of {ndim}.")
    return torch.cat(data, axis)


def _flat(shape: Shape | None) -> Shape | None:
    if shape is None:
        return None
    return (torch.Size(shape).numel() if is_known(shape) else UNKNOWN,)


def _concatenate_shape(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    if attrs["axis"] is None:
        return ins, _concatenated([_flat(s) for s in ins], outs, {"dim": 0})[1]
    return _concatenated(ins, outs, {"dim": attrs["axis"]})


@op("_npi_concatenate", count="num_args", shape=_concatenate_shape, outputs=("out",))
def concatenate(*data: Tensor, axis: int | None = 0) -> Tensor:
    """Concatenate arrays along an axis; with ``axis=None`` flattened.

    Parameters
    ----------
    axis
        Axis to concatenate along; a negative value counts from the last, None flattens the arrays.
    data
        The arrays; their other axes have the same sizes.

    >>> x = mx.nd.array([[1, 2]])
    >>> mx.nd._internal._npi_concatenate(x, x, axis=0).asnumpy()
    array([[1., 2.],
           [1., 2.]], dtype=float32)
    """
    if axis is None:
        return join("_npi_concatenate", tuple(x.reshape(-1) for x in data), 0)
    return join("_npi_concatenate", data, axis)


@concatenate.variant("call")
def _concatenate_one_dtype(attrs: dict[str, Any], dtype: torch.dtype) -> Callable | None:
    axis = attrs.get("axis", 0)
    return None if axis is None else concatenation(axis)


@op("_npi_stack", count="num_args", shape=_stacked)
def stack(*data: Tensor, axis: int = 0) -> Tensor:
    """Stack arrays of the same shape along a new axis.

    Parameters
    ----------
    data
        The arrays, of the same shape.
    axis
        Position of the new axis in the result.

    >>> mx.nd._internal._npi_stack(mx.nd.array([1, 2]), mx.nd.array([3, 4]), axis=1).asnumpy()
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    return torch.stack(_in_common_type("_npi_stack", data), axis)


stack.variant("call")(stack_one_dtype)


def _as_rows(shape: Shape) -> Shape:
    return (1,) * (2 - len(shape)) + tuple(shape)


def _as_columns(shape: Shape) -> Shape:
    return (*shape, 1) if len(shape) == 1 else (1, 1) if not shape else tuple(shape)


def _in_depth(shape: Shape) -> Shape:
    if len(shape) >= 3:
        return tuple(shape)
    return {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)]


def _at_least_1d(shape: Shape) -> Shape:
    return tuple(shape) or (1,)


def _at_least_3d(shape: Shape) -> Shape:
    return _in_depth(shape)


def stacking(
    name: str,
    prepare: Callable[[Shape], Shape],
    axis: Callable[[int], int],
    doc: str,
    result: str,
    **options: Any,
) -> Op:
    """Declare a concatenation that first adds missing axes."""

    def function(*data: Tensor) -> Tensor:
        grown = tuple(x.reshape(prepare(x.shape)) for x in data)
        return join(name, grown, axis(grown[0].ndim if grown else 1))

    def shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
        inputs = given_shapes(ins)
        if inputs is None:
            return ins, outs
        grown = [prepare(s) for s in inputs]
        return ins, _concatenated([*grown], outs, {"dim": axis(len(grown[0]))})[1]

    example = f"mx.nd._internal.{name}(nd.ones((2,)), nd.ones((2,))).shape -> {result}"
    record = op(name, count="num_args", shape=shapes, **options)(
        document(function, name, doc, example)
    )
    record.type_pattern = PromotedTypes(None)
    return record


for _op in (concatenate, stack):
    _op.type_pattern = PromotedTypes(None)
stacking("_npi_vstack", _as_rows, lambda n: 0, "Stack arrays as rows.", "(2, 2)")
stacking(
    "_npi_hstack",
    _at_least_1d,
    lambda n: 0 if n == 1 else 1,
    "Stack arrays horizontally: along axis 1, vectors along axis 0.",
    "(4,)",
    outputs=("out",),
)
stacking(
    "_npi_dstack",
    _in_depth,
    lambda n: 2,
    "Stack arrays along the third axis.",
    "(1, 2, 2)",
    outputs=("out",),
)
stacking(
    "_npi_column_stack", _as_columns, lambda n: 1, "Stack vectors as columns of a matrix.", "(2, 2)"
)


class OwnTypes(TypePattern):
    """Each output has the dtype of the input at its position."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer in both directions."""
        results = [i or o for i, o in zip(ins, outs, strict=True)]
        return results, list(results)


def at_least(dimensions: int, grow: Callable[[Shape], Shape], result: str) -> Op:
    """Declare the operator that adds axes up to a minimum number."""
    name = f"_np_atleast_{dimensions}d"

    def function(*arys: Tensor, num_args: ArrayCount = 1) -> tuple[Tensor, ...] | Tensor:
        output = tuple(x.reshape(grow(x.shape)) for x in arys)
        return output[0] if len(output) == 1 else output

    def shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
        return ins, [None if s is None else grow(s) for s in ins]

    doc = f"View arrays with at least {dimensions} axes."
    example = f"mx.nd._internal.{name}(nd.ones((2,))).shape -> {result}"
    document(function, name, doc, example)
    declare = op(
        name,
        count="num_args",
        shape=shapes,
        outputs=lambda a: tuple(f"output{i}" for i in range(a["num_args"])),
    )
    operator = may_share(declare(function))
    operator.type_pattern = OwnTypes(None)
    return operator


at_least(1, _at_least_1d, "(2,)")
at_least(2, _as_rows, "(1, 2)")
at_least(3, _at_least_3d, "(1, 2, 1)")


def _parts(attrs: dict) -> int:
    return attrs["sections"] if attrs["sections"] > 0 else len(attrs["indices"])


_SPLIT = """    Parameters
    ----------
    indices
        Start of each part; the first is 0.
    axis
        Accepted for compatibility; the axis is fixed.
"""


def splitting(name: str, axis_of: Callable[[int], int], least: int, doc: str) -> Op:
    """Declare a split along a fixed axis, of arrays with a minimum number of axes."""

    def along(ndim: int) -> int:
        if ndim < least:
            raise InvalidValue(
                f"{name} only works on arrays of {least} or more dimensions, got {ndim}."
            )
        return axis_of(ndim)

    view = split_v2.variants["view"]

    def function(
        data: Tensor,
        *,
        indices: Shape,
        axis: int = 1,
        squeeze_axis: bool = False,
        sections: int = 0,
    ) -> tuple[Tensor, ...]:
        attrs = {"indices": indices, "axis": along(data.ndim)}
        return view({**attrs, "squeeze_axis": squeeze_axis, "sections": sections})(data)

    def shapes(
        data: Shape | None, *, indices: Shape, axis: int, squeeze_axis: bool, sections: int
    ) -> list[Shape] | None:
        if data is None:
            return None
        return split_v2_shapes(
            data,
            indices=indices,
            axis=along(len(data)),
            squeeze_axis=squeeze_axis,
            sections=sections,
        )

    call = f"mx.nd._internal.{name}(nd.ones((2, 2, 2)), indices=(), sections=2)"
    document(function, name, doc, f"len({call}) -> 2", _SPLIT)
    record = op(
        name,
        outputs=lambda a: tuple(f"output{i}" for i in range(_parts(a))),
        names_single_input=True,
    )(function)
    record.infer_outputs(shapes)
    return may_share(record)


splitting(
    "_npi_hsplit",
    lambda n: 0 if n == 1 else 1,
    1,
    "Split an array along axis 1, a vector along axis 0.",
)
splitting("_npi_dsplit", lambda n: 2, 3, "Split an array along the third axis.")
