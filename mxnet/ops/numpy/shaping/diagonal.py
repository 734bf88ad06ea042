"""NumPy's operators on diagonals and triangles."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ....error import InvalidValue, ShapeError
from ...attributes import Shape
from ...declare import op
from ...shapes import UNKNOWN
from ...tensor.memory import may_share
from ...tensor.shaping.shape_changing import axis_within


def _length(rows: int, columns: int, k: int) -> int:
    """Return the length of the k-th diagonal; one outside of the matrix is empty."""
    if UNKNOWN in (rows, columns):
        return UNKNOWN
    return max(min(rows, columns - k) if k >= 0 else min(rows + k, columns), 0)


def _diagonal(data: Tensor, k: int, axis1: int, axis2: int) -> Tensor:
    """Return a diagonal as the last axis, empty where torch knows none."""
    if -data.shape[axis1] <= k <= data.shape[axis2]:
        return data.diagonal(k, axis1, axis2)
    return data.diagonal(0, axis1, axis2)[..., :0]


@may_share
@op("_np_diag")
def diag(data: Tensor, *, k: int = 0) -> Tensor:
    """Take the ``k``-th diagonal of a matrix, or make a diagonal matrix of a vector.

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
    """Return the square of a vector, or the length of the diagonal."""
    if data is None:
        return None
    if len(data) not in (1, 2):
        raise ShapeError(f"_np_diag: input must be 1- or 2-d, got shape {list(data)}.")
    if len(data) == 1:
        return (data[0] if data[0] == UNKNOWN else data[0] + abs(k),) * 2
    return (_length(data[0], data[1], k),)


@op("_np_diagflat")
def diagflat(data: Tensor, *, k: int = 0) -> Tensor:
    """Make a matrix with the flattened array on its ``k``-th diagonal.

    >>> mx.nd._internal._np_diagflat(mx.nd.array([[1, 2]])).asnumpy()
    array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    return torch.diag_embed(data.reshape(-1), k)


@diagflat.infer_outputs
def diagflat_shape(data: Shape | None, *, k: int) -> Shape | None:
    """Return the square of the number of elements."""
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
@op("_np_diagonal")
def diagonal(data: Tensor, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Take a diagonal of two axes, as the last axis of the result.

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
    """Put the length of the diagonal behind the other sizes."""
    if data is None:
        return None
    first, second = _planes("_np_diagonal", len(data), axis1, axis2)
    rest = (n for i, n in enumerate(data) if i not in (first, second))
    return (*rest, _length(data[first], data[second], offset))


@op("_np_trace")
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
    """Leave the two axes out."""
    if data is None:
        return None
    planes = _planes("_np_trace", len(data), axis1, axis2)
    return tuple(n for i, n in enumerate(data) if i not in planes)


@op("_npi_tril")
def tril(data: Tensor, *, k: int = 0) -> Tensor:
    """Put 0 above the ``k``-th diagonal of matrices; a vector is repeated as rows first.

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


@op("_npi_diag_indices_from", types="T -> int64")
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
