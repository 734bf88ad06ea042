"""Generates `mx.np` and `mx.sym.np` from the operator registry and from the composites.

A composite is a function that does more than call one operator, or calls it under another
signature. It is written once, with the operator namespace ``F`` as its first parameter: eager
arrays and symbols differ only in the namespace that is bound to it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as onp

from ...composites.namespace import OperatorNamespace
from ...ops import registry
from ...ops.declare import Op
from ...ops.documentation import complete
from ...util import check_ufunc_keywords
from .glossary import GLOSSARY

NUMBERS = (int, float, bool, onp.generic)


class NumpyNamespace(OperatorNamespace):
    """``F`` of NumPy's composites; it also knows how a number becomes an operand.

    Parameters
    ----------
    number
        Returns the attributes for a number as an operand.
    """

    def __init__(
        self,
        array_class: type,
        make: Callable[[Op, str], Callable],
        number: Callable[[Any], dict[str, Any]],
        is_symbolic: bool = False,
    ) -> None:
        super().__init__(array_class, make, is_symbolic)
        self.number = number


def composites_of(modules: Iterable[ModuleType]) -> dict[str, Callable]:
    """Return the public composites of some modules by name."""
    return {name: getattr(module, name) for module in modules for name in module.__all__}


# -- universal functions ------------------------------------------------------------------------


def _refuse(name: str, *operands: Any) -> TypeError:
    kinds = ", ".join(str(type(x)) for x in operands)
    return TypeError(
        f"{name}: type {kinds} not supported. Use mx.np.ndarray (mx.np.array(x) of NumPy's, "
        "x.as_np_ndarray() of a legacy array) or a number."
    )


def make_unary(F: NumpyNamespace, op: Op, name: str) -> Callable:
    """Return the universal function of one array that an operator implements."""
    function = getattr(F, op.name)
    of_number = getattr(onp, name, None)

    cls = F.array_class

    def unary(x: Any, out: Any = None, **kwargs: Any) -> Any:
        if x.__class__ is cls and out is None and not kwargs:
            return function(x)
        if kwargs:
            check_ufunc_keywords(name, kwargs)
        if F.is_array(x):
            return function(x) if out is None else function(x, out=out)
        if isinstance(x, NUMBERS) and of_number is not None:
            return of_number(x)
        raise _refuse(name, x)

    return _named(unary, name, op, _UNARY)


def make_binary(F: NumpyNamespace, op: Op, name: str) -> Callable:
    """Return the universal function of two arrays, either of which may be a number."""
    function = getattr(F, op.name)
    with_number = getattr(F, scalar_form(name))
    from_number = getattr(F, reversed_form(name))
    of_numbers = getattr(onp, name)

    cls = F.array_class

    def binary(x1: Any, x2: Any, out: Any = None, **kwargs: Any) -> Any:
        if x1.__class__ is cls and x2.__class__ is cls and out is None and not kwargs:
            return function(x1, x2)
        if kwargs:
            check_ufunc_keywords(name, kwargs)
        rest = {} if out is None else {"out": out}
        if F.is_array(x1):
            if F.is_array(x2):
                return function(x1, x2, **rest)
            if isinstance(x2, NUMBERS):
                return with_number(x1, **F.number(x2), **rest)
        elif isinstance(x1, NUMBERS):
            if F.is_array(x2):
                return from_number(x2, **F.number(x1), **rest)
            if isinstance(x2, NUMBERS):
                return of_numbers(x1, x2)
        raise _refuse(name, x1, x2)

    return _named(binary, name, op, _BINARY)


def _named(
    function: Callable, name: str, op: Op, parameters: tuple[inspect.Parameter, ...]
) -> Callable:
    function.__name__ = function.__qualname__ = name
    if op not in _docstrings:
        _docstrings[op] = complete(op.function.__doc__ or name, parameters, GLOSSARY)
    function.__doc__ = _docstrings[op]
    return function


def _parameter(name: str, **default: None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, **default)


_UNARY = (_parameter("x"), _parameter("out", default=None))
_BINARY = (_parameter("x1"), _parameter("x2"), _parameter("out", default=None))
_docstrings: dict[Op, str] = {}  # arrays and symbols have the same


_MIRRORED = {"less": "greater", "greater": "less"}


def array_form(name: str) -> str:
    """Return the operator of two arrays that a binary function calls."""
    return f"_npi_{name}"


def scalar_form(name: str) -> str:
    """Return the operator of an array and a number that belongs to a binary function."""
    return f"_npi_{name}_scalar"


def reversed_form(name: str) -> str:
    """Return the operator of a number and an array: reversed, mirrored, or the same.

    >>> reversed_form("subtract"), reversed_form("less"), reversed_form("add")
    ('_npi_rsubtract_scalar', '_npi_greater_scalar', '_npi_add_scalar')
    """
    turned = f"_npi_r{name}_scalar"
    if registry.find(turned) is not None:
        return turned
    first, _, rest = name.partition("_")
    mirrored = _MIRRORED.get(first, first) + (f"_{rest}" if rest else "")
    return scalar_form(mirrored)


def is_binary(name: str, op: Op) -> bool:
    """Return whether a registered name is a function of two arrays with a scalar form."""
    return (
        name.startswith("_npi_")
        and len(op.inputs) == 2
        and not op.attributes
        and registry.find(f"{name}_scalar") is not None
    )


def is_unary(name: str, op: Op) -> bool:
    """Return whether a registered name is a universal function of one array."""
    return (
        name.startswith("_npi_")
        and [i.name for i in op.inputs] == ["x"]
        and not op.attributes
        and op.shape_rule is not None
    )


def universal_functions(F: NumpyNamespace) -> dict[str, Callable]:
    """Return NumPy's universal functions that operators implement, by their public names."""
    found = {}
    for registered in registry.names():
        op, name = registry.get(registered), registered.removeprefix("_npi_")
        if is_binary(registered, op):
            found[name] = make_binary(F, op, name)
        elif is_unary(registered, op):
            found[name] = make_unary(F, op, name)
    return found
