"""Operator overloads of sparse arrays, and `mx.nd.sparse.add` and similar functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...imperative.apply import apply
from ...ops.declare import Op
from ...ops.tensor.arithmetic import BY_DUNDER, BY_NAME, Operation
from ..ndarray import NDArray
from ..operator_overloads import NUMBERS, unsupported_operand
from .base import BaseSparseNDArray

# The strict operators of these keep more arrays sparse than the broadcasting ones.
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
