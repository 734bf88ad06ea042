"""Operator overloads of symbols, and methods with signatures different from their operator's.

Overloads are same-shape elementwise operators, or operators with a number.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from ..error import NotImplementedForSymbol
from ..ops.attributes import to_string
from ..ops.declare import Op
from ..ops.tensor.arithmetic import BY_DUNDER, BY_NAME, Operation
from ..ops.tensor.elementwise import absolute
from .codegen import F, entry_of, make_node_symbol
from .symbol import Symbol

NUMBERS = (int, float, np.generic, Number)


def apply_to_symbols(op: Op, hint: str, lhs: Symbol, rhs: Symbol) -> Symbol:
    """Apply a same-shape elementwise operator to two symbols."""
    entries = {"lhs": entry_of(lhs, "lhs"), "rhs": entry_of(rhs, "rhs")}
    return make_node_symbol(type(lhs), op, hint, entries, {})


def apply_to_number(op: Op, hint: str, data: Symbol, number: Any) -> Symbol:
    """Apply an operator to a symbol and a number."""
    entries = {"data": entry_of(data, "data")}
    return make_node_symbol(type(data), op, hint, entries, {"scalar": to_string(number)})


def _unsupported(other: Any) -> TypeError:
    return TypeError(f"type {type(other)} not supported: use a Symbol or a number.")


def _overload(operation: Operation) -> Callable:
    strict, scalar = operation.elementwise, operation.scalar
    hint, scalar_hint = operation.symbol_hint, operation.scalar_hint

    def overload(self: Symbol, other: Any) -> Symbol:
        if isinstance(other, Symbol):
            return apply_to_symbols(strict, hint, self, other)
        if isinstance(other, NUMBERS):
            return apply_to_number(scalar, scalar_hint, self, other)
        raise _unsupported(other)

    return overload


def _reversed_overload(operation: Operation) -> Callable:
    op = operation.reversed_scalar
    # MXNet uses a different name for this operator.
    hint = op.name if operation.dunder == "pow" else operation.reversed_hint

    def overload(self: Symbol, other: Any) -> Symbol:
        if isinstance(other, NUMBERS):
            return apply_to_number(op, hint, self, other)
        raise _unsupported(other)

    return overload


def _in_place_overload(dunder: str) -> Callable:
    def refuse(self: Symbol, other: Any) -> Symbol:
        raise NotImplementedForSymbol(f"__i{dunder}__", f"x = x.__{dunder}__(y)", other)

    return refuse


def _negate(self: Symbol) -> Symbol:
    product = BY_NAME["multiply"]
    return apply_to_number(product.scalar, product.scalar_hint, self, -1.0)


def _absolute(self: Symbol) -> Symbol:
    entries = {"data": entry_of(self, "data")}
    return make_node_symbol(type(self), absolute, absolute.name, entries, {})


def add_operator_overloads(cls: type[Symbol]) -> None:
    """Add the arithmetic and comparison methods to a class."""
    for dunder, operation in BY_DUNDER.items():
        _set(cls, f"__{dunder}__", _overload(operation))
        if not operation.returns_bool:
            _set(cls, f"__r{dunder}__", _reversed_overload(operation))
    for dunder in ("add", "sub", "mul", "truediv"):
        _set(cls, f"__i{dunder}__", _in_place_overload(dunder))
    for old, new in (("div", "truediv"), ("rdiv", "rtruediv"), ("idiv", "itruediv")):
        setattr(cls, f"__{old}__", getattr(cls, f"__{new}__"))
    _set(cls, "__neg__", _negate)
    _set(cls, "__abs__", _absolute)
    cls.__hash__ = None  # == builds a graph, as in MXNet


def _set(cls: type, name: str, function: Callable) -> None:
    function.__name__ = name
    function.__qualname__ = f"{cls.__name__}.{name}"
    setattr(cls, name, function)


def astype(self: Symbol, dtype: Any, **kwargs: Any) -> Symbol:
    """Return the symbol cast to another data type.

    Parameters
    ----------
    dtype
        The data type.
    """
    return F.cast(self, dtype=dtype, **kwargs)


def diag(self: Symbol, k: int = 0, **kwargs: Any) -> Symbol:
    """Return a diagonal, or a matrix with this diagonal.

    Parameters
    ----------
    k
        Index of the diagonal: 0 is the main diagonal, positive ones are above it, negative ones
        below.
    """
    return F.diag(self, k=k, **kwargs)


def expand_dims(self: Symbol, axis: int, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Return the symbol with a new axis of size 1.

    Parameters
    ----------
    axis
        Position of the new axis in the result.
    inplace
        Accepted for compatibility with arrays; has no effect.
    """
    return F.expand_dims(self, axis=axis, **kwargs)


def flatten(self: Symbol, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Return the symbol with all axes but the first flattened.

    Parameters
    ----------
    inplace
        Accepted for compatibility with arrays; has no effect.
    """
    return F.flatten(self, **kwargs)


def squeeze(self: Symbol, axis: Any = None, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Return the symbol without axes of size 1.

    Parameters
    ----------
    axis
        The axes to remove; None: all axes of size 1.
    inplace
        Accepted for compatibility with arrays; has no effect.
    """
    return F.squeeze(self, axis=axis, **kwargs)


def add_special_methods(cls: type[Symbol]) -> None:
    """Add the methods of this module to a class."""
    for method in (astype, diag, expand_dims, flatten, squeeze):
        setattr(cls, method.__name__, method)
