"""Operators that read elements at array indices.

Indices may be floating-point numbers, which are truncated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from ...error import DTypeError, MXNetError, OutOfRange, ShapeError
from ..attributes import DType, Positive, Shape
from ..declare import op
from ..families import check_same_dtype, number
from ..shapes import UNKNOWN, Shapes, TypePattern, unify
from .shape_changing import axis_within

if TYPE_CHECKING:
    from ..declare import Op

_embedding = torch.embedding


def within(index: Tensor, size: int, mode: str) -> Tensor:
    """Return integer indices in ``[0, size)``: clipped, or wrapped around.

    >>> within(torch.tensor([-1.0, 1.9, 5.0]), 3, "wrap")
    tensor([2, 1, 2])
    """
    whole = index.long()
    if not size and whole.numel():
        raise OutOfRange("cannot index an axis of size 0.")
    return whole.remainder(size or 1) if mode == "wrap" else whole.clamp(0, size - 1)


@op(
    "take",
    "_npi_take",
    types="T I -> T",
    method=True,
    without_gradient=("indices",),
    repeatable=True,
)
def take(
    a: Tensor, indices: Tensor, *, axis: int = 0, mode: Literal["clip", "raise", "wrap"] = "clip"
) -> Tensor:
    """Take slices along an axis; indices out of range are clipped, wrapped, or raise an error.

    Parameters
    ----------
    a
        The array to take from.
    indices
        The indices, of any shape; fractions are truncated.
    axis
        Axis to take along; a negative value counts from the last.
    mode
        What to do with indices out of range: ``clip`` or ``wrap`` them, or ``raise`` an error.

    >>> mx.nd.take(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([1, 0, 9])).asnumpy()
    array([[3., 4.],
           [1., 2.],
           [3., 4.]], dtype=float32)
    """
    axis = axis_within(axis, a.ndim, "take")
    size = a.shape[axis]
    whole = indices.long() if mode == "raise" else within(indices, size, mode)
    if mode == "raise" and ((whole < 0) | (whole >= size)).any():
        raise MXNetError(
            f"take operator contains indices out of bound: axis {axis} has size {size}, but "
            f"indices range from {whole.min().item()} to {whole.max().item()}."
        )
    if axis == 0 and a.ndim == 2:
        return _embedding(a, whole)
    if whole.ndim == 1:
        return a.index_select(axis, whole)
    picked = a.index_select(axis, whole.reshape(-1))
    return picked.reshape((*a.shape[:axis], *whole.shape, *a.shape[axis + 1 :]))


@take.infer_outputs
def take_shape(a: Shape | None, indices: Shape | None, *, axis: int, mode: str) -> Shape | None:
    """The shape of the indices replaces the axis."""
    if a is None or indices is None:
        return None
    at = axis_within(axis, len(a), "take")
    return (*a[:at], *indices, *a[at + 1 :])


class EmbeddingTypes(TypePattern):
    """Weight and output have the same type, by default the attribute ``dtype``."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer weight and output from each other."""
        target = next((t for t in (ins[1], outs[0]) if t is not None), attrs["dtype"])
        return [ins[0], target], [target]


@op(
    "Embedding",
    "_npx_embedding",
    "_sparse_Embedding",
    without_gradient=("data",),
    index_input="data",
    repeatable=True,
)
def embedding(
    data: Tensor,
    weight: Tensor,
    *,
    input_dim: Positive,
    output_dim: Positive,
    dtype: DType = torch.float32,
    sparse_grad: bool = False,
) -> Tensor:
    """Look up the row of ``weight`` for each index; indices out of range are clipped.

    Parameters
    ----------
    data
        The indices, of any shape; fractions are truncated.
    weight
        Table of shape ``(input_dim, output_dim)``.
    dtype
        Data type of the weight.

    >>> weight = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd.Embedding(mx.nd.array([1, 0]), weight, input_dim=2, output_dim=2).asnumpy()
    array([[3., 4.],
           [1., 2.]], dtype=float32)
    """
    if weight.shape != (input_dim, output_dim):
        raise ShapeError(
            f"Shape inconsistent in Embedding: weight is {list(weight.shape)}, but input_dim="
            f"{input_dim} and output_dim={output_dim} need {[input_dim, output_dim]}."
        )
    rows = data.long().clamp(0, input_dim - 1)
    # Sparse gradients are for leaves only: other operators may not support them in backward.
    sparse = sparse_grad and weight.is_leaf and weight.requires_grad
    return _embedding(weight, rows, -1, False, sparse)


embedding.type_pattern = EmbeddingTypes(None)


@embedding.infer_inputs
def embedding_inputs(
    data: Shape | None, weight: Shape | None, *, input_dim: int, output_dim: int, **_: object
) -> dict[str, Shape]:
    """Infer the weight from the attributes."""
    return {"weight": (input_dim, output_dim)}


@embedding.infer_outputs
def embedding_shape(
    data: Shape | None, weight: Shape | None, *, output_dim: int, **_: object
) -> Shape | None:
    """Append the size of a row to the shape of the indices."""
    return None if data is None else (*data, output_dim)


@op(
    "one_hot",
    "_npx_one_hot",
    types="I -> @dtype",
    method=True,
    without_gradient=("indices",),
    repeatable=True,
)
def one_hot(
    indices: Tensor,
    *,
    depth: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    dtype: DType = torch.float32,
) -> Tensor:
    """Encode indices as one-hot vectors; indices out of range give vectors of ``off_value``.

    Parameters
    ----------
    depth
        Number of classes: the size of the new last axis.
    on_value
        Value at the index.
    off_value
        Value of the other elements.

    >>> mx.nd.one_hot(mx.nd.array([1, 0, 5]), depth=2).asnumpy()
    array([[0., 1.],
           [1., 0.],
           [0., 0.]], dtype=float32)
    """
    shape = (*indices.shape, depth)
    if depth < 1:
        return torch.empty(shape, dtype=dtype, device=indices.device)
    whole = indices.long().unsqueeze(-1)
    positions = whole.clamp(0, depth - 1)
    inside = positions == whole
    if on_value == 1 and off_value == 0:
        output = torch.zeros(shape, dtype=dtype, device=indices.device)
        return output.scatter_(-1, positions, inside.to(dtype))
    on, off = (number(v, dtype).to(indices.device) for v in (on_value, off_value))
    return off.expand(shape).scatter(-1, positions, torch.where(inside, on, off))


@one_hot.infer_outputs
def one_hot_shape(indices: Shape | None, *, depth: int, **_: object) -> Shape | None:
    """Add an axis of size ``depth``."""
    return None if indices is None else (*indices, depth)


def _picked_index(name: str, data: Tensor, index: Tensor, axis: int) -> Tensor:
    """Return the index with the picked axis kept as size 1."""
    with_axis = (*data.shape[:axis], 1, *data.shape[axis + 1 :])
    if index.shape == with_axis:
        return index
    without_axis = with_axis[:axis] + with_axis[axis + 1 :]
    if index.shape != without_axis and (without_axis or index.numel() != 1):
        is_dense = index.shape == data.shape
        raise ShapeError(
            f"Shape inconsistent in {name}: index is {list(index.shape)}, but data "
            f"{list(data.shape)} with axis={axis} needs {list(without_axis)}."
            + (" Labels given as one-hot rows need sparse_label=False." if is_dense else "")
        )
    return index.unsqueeze(axis) if without_axis else index.reshape(1)


@op(
    "pick",
    "_npx_pick",
    "choose_element_0index",
    types="T I -> T",
    method=True,
    gradient_names=("output",),
    without_gradient=("index",),
    repeatable=True,
)
def pick(
    data: Tensor,
    index: Tensor,
    *,
    axis: int | None = -1,
    keepdims: bool = False,
    mode: Literal["clip", "wrap"] = "clip",
) -> Tensor:
    """Pick one element along an axis for each position of the other axes.

    Parameters
    ----------
    index
        Index along the axis for each position of the other axes.
    axis
        Axis to pick along.
    mode
        What to do with indices out of range: ``clip`` or ``wrap`` them.

    >>> mx.nd.pick(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([0, 1])).asnumpy()
    array([1., 4.], dtype=float32)
    """
    if axis is None:
        raise ShapeError("pick: axis=None is not supported. Pass the axis to pick along.")
    axis = axis_within(axis, data.ndim, "pick")
    index = _picked_index("pick", data, index, axis)
    output = data.gather(axis, within(index, data.shape[axis], mode))
    return output if keepdims or data.ndim == 1 else output.squeeze(axis)


def _pick(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    data, index = ins
    if data is None or attrs["axis"] is None:
        return ins, outs
    at = axis_within(attrs["axis"], len(data), "pick")
    with_axis = (*data[:at], 1, *data[at + 1 :])
    without_axis = with_axis[:at] + with_axis[at + 1 :] or (1,)
    index = unify(
        with_axis if index is not None and len(index) == len(with_axis) else without_axis,
        index,
        "index",
    )
    return [data, index], [
        unify(with_axis if attrs["keepdims"] else without_axis, outs[0], "the output")
    ]


pick.shape_rule = _pick


@op("batch_take", types="T int32 -> T", without_gradient=("indices",))
def batch_take(a: Tensor, indices: Tensor) -> Tensor:
    """Take one element of each row; indices are clipped.

    Parameters
    ----------
    a
        Array of rows (the last axis).
    indices
        Index into each row.

    >>> index = mx.nd.array([1, 0], dtype="int32")
    >>> mx.nd.batch_take(mx.nd.array([[1, 2], [3, 4]]), index).asnumpy()
    array([2., 3.], dtype=float32)
    """
    rows = a.reshape(-1, a.shape[-1])
    if indices.numel() != len(rows):
        raise ShapeError(
            f"batch_take: indices {list(indices.shape)} need one index for each of the "
            f"{len(rows)} rows of a {list(a.shape)}."
        )
    index = within(indices, a.shape[-1], "clip").reshape(-1, 1)
    return rows.gather(1, index).reshape(indices.shape)


@batch_take.infer_outputs
def batch_take_shape(a: Shape | None, indices: Shape | None) -> Shape | None:
    """The output has one element for each index."""
    return indices


def coordinates(name: str, indices: Tensor, ndim: int) -> tuple[Tensor, ...]:
    """Split an array of coordinates into one index array per axis."""
    if indices.ndim < 2:
        raise ShapeError(
            f"{name}: indices must have at least 2 axes, but have shape {list(indices.shape)}."
        )
    if indices.shape[0] > ndim:
        raise ShapeError(f"{name}: {indices.shape[0]} indices exceed the data's {ndim} dimensions.")
    return indices.long().unbind(0)


@op(
    "gather_nd",
    "_npi_gather_nd",
    "_npx_gather_nd",
    types="T I -> T",
    gradient_names=("output",),
    without_gradient=("indices",),
)
def gather_nd(data: Tensor, indices: Tensor) -> Tensor:
    """Gather the elements or slices at the coordinates in the columns of ``indices``.

    Parameters
    ----------
    indices
        Coordinates along axis 0: ``indices[i]`` has those for axis i of the data.

    >>> mx.nd.gather_nd(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[1, 0], [0, 1]])).asnumpy()
    array([3., 2.], dtype=float32)
    """
    return data[coordinates("gather_nd", indices, data.ndim)]


@gather_nd.infer_outputs
def gather_nd_shape(data: Shape | None, indices: Shape | None) -> Shape | None:
    """The shape of the indices without the first axis, then the remaining axes of the data."""
    if data is None or indices is None or indices[0] == UNKNOWN:
        return None
    return (*indices[1:], *data[indices[0] :])


@op("_contrib_boolean_mask", "_npi_boolean_mask", types="T I -> T", value_dependent=True)
def boolean_mask(data: Tensor, index: Tensor, *, axis: int = 0) -> Tensor:
    """Select the slices along an axis whose element in ``index`` is not 0.

    Parameters
    ----------
    index
        Vector with an element for each slice.
    axis
        The axis of the slices.

    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd.contrib.boolean_mask(x, mx.nd.array([0, 1])).asnumpy()
    array([[3., 4.]], dtype=float32)
    """
    axis = axis_within(axis, data.ndim, "_contrib_boolean_mask")
    if index.shape != (data.shape[axis],):
        raise ShapeError(
            f"_contrib_boolean_mask: index is {list(index.shape)}, but axis {axis} of data has "
            f"{data.shape[axis]}."
        )
    return data.index_select(axis, index.nonzero().squeeze(1))


@boolean_mask.infer_outputs
def boolean_mask_shape(data: Shape | None, index: Shape | None, *, axis: int) -> Shape | None:
    """The size of the axis depends on values."""
    if data is None:
        return None
    at = axis_within(axis, len(data), "_contrib_boolean_mask")
    return (*data[:at], UNKNOWN, *data[at + 1 :])


class WhereTypes(TypePattern):
    """Both choices have the same type; nothing is inferred if they differ, as in MXNet."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the choices and the output from each other."""
        try:
            return super().infer(op, ins, outs, attrs)
        except DTypeError:
            return ins, outs


@op(
    "where",
    "_sparse_where",
    precision="widest",
    gradient_names=(None, "output0", "output1"),
    without_gradient=("condition",),
    repeatable=True,
)
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Select elements of ``x`` if the condition is not 0, else of ``y``; a vector selects rows.

    Parameters
    ----------
    condition
        Array of the same shape, or a vector with an element for each row.
    x
        Values for nonzero conditions.
    y
        Values for zero conditions.

    >>> x, y = mx.nd.array([[1, 2], [3, 4]]), mx.nd.zeros((2, 2))
    >>> mx.nd.where(mx.nd.array([0, 1]), x, y).asnumpy()
    array([[0., 0.],
           [3., 4.]], dtype=float32)
    """
    if x.dtype is not y.dtype:
        check_same_dtype("where", x, y)
    chosen = condition if condition.dtype is torch.bool else condition != 0
    if x.shape == y.shape and chosen.shape == x.shape:
        return torch.where(chosen, x, y)
    if x.shape != y.shape or chosen.ndim != 1 or chosen.shape[0] != x.shape[0]:
        raise ShapeError(
            f"Shape inconsistent in where: condition {list(condition.shape)}, x {list(x.shape)}, "
            f"y {list(y.shape)}; x and y must have the same shape, and condition that shape or the "
            "size of the first axis."
        )
    return torch.where(chosen.reshape(-1, *(1,) * (x.ndim - 1)), x, y)


where.type_pattern = WhereTypes("C T T -> T")


def _chosen(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    condition, x, y = ins
    shape = unify(unify(x, y, "where: x and y"), outs[0], "where: the output")
    if condition is not None and shape is not None:
        full = len(condition) == len(shape)
        condition = unify(condition, shape if full else shape[:1], "where: condition")
        if full:
            shape = unify(shape, condition)
    return [condition, shape, shape], [shape]


where.shape_rule = _chosen
