"""Arithmetic and comparison signs of arrays: the hottest code of the house, so keep it thin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..ops import registry
from ..ops.families import BOOL, number
from .invoke import KERNEL_ERRORS, invoke
from .state import recording_scopes
from .storage import Handle, current, new_object, note_constant, wrap, writable

if TYPE_CHECKING:
    from .core import NDArray

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
NUMBERS = (int, float, np.generic)
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


def binary_sign(cls: type[NDArray], array_op: str, scalar_op: str) -> Callable:
    """Return the method for ``array <sign> other``.

    It repeats what `invoke` does for two dense arrays or an array and a number, and no more;
    everything else goes through that door.
    """
    op, with_number = registry.get(array_op), registry.get(scalar_op)
    kernel = op.raw if op.gradient_rule is None else op.kernel
    number_kernel = with_number.raw if with_number.gradient_rule is None else None
    swapped = getattr(with_number, "swapped", False)
    compares = array_op in {row[0] for row in COMPARISONS.values()}

    def any_operand(self: NDArray, other: Any) -> NDArray:
        """Do what `sign` does, with whatever stands on the right, also while recording."""
        kind = type(other)
        if kind is cls:
            x, y = current(self), current(other)
            dtype = x.dtype
            if dtype is not y.dtype or dtype is BOOL:
                return invoke(op, (self, other), None, cls=cls)
            try:
                out = kernel(x, y)
            except KERNEL_ERRORS:
                return invoke(op, (self, other), None, cls=cls)  # says what is wrong, in full
        elif (kind is float or kind is int) and number_kernel is not None:
            x = self._data
            if x is None or recording_scopes[0]:
                x = current(self)
            dtype = x.dtype
            if dtype is BOOL:
                return invoke(with_number, (self,), {"scalar": other}, cls=cls)
            value = number(other, dtype)
            try:
                out = number_kernel(value, x) if swapped else number_kernel(x, value)
            except KERNEL_ERRORS:
                return invoke(with_number, (self,), {"scalar": other}, cls=cls)
        elif isinstance(other, Handle):
            return invoke(op, (self, other), None, cls=cls)
        elif isinstance(other, NUMBERS):
            return invoke(with_number, (self,), {"scalar": other}, cls=cls)
        else:
            raise _refuse(other)
        made = wrap(cls, CASTS[dtype](out) if compares else out, self._ctx)
        if recording_scopes[0]:
            note_constant(made, (self, other) if kind is cls else (self,))
        return made

    if compares or scalar_op.startswith("_r"):
        return any_operand

    def sign(self: NDArray, other: Any) -> NDArray:
        # Two dense arrays of one type, nothing recorded: the straight road.
        if type(other) is cls and not recording_scopes[0]:
            x, y = self._data, other._data
            if x is not None and y is not None:
                dtype = x.dtype
                if dtype is y.dtype and dtype is not BOOL:
                    try:
                        out = kernel(x, y)
                    except KERNEL_ERRORS:
                        return any_operand(self, other)
                    array = new_object(cls)
                    array._data = out
                    array._tracked = None
                    array._ctx = self._ctx
                    array._grad = None
                    return array
        return any_operand(self, other)

    return sign


def in_place_sign(cls: type[NDArray], array_op: str, scalar_op: str) -> Callable:
    """Return the method for ``array <sign>= other``: the result goes into the array's memory."""
    op, with_number = registry.get(array_op), registry.get(scalar_op)

    def sign(self: NDArray, other: Any) -> NDArray:
        writable(self)  # refuses members of a graph before anything is computed
        if isinstance(other, Handle):
            return invoke(op, (self, other), None, self, cls=cls)
        if isinstance(other, NUMBERS):
            return invoke(with_number, (self,), {"scalar": other}, self, cls=cls)
        raise _refuse(other)

    return sign


def add_signs(cls: type[NDArray]) -> None:
    """Give a class its arithmetic and comparison methods."""
    for sign, (array_op, scalar_op, reversed_op) in ARITHMETIC.items():
        _set(cls, f"__{sign}__", binary_sign(cls, array_op, scalar_op))
        _set(cls, f"__r{sign}__", binary_sign(cls, array_op, reversed_op))
        if sign != "pow":
            _set(cls, f"__i{sign}__", in_place_sign(cls, array_op, scalar_op))
    for sign, (array_op, scalar_op) in COMPARISONS.items():
        _set(cls, f"__{sign}__", binary_sign(cls, array_op, scalar_op))
    for old, new in (("div", "truediv"), ("rdiv", "rtruediv"), ("idiv", "itruediv")):
        setattr(cls, f"__{old}__", getattr(cls, f"__{new}__"))


def _set(cls: type, name: str, function: Callable) -> None:
    function.__name__ = name
    function.__qualname__ = f"{cls.__name__}.{name}"
    setattr(cls, name, function)
