"""Random dense and sparse arrays."""

# ruff: noqa: NPY002 (np.random.seed has to rule these numbers)

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mxnet as mx

from ..context import Context, current_context
from ..ndarray import NDArray
from .comparison import default_dtype


def rand_ndarray(
    shape: tuple[int, ...],
    stype: str = "default",
    density: float | None = None,
    dtype: Any = None,
    modifier_func: Callable | None = None,
    shuffle_csr_indices: bool = False,
    distribution: str | None = None,
    ctx: Context | None = None,
) -> NDArray:
    """Return a random array: normal numbers, or a sparse one between 0 and 1.

    Parameters
    ----------
    shape
        Shape of the array.
    stype
        Storage type.
    density
        Fraction of nonzero elements; random by default.
    dtype
        Data type of the array.
    modifier_func
        Function applied to each element.
    shuffle_csr_indices
        Whether columns within a row are out of order.
    distribution
        How numbers are spread over a csr matrix: ``'uniform'`` or ``'powerlaw'``.
    ctx
        Device; by default that of tests.

    >>> mx.test_utils.rand_ndarray((2, 3), "csr", density=0.5).stype
    'csr'
    """
    if stype == "default":
        values = np.random.randn(*shape)
        return mx.nd.array(values, ctx=ctx, dtype=dtype)
    return rand_sparse_ndarray(
        shape,
        stype,
        density=density,
        dtype=dtype,
        modifier_func=modifier_func,
        shuffle_csr_indices=shuffle_csr_indices,
        distribution=distribution,
        ctx=ctx,
    )[0]


def rand_sparse_ndarray(
    shape: tuple[int, ...],
    stype: str,
    density: float | None = None,
    dtype: Any = None,
    distribution: str | None = None,
    data_init: float | None = None,
    rsp_indices: Sequence[int] | None = None,
    modifier_func: Callable | None = None,
    shuffle_csr_indices: bool = False,
    ctx: Context | None = None,
) -> tuple[NDArray, tuple]:
    """Return a random sparse array and its parts.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array.
    stype : {'csr', 'row_sparse'}
        Storage type.
    density
        Fraction of nonzero elements; random by default.
    dtype
        Data type of the array.
    distribution
        {'uniform', 'powerlaw'}; the latter, for csr, puts twice as many numbers in each row as in
        the one before.
    data_init
        Value of the elements, instead of random ones.
    rsp_indices
        Indices of the stored rows, for row_sparse.
    modifier_func
        Applied to each number of a row_sparse array.
    shuffle_csr_indices
        Whether columns within a row are out of order.
    ctx
        Device; by default that of tests.

    Returns
    -------
    array : CSRNDArray or RowSparseNDArray
    parts : (indptr, indices, data) for csr; (data, indices) as NumPy arrays for row_sparse

    >>> array, parts = mx.test_utils.rand_sparse_ndarray((2, 3), "row_sparse", density=0.5)
    >>> array.shape
    (2, 3)
    """
    density = np.random.rand() if density is None else density
    dtype = default_dtype() if dtype is None else dtype
    distribution = "uniform" if distribution is None else distribution
    ctx = ctx or current_context()
    if stype == "row_sparse":
        if distribution != "uniform":
            raise AssertionError(f"Distribution {distribution} not supported for row_sparse")
        return _random_rows(shape, density, dtype, data_init, rsp_indices, modifier_func, ctx)
    if stype != "csr":
        raise AssertionError(f"unknown storage type {stype!r}: 'csr' or 'row_sparse'")
    if distribution not in ("uniform", "powerlaw"):
        raise AssertionError(f"Distribution not supported: {distribution}")
    where = _uniform_places if distribution == "uniform" else _powerlaw_places
    csr = _csr_at(where(shape, density), shape, dtype, data_init, shuffle_csr_indices, ctx)
    return csr, (csr.indptr, csr.indices, csr.data)


def _random_rows(
    shape: tuple[int, ...],
    density: float,
    dtype: Any,
    data_init: float | None,
    rsp_indices: Sequence[int] | None,
    modifier_func: Callable | None,
    ctx: Context,
) -> tuple[NDArray, tuple[np.ndarray, np.ndarray]]:
    if rsp_indices is None:
        rows = np.flatnonzero(np.random.rand(shape[0]) < density)
    else:
        rows = np.unique(np.asarray(rsp_indices, dtype=np.int64))
        if len(rows) > shape[0]:
            raise AssertionError(f"{len(rows)} rows were named of an array with {shape[0]}")
    if len(rows) == 0:
        empty = mx.nd.sparse.zeros("row_sparse", shape, dtype=dtype, ctx=ctx)
        return empty, (np.zeros((0, *shape[1:]), dtype=dtype), rows)
    values = np.random.rand(len(rows), *shape[1:])
    values = values.astype(dtype)
    if data_init is not None:
        values.fill(data_init)
    if modifier_func is not None:
        values = np.vectorize(modifier_func)(values).astype(dtype)
    array = mx.nd.sparse.row_sparse_array((values, rows), shape=shape, dtype=dtype, ctx=ctx)
    return array, (values, rows)


def _uniform_places(shape: tuple[int, ...], density: float) -> np.ndarray:
    _check_matrix(shape, density)
    return np.random.rand(*shape) < density


def _powerlaw_places(shape: tuple[int, ...], density: float) -> np.ndarray:
    """Return a mask with 2, 4, 8, ... elements in the rows, until all are placed."""
    _check_matrix(shape, density)
    rows, columns = shape
    total = int(np.ceil(rows * columns * density))
    if total < rows:
        raise ValueError(
            f"A powerlaw array needs an element in every row: density {density} of {shape} "
            f"gives {total}."
        )
    targets = np.minimum(2.0 ** np.arange(1, rows + 1), columns).astype(np.int64)
    left = np.maximum(total - np.concatenate([[0], np.cumsum(targets)[:-1]]), 0)
    counts = np.minimum(targets, left)
    spare = total - counts.sum()
    free = np.cumsum(columns - counts)
    counts = counts + np.diff(np.minimum(free, spare), prepend=0)
    return np.arange(columns)[None, :] < counts[:, None]


def _check_matrix(shape: tuple[int, ...], density: float) -> None:
    if len(shape) != 2:
        raise ValueError(f"A csr array has two axes, not the shape {shape}.")
    if not 0 <= density <= 1:
        raise ValueError(f"density must be between 0 and 1, not {density}.")


def _csr_at(
    mask: np.ndarray,
    shape: tuple[int, ...],
    dtype: Any,
    data_init: Any,
    shuffled: bool,
    ctx: Context,
) -> Any:
    rows, columns = np.nonzero(mask)
    counts = np.bincount(rows, minlength=shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    values = np.random.rand(len(columns)).astype(dtype)
    if data_init is not None:
        values.fill(data_init)
    if shuffled:
        order = _order_within_rows(rows)
        columns, values = columns[order], values[order]
    return mx.nd.sparse.csr_matrix((values, columns, indptr), shape=shape, dtype=dtype, ctx=ctx)


def _order_within_rows(rows: np.ndarray) -> np.ndarray:
    return np.lexsort((np.random.rand(len(rows)), rows))


def create_sparse_array(
    shape: tuple[int, ...],
    stype: str,
    data_init: float | None = None,
    rsp_indices: Sequence[int] | None = None,
    dtype: Any = None,
    modifier_func: Callable | None = None,
    density: float = 0.5,
    shuffle_csr_indices: bool = False,
) -> NDArray:
    """Return a random sparse array; the rows of a row_sparse one are in order.

    Parameters
    ----------
    shape
        Shape of the array.
    stype
        Storage type.
    data_init
        Value of the elements, instead of random ones.
    rsp_indices
        Indices of the stored rows, for row_sparse.
    dtype
        Data type of the array.
    modifier_func
        Function applied to each element.
    density
        Fraction of nonzero elements; random by default.
    shuffle_csr_indices
        Whether columns within a row are out of order.

    >>> mx.test_utils.create_sparse_array((2, 3), "csr").stype
    'csr'
    """
    if stype not in ("csr", "row_sparse"):
        raise AssertionError(f"Unknown storage type: {stype}")
    return rand_sparse_ndarray(
        shape,
        stype,
        density=density,
        dtype=dtype,
        data_init=data_init,
        rsp_indices=rsp_indices,
        modifier_func=modifier_func,
        shuffle_csr_indices=shuffle_csr_indices,
    )[0]


def create_sparse_array_zd(
    shape: tuple[int, ...],
    stype: str,
    density: float,
    data_init: float | None = None,
    rsp_indices: Sequence[int] | None = None,
    dtype: Any = None,
    modifier_func: Callable | None = None,
    shuffle_csr_indices: bool = False,
) -> NDArray:
    """Return a random sparse array; the density of a row_sparse one is its share of stored rows.

    Parameters
    ----------
    shape
        Shape of the array.
    stype
        Storage type.
    density
        Fraction of nonzero elements; random by default.
    data_init
        Value of the elements, instead of random ones.
    rsp_indices
        Indices of the stored rows, for row_sparse.
    dtype
        Data type of the array.
    modifier_func
        Function applied to each element.
    shuffle_csr_indices
        Whether columns within a row are out of order.

    >>> mx.test_utils.create_sparse_array_zd((2, 3), "csr", 0.5).stype
    'csr'
    """
    if stype == "row_sparse":
        density = 0.0
        if rsp_indices is not None and len(rsp_indices) > shape[0]:
            raise AssertionError(f"{len(rsp_indices)} rows were given for the shape {shape}")
    return create_sparse_array(
        shape, stype, data_init, rsp_indices, dtype, modifier_func, density, shuffle_csr_indices
    )


def shuffle_csr_column_indices(csr: Any) -> None:
    """Shuffle the columns within each row of a SciPy csr matrix, in place.

    Parameters
    ----------
    csr
        The matrix.

    >>> import scipy.sparse
    >>> matrix = scipy.sparse.csr_matrix(np.ones((2, 3)))
    >>> mx.test_utils.shuffle_csr_column_indices(matrix)
    """
    rows = np.repeat(np.arange(len(csr.indptr) - 1), np.diff(csr.indptr))
    csr.indices[:] = csr.indices[_order_within_rows(rows)]
