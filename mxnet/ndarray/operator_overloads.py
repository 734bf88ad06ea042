"""Arithmetic and comparison signs of arrays: the hottest code of the house, so keep it thin."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..imperative.apply import KERNEL_ERRORS, apply
from ..imperative.freed_graphs import reuse_across_sessions
from ..imperative.handle import Handle, new_object, wrap_recorded, writable
from ..imperative.state import recording_scopes, state
from ..ops import registry
from ..ops.families import BOOL, known_numbers
from .codegen import make_function

if TYPE_CHECKING:
    from .ndarray import NDArray

# sign: (array with array, array with number, number with array)
ARITHMETIC = {
    "add": ("broadcast_add", "_plus_scalar", "_plus_scalar"),
    "sub": ("broadcast_sub", "_minus_scalar", "_rminus_scalar"),
    "mul": ("broadcast_mul", "_mul_scalar", "_mul_scalar"),
    "truediv": ("broadcast_div", "_div_scalar", "_rdiv_scalar"),
    "mod": ("broadcast_mod", "_mod_scalar", "_rmod_scalar"),
    "pow": ("broadcast_power", "_power_scalar", "_rpower_scalar"),
}
COMPARISONS = {
    "eq": ("broadcast_equal", "_equal_scalar"),
    "ne": ("broadcast_not_equal", "_not_equal_scalar"),
    "gt": ("broadcast_greater", "_greater_scalar"),
    "ge": ("broadcast_greater_equal", "_greater_equal_scalar"),
    "lt": ("broadcast_lesser", "_lesser_scalar"),
    "le": ("broadcast_lesser_equal", "_lesser_equal_scalar"),
}
# Their kernels answer in bool, MXNet in the dtype of the operands.
ANSWERING_BOOL = {
    *(array_op for array_op, _ in COMPARISONS.values()),
    "broadcast_logical_and",
    "broadcast_logical_or",
    "broadcast_logical_xor",
}
NUMBERS = (int, float, np.generic)
empty_like = torch.empty_like
# Tensor.to is a slow way to say it.
CASTS = {
    torch.float32: torch.Tensor.float,
    torch.float64: torch.Tensor.double,
    torch.float16: torch.Tensor.half,
    torch.bfloat16: torch.Tensor.bfloat16,
    torch.uint8: torch.Tensor.byte,
    torch.int8: torch.Tensor.char,
    torch.int32: torch.Tensor.int,
    torch.int64: torch.Tensor.long,
}


def _refuse(other: Any) -> TypeError:
    return TypeError(
        f"type {type(other)} not supported: use an NDArray (mx.nd.array(x)) or a number."
    )


def _scalar(value: float) -> float | str:
    """Return a number as an attribute; -0.0 as text, for among known attributes it equals 0."""
    return value if value or math.copysign(1, value) > 0 else "-0.0"


def cast_to_operand_dtype(compare: Callable) -> Callable:
    """Return a comparison that answers in the first operand's dtype, at once where it can."""

    def compared(x: Tensor, y: Tensor) -> Tensor:
        if y.ndim == 0 or x.shape == y.shape:
            return compare(x, y, out=empty_like(x))
        return CASTS[x.dtype](compare(x, y))

    return compared


def binary_overload(cls: type[NDArray], array_op: str, scalar_op: str) -> Callable:
    """Return the method for ``array <sign> other``.

    It repeats what `invoke` does for two dense arrays of one dtype, or for an array and a number
    that was met before, and no more; everything else goes through that door.
    """
    op, with_number = registry.get(array_op), registry.get(scalar_op)
    kernel = number_kernel = plain_kernel = plain_number_kernel = None
    swapped = getattr(with_number, "swapped", False)
    compares = array_op in ANSWERING_BOOL

    def take_kernels() -> None:
        nonlocal kernel, number_kernel, plain_kernel, plain_number_kernel
        plain_kernel, plain_number_kernel = op.raw, with_number.raw
        kernel = plain_kernel if op.gradient_rule is None else op.kernel
        number_kernel = plain_number_kernel if with_number.gradient_rule is None else None
        if compares:
            plain_kernel, plain_number_kernel = (
                cast_to_operand_dtype(kernel),
                cast_to_operand_dtype(number_kernel),
            )

    op.follow(take_kernels)
    with_number.follow(take_kernels)

    def any_operand(self: NDArray, other: Any) -> NDArray:
        """Do what `sign` does, with whatever stands on the right."""
        if isinstance(other, Handle):
            return apply(op, (self, other), None, cls=cls)
        if isinstance(other, NUMBERS):
            return apply(with_number, (self,), {"scalar": _scalar(other)}, cls=cls)
        raise _refuse(other)

    def recorded_sign(self: NDArray, other: Any) -> NDArray:
        """Do what `sign` does while some thread records."""
        session = state.session
        if session is None:
            return any_operand(self, other)
        dtype, x = self._dtype, self._tracked
        if x is None:
            x = self._data
        elif self._session is not session and self._session is not None:
            x = reuse_across_sessions(self, session)
        kind = type(other)
        if kind is cls:
            y = other._tracked
            if y is None:
                y = other._data
            elif other._session is not session and other._session is not None:
                y = reuse_across_sessions(other, session)
            if dtype is not other._dtype or dtype is BOOL or x is None or y is None:
                return any_operand(self, other)
            try:
                out = kernel(x, y)
            except KERNEL_ERRORS:
                return any_operand(self, other)  # says what is wrong, in full
            sources = self, other
        elif kind is int or (kind is float and other):
            value = known_numbers[dtype].get(other)
            if value is None or x is None or number_kernel is None:
                return any_operand(self, other)
            out = number_kernel(value, x) if swapped else number_kernel(x, value)
            sources = (self,)
        else:
            return any_operand(self, other)
        if compares:
            out = CASTS[dtype](out)
        return wrap_recorded(cls, out, dtype, sources, session)

    def sign(self: NDArray, other: Any) -> NDArray:
        # The straight road, as short as it can be: nothing recorded, dense arrays of one type.
        if recording_scopes:
            return recorded_sign(self, other)
        x, dtype, kind = self._data, self._dtype, type(other)
        if kind is cls:
            y = other._data
            if dtype is not other._dtype or dtype is BOOL or x is None or y is None:
                return any_operand(self, other)
            try:
                out = plain_kernel(x, y)
            except KERNEL_ERRORS:
                return any_operand(self, other)
        elif kind is int or (kind is float and other):  # -0.0 would find the number 0
            value = known_numbers[dtype].get(other)
            if value is None or x is None:
                return any_operand(self, other)
            out = plain_number_kernel(value, x) if swapped else plain_number_kernel(x, value)
        else:
            return any_operand(self, other)
        array = new_object(cls)
        array._data = out
        array._tracked = None
        array._dtype = dtype
        array._ctx = self._ctx
        array._grad = None
        return array

    return sign


def in_place_overload(cls: type[NDArray], array_op: str, scalar_op: str) -> Callable:
    """Return the method for ``array <sign>= other``: the result goes into the array's memory."""
    op, with_number = registry.get(array_op), registry.get(scalar_op)
    kernel = number_kernel = None

    def take_kernels() -> None:
        # Only torch's own functions take `out`.
        nonlocal kernel, number_kernel
        kernel = op.raw if type(op.raw) is BuiltinFunctionType else None
        number_kernel = with_number.raw if type(with_number.raw) is BuiltinFunctionType else None

    op.follow(take_kernels)
    with_number.follow(take_kernels)

    def sign(self: NDArray, other: Any) -> NDArray:
        x, dtype, kind = self._data, self._dtype, type(other)
        if recording_scopes or x is None or dtype is BOOL:
            pass
        elif kind is cls:
            y = other._data
            if dtype is other._dtype and kernel and y is not None and x.shape == y.shape:
                try:
                    kernel(x, y, out=x)
                    return self
                except KERNEL_ERRORS:  # overlapping parts of one memory
                    pass
        elif (kind is int or (kind is float and other)) and number_kernel:
            value = known_numbers[dtype].get(other)
            if value is not None:
                number_kernel(x, value, out=x)
                return self
        writable(self)  # refuses members of a graph before anything is computed
        if isinstance(other, Handle):
            return apply(op, (self, other), None, self, cls=cls)
        if isinstance(other, NUMBERS):
            return apply(with_number, (self,), {"scalar": _scalar(other)}, self, cls=cls)
        raise _refuse(other)

    return sign


def add_operator_overloads(cls: type[NDArray]) -> None:
    """Give a class its arithmetic and comparison methods."""
    for sign, (array_op, scalar_op, reversed_op) in ARITHMETIC.items():
        _set(cls, f"__{sign}__", binary_overload(cls, array_op, scalar_op))
        _set(cls, f"__r{sign}__", binary_overload(cls, array_op, reversed_op))
        if sign != "pow":
            _set(cls, f"__i{sign}__", in_place_overload(cls, array_op, scalar_op))
    for sign, (array_op, scalar_op) in COMPARISONS.items():
        _set(cls, f"__{sign}__", binary_overload(cls, array_op, scalar_op))
    for sign, name in (("neg", "negative"), ("abs", "abs")):
        _set(cls, f"__{sign}__", make_function(registry.get(name), name, cls))
    for old, new in (("div", "truediv"), ("rdiv", "rtruediv"), ("idiv", "itruediv")):
        setattr(cls, f"__{old}__", getattr(cls, f"__{new}__"))


def _set(cls: type, name: str, function: Callable) -> None:
    function.__name__ = name
    function.__qualname__ = f"{cls.__name__}.{name}"
    setattr(cls, name, function)
