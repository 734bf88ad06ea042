"""Optimizer updates by row_sparse gradients: only the rows that the gradient has are touched."""

from __future__ import annotations

import torch
from torch import Tensor

from ...error import MXNetError
from ...imperative.handle import wrap_plain, writable
from ...ops.sparse import DENSE, ROWS
from ...ops.training.adam import adam_update
from ...ops.training.adaptive import adagrad_update, ftrl_update, group_adagrad_update
from ...ops.training.sgd import sgd_mom_update, sgd_update
from ..ndarray import NDArray
from . import layout
from .arrays import RowSparseNDArray
from .base import make
from .dispatch import Call, dense_of, kernel


def _rows_in_place(array: NDArray, needed: bool) -> Tensor:
    """Return the dense memory of a weight or state; a state that lacks rows gets zeros there."""
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
    """Run the dense update on the gradient's rows alone."""
    weight, grad, *states = call.arrays
    assert isinstance(grad, RowSparseNDArray)  # kernels look at it first
    target = call.out
    if target is None:  # nobody's memory is to change but the states'
        target = weight.copyto(weight.context)
    elif not isinstance(target, NDArray):
        raise MXNetError(f"{call.op.name} makes 1 output, but out= has {len(target)}.")
    elif target is not weight:
        target[:] = weight
    memory = _rows_in_place(target, needed=True)
    rows = grad._indices
    if not len(rows):
        return target
    kept = [_rows_in_place(s, needed=False) for s in states]
    parts = [k.index_select(0, rows) for k in kept]
    new = call.op.kernel(memory.index_select(0, rows), grad._values, *parts, **call.attrs)
    for state, part in zip(kept, parts, strict=True):
        state.index_copy_(0, rows, part)
    memory.index_copy_(0, rows, new)
    return target


def _standard(call: Call) -> NDArray:
    """Run the dense update on all rows; MXNet defines it so: no fallback, no warning."""
    weight, grad, *states = call.arrays
    tensors = [_rows_in_place(s, needed=False) for s in states]
    new = call.op.kernel(dense_of(weight), dense_of(grad), *tensors, **call.attrs)
    if isinstance(weight, RowSparseNDArray):
        rows = torch.arange(len(new), device=new.device)
        return make(RowSparseNDArray, weight._shape, new, rows, ctx=weight._ctx)
    return wrap_plain(NDArray, new, weight._ctx)


def _uniform(call: Call) -> bool:
    """Return whether the weight and its states have one storage type."""
    return len({call.stypes[0], *call.stypes[2:]}) == 1


@kernel(sgd_update, sgd_mom_update, adam_update, records=True)
def lazily(call: Call) -> NDArray | None:
    """Update the rows of a row_sparse gradient, or all rows without `lazy_update`."""
    if call.stypes[1] != ROWS:
        return None
    if _uniform(call):
        return _update_rows(call) if call.attrs["lazy_update"] else _standard(call)
    # Dense states of a row_sparse weight are updated whole.
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
            f"{call.op.name} takes a row_sparse gradient, and weight and history of one storage "
            f"type; got {', '.join(call.stypes)}."
        )
    return _update_rows(call)
