"""Sparse kernels of elementwise operators: functions, scalars, sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...error import DTypeError, MXNetError, ShapeError
from ...ops import registry
from ...ops.declare import Op
from ...ops.sparse import CSR, DENSE, ROWS
from ...ops.tensor.arithmetic import (
    BY_DUNDER,
    BY_NAME,
    OPERATIONS,
    Operation,
    add_n,
    grad_add,
    scatter_add_number,
    scatter_divide,
    scatter_subtract_number,
)
from ...ops.tensor.elementwise import clip, quadratic
from ...ops.tensor.identity import (
    block_grad,
    identity,
    identity_with_attr_like_rhs,
    make_loss,
    zeros_like,
)
from ...ops.tensor.indexing import where
from ...runtime.apply import apply
from ...runtime.array import wrap, wrap_plain
from ..ndarray import NDArray
from ..operator_overloads import NUMBERS, unsupported_operand
from . import layout
from .arrays import BaseSparseNDArray, CSRNDArray, RowSparseNDArray, make
from .dispatch import Call, dense_now, dense_of, kernel, to_storage

ADD, SUBTRACT = BY_NAME["add"], BY_NAME["subtract"]
MULTIPLY, DIVIDE = BY_NAME["multiply"], BY_NAME["divide"]
STORED_ONLY = (scatter_add_number, scatter_subtract_number)


@kernel(*(op for op in registry.operators() if op.facts.keeps_zeros), *STORED_ONLY)
def on_values(call: Call) -> BaseSparseNDArray:
    """Apply a function with f(0) = 0 to the stored values."""
    array = call.array
    return array._like(call.op.kernel(array._values, **call.attrs))


@kernel(quadratic)
def polynomial(call: Call) -> BaseSparseNDArray | None:
    """Apply a polynomial without constant term to the stored values."""
    return on_values(call) if call.stypes == (CSR,) and not call.attrs["c"] else None


@kernel(identity, block_grad, make_loss)
def pass_on(call: Call) -> BaseSparseNDArray:
    """Return a copy."""
    array = call.array
    return array._like(array._values.clone())


@kernel(identity_with_attr_like_rhs, records=True)
def copy_as(call: Call) -> NDArray:
    """Return the first array in the storage type of the second."""
    check_same(call)
    first, like = call.arrays
    return to_storage(dense_now(first).clone(), like.stype, first._ctx)


@kernel(zeros_like)
def no_values(call: Call) -> BaseSparseNDArray:
    """Return an array of the same class without stored values."""
    array = call.array
    values, indices, *pointers = array._parts()
    parts = (values[:0].clone(), indices[:0].clone(), *(torch.zeros_like(p) for p in pointers))
    return make(type(array), array._shape, *parts, ctx=array._ctx)


@kernel(*(row.scalar for row in OPERATIONS if row.returns_bool and row.dunder))
def compare_sparse(call: Call) -> BaseSparseNDArray | None:
    """Compare the stored values with a number, if the comparison is false for zero."""
    array = call.array
    zero = call.op.kernel(array._values.new_zeros(1), **call.attrs)
    return None if zero.item() else on_values(call)


@kernel(ADD.scalar, SUBTRACT.scalar)
def shift_sparse(call: Call) -> NDArray:
    """Add a number: 0 keeps the array sparse, any other makes it dense."""
    if call.attrs["scalar"] == 0:
        return pass_on(call)
    array = call.array
    return wrap_plain(NDArray, call.op.kernel(array._dense(), **call.attrs), array._ctx)


@kernel(clip)
def clip_sparse(call: Call) -> BaseSparseNDArray:
    """Clip the stored values; zero must be within the limits."""
    a_min, a_max = call.attrs["a_min"], call.attrs["a_max"]
    if not a_min <= 0 <= a_max:
        raise MXNetError(
            f"clip of a sparse array needs a_min <= 0 <= a_max, got {a_min} and {a_max}. For other "
            "limits convert it: x.tostype('default')."
        )
    return on_values(call)


def check_same(call: Call) -> None:
    """Raise unless both arrays have the same shape and dtype."""
    lhs, rhs = call.arrays
    if lhs.shape != rhs.shape:
        raise ShapeError(
            f"Shape inconsistent in {call.op.name}: lhs is {lhs.shape}, rhs is {rhs.shape}; they "
            "must be equal."
        )
    if lhs.dtype is not rhs.dtype:
        raise DTypeError(
            f"Incompatible attr in {call.op.name}: lhs is {lhs.dtype.__name__}, rhs is "
            f"{rhs.dtype.__name__}; they must be equal."
        )


def dense_quietly(call: Call) -> NDArray:
    """Return the dense result without a warning: it is dense in MXNet too."""
    lhs, rhs = call.arrays
    return wrap_plain(NDArray, call.op.kernel(dense_of(lhs), dense_of(rhs)), lhs._ctx)


@kernel(ADD.elementwise, SUBTRACT.elementwise, grad_add)
def sum_sparse(call: Call) -> NDArray | None:
    """Add or subtract: the result is sparse if both have the same sparse type, else dense."""
    check_same(call)
    lhs, rhs = call.arrays
    sign = -1 if call.op is SUBTRACT.elementwise else 1
    if isinstance(lhs, RowSparseNDArray) and isinstance(rhs, RowSparseNDArray):
        values = [lhs._values, rhs._values * sign]
        parts = layout.sum_rows(values, [lhs._indices, rhs._indices])
        return make(RowSparseNDArray, lhs._shape, *parts, ctx=lhs._ctx)
    if isinstance(lhs, CSRNDArray) and isinstance(rhs, CSRNDArray):
        return _sum_csr(lhs, rhs, sign)
    return dense_quietly(call) if DENSE in call.stypes else None


def _keys(array: CSRNDArray) -> Tensor:
    return layout.csr_keys(array._shape[1], array._indices, array._indptr)


def _sum_csr(lhs: CSRNDArray, rhs: CSRNDArray, sign: int) -> CSRNDArray:
    keys, groups = torch.unique(torch.cat([_keys(lhs), _keys(rhs)]), return_inverse=True)
    values = lhs._values.new_zeros(len(keys))
    values.index_add_(0, groups, torch.cat([lhs._values, rhs._values * sign]))
    return make(
        CSRNDArray, lhs._shape, values, *layout.csr_from_keys(lhs._shape, keys), ctx=lhs._ctx
    )


@kernel(*(BY_NAME[name].elementwise for name in ("hypot", "maximum", "minimum")))
def join_sparse(call: Call) -> NDArray | None:
    """Combine the elements stored in either array by a function with f(0, 0) = 0."""
    check_same(call)
    lhs, rhs = call.arrays
    if isinstance(lhs, RowSparseNDArray) and isinstance(rhs, RowSparseNDArray):
        rows = torch.unique(torch.cat([lhs._indices, rhs._indices]))
        left, right = (layout.rows_at(a._values, a._indices, rows) for a in (lhs, rhs))
        return make(RowSparseNDArray, lhs._shape, call.op.kernel(left, right), rows, ctx=lhs._ctx)
    if not isinstance(lhs, CSRNDArray) or not isinstance(rhs, CSRNDArray):
        return None
    keys, groups = torch.unique(torch.cat([_keys(lhs), _keys(rhs)]), return_inverse=True)
    left, right = lhs._values.new_zeros(len(keys)), rhs._values.new_zeros(len(keys))
    left[groups[: len(lhs._values)]] = lhs._values
    right[groups[len(lhs._values) :]] = rhs._values
    parts = layout.csr_from_keys(lhs._shape, keys)
    return make(CSRNDArray, lhs._shape, call.op.kernel(left, right), *parts, ctx=lhs._ctx)


def _multiply_csr(lhs: CSRNDArray, rhs: CSRNDArray) -> CSRNDArray:
    """Return the product, which stores elements stored in both."""
    left, right = _keys(lhs), _keys(rhs)
    order = torch.argsort(right)
    positions = torch.searchsorted(right[order], left)
    # A position beyond the last is not a match.
    inside = torch.nonzero(positions < len(right)).reshape(-1)
    hits = inside[right[order[positions[inside]]] == left[inside]]
    values = lhs._values[hits] * rhs._values[order[positions[hits]]]
    parts = layout.csr_from_keys(lhs._shape, left[hits])
    return make(CSRNDArray, lhs._shape, values, *parts, ctx=lhs._ctx)


@kernel(MULTIPLY.elementwise)
def multiply_sparse(call: Call) -> NDArray | None:
    """Multiply: elements that a sparse factor does not store are zero."""
    check_same(call)
    lhs, rhs = call.arrays
    if isinstance(lhs, CSRNDArray) and isinstance(rhs, CSRNDArray):
        return _multiply_csr(lhs, rhs)
    if isinstance(lhs, RowSparseNDArray) and isinstance(rhs, RowSparseNDArray):
        rows = torch.unique(torch.cat([lhs._indices, rhs._indices]))
        left, right = (layout.rows_at(a._values, a._indices, rows) for a in (lhs, rhs))
        return make(RowSparseNDArray, lhs._shape, left * right, rows, ctx=lhs._ctx)
    if DENSE not in call.stypes:
        return None
    sparse, dense = (rhs, lhs) if call.stypes[0] == DENSE else (lhs, rhs)
    assert isinstance(sparse, BaseSparseNDArray)  # at least one is sparse
    return sparse._like(sparse._values * _at_places(sparse, dense_of(dense)))


def _at_places(sparse: BaseSparseNDArray, dense: Tensor) -> Tensor:
    """Return the elements of a broadcast dense tensor at the stored positions of a sparse array."""
    dense = dense.expand(sparse._shape)
    if isinstance(sparse, CSRNDArray):
        return dense[layout.row_numbers(sparse._indptr), sparse._indices]
    return dense[sparse._indices]


@kernel(DIVIDE.elementwise)
def divide_sparse(call: Call) -> NDArray | None:
    """Divide: the result is dense, as 0 / 0 is not 0."""
    check_same(call)
    dense = call.stypes == (ROWS, ROWS) or DENSE in call.stypes
    return dense_quietly(call) if dense else None


@kernel(scatter_divide)
def divide_where_stored(call: Call) -> NDArray | None:
    """Divide the stored elements only."""
    check_same(call)
    lhs, rhs = call.arrays
    if not isinstance(lhs, RowSparseNDArray):
        return None
    if isinstance(rhs, RowSparseNDArray):
        below = layout.rows_at(rhs._values, rhs._indices, lhs._indices)
    else:
        below = _at_places(lhs, dense_of(rhs))
    return lhs._like(lhs._values / below)


@kernel(ADD.broadcast, SUBTRACT.broadcast)
def broadcast_sum_sparse(call: Call) -> NDArray | None:
    """Add or subtract with broadcasting: csr with dense gives dense."""
    return dense_quietly(call) if set(call.stypes) == {CSR, DENSE} else None


@kernel(MULTIPLY.broadcast, DIVIDE.broadcast)
def broadcast_scale_sparse(call: Call) -> NDArray | None:
    """Multiply or divide a csr matrix by a dense array; the result has the same positions."""
    lhs, rhs = call.arrays
    if not isinstance(lhs, CSRNDArray) or isinstance(rhs, BaseSparseNDArray):
        return None
    if call.op is DIVIDE.broadcast and lhs.shape == rhs.shape:
        raise MXNetError(
            "broadcast_div: please use elemwise_div for division between csr and dense of the same "
            "shape: it would divide zeros that are not stored, too."
        )
    if torch.broadcast_shapes(lhs.shape, rhs.shape) != torch.Size(lhs.shape):
        return None
    below = _at_places(lhs, dense_of(rhs))
    scale = torch.mul if call.op is MULTIPLY.broadcast else torch.div
    return lhs._like(scale(lhs._values, below))


@kernel(add_n)
def add_sparse(call: Call) -> NDArray | None:
    """Add row_sparse arrays."""
    arrays = call.all_of(RowSparseNDArray)
    if not arrays:
        return None
    first = arrays[0]
    for other in arrays[1:]:
        check_same(call._replace(inputs=(first, other)))
    parts = layout.sum_rows([a._values for a in arrays], [a._indices for a in arrays])
    return make(RowSparseNDArray, first._shape, *parts, ctx=first._ctx)


@kernel(where, records=True)
def choose_sparse(call: Call) -> NDArray | None:
    """Select elements of two dense arrays by a csr condition."""
    condition, x, y = call.arrays
    if not isinstance(condition, CSRNDArray) or call.stypes[1:] != (DENSE, DENSE):
        return None
    tensors = condition._dense(), dense_now(x), dense_now(y)

    return wrap(NDArray, call.op.kernel(*tensors), x._ctx)


# -- operator overloads, and `mx.nd.sparse.add` and similar functions -----------------------------


# Their same-shape operators keep more arrays sparse than the broadcasting ones.
_STRICT_IF_POSSIBLE = ("add", "sub", "mul")


def _select_operator(operation: Operation, lhs: NDArray, rhs: NDArray) -> Op:
    strict = operation.dunder in _STRICT_IF_POSSIBLE and lhs.shape == rhs.shape
    return operation.elementwise if strict else operation.broadcast


def _overload(operation: Operation, in_place: bool = False) -> Callable:
    def method(self: BaseSparseNDArray, other: Any) -> NDArray:
        out = self if in_place else None
        if isinstance(other, NDArray):
            op = _select_operator(operation, self, other)
            return apply(op, (self, other), None, out, cls=NDArray)
        if isinstance(other, NUMBERS):
            return apply(operation.scalar, (self,), {"scalar": other}, out, cls=NDArray)
        raise unsupported_operand(other)

    return method


def _reversed_overload(operation: Operation) -> Callable:
    def method(self: BaseSparseNDArray, other: Any) -> NDArray:
        if isinstance(other, NDArray):
            return apply(operation.broadcast, (other, self), None, cls=NDArray)
        if isinstance(other, NUMBERS):
            return apply(operation.reversed_scalar, (self,), {"scalar": other}, cls=NDArray)
        raise unsupported_operand(other)

    return method


def _add_operator_overloads(cls: type[BaseSparseNDArray]) -> None:
    methods = {}
    for dunder, operation in BY_DUNDER.items():
        methods[f"__{dunder}__"] = _overload(operation)
        if operation.returns_bool:
            continue
        methods[f"__r{dunder}__"] = _reversed_overload(operation)
        if dunder != "pow":
            methods[f"__i{dunder}__"] = _overload(operation, in_place=True)
    for name, method in methods.items():
        method.__name__, method.__qualname__ = name, f"{cls.__name__}.{name}"
        setattr(cls, name, method)


_add_operator_overloads(BaseSparseNDArray)


def _two_sided(operation: Operation) -> Callable:
    def function(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, NDArray) and isinstance(rhs, NDArray):
            strict = lhs.shape == rhs.shape
            op = operation.elementwise if strict else operation.broadcast
            return apply(op, (lhs, rhs), None, cls=NDArray)
        if isinstance(lhs, NDArray) and isinstance(rhs, NUMBERS):
            return apply(operation.scalar, (lhs,), {"scalar": rhs}, cls=NDArray)
        if isinstance(lhs, NUMBERS) and isinstance(rhs, NDArray):
            return apply(operation.reversed_scalar, (rhs,), {"scalar": lhs}, cls=NDArray)
        raise unsupported_operand(rhs if isinstance(lhs, NDArray) else lhs)

    function.__name__ = function.__qualname__ = operation.name
    function.__doc__ = operation.docstring
    return function


add = _two_sided(BY_NAME["add"])
subtract = _two_sided(BY_NAME["subtract"])
multiply = _two_sided(BY_NAME["multiply"])
divide = _two_sided(BY_NAME["divide"])
