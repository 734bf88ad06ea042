"""Operator overloads of `np.ndarray`: ``+ - * / % ** @ & | ^ ~`` and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from ...error import NotImplementedForSymbol
from ...ops import registry
from ...runtime import overloads
from ...runtime.overloads import (
    FLOATS,
    NUMBERS,
    Overload,
    add_division_names,
    differentiable_kernel,
    set_method,
)
from .functions import array_form, reversed_form, scalar_form

if TYPE_CHECKING:
    from ...symbol.numpy import _Symbol
    from ..multiarray import ndarray

# Python's name: (function of mx.np, supported dtypes of its kernel, whether it compares)
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
    cls: type[ndarray],
    module: ModuleType,
    name: str,
    dtypes: frozenset,
    compares: bool,
    reverse: bool = False,
) -> Callable:
    """Return the method for ``array <operator> other``, or the reverse.

    It calls the public function of the module.
    """

    def general(self: ndarray, other: Any) -> Any:
        function = getattr(module, name)
        return function(other, self) if reverse else function(self, other)

    op = registry.get(array_form(name))
    scalar = registry.get((reversed_form if reverse else scalar_form)(name))
    rule = Overload(
        general=general,
        kernel=differentiable_kernel(op) or op.kernel,
        number_kernel=differentiable_kernel(scalar),
        plain_kernel=op.raw or op.kernel,
        plain_number_kernel=scalar.raw or scalar.kernel,
        number_first=scalar.swapped,
        dtypes=dtypes,
        made_dtype=torch.bool if compares else None,
        op=op,
        number_op=scalar,
    )
    return overloads.binary_overload(cls, rule, reverse)


def in_place_overload(
    cls: type[ndarray], module: ModuleType, name: str, dtypes: frozenset
) -> Callable:
    """Return the method for ``array <operator>= other``, which writes into the array."""
    op, scalar = registry.get(array_form(name)), registry.get(scalar_form(name))

    def general(self: ndarray, other: Any) -> ndarray:
        return getattr(module, name)(self, other, out=self)

    return overloads.in_place_overload(cls, op, scalar, dtypes, general)


def matmul_overloads(cls: type[ndarray], module: ModuleType) -> None:
    """Add the operator ``@`` to a class."""

    def matmul(self: ndarray, other: Any) -> ndarray:
        return module.matmul(self, other)

    def matmul_reversed(self: ndarray, other: Any) -> ndarray:
        return module.matmul(other, self)

    def matmul_in_place(self: ndarray, other: Any) -> ndarray:
        return module.matmul(self, other, out=self)

    set_method(cls, "__matmul__", matmul)
    set_method(cls, "__rmatmul__", matmul_reversed)
    set_method(cls, "__imatmul__", matmul_in_place)


def unary_overload(module: ModuleType, name: str) -> Callable:
    """Return the method for ``<operator> array``, or symbol."""

    def overload(self: Any) -> Any:
        return getattr(module, name)(self)

    return overload


def add_operator_overloads(cls: type[ndarray], module: ModuleType) -> None:
    """Add the methods of Python's operators to a class, from a module's public functions."""
    matmul_overloads(cls, module)
    for dunder, name in UNARY.items():
        set_method(cls, f"__{dunder}__", unary_overload(module, name))
    for dunder, (name, *facts) in BINARY.items():
        dtypes, compares = facts
        method = binary_overload(cls, module, name, dtypes, compares)
        set_method(cls, f"__{dunder}__", method)
        if dunder in REVERSED:
            method = binary_overload(cls, module, name, dtypes, compares, reverse=True)
            set_method(cls, f"__r{dunder}__", method)
        if dunder in IN_PLACE:
            method = in_place_overload(cls, module, name, dtypes)
            set_method(cls, f"__i{dunder}__", method)
    set_method(cls, "__neg__", lambda self: self * -1)  # as in MXNet, bools become integers
    add_division_names(cls)


# -- symbols of `mx.sym.np`: each operator adds a node to the graph -----------------------------


def _forward(module: ModuleType, name: str) -> Callable:
    def overload(self: _Symbol, other: Any) -> _Symbol:
        return getattr(module, name)(self, other)

    return overload


def _reverse(module: ModuleType, name: str) -> Callable:
    def overload(self: _Symbol, other: Any) -> _Symbol:
        return getattr(module, name)(other, self)

    return overload


def _refuse(sign: str) -> Callable:
    def overload(self: _Symbol, other: Any) -> _Symbol:
        raise NotImplementedForSymbol(f"__i{sign}__", f"x = x.__{sign}__(y)", other)

    return overload


def add_symbol_overloads(cls: type[_Symbol], module: ModuleType) -> None:
    """Add the methods of Python's operators to a class of symbols, from a module's functions."""
    for sign, (name, _, _) in {**BINARY, "matmul": ("matmul", None, None)}.items():
        setattr(cls, f"__{sign}__", _forward(module, name))
        if sign in REVERSED:
            setattr(cls, f"__r{sign}__", _reverse(module, name))
        if sign in IN_PLACE:
            setattr(cls, f"__i{sign}__", _refuse(sign))
    for sign, name in UNARY.items():
        setattr(cls, f"__{sign}__", unary_overload(module, name))
    cls.__neg__ = lambda self: self * -1.0
    for old, new in (("div", "truediv"), ("rdiv", "rtruediv"), ("idiv", "itruediv")):
        setattr(cls, f"__{old}__", getattr(cls, f"__{new}__"))
    cls.__hash__ = None
