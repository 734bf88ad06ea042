"""NumPy's operators that delete, insert and pad, and operators on diagonals."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor

from ...error import InvalidValue, MXNetError, OutOfRange, ShapeError
from ..attributes import Pairs, Shape
from ..declare import op
from ..families import number
from ..shapes import UNKNOWN
from ..tensor.identity import may_share
from ..tensor.shape_changing import axis_within


def _flatten_if_needed(arr: Tensor, axis: int | None, name: str) -> tuple[Tensor, int]:
    if axis is None:
        return arr.reshape(-1), 0
    return arr, axis_within(axis, arr.ndim, name)


def _is_scalar_with_axis(ndim: int, axis: int | None) -> bool:
    """Return whether a scalar is edited along an axis: MXNet then returns it unchanged."""
    return not ndim and axis is not None


def _in_range(name: str, index: int, size: int, behind: int = 0) -> int:
    if not -size <= index < size + behind:
        raise OutOfRange(f"{name}: index {index} is out of bounds for an axis of size {size}.")
    return index + size if index < 0 else index


def _is_slice(attrs: dict) -> bool:
    return any(attrs[key] is not None for key in ("start", "stop", "step"))


def _is_array(attrs: dict) -> bool:
    return attrs["int_ind"] is None and not _is_slice(attrs)


@op("_npi_delete", optional={"obj": _is_array}, types="T I -> T", value_dependent=True)
def delete(
    arr: Tensor,
    obj: Tensor | None = None,
    *,
    start: int | None = None,
    stop: int | None = None,
    step: int | None = None,
    int_ind: int | None = None,
    axis: int | None = None,
) -> Tensor:
    """Delete the slices at an index, a Python slice, or an array of indices.

    Parameters
    ----------
    obj
        Indices of the slices to delete.
    start
        Start of the slice of indices.
    stop
        Stop of the slice of indices.
    step
        Step of the slice of indices.
    axis
        Axis; None: the flattened array.

    >>> mx.nd._internal._npi_delete(mx.nd.array([1, 2, 3]), int_ind=1).asnumpy()
    array([1., 3.], dtype=float32)
    """
    if _is_scalar_with_axis(arr.ndim, axis):
        return arr.clone()
    arr, axis = _flatten_if_needed(arr, axis, "_npi_delete")
    size = arr.shape[axis]
    mask = torch.ones(size, dtype=torch.bool, device=arr.device)
    if int_ind is not None:
        mask[_in_range("_npi_delete", int_ind, size)] = False
    elif obj is None:
        mask[list(range(size)[slice(start, stop, step)])] = False
    elif obj.dtype is torch.bool:
        mask = ~obj.reshape(-1)
    else:
        positions = obj.detach().reshape(-1).long()
        positions = positions[(positions >= -size) & (positions < size)]  # MXNet ignores others
        mask[positions] = False
    return arr.index_select(axis, mask.nonzero().squeeze(1))


def _check_indices(name: str, obj: Tensor, size: int, behind: int = 0) -> Tensor:
    """Return nonnegative indices; raise if one is out of range."""
    positions = obj.detach().reshape(-1).long()
    if positions.numel() and (positions.min() < -size or positions.max() >= size + behind):
        raise OutOfRange(f"{name}: an index is out of bounds for an axis of size {size}.")
    return torch.where(positions < 0, positions + size, positions)


def _open_axis(arr: Shape | None, *_: Shape | None, axis: int | None, **attrs: Any) -> Any:
    if arr is None:
        return None
    if _is_scalar_with_axis(len(arr), axis):
        return ()
    if axis is None:
        return (UNKNOWN,)
    at = axis_within(axis, len(arr), "axis")
    return (*arr[:at], UNKNOWN, *arr[at + 1 :])


delete.infer_outputs(_open_axis)


def _values(arr: Tensor, values: Tensor | None, val: float | None) -> Tensor:
    if values is not None:
        return values.to(arr.dtype)
    if val is None:
        raise MXNetError("_npi_insert: pass the values as an array, or a number as val=.")
    return number(val, arr.dtype).to(arr.device)


def _align(arr: Tensor, values: Tensor) -> Tensor:
    """Add or remove axes of size 1 of the values to match the array."""
    while values.ndim > arr.ndim and values.shape[0] == 1:
        values = values[0]
    return values.reshape((1,) * (arr.ndim - values.ndim) + tuple(values.shape))


def _broadcast(values: Tensor, shape: list[int]) -> Tensor:
    try:
        return values.expand(shape)
    except RuntimeError:
        raise ShapeError(
            f"_npi_insert: values of shape {list(values.shape)} do not broadcast to {shape}."
        ) from None


def _insert_block(arr: Tensor, values: Tensor, index: int, axis: int) -> Tensor:
    """Insert all values in front of an index; both have the same number of axes."""
    values = _broadcast(values, [*arr.shape[:axis], values.shape[axis], *arr.shape[axis + 1 :]])
    after = arr.narrow(axis, index, arr.shape[axis] - index)
    return torch.cat([arr.narrow(axis, 0, index), values, after], axis)


def _insert_at_number(arr: Tensor, values: Tensor, index: int, axis: int) -> Tensor:
    """Insert values in front of a scalar index, along their first axis."""
    return _insert_block(arr, _align(arr, values).movedim(0, axis), index, axis)


def _insert_each(arr: Tensor, values: Tensor, places: Tensor, axis: int) -> Tensor:
    """Insert one value in front of each index."""
    values = _broadcast(values, [*arr.shape[:axis], places.numel(), *arr.shape[axis + 1 :]])
    order = torch.argsort(places, stable=True)
    target = torch.empty_like(places)
    target[order] = places[order] + torch.arange(places.numel(), device=places.device)
    is_old = torch.ones(arr.shape[axis] + places.numel(), dtype=torch.bool, device=arr.device)
    is_old[target] = False
    source = torch.empty(is_old.numel(), dtype=torch.long, device=arr.device)
    source[is_old] = torch.arange(arr.shape[axis], device=arr.device)
    source[target] = arr.shape[axis] + torch.arange(places.numel(), device=arr.device)
    return torch.cat([arr, values], axis).index_select(axis, source)


def _needs_values(attrs: dict) -> bool:
    return attrs["val"] is None


@op("_npi_insert_scalar", optional={"values": _needs_values}, types="T V -> T")
def insert_scalar(
    arr: Tensor,
    values: Tensor | None = None,
    *,
    val: float | None = None,
    start: int | None = None,
    stop: int | None = None,
    step: int | None = None,
    int_ind: int | None = None,
    axis: int | None = None,
) -> Tensor:
    """Insert values in front of an index.

    Parameters
    ----------
    start
        Not used.
    stop
        Not used.
    step
        Not used.
    int_ind
        Index to insert in front of.
    axis
        Axis; None: the flattened array.

    >>> mx.nd._internal._npi_insert_scalar(mx.nd.array([1, 2]), val=9, int_ind=1).asnumpy()
    array([1., 9., 2.], dtype=float32)
    """
    if int_ind is None:
        raise MXNetError("_npi_insert_scalar: int_ind must be given.")
    if _is_scalar_with_axis(arr.ndim, axis):
        return arr.clone()
    arr, axis = _flatten_if_needed(arr, axis, "_npi_insert_scalar")
    index = _in_range("_npi_insert_scalar", int_ind, arr.shape[axis], behind=1)
    return _insert_at_number(arr, _values(arr, values, val), index, axis)


@op("_npi_insert_slice", optional={"values": _needs_values}, types="T V -> T")
def insert_slice(
    arr: Tensor,
    values: Tensor | None = None,
    *,
    val: float | None = None,
    start: int | None = None,
    stop: int | None = None,
    step: int | None = None,
    int_ind: int | None = None,
    axis: int | None = None,
) -> Tensor:
    """Insert values in front of the indices of a Python slice.

    Parameters
    ----------
    start
        Start of the slice of indices.
    stop
        Stop of the slice of indices.
    step
        Step of the slice of indices.
    int_ind
        Not used.
    axis
        Axis; None: the flattened array.

    >>> x = mx.nd.array([1, 2, 3])
    >>> mx.nd._internal._npi_insert_slice(x, val=9, start=0, stop=2, step=1).asnumpy()
    array([9., 1., 9., 2., 3.], dtype=float32)
    """
    if _is_scalar_with_axis(arr.ndim, axis):
        return arr.clone()
    arr, axis = _flatten_if_needed(arr, axis, "_npi_insert_slice")
    chosen = list(range(arr.shape[axis])[slice(start, stop, step)])
    values = _align(arr, _values(arr, values, val))
    if len(chosen) == 1:
        return _insert_block(arr, values, chosen[0], axis)
    return _insert_each(arr, values, torch.tensor(chosen, device=arr.device).long(), axis)


@op(
    "_npi_insert_tensor",
    attributes_of=insert_scalar,
    optional={"values": _needs_values, "obj": lambda a: True},
    types="T V I -> T",
)
def insert_tensor(
    arr: Tensor, values: Tensor | None = None, obj: Tensor | None = None, **attrs: Any
) -> Tensor:
    """Insert values in front of the indices of an array.

    Parameters
    ----------
    obj
        Indices to insert in front of.
    int_ind
        Not used.

    >>> x, at = mx.nd.array([1, 2]), mx.nd.array([0, 2], dtype="int64")
    >>> mx.nd._internal._npi_insert_tensor(x, mx.nd.array([8, 9]), at).asnumpy()
    array([8., 1., 2., 9.], dtype=float32)
    """
    if _is_scalar_with_axis(arr.ndim, attrs.get("axis")):
        return arr.clone()
    arr, axis = _flatten_if_needed(arr, attrs.get("axis"), "_npi_insert_tensor")
    assert obj is not None  # `optional` always requires it
    if obj.ndim > 1:
        raise ShapeError(
            f"_npi_insert_tensor: indices must have at most one axis, got shape {list(obj.shape)}."
        )
    positions = _check_indices("_npi_insert_tensor", obj, arr.shape[axis], behind=1)
    values = _values(arr, values, attrs.get("val"))
    if not obj.ndim:
        return _insert_at_number(arr, values, int(positions), axis)
    values = _align(arr, values)
    if positions.numel() == 1:
        return _insert_block(arr, values, int(positions), axis)
    return _insert_each(arr, values, positions, axis)


for _op in (insert_scalar, insert_slice, insert_tensor):
    _op.infer_outputs(_open_axis)
    _op.value_dependent = True


def _reflect_indices(size: int, before: int, after: int, repeat_edge: bool) -> Tensor:
    """Return the indices of a reflected axis, with or without its edge."""
    positions = torch.arange(-before, size + after)
    if size == 1 and not repeat_edge:
        return torch.zeros_like(positions)
    period = 2 * size if repeat_edge else 2 * size - 2
    positions = positions.remainder(period)
    return torch.where(positions < size, positions, period - repeat_edge - positions)


def _pad_axis(data: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    size = data.shape[axis]
    if mode in ("maximum", "minimum"):
        edge = (torch.amax if mode == "maximum" else torch.amin)(data, axis, keepdim=True)
        parts = [edge.repeat_interleave(before, axis), data, edge.repeat_interleave(after, axis)]
        return torch.cat(parts, axis)
    if mode == "edge":
        positions = torch.arange(-before, size + after).clamp(0, size - 1)
    else:
        positions = _reflect_indices(size, before, after, mode == "symmetric")
    return data.index_select(axis, positions.to(data.device))


@op("_npi_pad", names_single_input=True)
def pad(
    data: Tensor,
    *,
    pad_width: Pairs,
    mode: Literal["constant", "edge", "maximum", "minimum", "reflect", "symmetric"] = "constant",
    constant_value: float = 0.0,
    reflect_type: str = "even",
) -> Tensor:
    """Add elements before and after each axis.

    Parameters
    ----------
    pad_width
        Number of elements before and after each axis: ``((before, after), ...)``.
    mode
        Type of padding: ``constant``, ``edge``, ``reflect``, ``symmetric``, ``maximum`` or
        ``minimum``.
    constant_value
        Value of the padding with ``mode='constant'``.
    reflect_type
        Type of reflection; only ``'even'``.

    >>> mx.nd._internal._npi_pad(mx.nd.array([1, 2]), pad_width=((1, 2),), mode="edge").asnumpy()
    array([1., 1., 2., 2., 2.], dtype=float32)
    """
    pad_shape(tuple(data.shape), pad_width=pad_width)
    if mode == "constant":
        widths = [n for pair in reversed(pad_width) for n in pair]
        fill = number(constant_value, data.dtype).item()
        return torch.constant_pad_nd(data, widths, fill)
    for axis, (before, after) in enumerate(pad_width):
        if (before or after) and not data.shape[axis]:
            raise ShapeError(
                f"_npi_pad: axis {axis} is empty, so that {mode!r} has nothing to add."
            )
        if before or after:
            data = _pad_axis(data, axis, before, after, mode)
    return data.clone() if not any(map(any, pad_width)) else data


@pad.infer_outputs
def pad_shape(data: Shape | None, *, pad_width: Pairs, **_: Any) -> Shape | None:
    """Add the padding to the sizes."""
    if data is None:
        return None
    if len(pad_width) != len(data) or any(len(p) != 2 or min(p) < 0 for p in pad_width):
        raise ShapeError(
            f"_npi_pad: pad_width={pad_width} must have a pair of counts for each axis of "
            f"{list(data)}."
        )
    return tuple(
        n if n == UNKNOWN else n + before + after
        for n, (before, after) in zip(data, pad_width, strict=True)
    )


def _length(rows: int, columns: int, k: int) -> int:
    """Return the length of the k-th diagonal; 0 outside of the matrix."""
    if UNKNOWN in (rows, columns):
        return UNKNOWN
    return max(min(rows, columns - k) if k >= 0 else min(rows + k, columns), 0)


def _diagonal(data: Tensor, k: int, axis1: int, axis2: int) -> Tensor:
    """Return a diagonal as the last axis, empty outside of the matrix."""
    if -data.shape[axis1] <= k <= data.shape[axis2]:
        return data.diagonal(k, axis1, axis2)
    return data.diagonal(0, axis1, axis2)[..., :0]


@may_share
@op("_np_diag", names_single_input=True)
def diag(data: Tensor, *, k: int = 0) -> Tensor:
    """Extract the ``k``-th diagonal of a matrix, or create a diagonal matrix from a vector.

    Parameters
    ----------
    data
        A matrix, or a vector.

    >>> mx.nd._internal._np_diag(mx.nd.array([[1, 2], [3, 4]])).asnumpy()
    array([1., 4.], dtype=float32)
    """
    diag_shape(tuple(data.shape), k=k)
    return torch.diag_embed(data, k) if data.ndim == 1 else _diagonal(data, k, 0, 1)


@diag.infer_outputs
def diag_shape(data: Shape | None, *, k: int) -> Shape | None:
    """The square of a vector's size, or the length of the diagonal."""
    if data is None:
        return None
    if len(data) not in (1, 2):
        raise ShapeError(f"_np_diag: input must be 1- or 2-d, got shape {list(data)}.")
    if len(data) == 1:
        return (data[0] if data[0] == UNKNOWN else data[0] + abs(k),) * 2
    return (_length(data[0], data[1], k),)


@op("_np_diagflat", names_single_input=True)
def diagflat(data: Tensor, *, k: int = 0) -> Tensor:
    """Create a matrix with the flattened array on its ``k``-th diagonal.

    >>> mx.nd._internal._np_diagflat(mx.nd.array([[1, 2]])).asnumpy()
    array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    return torch.diag_embed(data.reshape(-1), k)


@diagflat.infer_outputs
def diagflat_shape(data: Shape | None, *, k: int) -> Shape | None:
    """The square of the number of elements."""
    if data is None:
        return None
    return (UNKNOWN if UNKNOWN in data else math.prod(data) + abs(k),) * 2


def _planes(name: str, ndim: int, axis1: int, axis2: int) -> tuple[int, int]:
    if ndim < 2:
        raise ShapeError(f"{name}: input array should be at least 2d, got {ndim} axes.")
    first, second = axis_within(axis1, ndim, name), axis_within(axis2, ndim, name)
    if first == second:
        raise ShapeError(f"{name}: axis1 and axis2 cannot refer to the same axis {axis1}.")
    return first, second


@may_share
@op("_np_diagonal", names_single_input=True)
def diagonal(data: Tensor, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Extract a diagonal of two axes as the last axis of the result.

    Parameters
    ----------
    axis1
        First axis of the matrices.
    axis2
        Second axis of the matrices.

    >>> mx.nd._internal._np_diagonal(mx.nd.array([[1, 2], [3, 4]]), offset=1).asnumpy()
    array([2.], dtype=float32)
    """
    return _diagonal(data, offset, *_planes("_np_diagonal", data.ndim, axis1, axis2))


@diagonal.infer_outputs
def diagonal_shape(data: Shape | None, *, offset: int, axis1: int, axis2: int) -> Shape | None:
    """Append the length of the diagonal to the other sizes."""
    if data is None:
        return None
    first, second = _planes("_np_diagonal", len(data), axis1, axis2)
    rest = (n for i, n in enumerate(data) if i not in (first, second))
    return (*rest, _length(data[first], data[second], offset))


@op("_np_trace", names_single_input=True)
def trace(data: Tensor, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Sum along a diagonal of two axes.

    Parameters
    ----------
    axis1
        First axis of the matrices.
    axis2
        Second axis of the matrices.

    >>> mx.nd._internal._np_trace(mx.nd.array([[1, 2], [3, 4]])).asnumpy()
    array(5., dtype=float32)
    """
    planes = _planes("_np_trace", data.ndim, axis1, axis2)
    return _diagonal(data, offset, *planes).sum(-1, dtype=data.dtype)


@trace.infer_outputs
def trace_shape(data: Shape | None, *, axis1: int, axis2: int, **_: int) -> Shape | None:
    """Remove both axes."""
    if data is None:
        return None
    planes = _planes("_np_trace", len(data), axis1, axis2)
    return tuple(n for i, n in enumerate(data) if i not in planes)


@op("_npi_tril", names_single_input=True)
def tril(data: Tensor, *, k: int = 0) -> Tensor:
    """Zero the elements above the ``k``-th diagonal of matrices; a vector is repeated as rows.

    >>> mx.nd._internal._npi_tril(mx.nd.ones((2, 2))).asnumpy()
    array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    tril_shape(tuple(data.shape), k=k)
    return torch.tril(data.expand(data.shape[0], -1) if data.ndim == 1 else data, k)


@tril.infer_outputs
def tril_shape(data: Shape | None, *, k: int) -> Shape | None:
    """Keep the shape; a vector becomes a square."""
    if data == ():
        raise ShapeError("_npi_tril: needs at least one axis, got a scalar.")
    return data * 2 if data is not None and len(data) == 1 else data


@op("_npi_diag_indices_from", types="T -> int64", names_single_input=True)
def diag_indices_from(data: Tensor) -> Tensor:
    """Return the indices of the main diagonal, one row for each axis.

    >>> mx.nd._internal._npi_diag_indices_from(mx.nd.ones((2, 2))).asnumpy()
    array([[0, 1],
           [0, 1]])
    """
    axes, length = diag_indices_from_shape(tuple(data.shape))
    return torch.arange(length, device=data.device).expand(axes, -1).contiguous()


@diag_indices_from.infer_outputs
def diag_indices_from_shape(data: Shape | None) -> Shape | None:
    """One row for each axis."""
    if data is None:
        return None
    if len(data) < 2:
        raise InvalidValue("_npi_diag_indices_from: input array should be at least 2d.")
    if len(set(data)) > 1 and UNKNOWN not in data:
        raise InvalidValue(
            f"_npi_diag_indices_from: all dimensions of input must be of equal length, got {data}."
        )
    return len(data), max(data)
