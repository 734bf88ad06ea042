"""Operator overloads of arrays, ``+ - * / % **`` and comparisons: the hottest code of all."""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..imperative.apply import apply
from ..imperative.freed_graphs import IntegerInGraph, reuse_across_sessions
from ..imperative.handle import Handle, new_object, wrap_recorded, writable
from ..imperative.state import recording_scopes, state
from ..ops import interpreters
from ..ops.declare import KERNEL_ERRORS, Op
from ..ops.families import BOOL, known_numbers
from ..ops.tensor.elementwise import absolute, negative
from ..ops.tensor.operations import BY_DUNDER, Operation
from .codegen import make_function

if TYPE_CHECKING:
    from .ndarray import NDArray

NUMBERS = (int, float, np.generic)
_interpreters = interpreters.eager
_empty_like = torch.empty_like
# Faster than Tensor.to.
_CASTS = {
    torch.float32: torch.Tensor.float,
    torch.float64: torch.Tensor.double,
    torch.float16: torch.Tensor.half,
    torch.bfloat16: torch.Tensor.bfloat16,
    torch.uint8: torch.Tensor.byte,
    torch.int8: torch.Tensor.char,
    torch.int32: torch.Tensor.int,
    torch.int64: torch.Tensor.long,
}


def unsupported_operand(other: Any) -> TypeError:
    """Return the error for an operand that is neither an array nor a number."""
    return TypeError(
        f"type {type(other)} not supported: use an NDArray (mx.nd.array(x)) or a number."
    )


def _compare_in_dtype(compare: Callable) -> Callable:
    """Return a comparison that answers in the first operand's dtype, without a cast if possible."""

    def compare_in_dtype(x: Tensor, y: Tensor) -> Tensor:
        if y.ndim == 0 or x.shape == y.shape:
            return compare(x, y, out=_empty_like(x))
        return _CASTS[x.dtype](compare(x, y))

    return compare_in_dtype


def binary_overload(cls: type[NDArray], operation: Operation, reverse: bool = False) -> Callable:
    """Return the method for ``array <op> other``; with `reverse` for ``other <op> array``.

    It runs the kernel directly for two dense arrays of one dtype, or for an array and a number
    that has been used before; everything else, and every error, goes through `apply`.
    """
    op, scalar = operation.broadcast, operation.scalar
    if reverse:
        scalar = operation.reversed_scalar
    compares, number_first = operation.returns_bool, getattr(scalar, "swapped", False)
    kernel = op.raw if op.gradient_rule is None else op.kernel
    scalar_kernel = scalar.raw if scalar.gradient_rule is None else None
    plain_kernel, plain_scalar_kernel = op.raw, scalar.raw
    if compares:
        plain_kernel = _compare_in_dtype(plain_kernel)
        plain_scalar_kernel = _compare_in_dtype(plain_scalar_kernel)

    def general(self: NDArray, other: Any) -> NDArray:
        if isinstance(other, Handle):
            operands = (other, self) if reverse else (self, other)
            return apply(op, operands, None, cls=cls)
        if isinstance(other, NUMBERS):
            return apply(scalar, (self,), {"scalar": other}, cls=cls)
        raise unsupported_operand(other)

    def recorded(self: NDArray, other: Any) -> NDArray:
        """Do the same while some thread records or an interpreter is active."""
        session = state.session
        if session is None or _interpreters:
            return general(self, other)
        dtype, x = self._dtype, self._tracked
        if x is None:
            x = self._data
        elif self._session is not session and self._session is not None:
            try:
                x = reuse_across_sessions(self, session)
            except IntegerInGraph:
                return general(self, other)
        kind = type(other)
        if kind is cls and not reverse:
            y = other._tracked
            if y is None:
                y = other._data
            elif other._session is not session and other._session is not None:
                try:
                    y = reuse_across_sessions(other, session)
                except IntegerInGraph:
                    return general(self, other)
            if dtype is not other._dtype or dtype is BOOL or x is None or y is None:
                return general(self, other)
            try:
                out = kernel(x, y)
            except KERNEL_ERRORS:
                return general(self, other)
            sources = self, other
        elif kind is int or (kind is float and other):
            value = known_numbers[dtype].get(other)
            if value is None or x is None or scalar_kernel is None:
                return general(self, other)
            out = scalar_kernel(value, x) if number_first else scalar_kernel(x, value)
            sources = (self,)
        else:
            return general(self, other)
        if compares:
            out = _CASTS[dtype](out)
        return wrap_recorded(cls, out, dtype, sources, session)

    def overload(self: NDArray, other: Any) -> NDArray:
        if recording_scopes or _interpreters:
            return recorded(self, other)
        x, dtype, kind = self._data, self._dtype, type(other)
        if kind is cls and not reverse:
            y = other._data
            if dtype is not other._dtype or dtype is BOOL or x is None or y is None:
                return general(self, other)
            try:
                out = plain_kernel(x, y)
            except KERNEL_ERRORS:
                return general(self, other)
        elif kind is int or (kind is float and other):  # -0.0 would find the number 0
            value = known_numbers[dtype].get(other)
            if value is None or x is None:
                return general(self, other)
            try:
                out = (
                    plain_scalar_kernel(value, x) if number_first else plain_scalar_kernel(x, value)
                )
            except KERNEL_ERRORS:  # memory ran out
                return general(self, other)
        else:
            return general(self, other)
        array = new_object(cls)
        array._data = out
        array._tracked = None
        array._dtype = dtype
        array._ctx = self._ctx
        array._grad = None
        return array

    return overload


def _in_place_kernel(op: Op) -> Callable | None:
    """Return the kernel if it takes ``out=``, as torch's own functions do."""
    return op.raw if type(op.raw) is BuiltinFunctionType else None


def in_place_overload(cls: type[NDArray], operation: Operation) -> Callable:
    """Return the method for ``array <operator>= other``, which writes into the array's memory."""
    op, scalar = operation.broadcast, operation.scalar
    kernel, scalar_kernel = _in_place_kernel(op), _in_place_kernel(scalar)

    def overload(self: NDArray, other: Any) -> NDArray:
        x, dtype, kind = self._data, self._dtype, type(other)
        if recording_scopes or _interpreters or x is None or dtype is BOOL:
            pass
        elif kind is cls:
            y = other._data
            if dtype is other._dtype and kernel and y is not None and x.shape == y.shape:
                try:
                    kernel(x, y, out=x)
                    return self
                except KERNEL_ERRORS:  # overlapping parts of one memory
                    pass
        elif (kind is int or (kind is float and other)) and scalar_kernel:
            value = known_numbers[dtype].get(other)
            if value is not None:
                scalar_kernel(x, value, out=x)
                return self
        writable(self)  # refuses members of a graph before anything is computed
        if isinstance(other, Handle):
            return apply(op, (self, other), None, self, cls=cls)
        if isinstance(other, NUMBERS):
            return apply(scalar, (self,), {"scalar": other}, self, cls=cls)
        raise unsupported_operand(other)

    return overload


def add_operator_overloads(cls: type[NDArray]) -> None:
    """Give a class its arithmetic and comparison methods."""
    for dunder, operation in BY_DUNDER.items():
        _set(cls, f"__{dunder}__", binary_overload(cls, operation))
        if operation.returns_bool:
            continue
        _set(cls, f"__r{dunder}__", binary_overload(cls, operation, reverse=True))
        if dunder != "pow":
            _set(cls, f"__i{dunder}__", in_place_overload(cls, operation))
    _set(cls, "__neg__", make_function(negative, negative.name, cls))
    _set(cls, "__abs__", make_function(absolute, absolute.name, cls))
    for old, new in (("div", "truediv"), ("rdiv", "rtruediv"), ("idiv", "itruediv")):
        setattr(cls, f"__{old}__", getattr(cls, f"__{new}__"))


def _set(cls: type, name: str, function: Callable) -> None:
    function.__name__ = name
    function.__qualname__ = f"{cls.__name__}.{name}"
    setattr(cls, name, function)
