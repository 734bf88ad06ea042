"""Sparse kernels for conversion, selection, concatenation, reduction and row updates."""

from __future__ import annotations

import torch
from torch import Tensor

from ...error import MXNetError
from ...ops.nn.loss_outputs import linear_regression_output, logistic_regression_output
from ...ops.sparse import DENSE, ROWS, cast_storage, getnnz, retain
from ...ops.tensor.indexing import take
from ...ops.tensor.joining import concat
from ...ops.tensor.products import vector_norm
from ...ops.tensor.reduce import mean, norm, square_sum, sum_
from ...ops.tensor.slicing import slice_
from ...ops.training.adam import adam_update
from ...ops.training.adaptive import adagrad_update, ftrl_update, group_adagrad_update
from ...ops.training.sgd import sgd_mom_update, sgd_update
from ...runtime.array import plain, wrap_plain, writable
from ..ndarray import NDArray
from . import layout
from .arrays import CSRNDArray, RowSparseNDArray, make
from .dispatch import Call, dense_now, dense_of, ghost_now, kernel, to_storage


@kernel(cast_storage, records=True)
def convert_storage(call: Call) -> NDArray:
    """Convert to dense, or copy."""
    array = call.array
    target = call.attrs["stype"]
    if target == array.stype:
        output = array._like(array._values.clone())
        output._ghost = ghost_now(array)
        return output
    if target != DENSE:
        raise MXNetError(f"cast_storage from {array.stype} to {target} is not supported.")
    dense = dense_now(array)
    if dense.data_ptr() == array._values.data_ptr():
        dense = dense.clone()
    return to_storage(dense, DENSE, array._ctx)


@kernel(retain)
def retain_rows(call: Call) -> RowSparseNDArray:
    """Keep the given rows of a row_sparse array; rows that are not stored become zeros.

    An array without stored rows stays empty.
    """
    data, indices = call.arrays
    if not isinstance(data, RowSparseNDArray) or call.stypes[1] != DENSE:
        raise MXNetError(
            f"_sparse_retain takes a row_sparse and a dense array, got {' and '.join(call.stypes)}."
        )
    rows = plain(indices).long().reshape(-1)[: None if len(data._indices) else 0]
    values = layout.rows_at(data._values, data._indices, rows)
    return make(RowSparseNDArray, data._shape, values, rows, ctx=data._ctx)


@kernel(getnnz)
def stored_count(call: Call) -> NDArray:
    """Count the stored values of a csr matrix, in total or per row."""
    data, axis = call.array, call.attrs["axis"]
    if not isinstance(data, CSRNDArray):
        raise MXNetError(f"_contrib_getnnz takes a csr array, got {call.stypes[0]}.")
    if axis is None:
        return wrap_plain(NDArray, data._indptr[-1:].clone(), data._ctx)
    if axis != 1:
        raise MXNetError(f"getnnz with axis = {axis} is not supported yet: use None or 1.")
    return wrap_plain(NDArray, data._indptr.diff(), data._ctx)


def _rows_of(array: CSRNDArray, rows: Tensor) -> CSRNDArray:
    counts = array._indptr.diff()[rows]
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    inside = torch.arange(int(indptr[-1]), device=rows.device)
    inside = inside - torch.repeat_interleave(indptr[:-1], counts)
    positions = torch.repeat_interleave(array._indptr[rows], counts) + inside
    parts = array._values[positions], array._indices[positions], indptr
    return make(CSRNDArray, (len(rows), array._shape[1]), *parts, ctx=array._ctx)


@kernel(take)
def take_rows(call: Call) -> CSRNDArray | None:
    """Take rows of a csr matrix."""
    mode = call.attrs["mode"]
    array, chosen = call.arrays
    if not isinstance(array, CSRNDArray) or call.stypes[1] != DENSE:
        return None
    if call.attrs["axis"] != 0 or mode == "raise":
        return None
    rows = plain(chosen).long()
    if rows.ndim != 1:
        raise MXNetError(
            "Take with CSR array only supports one-dimensional indices. "
            f"{rows.ndim} dimensional input is given instead."
        )
    count = array._shape[0]
    return _rows_of(array, rows % count if mode == "wrap" else rows.clamp(0, count - 1))


@kernel(slice_)
def slice_rows(call: Call) -> CSRNDArray | None:
    """Slice a csr matrix by rows and columns."""
    array = call.array
    steps = call.attrs["step"] or ()
    if not isinstance(array, CSRNDArray) or any(s not in (None, 1) for s in steps):
        return None
    pairs = list(zip(call.attrs["begin"], call.attrs["end"], strict=True))
    (top, bottom), *columns = [
        slice(begin, end).indices(size)[:2]
        for (begin, end), size in zip(pairs, array._shape, strict=False)
    ]
    bottom = max(top, bottom)
    indptr = array._indptr[top : bottom + 1]
    first, last = int(indptr[0]), int(indptr[-1])
    values, indices = array._values[first:last].clone(), array._indices[first:last].clone()
    indptr = indptr - first
    width = array._shape[1]
    if columns:
        left, right = columns[0]
        inside = torch.nonzero((indices >= left) & (indices < right)).reshape(-1)
        indptr = layout.pointers(layout.row_numbers(indptr)[inside], bottom - top)
        values, indices, width = values[inside], indices[inside] - left, max(right - left, 0)
    return make(CSRNDArray, (bottom - top, width), values, indices, indptr, ctx=array._ctx)


@kernel(concat)
def concatenate_rows(call: Call) -> CSRNDArray | None:
    """Stack csr matrices along the first axis."""
    arrays = call.all_of(CSRNDArray)
    if not arrays or call.attrs["dim"] != 0:
        return None
    width = arrays[0]._shape[1]
    if any(a._shape[1] != width for a in arrays):
        raise MXNetError(f"Concat: the csr arrays have shapes {[a._shape for a in arrays]}.")
    pointers, total = [arrays[0]._indptr[:1]], 0
    for a in arrays:
        pointers.append(a._indptr[1:] + total)
        total += len(a._values)
    parts = torch.cat([a._values for a in arrays]), torch.cat([a._indices for a in arrays])
    shape = (sum(a._shape[0] for a in arrays), width)
    return make(CSRNDArray, shape, *parts, torch.cat(pointers), ctx=arrays[0]._ctx)


def _one_axis(call: Call) -> int | None:
    """Return the axis if csr matrices can be reduced over it, else None."""
    axis = call.attrs["axis"]
    axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    plainly = not call.attrs["keepdims"] and not call.attrs.get("exclude", False)
    return axis if axis in (0, 1) and isinstance(axis, int) and plainly else None


def _sums(array: CSRNDArray, values: Tensor, axis: int) -> Tensor:
    """Sum `values`, one per stored element of a CSR matrix, along `axis`."""
    positions = array._indices if axis == 0 else layout.row_numbers(array._indptr)
    return values.new_zeros(array._shape[1 - axis]).index_add_(0, positions, values)


@kernel(sum_, mean)
def total_sparse(call: Call) -> NDArray | None:
    """Sum or average the columns or rows of a csr matrix."""
    array, axis = call.array, _one_axis(call)
    if axis is None or not isinstance(array, CSRNDArray):
        return None
    total = _sums(array, array._values, axis)
    if call.op is mean:
        total = total / array._shape[axis]
    return wrap_plain(NDArray, total.to(array._values.dtype), array._ctx)


@kernel(norm)
def norm_of(call: Call) -> NDArray | None:
    """Return the L2 norm of a csr matrix, or of its columns or rows."""
    array, attrs = call.array, call.attrs
    if attrs["ord"] != 2 or attrs["out_dtype"] is not None:
        return None
    if not attrs["axis"] and not attrs["keepdims"]:
        result = vector_norm(array._values).reshape(1)
        return wrap_plain(NDArray, result, array._ctx)
    axis = _one_axis(call)
    if axis is None or not isinstance(array, CSRNDArray):
        return None
    return wrap_plain(NDArray, _sums(array, array._values.square(), axis).sqrt_(), array._ctx)


@kernel(square_sum)
def total_squares(call: Call) -> NDArray:
    """Sum the squares of a row_sparse matrix over an axis; kept row sums stay row_sparse."""
    array = call.array
    axis = _one_axis(call._replace(attrs={**call.attrs, "keepdims": False}))
    if axis is None or not isinstance(array, RowSparseNDArray) or array.ndim != 2:
        raise MXNetError("_square_sum takes a row_sparse matrix and axis=0 or axis=1.")
    keep = call.attrs["keepdims"]
    sums = array._values.square().sum(axis, keepdim=keep)
    if axis == 1 and keep:
        shape = (array._shape[0], 1)
        return make(RowSparseNDArray, shape, sums, array._indices, ctx=array._ctx)
    if axis == 1:
        sums = layout.dense_from_rows(array._shape[:1], sums, array._indices)
    return wrap_plain(NDArray, sums, array._ctx)


@kernel(linear_regression_output, logistic_regression_output, records=True)
def compared_with_label(call: Call) -> NDArray | None:
    """Accept a csr label, which is converted to dense."""
    data, label = call.arrays
    if call.stypes[0] != DENSE or not isinstance(label, CSRNDArray):
        return None
    output = call.op.kernel(dense_now(data), label._dense(), **call.attrs)
    return to_storage(output, DENSE, data._ctx)


# -- optimizer updates of the rows of the gradient ---------------------------


def _rows_in_place(array: NDArray, needed: bool) -> Tensor:
    """Return the dense values of a weight or state; missing rows of a state become zeros."""
    if not isinstance(array, RowSparseNDArray):
        return writable(array)
    if not layout.has_all_rows(array._shape, array._indices):
        if needed:
            raise MXNetError(
                "A row_sparse weight must store all its rows to be updated, but only "
                f"{len(array._indices)} of {array._shape[0]} are stored."
            )
        rows = torch.arange(array._shape[0], device=array._indices.device)
        array._set(array._shape, array._dense(), rows)
    return array._values


def _update_rows(call: Call) -> NDArray:
    weight, grad, *states = call.arrays
    assert isinstance(grad, RowSparseNDArray)  # checked first by kernels
    target = call.out
    if target is None:  # the states are new tensors
        target = weight.copyto(weight.context)
    elif not isinstance(target, NDArray):
        raise MXNetError(f"{call.op.name} makes 1 output, but out= has {len(target)}.")
    elif target is not weight:
        target[:] = weight
    memory = _rows_in_place(target, needed=True)
    rows = grad._indices
    if not len(rows):
        return target
    dense_states = [_rows_in_place(s, needed=False) for s in states]
    parts = [k.index_select(0, rows) for k in dense_states]
    new = call.op.kernel(memory.index_select(0, rows), grad._values, *parts, **call.attrs)
    for state, part in zip(dense_states, parts, strict=True):
        state.index_copy_(0, rows, part)
    memory.index_copy_(0, rows, new)
    return target


def _standard(call: Call) -> NDArray:
    """Run the dense update on all rows without a warning, as in MXNet."""
    weight, grad, *states = call.arrays
    tensors = [_rows_in_place(s, needed=False) for s in states]
    new = call.op.kernel(dense_of(weight), dense_of(grad), *tensors, **call.attrs)
    if isinstance(weight, RowSparseNDArray):
        rows = torch.arange(len(new), device=new.device)
        return make(RowSparseNDArray, weight._shape, new, rows, ctx=weight._ctx)
    return wrap_plain(NDArray, new, weight._ctx)


def _uniform(call: Call) -> bool:
    """Return whether the weight and its states have the same storage type."""
    return len({call.stypes[0], *call.stypes[2:]}) == 1


@kernel(sgd_update, sgd_mom_update, adam_update, records=True)
def lazily(call: Call) -> NDArray | None:
    """Update the rows of a row_sparse gradient, or all rows without `lazy_update`."""
    if call.stypes[1] != ROWS:
        return None
    if _uniform(call):
        return _update_rows(call) if call.attrs["lazy_update"] else _standard(call)
    # Dense states of a row_sparse weight are updated completely.
    standard = call.stypes[0] == ROWS and set(call.stypes[2:]) == {DENSE}
    return _standard(call) if standard else None


@kernel(ftrl_update, records=True)
def ftrl(call: Call) -> NDArray | None:
    """Update the rows of a row_sparse gradient if weight and states are row_sparse, too."""
    return _update_rows(call) if set(call.stypes) == {ROWS} else None


@kernel(adagrad_update, group_adagrad_update, records=True)
def adagrad(call: Call) -> NDArray:
    """Update the rows of a row_sparse gradient."""
    if call.stypes[1] != ROWS or not _uniform(call):
        raise MXNetError(
            f"{call.op.name} needs a row_sparse gradient, and weight and history of the same "
            f"storage type; got {', '.join(call.stypes)}."
        )
    return _update_rows(call)
