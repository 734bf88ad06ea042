"""Functions that create sparse arrays."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
import torch
from torch import Tensor

from ... import dtypes
from ...context import Context, current_context, torch_device
from ...error import MXNetError
from ...runtime.apply import stored_context
from ...runtime.array import plain
from .. import creation
from ..ndarray import NDArray, from_host
from . import layout
from .arrays import BaseSparseNDArray, CSRNDArray, RowSparseNDArray, Sparse, from_dense, make


def _dtype_of(source: Any, dtype: Any) -> torch.dtype:
    """Return the requested dtype, else that of an array, else float32."""
    if dtype is not None:
        return dtypes.to_torch(dtype)
    own = getattr(source, "dtype", None)
    return torch.float32 if own is None else dtypes.to_torch(own)


def _tensor(source: Any, dtype: torch.dtype, ctx: Context) -> Tensor:
    if isinstance(source, NDArray):
        tensor = plain(source)
    elif isinstance(source, Tensor):
        tensor = source.detach()
    else:
        tensor = from_host(np.asarray(source))
    return tensor.to(torch_device(ctx), dtype, copy=True)


def _is_shape(source: tuple) -> bool:
    return bool(source) and all(isinstance(n, int | np.integer) for n in source)


def _check_shape(shape: Any, actual: tuple[int, ...]) -> None:
    if shape is not None and tuple(shape) != tuple(actual):
        raise ValueError(f"Shape mismatch detected. {tuple(actual)} v.s. {tuple(shape)}")


def _is_scipy(source: Any) -> bool:
    return type(source).__module__.startswith("scipy.sparse")


def _is_scipy_csr(source: Any) -> bool:
    return _is_scipy(source) and source.format == "csr"


def csr_matrix(
    arg1: Any, shape: Any = None, ctx: Context | None = None, dtype: Any = None
) -> CSRNDArray:
    """Create a csr matrix.

    Parameters
    ----------
    arg1
        One of: ``(rows, columns)`` of an empty matrix; ``(data, indices, indptr)``; ``(data, (row,
        col))`` in any order, with duplicates summed; a dense array; a csr array of MXNet or SciPy.
    shape
        Shape of the matrix; by default the smallest for the indices.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; by default that of the values.

    >>> mx.nd.sparse.csr_matrix(([5, 7], ([0, 1], [2, 0]))).asnumpy()
    array([[0, 0, 5],
           [7, 0, 0]])
    """
    ctx = ctx or current_context()
    if isinstance(arg1, tuple):
        if len(arg1) == 2 and not _is_shape(arg1):
            return _csr_from_coo(arg1, shape, ctx, dtype)
        if len(arg1) == 2:
            _check_shape(shape, arg1)
            return zeros("csr", arg1, ctx=ctx, dtype=dtype)
        if len(arg1) == 3:
            return _csr_from_parts(arg1, shape, ctx, dtype)
        raise ValueError(f"Unexpected length of input tuple: {len(arg1)}")
    if isinstance(arg1, CSRNDArray):
        _check_shape(shape, arg1.shape)
        return array(arg1, ctx=ctx, dtype=dtype)
    if _is_scipy_csr(arg1):
        _check_shape(shape, arg1.shape)
        return _csr_from_scipy(arg1, ctx, dtype)
    if isinstance(arg1, RowSparseNDArray):
        raise ValueError(f"Unexpected input type: {type(arg1).__name__}")
    dense = _dense_source(arg1, ctx, dtype)
    if dense.ndim != 2:
        raise ValueError(
            "To convert to a CSR, the NDArray should be 2 Dimensional. Current shape is "
            f"{tuple(dense.shape)}"
        )
    _check_shape(shape, dense.shape)
    return from_dense(CSRNDArray, dense, stored_context(ctx))


def _dense_source(source: Any, ctx: Context, dtype: Any) -> Tensor:
    if _is_scipy(source):
        raise TypeError("source_array must be array like object: convert it with .tocsr()")
    return _tensor(source, _dtype_of(source, dtype), ctx)


def _csr_from_parts(parts: tuple, shape: Any, ctx: Context, dtype: Any) -> CSRNDArray:
    data, indices, indptr = parts
    values = _tensor(data, _dtype_of(data, dtype), ctx)
    indices, indptr = _tensor(indices, torch.int64, ctx), _tensor(indptr, torch.int64, ctx)
    if shape is None:
        if not len(indices):
            raise ValueError("invalid shape: give shape= for a csr matrix without values")
        shape = (len(indptr) - 1, int(indices.max()) + 1)
    if len(shape) != 2:
        raise ValueError(f"A csr matrix has two axes, but shape={tuple(shape)} was given.")
    layout.check_csr(tuple(shape), values, indices, indptr, full=False)
    return make(CSRNDArray, shape, values, indices, indptr, ctx=stored_context(ctx))


def _csr_from_scipy(matrix: Any, ctx: Context, dtype: Any) -> CSRNDArray:
    source = matrix.copy()
    source.sum_duplicates()  # sorts the columns of each row, too
    parts = source.data, source.indices, source.indptr
    return _csr_from_parts(parts, source.shape, ctx, dtype or source.dtype)


def _csr_from_coo(parts: tuple, shape: Any, ctx: Context, dtype: Any) -> CSRNDArray:
    data, groups = parts
    if not isinstance(groups, tuple | list) or len(groups) != 2:
        raise TypeError(
            "csr_matrix takes (rows, columns), (data, indices, indptr) or (data, (row, col)); the "
            f"second of this pair is {type(groups).__name__}."
        )
    row, column = groups
    data = data if hasattr(data, "dtype") else np.asarray(data)
    values = _tensor(data, _dtype_of(data, dtype), ctx)
    rows, columns = _tensor(row, torch.int64, ctx), _tensor(column, torch.int64, ctx)
    if not len(values) == len(rows) == len(columns):
        raise ValueError(
            "row, column, and data array must all be the same length: they have "
            f"{len(rows)}, {len(columns)} and {len(values)} elements."
        )
    if shape is None:
        if not len(rows):
            raise ValueError("invalid shape: give shape= for a csr matrix without values")
        shape = (int(rows.max()) + 1, int(columns.max()) + 1)
    if len(rows) and (int(rows.max()) >= shape[0] or int(columns.max()) >= shape[1]):
        raise ValueError(f"The row or column indices do not fit into shape {tuple(shape)}.")
    keys, groups = torch.unique(rows * shape[1] + columns, return_inverse=True)
    total = values.new_zeros(len(keys)).index_add_(0, groups, values)
    parts = layout.csr_from_keys(shape, keys)
    return make(CSRNDArray, shape, total, *parts, ctx=stored_context(ctx))


def row_sparse_array(
    arg1: Any, shape: Any = None, ctx: Context | None = None, dtype: Any = None
) -> RowSparseNDArray:
    """Create a row_sparse array.

    Parameters
    ----------
    arg1
        One of: a shape of two axes or more, for an empty array; ``(data, indices)``, where row
        ``indices[i]`` is ``data[i]``; a dense array; a row_sparse array.
    shape
        Shape of the array; by default the smallest for the indices.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; by default that of the values.

    >>> mx.nd.sparse.row_sparse_array(([[5, 6]], [1])).asnumpy()
    array([[0., 0.],
           [5., 6.]], dtype=float32)
    """
    ctx = ctx or current_context()
    if isinstance(arg1, tuple):
        if len(arg1) < 2:
            raise ValueError(f"Unexpected length of input tuple: {len(arg1)}")
        if _is_shape(arg1):
            _check_shape(shape, arg1)
            return zeros("row_sparse", arg1, ctx=ctx, dtype=dtype)
        if len(arg1) != 2:
            raise ValueError(f"Unexpected length of input tuple: {len(arg1)}")
        return _rows_from_parts(arg1, shape, ctx, dtype)
    if isinstance(arg1, RowSparseNDArray):
        _check_shape(shape, arg1.shape)
        return array(arg1, ctx=ctx, dtype=dtype)
    if isinstance(arg1, CSRNDArray):
        raise ValueError(f"Unexpected input type: {type(arg1).__name__}")
    dense = _dense_source(arg1, ctx, dtype)
    if not np.ndim(arg1):
        raise MXNetError("row_sparse_array: a single number has no rows; give an array.")
    _check_shape(shape, dense.shape)
    return from_dense(RowSparseNDArray, dense, stored_context(ctx))


def _rows_from_parts(parts: tuple, shape: Any, ctx: Context, dtype: Any) -> RowSparseNDArray:
    data, indices = parts
    values = _tensor(data, _dtype_of(data, dtype), ctx)
    rows = _tensor(indices, torch.int64, ctx)
    if shape is None:
        if not len(rows):
            raise ValueError("invalid shape: give shape= for a row_sparse array without rows")
        shape = (int(rows.max()) + 1, *values.shape[1:])
    shape = tuple(shape)
    if not len(rows):
        values = values.reshape((0, *shape[1:]))
    layout.check_rows(shape, values, rows, full=False)
    return make(RowSparseNDArray, shape, values, rows, ctx=stored_context(ctx))


@overload
def array(source_array: Sparse, ctx: Context | None = None, dtype: Any = None) -> Sparse: ...


@overload
def array(
    source_array: Any, ctx: Context | None = None, dtype: Any = None
) -> BaseSparseNDArray: ...


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> BaseSparseNDArray:
    """Create a sparse array from another one or from a SciPy csr matrix.

    Parameters
    ----------
    source_array
        A sparse array, or a SciPy csr matrix.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; by default that of the values.

    >>> mx.nd.sparse.array(mx.nd.sparse.csr_matrix(([5], ([0], [1])))).stype
    'csr'
    """
    ctx = ctx or current_context()
    if isinstance(source_array, BaseSparseNDArray):
        copied = source_array._copied_to(ctx)
        return copied if dtype is None else copied.astype(dtype, copy=False)
    if isinstance(source_array, NDArray):
        raise ValueError(
            "Please use `tostype` to create RowSparseNDArray or CSRNDArray from an NDArray"
        )
    if _is_scipy_csr(source_array):
        return _csr_from_scipy(source_array, ctx, dtype)
    if _is_scipy(source_array):
        raise ValueError(
            f"Unexpected source_array type: {type(source_array)}. Convert it with .tocsr()."
        )
    raise ValueError(
        "Please use mx.nd.array to create an NDArray with source_array of type "
        f"{type(source_array)}"
    )


@overload
def zeros(
    stype: Literal["csr"],
    shape: Any,
    ctx: Context | None = None,
    dtype: Any = None,
    **kwargs: Any,
) -> CSRNDArray: ...


@overload
def zeros(
    stype: Literal["row_sparse"],
    shape: Any,
    ctx: Context | None = None,
    dtype: Any = None,
    **kwargs: Any,
) -> RowSparseNDArray: ...


@overload
def zeros(
    stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None, **kwargs: Any
) -> NDArray: ...


def zeros(
    stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None, **kwargs: Any
) -> NDArray:
    """Create a sparse array of zeros.

    Parameters
    ----------
    stype
        Storage type: ``'csr'``, ``'row_sparse'`` or ``'default'`` (dense).
    shape
        Shape of the array.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; by default that of the values.

    >>> mx.nd.sparse.zeros('csr', (1, 2)).asnumpy()
    array([[0., 0.]], dtype=float32)
    """
    if stype == "default":
        return creation.zeros(shape, ctx=ctx, dtype=dtype, **kwargs)
    if stype not in ("csr", "row_sparse"):
        raise ValueError(f"unknown storage type {stype!r}: give 'default', 'row_sparse' or 'csr'")
    ctx = ctx or current_context()
    shape = (int(shape),) if isinstance(shape, int | np.integer) else tuple(int(n) for n in shape)
    device = torch_device(ctx)
    kind = torch.float32 if dtype is None else dtypes.to_torch(dtype)
    none = torch.zeros(0, dtype=torch.int64, device=device)
    if stype == "row_sparse":
        values = torch.zeros((0, *shape[1:]), dtype=kind, device=device)
        return make(RowSparseNDArray, shape, values, none, ctx=stored_context(ctx))
    if len(shape) != 2:
        raise ValueError(f"A csr matrix has two axes, but shape={shape} was given.")
    values = torch.zeros(0, dtype=kind, device=device)
    indptr = torch.zeros(shape[0] + 1, dtype=torch.int64, device=device)
    return make(CSRNDArray, shape, values, none, indptr, ctx=stored_context(ctx))


def empty(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """Create a sparse array without stored values, that is, of zeros.

    Parameters
    ----------
    stype
        Storage type: ``'csr'``, ``'row_sparse'`` or ``'default'`` (dense).
    shape
        Shape of the array.
    ctx
        Device of the array; by default the current one.
    dtype
        Data type of the array; by default that of the values.

    >>> mx.nd.sparse.empty("csr", (2, 3)).shape
    (2, 3)
    """
    if stype not in ("csr", "row_sparse"):
        raise ValueError(f"unknown stype : {stype}: give 'row_sparse' or 'csr'")
    return zeros(stype, shape, ctx=ctx, dtype=dtype)
