"""Python's operators of arrays, ``+ - * / % **`` and comparisons: the hottest code of all.

Dense arrays of one dtype, and numbers of earlier calls, run a kernel directly. All other operands
and all errors go through the general function of the operator.
"""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..ops import interpreters
from ..ops.declare import KERNEL_ERRORS, Op
from ..ops.families import known_numbers
from ..ops.interpreters import active
from .array import NoDenseOperand, new_object, operand_in, wrap_constant, writable
from .recording import Member, call_step, node_of, state

if TYPE_CHECKING:
    from ..ndarray.ndarray import NDArray

_interpreters = interpreters.eager
FLOATS = frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16})
NUMBERS = FLOATS | {torch.int32, torch.int64, torch.uint8, torch.int8}


class Overload(NamedTuple):
    """One operator of Python on arrays of one class.

    Parameters
    ----------
    general : computes ``array <operator> other`` for all operands.
    kernel, number_kernel : differentiable kernels of two tensors, and of a tensor and a number's
        tensor. None if there is no such kernel.
    plain_kernel, plain_number_kernel : the same outside any graph.
    number_first : whether the number is the first operand of the number kernels.
    dtypes : dtypes for which the kernels are correct.
    made_dtype : dtype of the result; None if it is that of the operands.
    op, number_op : operators of two arrays, and of an array and a number.
    """

    general: Callable[[Any, Any], Any]
    kernel: Callable | None
    number_kernel: Callable | None
    plain_kernel: Callable
    plain_number_kernel: Callable
    number_first: bool
    dtypes: frozenset[torch.dtype]
    made_dtype: torch.dtype | None
    op: Op
    number_op: Op


def differentiable_kernel(op: Op) -> Callable | None:
    """Return the kernel of an operator if torch's gradient is MXNet's."""
    return op.raw if op.gradient_rule is None else None


def binary_overload(cls: type[NDArray], rule: Overload, reverse: bool = False) -> Callable:
    """Return the method for ``array <operator> other``. If `reverse`, `other` is never an array."""
    general, kernel, number_kernel, plain_kernel, plain_number_kernel = rule[:5]
    number_first, dtypes, made_dtype = rule[5:8]
    call, number_call = call_step(rule.op), call_step(rule.number_op)
    other_class = None if reverse else cls

    def recorded(self: NDArray, other: Any) -> NDArray:
        """Variant for use while a thread records or an interpreter is active."""
        session = state.session
        if session is None or _interpreters:
            return general(self, other)
        dtype, kind = self._dtype, type(other)
        if dtype not in dtypes:
            return general(self, other)
        try:
            x = operand_in(session, self)
            if kind is other_class:
                if dtype is not other._dtype or kernel is None:
                    return general(self, other)
                out = kernel(x, operand_in(session, other))
            elif kind is int or (kind is float and other):
                value = known_numbers[dtype].get(other)
                if value is None or number_kernel is None:
                    return general(self, other)
                out = number_kernel(value, x) if number_first else number_kernel(x, value)
            else:
                return general(self, other)
        except (NoDenseOperand, *KERNEL_ERRORS):
            return general(self, other)
        if not out.requires_grad:
            out_dtype = made_dtype or dtype
            if kind is cls:
                return wrap_constant(cls, out, out_dtype, session, call, (self, other))
            return wrap_constant(cls, out, out_dtype, session, number_call, (self,), other)
        result = new_object(cls)
        result._data = result._grad = None
        result._dtype = made_dtype or dtype
        result._ctx = self._ctx
        if kind is cls:
            node = (call, node_of(self), node_of(other))
        else:
            node = (number_call, node_of(self), other)
        result._member = Member(out, session, node)
        return result

    def overload(self: NDArray, other: Any) -> NDArray:
        if active:
            return recorded(self, other)
        x, dtype = self._data, self._dtype
        if type(other) is other_class:
            y = other._data
            if dtype is not other._dtype or x is None or y is None or dtype not in dtypes:
                return general(self, other)
            try:
                out = plain_kernel(x, y)
            except KERNEL_ERRORS:
                return general(self, other)  # raises an error that explains the mismatch
        else:
            kind = type(other)
            if x is None or not (kind is int or (kind is float and other)):
                return general(self, other)  # -0.0 and 0 are equal keys
            if dtype not in dtypes or (y := known_numbers[dtype].get(other)) is None:
                return general(self, other)
            try:
                out = plain_number_kernel(y, x) if number_first else plain_number_kernel(x, y)
            except KERNEL_ERRORS:
                return general(self, other)
        array = new_object(cls)
        array._data = out
        array._dtype = made_dtype or dtype
        array._ctx = self._ctx
        array._grad = array._member = None
        return array

    return overload


def _in_place_kernel(op: Op) -> Callable | None:
    """Return the kernel if it takes ``out=``, as torch's own functions do."""
    return op.raw if type(op.raw) is BuiltinFunctionType else None


def in_place_overload(
    cls: type[NDArray],
    op: Op,
    with_number: Op,
    dtypes: frozenset[torch.dtype],
    general: Callable[[Any, Any], Any],
) -> Callable:
    """Return the method for ``array <operator>= other``, which writes into the array's memory."""
    kernel, number_kernel = _in_place_kernel(op), _in_place_kernel(with_number)

    def overload(self: NDArray, other: Any) -> NDArray:
        x, dtype, kind = self._data, self._dtype, type(other)
        if active or x is None or dtype not in dtypes:
            pass
        elif kind is cls:
            y = other._data
            if dtype is other._dtype and kernel and y is not None and x.shape == y.shape:
                try:
                    kernel(x, y, out=x)
                    return self
                except KERNEL_ERRORS:  # the operands overlap in memory
                    pass
        elif (kind is int or (kind is float and other)) and number_kernel:
            y = known_numbers[dtype].get(other)
            if y is not None:
                number_kernel(x, y, out=x)
                return self
        writable(self)  # raises for members of a graph before computing
        return general(self, other)

    return overload


def set_method(cls: type, name: str, function: Callable) -> None:
    """Set a method of a class, with its name and qualified name."""
    function.__name__ = name
    function.__qualname__ = f"{cls.__name__}.{name}"
    setattr(cls, name, function)


def add_division_names(cls: type) -> None:
    """Add Python 2's division methods to a class, as MXNet's arrays have them."""
    for old, new in (("div", "truediv"), ("rdiv", "rtruediv"), ("idiv", "itruediv")):
        setattr(cls, f"__{old}__", getattr(cls, f"__{new}__"))
