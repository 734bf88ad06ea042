"""Python's operators of `np.ndarray`: ``+ - * / % ** @ & | ^ ~`` and comparisons.

The hottest code of `mx.np`: dense arrays of one dtype, and numbers met before, call a kernel at
once; everything else goes through the public function.
"""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

import torch

from ..imperative.freed_graphs import IntegerInGraph
from ..imperative.handle import current, new_object, wrap_recorded, writable
from ..imperative.state import recording_scopes
from ..ops import interpreters, registry
from ..ops.declare import KERNEL_ERRORS, Op
from ..ops.families import known_numbers
from .codegen import array_form, reversed_form, scalar_form

if TYPE_CHECKING:
    from .array import ndarray

_interpreters = interpreters.eager
FLOATS = frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16})
NUMBERS = FLOATS | {torch.int32, torch.int64, torch.uint8, torch.int8}
# Python's name: (function of mx.np, dtypes on which its kernel is right, does it compare)
BINARY = {
    "add": ("add", NUMBERS, False),
    "sub": ("subtract", NUMBERS, False),
    "mul": ("multiply", NUMBERS, False),
    "truediv": ("true_divide", FLOATS, False),
    "mod": ("mod", FLOATS, False),
    "pow": ("power", FLOATS, False),
    "eq": ("equal", NUMBERS, True),
    "ne": ("not_equal", NUMBERS, True),
    "gt": ("greater", NUMBERS, True),
    "ge": ("greater_equal", NUMBERS, True),
    "lt": ("less", NUMBERS, True),
    "le": ("less_equal", NUMBERS, True),
    "and": ("bitwise_and", frozenset(), False),
    "or": ("bitwise_or", frozenset(), False),
    "xor": ("bitwise_xor", frozenset(), False),
}
UNARY = {
    "abs": "abs",
    "invert": "invert",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
}
REVERSED = ("add", "sub", "mul", "truediv", "mod", "pow", "and", "or", "xor")
IN_PLACE = ("add", "sub", "mul", "truediv", "mod", "and", "or", "xor")


def binary_overload(
    cls: type[ndarray], function: Callable, name: str, dtypes: frozenset, compares: bool
) -> Callable:
    """Return the method for ``array <operator> other``; `function` serves all other operands."""
    op, with_number = registry.get(array_form(name)), registry.get(scalar_form(name))
    kernel = op.raw if op.gradient_rule is None else op.kernel
    number_kernel = with_number.raw if with_number.gradient_rule is None else None

    def overload(self: ndarray, other: Any) -> ndarray:
        x, dtype, kind = self._data, self._dtype, type(other)
        if dtype not in dtypes or _interpreters:
            return function(self, other)
        if kind is cls:
            if dtype is not other._dtype:
                return function(self, other)
            y = other._data
            if x is None or y is None or recording_scopes:
                try:
                    x, y = current(self), current(other)
                except IntegerInGraph:
                    return function(self, other)
            try:
                out = kernel(x, y)
            except KERNEL_ERRORS:
                return function(self, other)  # reports in full what does not fit
        elif kind is float or kind is int:
            y = known_numbers[dtype].get(other)
            if y is None or number_kernel is None or not other:  # -0.0 equals 0 as a key
                return function(self, other)
            if x is None or recording_scopes:
                try:
                    x = current(self)
                except IntegerInGraph:
                    return function(self, other)
            out = number_kernel(x, y)
            other = self
        else:
            return function(self, other)
        if recording_scopes:
            return wrap_recorded(cls, out, out.dtype, (self, other))
        array = new_object(cls)
        array._data = out
        array._tracked = None
        array._dtype = torch.bool if compares else dtype
        array._ctx = self._ctx
        array._grad = None
        return array

    return overload


def reversed_overload(
    cls: type[ndarray], function: Callable, name: str, dtypes: frozenset
) -> Callable:
    """Return the method for ``number <operator> array``."""
    with_number = registry.get(reversed_form(name))
    kernel = with_number.raw if with_number.gradient_rule is None else None
    swapped = getattr(with_number, "swapped", False)

    def overload(self: ndarray, other: Any) -> ndarray:
        x, dtype, kind = self._data, self._dtype, type(other)
        if dtype not in dtypes or (kind is not float and kind is not int):
            return function(other, self)
        if kernel is None or _interpreters:
            return function(other, self)
        y = known_numbers[dtype].get(other)
        if y is None or not other:
            return function(other, self)
        if x is None or recording_scopes:
            try:
                x = current(self)
            except IntegerInGraph:
                return function(other, self)
        out = kernel(y, x) if swapped else kernel(x, y)
        if recording_scopes:
            return wrap_recorded(cls, out, dtype, (self,))
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


def in_place_overload(
    cls: type[ndarray], function: Callable, name: str, dtypes: frozenset
) -> Callable:
    """Return the method for ``array <operator>= other``: the result goes into its memory."""
    op, with_number = registry.get(array_form(name)), registry.get(scalar_form(name))
    kernel, number_kernel = _in_place_kernel(op), _in_place_kernel(with_number)

    def overload(self: ndarray, other: Any) -> ndarray:
        x, dtype, kind = self._data, self._dtype, type(other)
        if recording_scopes or _interpreters or x is None or dtype not in dtypes:
            pass
        elif kind is cls:
            y = other._data
            if dtype is other._dtype and kernel and y is not None and x.shape == y.shape:
                try:
                    kernel(x, y, out=x)
                    return self
                except KERNEL_ERRORS:  # overlapping parts of one memory
                    pass
        elif (kind is int or kind is float) and other and number_kernel:
            y = known_numbers[dtype].get(other)
            if y is not None:
                number_kernel(x, y, out=x)
                return self
        writable(self)  # refuses members of a recorded graph before anything is computed
        return function(self, other, out=self)

    return overload


def matmul_overloads(cls: type[ndarray], function: Callable) -> None:
    """Give a class the operator ``@``."""

    def matmul(self: ndarray, other: Any) -> ndarray:
        return function(self, other)

    def matmul_reversed(self: ndarray, other: Any) -> ndarray:
        return function(other, self)

    def matmul_in_place(self: ndarray, other: Any) -> ndarray:
        return function(self, other, out=self)

    _set(cls, "__matmul__", matmul)
    _set(cls, "__rmatmul__", matmul_reversed)
    _set(cls, "__imatmul__", matmul_in_place)


def unary_overload(function: Callable) -> Callable:
    """Return the method for ``<operator> array``."""

    def overload(self: ndarray) -> ndarray:
        return function(self)

    return overload


def add_operator_overloads(cls: type[ndarray], functions: dict[str, Callable]) -> None:
    """Give a class the methods of Python's operators, from the public functions."""
    matmul_overloads(cls, functions["matmul"])
    for sign, name in UNARY.items():
        _set(cls, f"__{sign}__", unary_overload(functions[name]))
    for sign, (name, dtypes, compares) in BINARY.items():
        function = functions[name]
        _set(cls, f"__{sign}__", binary_overload(cls, function, name, dtypes, compares))
        if sign in REVERSED:
            _set(cls, f"__r{sign}__", reversed_overload(cls, function, name, dtypes))
        if sign in IN_PLACE:
            _set(cls, f"__i{sign}__", in_place_overload(cls, function, name, dtypes))
    _set(cls, "__neg__", lambda self: self * -1)  # as in MXNet; it makes integers of bools
    for old, new in (("div", "truediv"), ("rdiv", "rtruediv"), ("idiv", "itruediv")):
        setattr(cls, f"__{old}__", getattr(cls, f"__{new}__"))


def _set(cls: type, name: str, function: Callable) -> None:
    function.__name__ = name
    function.__qualname__ = f"{cls.__name__}.{name}"
    setattr(cls, name, function)
