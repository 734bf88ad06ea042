"""Python's operators of symbols of `mx.sym.np`: each adds a node to the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...error import NotImplementedForSymbol
from .operator_overloads import BINARY, IN_PLACE, REVERSED, UNARY

if TYPE_CHECKING:
    from ...symbol.numpy import _Symbol


def _forward(function: Callable) -> Callable:
    def overload(self: _Symbol, other: Any) -> _Symbol:
        return function(self, other)

    return overload


def _reversed(function: Callable) -> Callable:
    def overload(self: _Symbol, other: Any) -> _Symbol:
        return function(other, self)

    return overload


def _refuse(sign: str) -> Callable:
    def overload(self: _Symbol, other: Any) -> _Symbol:
        raise NotImplementedForSymbol(f"__i{sign}__", f"x = x.__{sign}__(y)", other)

    return overload


def _unary(function: Callable) -> Callable:
    def overload(self: _Symbol) -> _Symbol:
        return function(self)

    return overload


def add_symbol_overloads(cls: type[_Symbol], functions: dict[str, Callable]) -> None:
    """Give a class of symbols the methods of Python's operators."""
    for sign, (name, _, _) in {**BINARY, "matmul": ("matmul", None, None)}.items():
        setattr(cls, f"__{sign}__", _forward(functions[name]))
        if sign in REVERSED:
            setattr(cls, f"__r{sign}__", _reversed(functions[name]))
        if sign in IN_PLACE:
            setattr(cls, f"__i{sign}__", _refuse(sign))
    for sign, name in UNARY.items():
        setattr(cls, f"__{sign}__", _unary(functions[name]))
    cls.__neg__ = lambda self: self * -1.0
    for old, new in (("div", "truediv"), ("rdiv", "rtruediv"), ("idiv", "itruediv")):
        setattr(cls, f"__{old}__", getattr(cls, f"__{new}__"))
    cls.__hash__ = None
