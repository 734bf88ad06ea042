"""Random shapes, arrays and matrices, and small arrays with known content."""

# ruff: noqa: NPY002 (np.random.seed has to rule these numbers)

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mxnet as mx

from ..ndarray import NDArray
from .tolerances import default_dtype


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple:
    """Return a random shape with two axes, of at most the given sizes.

    Parameters
    ----------
    dim0
        Largest size of the first axis.
    dim1
        Largest size of the second axis.
    allow_zero_size
        Whether sizes may be 0.

    >>> len(mx.test_utils.rand_shape_2d())
    2
    """
    return _rand_shape((dim0, dim1), allow_zero_size)


def rand_shape_3d(
    dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False
) -> tuple:
    """Return a random shape with three axes, of at most the given sizes.

    Parameters
    ----------
    dim0
        Largest size of the first axis.
    dim1
        Largest size of the second axis.
    dim2
        Largest size of the third axis.
    allow_zero_size
        Whether sizes may be 0.

    >>> len(mx.test_utils.rand_shape_3d())
    3
    """
    return _rand_shape((dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple:
    """Return a random shape with `num_dim` axes of at most `dim`.

    Parameters
    ----------
    num_dim
        Number of axes.
    dim
        Largest size.
    allow_zero_size
        Whether sizes may be 0.

    >>> len(mx.test_utils.rand_shape_nd(4))
    4
    """
    return _rand_shape((dim,) * num_dim, allow_zero_size)


def _rand_shape(limits: Sequence[int], allow_zero_size: bool) -> tuple[int, ...]:
    low = 0 if allow_zero_size else 1
    return tuple(int(np.random.randint(low, n + 1)) for n in limits)


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """Return a random point with integer coordinates.

    Parameters
    ----------
    x_low
        Least x.
    x_high
        Largest x.
    y_low
        Least y.
    y_high
        Largest y.

    >>> len(mx.test_utils.rand_coord_2d(0, 5, 0, 5))
    2
    """
    x = np.random.randint(x_low, x_high)
    y = np.random.randint(y_low, y_high)
    return int(x), int(y)


def random_arrays(*shapes: tuple[int, ...]) -> Any:
    """Return a NumPy array of normal numbers for each shape; for one shape, the array itself.

    Parameters
    ----------
    shapes
        The shapes.

    >>> mx.test_utils.random_arrays((2, 3)).shape
    (2, 3)
    """
    made = [np.array(np.random.randn(*s), dtype=default_dtype()) for s in shapes]
    return made[0] if len(made) == 1 else made


def random_uniform_arrays(*shapes: tuple[int, ...], **kwargs: Any) -> list[np.ndarray]:
    """Return a list of NumPy arrays with numbers between `low` (0) and `high` (1).

    Parameters
    ----------
    shapes
        The shapes.

    >>> mx.test_utils.random_uniform_arrays((2, 3))[0].shape
    (2, 3)
    """
    low, high = kwargs.pop("low", 0.0), kwargs.pop("high", 1.0)
    dtype = kwargs.pop("dtype", default_dtype())
    return [np.random.uniform(low, high, size=s).astype(dtype) for s in shapes]


def random_sample(population: Sequence[Any], k: int) -> list[Any]:
    """Return `k` different members of a sequence in random order.

    Parameters
    ----------
    population
        The sequence.
    k
        How many.

    >>> sorted(mx.test_utils.random_sample([1, 2, 3], 3))
    [1, 2, 3]
    """
    order = np.random.permutation(len(population))[:k]
    return [population[i] for i in order]


def assign_each(the_input: np.ndarray, function: Callable | None) -> np.ndarray:
    """Return an array with a function applied to each element; without one, a copy.

    Parameters
    ----------
    the_input
        The array.
    function
        The function of elements.

    >>> mx.test_utils.assign_each(np.array([1.0, 2.0]), lambda x: x + 1)
    array([2., 3.])
    """
    return np.array(the_input) if function is None else np.vectorize(function)(the_input)


def assign_each2(input1: np.ndarray, input2: np.ndarray, function: Callable | None) -> np.ndarray:
    """Return an array with a function applied to pairs of elements; without one, a copy.

    Parameters
    ----------
    input1
        The first array.
    input2
        The second array.
    function
        The function of elements.

    >>> mx.test_utils.assign_each2(np.array([1.0]), np.array([2.0]), lambda x, y: x + y)
    array([3.])
    """
    return np.array(input1) if function is None else np.vectorize(function)(input1, input2)


def create_2d_tensor(rows: int, columns: int, dtype: Any = np.int64) -> NDArray:
    """Return an array whose rows hold their numbers.

    Parameters
    ----------
    rows
        Number of rows.
    columns
        Number of columns.
    dtype
        Data type of the array.

    >>> create_2d_tensor(2, 3).asnumpy()
    array([[0, 0, 0],
           [1, 1, 1]])
    """
    return mx.nd.arange(0, rows, dtype=dtype).reshape((rows, 1)).broadcast_to((rows, columns))


def create_vector(size: int, dtype: Any = np.int64) -> NDArray:
    """Return the numbers from 0 up to, but not including, `size`.

    Parameters
    ----------
    size
        Number of elements, or of rows.
    dtype
        Data type of the array.

    >>> mx.test_utils.create_vector(3).asnumpy()
    array([0, 1, 2])
    """
    return mx.nd.arange(0, size, dtype=dtype)


def get_identity_mat(size: int) -> NDArray:
    """Return the identity matrix.

    Parameters
    ----------
    size
        Number of elements, or of rows.

    >>> mx.test_utils.get_identity_mat(2).shape
    (2, 2)
    """
    return mx.nd.eye(size)


def get_identity_mat_batch(size: int) -> NDArray:
    """Return two identity matrices in one array.

    Parameters
    ----------
    size
        Number of elements, or of rows.

    >>> mx.test_utils.get_identity_mat_batch(3).shape
    (2, 3, 3)
    """
    return mx.nd.array(np.stack([np.eye(size)] * 2))


def np_reduce(dat: np.ndarray, axis: Any, keepdims: bool, numpy_reduce_func: Callable) -> Any:
    """Return a NumPy reduction over one axis, several, or all.

    Parameters
    ----------
    dat
        The array.
    axis
        One axis, several, or None for all.
    keepdims
        Whether reduced axes stay.
    numpy_reduce_func
        NumPy's function.

    >>> mx.test_utils.np_reduce(np.ones((2, 3)), 1, False, np.sum)
    array([3., 3.])
    """
    if isinstance(axis, int):
        axis = (axis,)
    axes = tuple(range(dat.ndim)) if axis is None else tuple(axis)
    reduced = dat
    for i in sorted((a % dat.ndim for a in axes), reverse=True):
        reduced = numpy_reduce_func(reduced, axis=i)
    if keepdims:
        kept = tuple(1 if i in {a % dat.ndim for a in axes} else n for i, n in enumerate(dat.shape))
        reduced = np.reshape(reduced, kept)
    return reduced


def collapse_sum_like(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return `a` summed over the axes along which an array of `shape` is broadcast to it.

    Parameters
    ----------
    a
        The array to sum.
    shape
        The shape to sum to.

    >>> collapse_sum_like(np.ones((2, 3, 4)), (3, 1)).ravel().tolist()
    [8.0, 8.0, 8.0]
    """
    extra = a.ndim - len(shape)
    if extra < 0:
        raise AssertionError(f"shape {shape} has more axes than {a.shape}")
    stretched = (i + extra for i, n in enumerate(shape) if n == 1 and a.shape[i + extra] != 1)
    return a.sum(axis=(*range(extra), *stretched)).reshape(shape)


# -- matrices with known eigenvalues -----------------------------------------------------------


def new_orthonormal_matrix_2d(n: int) -> np.ndarray:
    """Return a random orthonormal matrix.

    Parameters
    ----------
    n
        Number of rows.

    >>> mx.test_utils.new_orthonormal_matrix_2d(3).shape
    (3, 3)
    """
    return _orthonormal((n, n))


def _orthonormal(shape: tuple[int, ...]) -> np.ndarray:
    return np.linalg.qr(np.random.uniform(-1, 1, size=shape))[0]


def _eigenvalues(shape: tuple[int, ...]) -> np.ndarray:
    """Return well separated real numbers between -10 and 10."""
    n = shape[-1]
    places = np.linspace(-10, 10, n + 2)[1:-1]
    shake = np.random.uniform(-1, 1, size=shape[:-1]) * 5 / (n + 1)
    return places + shake


def new_sym_matrix_with_real_eigvals_nd(shape: tuple[int, ...]) -> np.ndarray:
    """Return symmetric matrices with small, well separated eigenvalues.

    Parameters
    ----------
    shape
        Shape of the array.

    >>> mx.test_utils.new_sym_matrix_with_real_eigvals_nd((2, 3, 3)).shape
    (2, 3, 3)
    """
    q, w = _orthonormal(shape), _eigenvalues(shape)
    made = (q * w[..., None, :]) @ np.swapaxes(q, -1, -2)
    return (made + np.swapaxes(made, -1, -2)) / 2


def new_sym_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Return a symmetric matrix with small, well separated eigenvalues.

    Parameters
    ----------
    n
        Number of rows.

    >>> mx.test_utils.new_sym_matrix_with_real_eigvals_2d(3).shape
    (3, 3)
    """
    return new_sym_matrix_with_real_eigvals_nd((n, n))


def new_matrix_with_real_eigvals_nd(shape: tuple[int, ...]) -> np.ndarray:
    """Return matrices with small, well separated real eigenvalues.

    Parameters
    ----------
    shape
        Shape of the array.

    >>> mx.test_utils.new_matrix_with_real_eigvals_nd((2, 3, 3)).shape
    (2, 3, 3)
    """
    n = shape[-1]
    shear = np.triu(np.random.uniform(-0.3, 0.3, size=shape), 1) + np.eye(n)
    p = _orthonormal(shape) @ shear
    return (p * _eigenvalues(shape)[..., None, :]) @ np.linalg.inv(p)


def new_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Return a matrix with small, well separated real eigenvalues.

    Parameters
    ----------
    n
        Number of rows.

    >>> mx.test_utils.new_matrix_with_real_eigvals_2d(3).shape
    (3, 3)
    """
    return new_matrix_with_real_eigvals_nd((n, n))
