"""NumPy's operators that join arrays, take them apart, or give them more axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....error import InvalidValue, MXNetError, ShapeError
from ...attributes import ArrayCount, Shape
from ...declare import Op, op
from ...families import document
from ...shapes import UNKNOWN, Shapes, TypePattern, given_shapes, is_known
from ...tensor.memory import may_share
from ...tensor.shaping.joining import (
    _concatenated,
    _stacked,
    concatenation,
    split_v2,
    split_v2_shapes,
    stack_one_dtype,
)
from ..promotion import PromotedTypes, promote


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
    """Concatenate arrays that agree in all sizes but one."""
    data = _in_common_type(name, data)
    ndim = data[0].ndim
    for other in data:
        if other.ndim != ndim:  # torch lets empty vectors pass
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


def _joined(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    if attrs["axis"] is None:
        return ins, _concatenated([_flat(s) for s in ins], outs, {"dim": 0})[1]
    return _concatenated(ins, outs, {"dim": attrs["axis"]})


@op("_npi_concatenate", count="num_args", shape=_joined, outputs=("out",))
def concatenate(*data: Tensor, axis: int | None = 0) -> Tensor:
    """Join arrays along an axis; with ``axis=None`` their flattened elements.

    Parameters
    ----------
    axis
        The axis to join along; a negative one counts from the last, None flattens the arrays.
    data
        The arrays; they agree in all other axes.

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
    """Join arrays of one shape along a new axis.

    Parameters
    ----------
    data
        The arrays, of one shape.
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
    name: str, prepare: Callable[[Shape], Shape], axis: Callable[[int], int], doc: str, result: str
) -> Op:
    """Declare a join of arrays that first get the axes they lack."""

    def function(*data: Tensor) -> Tensor:
        grown = tuple(x.reshape(prepare(x.shape)) for x in data)
        return join(name, grown, axis(grown[0].ndim if grown else 1))

    def shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
        known = given_shapes(ins)
        if known is None:
            return ins, outs
        grown = [prepare(s) for s in known]
        return ins, _concatenated([*grown], outs, {"dim": axis(len(grown[0]))})[1]

    example = f"mx.nd._internal.{name}(nd.ones((2,)), nd.ones((2,))).shape -> {result}"
    made = op(name, count="num_args", shape=shapes)(document(function, name, doc, example))
    made.type_pattern = PromotedTypes(None)
    return made


for _op in (concatenate, stack):
    _op.type_pattern = PromotedTypes(None)
stacking("_npi_vstack", _as_rows, lambda n: 0, "Join arrays as rows.", "(2, 2)")
stacking(
    "_npi_hstack",
    _at_least_1d,
    lambda n: 0 if n == 1 else 1,
    "Join arrays side by side: along axis 1, vectors along axis 0.",
    "(4,)",
)
stacking("_npi_dstack", _in_depth, lambda n: 2, "Join arrays along the third axis.", "(1, 2, 2)")
stacking(
    "_npi_column_stack", _as_columns, lambda n: 1, "Join vectors as columns of a matrix.", "(2, 2)"
)


class OwnTypes(TypePattern):
    """Each output has the dtype of the input at its place."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer in both directions."""
        found = [i or o for i, o in zip(ins, outs, strict=True)]
        return found, list(found)


def at_least(dimensions: int, grow: Callable[[Shape], Shape], result: str) -> Op:
    """Declare the operator that gives arrays at least so many axes."""
    name = f"_np_atleast_{dimensions}d"

    def function(*arys: Tensor, num_args: ArrayCount = 1) -> tuple[Tensor, ...] | Tensor:
        made = tuple(x.reshape(grow(x.shape)) for x in arys)
        return made[0] if len(made) == 1 else made

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
    made = may_share(declare(function))
    made.type_pattern = OwnTypes(None)
    return made


at_least(1, _at_least_1d, "(2,)")
at_least(2, _as_rows, "(1, 2)")
at_least(3, _at_least_3d, "(1, 2, 1)")


def _parts(attrs: dict) -> int:
    return attrs["sections"] if attrs["sections"] > 0 else len(attrs["indices"])


_SPLIT = """    Parameters
    ----------
    indices
        Where the parts begin, with 0 first.
    axis
        Accepted for compatibility; the axis is fixed.
"""


def splitting(name: str, axis_of: Callable[[int], int], least: int, doc: str) -> Op:
    """Declare a split along a fixed axis, of arrays with at least so many axes."""

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
    made = op(name, outputs=lambda a: tuple(f"output{i}" for i in range(_parts(a))))(function)
    made.infer_outputs(shapes)
    return may_share(made)


splitting(
    "_npi_hsplit",
    lambda n: 0 if n == 1 else 1,
    1,
    "Split an array along axis 1, a vector along axis 0.",
)
splitting("_npi_dsplit", lambda n: 2, 3, "Split an array along the third axis.")
