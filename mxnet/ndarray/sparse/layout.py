"""Sparse layouts as torch tensors: conversion to and from dense, and index operations.

A csr matrix is (values, indices, indptr), a row_sparse array is (values, indices): row
``indices[i]`` is ``values[i]``. Elements that are not stored are zero. Indices are int64.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...error import InvalidValue, MXNetError, reporting_memory

Shape = tuple[int, ...]


def row_numbers(indptr: Tensor) -> Tensor:
    """Return the row of each stored value of a csr matrix.

    >>> row_numbers(torch.tensor([0, 1, 1, 3])).tolist()
    [0, 2, 2]
    """
    counts = indptr.diff()
    return torch.repeat_interleave(torch.arange(len(counts), device=indptr.device), counts)


def pointers(rows: Tensor, count: int) -> Tensor:
    """Return the offsets of `count` rows, plus the end, from the row of each value.

    >>> pointers(torch.tensor([0, 2, 2]), 3).tolist()
    [0, 1, 1, 3]
    """
    indptr = rows.new_zeros(count + 1)
    torch.cumsum(torch.bincount(rows, minlength=count), 0, out=indptr[1:])
    return indptr


def csr_from_dense(dense: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return values, indices and indptr of the nonzero elements."""
    rows, columns = torch.nonzero(dense, as_tuple=True)
    return dense[rows, columns], columns, pointers(rows, dense.shape[0])


def dense_from_csr(shape: Shape, values: Tensor, indices: Tensor, indptr: Tensor) -> Tensor:
    """Return the dense matrix."""
    with reporting_memory(f"the dense form of a sparse array of shape {tuple(shape)}"):
        dense = values.new_zeros(shape)
    if len(values):
        try:
            dense[row_numbers(indptr), indices] = values
        except (IndexError, RuntimeError) as error:
            raise MXNetError(
                f"The indices of a csr array of shape {shape} do not fit: {error}"
            ) from error
    return dense


def rows_from_dense(dense: Tensor) -> tuple[Tensor, Tensor]:
    """Return the nonzero rows and their indices."""
    rows = torch.nonzero(
        (dense != 0).reshape(len(dense), math.prod(dense.shape[1:])).any(1)
    ).reshape(-1)
    return dense.index_select(0, rows), rows


def dense_from_rows(shape: Shape, values: Tensor, indices: Tensor) -> Tensor:
    """Return the dense array."""
    with reporting_memory(f"the dense form of a sparse array of shape {tuple(shape)}"):
        dense = values.new_zeros(shape)
    if len(values):
        try:
            dense.index_copy_(0, indices, values)
        except (IndexError, RuntimeError) as error:
            raise MXNetError(
                f"The indices of a row_sparse array of shape {shape} do not fit: {error}"
            ) from error
    return dense


def has_all_rows(shape: Shape, indices: Tensor) -> bool:
    """Return whether all rows are stored in order, so that the values are the dense array."""
    count = shape[0]
    if len(indices) != count:
        return False
    return bool((indices == torch.arange(count, device=indices.device)).all())


def sum_rows(values: list[Tensor], indices: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the sum of row_sparse arrays, with sorted rows."""
    rows, groups = torch.unique(torch.cat(indices), return_inverse=True)
    total = values[0].new_zeros((len(rows), *values[0].shape[1:]))
    return total.index_add_(0, groups, torch.cat(values)), rows


def rows_at(values: Tensor, indices: Tensor, rows: Tensor) -> Tensor:
    """Return selected rows of a row_sparse array; zeros for rows that are not stored."""
    output = values.new_zeros((len(rows), *values.shape[1:]))
    if len(indices) and len(rows):
        order = torch.argsort(indices)
        indices = indices[order]
        positions = torch.searchsorted(indices, rows).clamp_(max=len(indices) - 1)
        hits = torch.nonzero(indices[positions] == rows).reshape(-1)
        output.index_copy_(0, hits, values.index_select(0, order[positions[hits]]))
    return output


def csr_keys(columns: int, indices: Tensor, indptr: Tensor) -> Tensor:
    """Return the position in the dense matrix for each stored element."""
    return row_numbers(indptr) * columns + indices


def csr_from_keys(shape: Shape, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Return indices and indptr for sorted positions."""
    columns = shape[1]
    return keys % columns, pointers(torch.div(keys, columns, rounding_mode="floor"), shape[0])


def transpose(
    shape: Shape, values: Tensor, indices: Tensor, indptr: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return values, indices and indptr of the transposed csr matrix."""
    order = torch.argsort(indices, stable=True)
    return values[order], row_numbers(indptr)[order], pointers(indices, shape[1])


def check_csr(shape: Shape, values: Tensor, indices: Tensor, indptr: Tensor, full: bool) -> None:
    """Raise unless the components form a csr matrix; `full` checks each index too."""
    if len(indptr) != shape[0] + 1 or len(indices) != len(values):
        raise MXNetError(
            f"A csr array of shape {shape} needs {shape[0] + 1} pointers and as many indices as "
            f"values, but has {len(indptr)} pointers, {len(indices)} indices, {len(values)} values."
        )
    if not full:
        return
    if indptr[0] != 0 or indptr[-1] != len(indices) or bool((indptr.diff() < 0).any()):
        raise MXNetError(
            "IndPtr of csr NDArray should be non-negative, in non-decreasing order, start with 0, "
            f"and end with the number of indices, {len(indices)}."
        )
    rows = row_numbers(indptr)
    falls = (indices.diff() <= 0) & (rows.diff() == 0)
    if bool((indices < 0).any()) or bool((indices >= shape[1]).any()) or bool(falls.any()):
        raise MXNetError(
            "Indices of csr NDArray should be non-negative, in ascending order per row and less "
            f"than the number of columns, {shape[1]}."
        )


def check_rows(shape: Shape, values: Tensor, indices: Tensor, full: bool) -> None:
    """Raise unless the components form a row_sparse array; `full` checks each index too."""
    if len(indices) != len(values) or tuple(values.shape[1:]) != shape[1:]:
        raise InvalidValue(
            f"A row_sparse array of shape {shape} needs values of shape (number of indices, "
            f"{', '.join(map(str, shape[1:]))}), but has {len(indices)} indices and values of "
            f"shape {tuple(values.shape)}."
        )
    if not full or not len(indices):
        return
    if indices[0] < 0 or indices[-1] >= shape[0] or bool((indices.diff() <= 0).any()):
        raise MXNetError(
            "Indices of row_sparse NDArray should be non-negative, less than the size of first "
            f"dimension, {shape[0]}, and in ascending order."
        )
