"""Arithmetic of sparse arrays: functions of two arrays or numbers, and the signs ``+ - * /``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...imperative.apply import apply
from ...ops import registry
from ..ndarray import NDArray
from ..operator_overloads import ARITHMETIC, COMPARISONS, NUMBERS
from .base import BaseSparseNDArray

_SAME_SHAPE = {"add": "elemwise_add", "sub": "elemwise_sub", "mul": "elemwise_mul"}


def _refuse(other: Any) -> TypeError:
    return TypeError(f"type {type(other)} not supported: use an NDArray or a number.")


def _array_op(sign: str, default: str, lhs: NDArray, rhs: NDArray) -> Any:
    """Return the operator of one shape where there is one: it keeps more arrays sparse."""
    same = _SAME_SHAPE.get(sign)
    return registry.get(same if same and lhs.shape == rhs.shape else default)


def _sign(sign: str, array_op: str, scalar_op: str, in_place: bool = False) -> Callable:
    def method(self: BaseSparseNDArray, other: Any) -> NDArray:
        out = self if in_place else None
        if isinstance(other, NDArray):
            op = _array_op(sign, array_op, self, other)
            return apply(op, (self, other), None, out, cls=NDArray)
        if isinstance(other, NUMBERS):
            op = registry.get(scalar_op)
            return apply(op, (self,), {"scalar": other}, out, cls=NDArray)
        raise _refuse(other)

    return method


def _reversed_sign(array_op: str, scalar_op: str) -> Callable:
    def method(self: BaseSparseNDArray, other: Any) -> NDArray:
        if isinstance(other, NDArray):
            return apply(registry.get(array_op), (other, self), None, cls=NDArray)
        if isinstance(other, NUMBERS):
            return apply(registry.get(scalar_op), (self,), {"scalar": other}, cls=NDArray)
        raise _refuse(other)

    return method


def _add_signs(cls: type[BaseSparseNDArray]) -> None:
    methods = {}
    for sign, (array_op, scalar_op, reversed_op) in ARITHMETIC.items():
        methods[f"__{sign}__"] = _sign(sign, array_op, scalar_op)
        methods[f"__r{sign}__"] = _reversed_sign(array_op, reversed_op)
        if sign != "pow":
            methods[f"__i{sign}__"] = _sign(sign, array_op, scalar_op, in_place=True)
    for sign, (array_op, scalar_op) in COMPARISONS.items():
        methods[f"__{sign}__"] = _sign(sign, array_op, scalar_op)
    for name, method in methods.items():
        method.__name__, method.__qualname__ = name, f"{cls.__name__}.{name}"
        setattr(cls, name, method)


_add_signs(BaseSparseNDArray)


def _two_sided(name: str, sign: str, same: str, sentence: str) -> Callable:
    default, with_number, number_first = ARITHMETIC[sign]

    def function(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, NDArray) and isinstance(rhs, NDArray):
            op = registry.get(same if lhs.shape == rhs.shape else default)
            return apply(op, (lhs, rhs), None, cls=NDArray)
        if isinstance(lhs, NDArray) and isinstance(rhs, NUMBERS):
            return apply(registry.get(with_number), (lhs,), {"scalar": rhs}, cls=NDArray)
        if isinstance(lhs, NUMBERS) and isinstance(rhs, NDArray):
            return apply(registry.get(number_first), (rhs,), {"scalar": lhs}, cls=NDArray)
        raise _refuse(rhs if isinstance(lhs, NDArray) else lhs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {sentence} of two arrays (broadcast), or of an array and a number."
    return function


add = _two_sided("add", "add", "elemwise_add", "the sum")
subtract = _two_sided("subtract", "sub", "elemwise_sub", "the difference")
multiply = _two_sided("multiply", "mul", "elemwise_mul", "the product")
divide = _two_sided("divide", "truediv", "elemwise_div", "the quotient")
