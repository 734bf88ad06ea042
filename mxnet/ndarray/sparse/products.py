"""Sparse kernels of `dot` and `Embedding`, which build their own graph with sparse gradients.

The product of a csr and a dense matrix is torch's embedding_bag: each row is a bag.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ...error import DTypeError, MXNetError, ShapeError
from ...ops.sparse import CSR, DENSE, DOT_CONVERTED, DOT_RESULTS, ROWS, sparse_embedding
from ...ops.tensor.indexing import embedding
from ...ops.tensor.products import dot, dot_shape
from ...runtime.array import plain, wrap
from ...runtime.recording import state
from ..ndarray import NDArray
from . import layout
from .arrays import CSRNDArray, RowSparseNDArray, make, warn_of_operator
from .dispatch import Call, dense_now, kernel, to_storage


def wants_sparse_gradient(array: NDArray) -> bool:
    """Return whether the array is a leaf whose gradient array is row_sparse."""
    record = array._grad
    return record is not None and record.array is not None and record.array.stype == ROWS


def bags(parts: tuple[Tensor, ...], dense: Tensor, sparse_gradient: bool = False) -> Tensor:
    """Return the product of a csr matrix (values, indices, indptr) and a dense one."""
    values, indices, indptr = parts
    if not values.dtype.is_floating_point or not len(values):
        rows = layout.row_numbers(indptr)
        terms = values[:, None] * dense[indices]
        return terms.new_zeros((len(indptr) - 1, dense.shape[1])).index_add(0, rows, terms)
    return functional.embedding_bag(
        indices,
        dense,
        indptr,
        mode="sum",
        sparse=sparse_gradient,
        per_sample_weights=values,
        include_last_offset=True,
    )


@kernel(dot, records=True)
def product(call: Call) -> NDArray:
    """Multiply matrices, at least one of them csr; other storage types become dense."""
    lhs, rhs = call.arrays
    left, right = call.attrs["transpose_a"], call.attrs["transpose_b"]
    target = call.attrs["forward_stype"]
    case = (*call.stypes, left, right)
    if lhs.dtype is not rhs.dtype:
        raise DTypeError(
            f"dot: lhs is {lhs.dtype.__name__}, rhs is {rhs.dtype.__name__}; they must be equal."
        )
    dot_shape(lhs.shape, rhs.shape, transpose_a=left, transpose_b=right)
    possible = DOT_RESULTS.get(case, ())
    if case[0] == CSR and possible and rhs.ndim != 2:
        raise MXNetError(
            f"sparse dot only supports 2 dimensional rhs, got {rhs.ndim} axes: reshape it to "
            f"{(*rhs.shape, 1)}."
        )
    chosen = possible[0] if target is None and possible else target
    if chosen not in possible or chosen is None or rhs.ndim != 2 or lhs.ndim != 2:
        return _by_dense(call, target or DOT_CONVERTED.get(case, DENSE))
    if isinstance(rhs, CSRNDArray):
        return _dense_times_csr(lhs, rhs, right, chosen)
    assert isinstance(lhs, CSRNDArray)  # at least one is csr: see DOT_RESULTS
    return _transposed_csr_times(lhs, rhs, chosen) if left else _csr_times(lhs, rhs)


def _by_dense(call: Call, stype: str) -> NDArray:
    changed = {k: v for k, v in call.attrs.items() if v != call.op.defaults[k]}
    warn_of_operator(call.op.name, call.stypes, [stype], changed)
    lhs, rhs = call.arrays
    output = call.op.kernel(dense_now(lhs), dense_now(rhs), **call.attrs)
    return to_storage(output, stype, lhs._ctx)


def _csr_times(lhs: CSRNDArray, rhs: NDArray) -> NDArray:
    if lhs._ghost is not None and state.recording:
        return to_storage(dense_now(lhs) @ dense_now(rhs), DENSE, lhs._ctx)
    output = bags(lhs._parts(), dense_now(rhs), wants_sparse_gradient(rhs))
    return wrap(NDArray, output, lhs._ctx)


def _transposed_csr_times(lhs: CSRNDArray, rhs: NDArray, stype: str) -> NDArray:
    dense = dense_now(rhs)
    if lhs._ghost is not None and state.recording:
        return to_storage(dense_now(lhs).t() @ dense, stype, lhs._ctx)
    parts = layout.transpose(lhs._shape, *lhs._parts())
    shape = (lhs._shape[1], dense.shape[1])
    if stype == DENSE or dense.requires_grad:
        output = bags(parts, dense)
        if stype == DENSE:
            return wrap(NDArray, output, lhs._ctx)
        rows = torch.nonzero(parts[2].diff()).reshape(-1)
        result = make(RowSparseNDArray, shape, output.detach()[rows], rows, ctx=lhs._ctx)
        result._ghost = output
        return result
    values, indices, indptr = parts
    rows = torch.nonzero(indptr.diff()).reshape(-1)
    bounds = torch.cat([indptr[:1], indptr[rows + 1]])  # without empty rows
    output = bags((values, indices, bounds), dense)
    return make(RowSparseNDArray, shape, output, rows, ctx=lhs._ctx)


def _dense_times_csr(lhs: NDArray, rhs: CSRNDArray, transpose: bool, stype: str) -> NDArray:
    """Multiply by a csr matrix from the right: the transposed product of transposed factors."""
    dense = dense_now(lhs)
    if rhs._ghost is not None and state.recording:
        right = dense_now(rhs)
        return to_storage(dense @ (right.t() if transpose else right), stype, lhs._ctx)
    parts = rhs._parts() if transpose else layout.transpose(rhs._shape, *rhs._parts())
    output = bags(parts, dense.t().contiguous()).t()
    if stype == DENSE:
        return wrap(NDArray, output.contiguous(), lhs._ctx)
    # MXNet stores, in every row, each column in which the csr factor has a value.
    columns = torch.nonzero(parts[2].diff()).reshape(-1)
    count, width = output.shape[0], len(columns)
    indptr = torch.arange(count + 1, device=columns.device) * width
    values = output.detach()[:, columns].reshape(-1)
    result = make(CSRNDArray, output.shape, values, columns.repeat(count), indptr, ctx=lhs._ctx)
    result._ghost = output if output.requires_grad else None
    return result


@kernel(embedding, sparse_embedding, records=True)
def looked_up(call: Call) -> NDArray | None:
    """Look up rows of a row_sparse weight."""
    data, weight = call.arrays
    needed = call.attrs["input_dim"], call.attrs["output_dim"]
    if call.stypes != (DENSE, ROWS):
        return None
    if weight.shape != needed:
        raise ShapeError(
            f"Shape inconsistent in {call.op.name}: weight is {weight.shape}, but input_dim and "
            f"output_dim need {needed}."
        )
    rows = plain(data).long().clamp(0, needed[0] - 1)
    sparse = wants_sparse_gradient(weight)
    return wrap(NDArray, torch.embedding(dense_now(weight), rows, -1, False, sparse), data._ctx)
