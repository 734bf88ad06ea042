"""Arithmetic and comparison signs of symbols: strict elementwise, or with a number."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from ..error import NotImplementedForSymbol
from ..ops import registry
from ..ops.attributes import to_string
from .codegen import entry_of, make_node_symbol
from .symbol import Symbol

# sign: (operator, its hint, operator with a number, its hint)
BINARY = {
    "add": ("elemwise_add", "_plus", "_plus_scalar", "_plusscalar"),
    "sub": ("elemwise_sub", "_minus", "_minus_scalar", "_minusscalar"),
    "mul": ("elemwise_mul", "_mul", "_mul_scalar", "_mulscalar"),
    "truediv": ("elemwise_div", "_div", "_div_scalar", "_divscalar"),
    "mod": ("_mod", "_mod", "_mod_scalar", "_modscalar"),
    "pow": ("_power", "_power", "_power_scalar", "_powerscalar"),
    "eq": ("_equal", "_equal", "_equal_scalar", "_equal_scalar"),
    "ne": ("_not_equal", "_not_equal", "_not_equal_scalar", "_not_equal_scalar"),
    "gt": ("_greater", "_greater", "_greater_scalar", "_greater_scalar"),
    "ge": ("_greater_equal", "_greater_equal", "_greater_equal_scalar", "_greater_equal_scalar"),
    "lt": ("_lesser", "_lesser", "_lesser_scalar", "_lesser_scalar"),
    "le": ("_lesser_equal", "_lesser_equal", "_lesser_equal_scalar", "_lesser_equal_scalar"),
}
# A number on the left.
REVERSED = {
    "add": ("_plus_scalar", "_plusscalar"),
    "sub": ("_rminus_scalar", "_rminusscalar"),
    "mul": ("_mul_scalar", "_mulscalar"),
    "truediv": ("_rdiv_scalar", "_rdivscalar"),
    "mod": ("_rmod_scalar", "_rmodscalar"),
    "pow": ("_rpower_scalar", "_rpower_scalar"),
}
NUMBERS = (int, float, np.generic, Number)


def with_symbol(name: str, hint: str, lhs: Symbol, rhs: Symbol) -> Symbol:
    """Return a strict elementwise operator on two symbols."""
    given = {"lhs": entry_of(lhs, "lhs"), "rhs": entry_of(rhs, "rhs")}
    return make_node_symbol(type(lhs), registry.get(name), hint, given, {})


def with_number(name: str, hint: str, data: Symbol, number: Any) -> Symbol:
    """Return an operator on a symbol and a number."""
    given = {"data": entry_of(data, "data")}
    return make_node_symbol(
        type(data), registry.get(name), hint, given, {"scalar": to_string(number)}
    )


def _binary(name: str, hint: str, scalar_name: str, scalar_hint: str) -> Callable:
    def sign(self: Symbol, other: Any) -> Symbol:
        if isinstance(other, Symbol):
            return with_symbol(name, hint, self, other)
        if isinstance(other, NUMBERS):
            return with_number(scalar_name, scalar_hint, self, other)
        raise TypeError(f"type {type(other)} not supported: use a Symbol or a number.")

    return sign


def _reversed(name: str, hint: str) -> Callable:
    def sign(self: Symbol, other: Any) -> Symbol:
        if isinstance(other, NUMBERS):
            return with_number(name, hint, self, other)
        raise TypeError(f"type {type(other)} not supported: use a Symbol or a number.")

    return sign


def _in_place(sign: str) -> Callable:
    def refuse(self: Symbol, other: Any) -> Symbol:
        raise NotImplementedForSymbol(f"__i{sign}__", f"x = x.__{sign}__(y)", other)

    return refuse


def _negate(self: Symbol) -> Symbol:
    return with_number("_mul_scalar", "_mulscalar", self, -1.0)


def _absolute(self: Symbol) -> Symbol:
    given = {"data": entry_of(self, "data")}
    return make_node_symbol(type(self), registry.get("abs"), "abs", given, {})


def add_operator_overloads(cls: type[Symbol]) -> None:
    """Give a class its arithmetic and comparison methods."""
    for sign, names in BINARY.items():
        _set(cls, f"__{sign}__", _binary(*names))
    for sign, (name, hint) in REVERSED.items():
        _set(cls, f"__r{sign}__", _reversed(name, hint))
    for sign in ("add", "sub", "mul", "truediv"):
        _set(cls, f"__i{sign}__", _in_place(sign))
    for old, new in (("div", "truediv"), ("rdiv", "rtruediv"), ("idiv", "itruediv")):
        setattr(cls, f"__{old}__", getattr(cls, f"__{new}__"))
    _set(cls, "__neg__", _negate)
    _set(cls, "__abs__", _absolute)
    cls.__hash__ = None


def _set(cls: type, name: str, function: Callable) -> None:
    function.__name__ = name
    function.__qualname__ = f"{cls.__name__}.{name}"
    setattr(cls, name, function)
