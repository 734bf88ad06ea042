"""Operators that write elements at array indices, and index arithmetic."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...error import ShapeError
from ..attributes import Shape
from ..declare import op
from .indexing import coordinates


def _check_scatter(name: str, data: Tensor, indices: Tensor, shape: Shape) -> None:
    target = (*indices.shape[1:], *shape[indices.shape[0] :])
    if data.shape != target:
        raise ShapeError(
            f"{name}: invalid data {list(data.shape)}, indices {list(indices.shape)} and shape "
            f"{shape}: the data must be {list(target)}."
        )


@op("scatter_nd", types="T I -> T", without_gradient=("indices",))
def scatter_nd(data: Tensor, indices: Tensor, *, shape: Shape) -> Tensor:
    """Write elements into an array of zeros, at the coordinates in the columns of ``indices``.

    Parameters
    ----------
    data
        The elements to write.
    indices
        Coordinates along axis 0: ``indices[i]`` has those for axis i of the result.

    >>> x, index = mx.nd.array([5, 6]), mx.nd.array([[1, 0], [0, 1]])
    >>> mx.nd.scatter_nd(x, index, shape=(2, 2)).asnumpy()
    array([[0., 6.],
           [5., 0.]], dtype=float32)
    """
    positions = coordinates("scatter_nd", indices, len(shape))
    _check_scatter("scatter_nd", data, indices, shape)
    return torch.zeros(shape, dtype=data.dtype, device=data.device).index_put(positions, data)


@scatter_nd.infer_outputs
def scatter_nd_shape(data: Shape | None, indices: Shape | None, *, shape: Shape) -> Shape:
    """The output has the shape of the attribute."""
    return shape


@op("_backward_gather_nd", types="T I -> T")
def add_at_nd(data: Tensor, indices: Tensor, *, shape: Shape) -> Tensor:
    """Add elements to an array of zeros, at the coordinates in the columns of ``indices``.

    Unlike `scatter_nd`, it sums elements with equal coordinates.

    Parameters
    ----------
    data
        The elements to add.
    indices
        Coordinates along axis 0: ``indices[i]`` has those for axis i of the result.

    >>> x, index = mx.nd.array([5, 6, 1]), mx.nd.array([[1, 0, 0], [0, 1, 1]])
    >>> mx.nd._internal._backward_gather_nd(x, index, shape=(2, 2)).asnumpy()
    array([[0., 7.],
           [5., 0.]], dtype=float32)
    """
    positions = coordinates("_backward_gather_nd", indices, len(shape))
    _check_scatter("_backward_gather_nd", data, indices, shape)
    return data.new_zeros(shape).index_put(positions, data, accumulate=True)


add_at_nd.infer_outputs(scatter_nd_shape)


@op("_scatter_set_nd", "_npi_scatter_set_nd", types="T T I -> T")
def scatter_set_nd(lhs: Tensor, rhs: Tensor, indices: Tensor, *, shape: Shape) -> Tensor:
    """Return a copy of ``lhs`` with ``rhs`` at the coordinates in the columns of ``indices``.

    Parameters
    ----------
    lhs
        The array to copy.
    rhs
        The elements to write.
    indices
        Coordinates along axis 0: ``indices[i]`` has those for axis i of `lhs`.
    shape
        Shape of `lhs`.

    >>> x, y, index = mx.nd.zeros((2, 2)), mx.nd.array([7]), mx.nd.array([[1], [0]])
    >>> mx.nd._internal._scatter_set_nd(x, y, index, shape=(2, 2)).asnumpy()
    array([[0., 0.],
           [7., 0.]], dtype=float32)
    """
    positions = coordinates("_scatter_set_nd", indices, lhs.ndim)
    _check_scatter("_scatter_set_nd", rhs, indices, tuple(lhs.shape))
    return lhs.index_put(positions, rhs)


@scatter_set_nd.infer_outputs
def scatter_set_nd_shape(
    lhs: Shape | None, rhs: Shape | None, indices: Shape | None, *, shape: Shape
) -> Shape | None:
    """The output has the shape of the first array."""
    return lhs


@op("_contrib_index_copy", types="T I T -> T")
def index_copy(old_tensor: Tensor, index_vector: Tensor, new_tensor: Tensor) -> Tensor:
    """Return a copy of an array with some rows replaced.

    Parameters
    ----------
    old_tensor
        The array to copy.
    index_vector
        Indices of the rows to replace.
    new_tensor
        The new rows.

    >>> old, new = mx.nd.zeros((3, 1)), mx.nd.array([[5], [6]])
    >>> mx.nd.contrib.index_copy(old, mx.nd.array([2, 0]), new).asnumpy()
    array([[6.],
           [0.],
           [5.]], dtype=float32)
    """
    return old_tensor.index_copy(0, index_vector.long(), new_tensor)


@index_copy.infer_outputs
def index_copy_shape(
    old_tensor: Shape | None, index_vector: Shape | None, new_tensor: Shape | None
) -> Shape | None:
    """The output has the shape of the old array."""
    return old_tensor


def _one_in_each_row(name: str, data: Tensor, index: Tensor, values: Tensor) -> Tensor:
    """Return a copy with one value written in each row; indices out of range are ignored."""
    if data.ndim != 2 or index.shape != data.shape[:1]:
        raise ShapeError(
            f"{name}: needs a matrix and one index for each row, but got {list(data.shape)} and "
            f"{list(index.shape)}."
        )
    whole = index.long().unsqueeze(1)
    valid = (whole >= 0) & (whole < data.shape[1])
    positions = whole.clamp(0, data.shape[1] - 1)
    return data.scatter(1, positions, torch.where(valid, values, data.gather(1, positions)))


@op("fill_element_0index", auto_inputs=False, without_gradient=("rhs",))
def fill_element_0index(lhs: Tensor, mhs: Tensor, rhs: Tensor) -> Tensor:
    """Return a copy of ``lhs`` with ``mhs[i]`` in row ``i`` at column ``rhs[i]``.

    Parameters
    ----------
    lhs
        The matrix to copy.
    mhs
        The elements to write, one for each row.
    rhs
        The column of each element.

    >>> x, values, columns = mx.nd.zeros((2, 2)), mx.nd.array([5, 6]), mx.nd.array([1, 0])
    >>> mx.nd.fill_element_0index(x, values, columns).asnumpy()
    array([[0., 5.],
           [6., 0.]], dtype=float32)
    """
    return _one_in_each_row("fill_element_0index", lhs, rhs, mhs.unsqueeze(1))


@fill_element_0index.infer_outputs
def fill_element_0index_shape(
    lhs: Shape | None, mhs: Shape | None, rhs: Shape | None
) -> Shape | None:
    """The output has the shape of the matrix."""
    return lhs


@op("_onehot_encode", auto_inputs=False)
def onehot_encode(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Return a matrix of the shape of ``rhs`` with 1 in row ``i`` at column ``lhs[i]``.

    >>> mx.nd._internal._onehot_encode(mx.nd.array([1, 0]), mx.nd.zeros((2, 2))).asnumpy()
    array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    zeros = torch.zeros_like(rhs)
    return _one_in_each_row("_onehot_encode", zeros, lhs, zeros.new_ones(()))


@onehot_encode.infer_outputs
def onehot_encode_shape(lhs: Shape | None, rhs: Shape | None) -> Shape | None:
    """The output has the shape of the second array."""
    return rhs


def _strides(name: str, shape: Shape | None) -> list[int]:
    """Return the stride of each axis, in elements; the first size is not used."""
    if not shape:
        raise ShapeError(f"{name}: shape must be given.")
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


@op("_ravel_multi_index", "ravel_multi_index", names_single_input=True)
def ravel_multi_index(data: Tensor, *, shape: Shape | None = None) -> Tensor:
    """Convert columns of coordinates to indices into the flattened array.

    Parameters
    ----------
    data
        Coordinates along axis 0: ``data[i]`` has those for axis i.
    shape
        Shape of the array.

    >>> mx.nd.ravel_multi_index(mx.nd.array([[3, 6], [4, 5]]), shape=(7, 6)).asnumpy()
    array([22., 41.], dtype=float32)
    """
    strides = torch.tensor(_strides("_ravel_multi_index", shape), device=data.device)
    if data.ndim != 2 or data.shape[0] != len(strides):
        raise ShapeError(
            f"_ravel_multi_index: data must be a matrix with a row for each axis of {shape}, but "
            f"is {list(data.shape)}."
        )
    return (data.long() * strides.unsqueeze(1)).sum(0).to(data.dtype)


@ravel_multi_index.infer_outputs
def ravel_multi_index_shape(data: Shape | None, *, shape: Shape | None) -> Shape | None:
    """The output has one index for each column."""
    return None if data is None else data[1:]


@op("_unravel_index", "unravel_index", names_single_input=True)
def unravel_index(data: Tensor, *, shape: Shape | None = None) -> Tensor:
    """Convert indices into the flattened array to columns of coordinates.

    Parameters
    ----------
    data
        Indices into the flattened array.
    shape
        Shape of the array.

    >>> mx.nd.unravel_index(mx.nd.array([22, 41]), shape=(7, 6)).asnumpy()
    array([[3., 6.],
           [4., 5.]], dtype=float32)
    """
    rest, rows = data.long(), []
    for stride in _strides("_unravel_index", shape):
        rows.append(torch.div(rest, stride, rounding_mode="trunc"))
        rest = rest.fmod(stride)
    return torch.stack(rows).to(data.dtype)


@unravel_index.infer_outputs
def unravel_index_shape(data: Shape | None, *, shape: Shape | None) -> Shape | None:
    """The output has one row for each axis."""
    return None if data is None or shape is None else (len(shape), *data)
