"""Arithmetic and comparison operations, each with the operators that implement its forms.

Operator overloads (``x + y``), functions (`mx.nd.add`) and mixed precision are derived from this
table; nothing else lists these operators.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import registry
from ...declare import Op
from . import arithmetic, comparison  # noqa: F401 (declares the operators)


class Operation(NamedTuple):
    """One operation of two operands.

    Arrays broadcast; Symbols are strict: their operands have one shape.
    """

    name: str  # of the function: mx.nd.subtract
    dunder: str | None  # "sub" for __sub__, __rsub__ and __isub__
    broadcast: Op
    elementwise: Op
    scalar: Op  # an array with a number
    reversed_scalar: Op  # a number with an array
    on_numbers: Callable[[Any, Any], Any]
    summary: str
    returns_bool: bool  # torch's kernels do; MXNet answers in the dtype of the operands

    @property
    def symbol_hint(self) -> str:
        """The automatic name of a symbol made of two symbols: ``_plus0``."""
        return _spelling(self.elementwise)

    @property
    def scalar_hint(self) -> str:
        """The automatic name of a symbol with a number: ``_plusscalar0``."""
        return self.scalar.name if self.returns_bool else _spelling(self.scalar)

    @property
    def reversed_hint(self) -> str:
        """The automatic name of a number with a symbol: ``_rminusscalar0``."""
        return _spelling(self.reversed_scalar)

    @property
    def docstring(self) -> str:
        """The docstring of the function of two arrays or numbers."""
        return _DOCSTRING.format(name=self.name, summary=self.summary)


_DOCSTRING = """Return {summary} of two arrays (broadcast), or of an array and a number.

Parameters
----------
lhs : NDArray or number
    The left operand.
rhs : NDArray or number
    The right operand; the shapes of two arrays broadcast.

Returns
-------
NDArray
    A number if both operands are numbers.

Examples
--------
>>> mx.nd.{name}(mx.nd.array([1, 4]), 2).shape
(2,)
"""


def _spelling(op: Op) -> str:
    """Return the alias in capitals, which MXNet's Python called, in lower case.

    >>> _spelling(registry.get("_rminus_scalar"))
    '_rminusscalar'
    """
    return next(a for a in op.aliases if a[1:2].isupper()).lower()


def _row(
    name: str,
    dunder: str | None,
    forms: tuple[str, str, str, str],
    on_numbers: Callable[[Any, Any], Any],
    summary: str,
    returns_bool: bool = False,
) -> Operation:
    broadcast, elementwise, scalar, reversed_scalar = map(registry.get, forms)
    return Operation(
        name,
        dunder,
        broadcast,
        elementwise,
        scalar,
        reversed_scalar,
        on_numbers,
        summary,
        returns_bool,
    )


def _comparison(
    name: str, dunder: str | None, reverse: str, on_numbers: Callable, summary: str
) -> Operation:
    forms = (f"broadcast_{name}", f"_{name}", f"_{name}_scalar", f"_{reverse}_scalar")
    return _row(name, dunder, forms, on_numbers, summary, returns_bool=True)


def _logical(name: str, on_numbers: Callable[[Any, Any], bool], summary: str) -> Operation:
    return _comparison(name, None, name, lambda x, y: int(bool(on_numbers(x, y))), summary)


# fmt: off
OPERATIONS = (
    _row("add", "add", ("broadcast_add", "elemwise_add", "_plus_scalar", "_plus_scalar"),
         operator.add, "the sum"),
    _row("subtract", "sub", ("broadcast_sub", "elemwise_sub", "_minus_scalar", "_rminus_scalar"),
         operator.sub, "the difference"),
    _row("multiply", "mul", ("broadcast_mul", "elemwise_mul", "_mul_scalar", "_mul_scalar"),
         operator.mul, "the product"),
    _row("divide", "truediv", ("broadcast_div", "elemwise_div", "_div_scalar", "_rdiv_scalar"),
         operator.truediv, "the quotient"),
    _row("modulo", "mod", ("broadcast_mod", "_mod", "_mod_scalar", "_rmod_scalar"),
         operator.mod, "the remainder"),
    _row("power", "pow", ("broadcast_power", "_power", "_power_scalar", "_rpower_scalar"),
         operator.pow, "the power"),
    _row("maximum", None,
         ("broadcast_maximum", "_maximum", "_maximum_scalar", "_maximum_scalar"),
         max, "the larger"),
    _row("minimum", None,
         ("broadcast_minimum", "_minimum", "_minimum_scalar", "_minimum_scalar"),
         min, "the smaller"),
    _row("hypot", None, ("broadcast_hypot", "_hypot", "_hypot_scalar", "_hypot_scalar"),
         np.hypot, "the hypotenuse"),
    _comparison("equal", "eq", "equal", operator.eq, "1 where equal"),
    _comparison("not_equal", "ne", "not_equal", operator.ne, "1 where different"),
    _comparison("greater", "gt", "lesser", operator.gt, "1 where lhs is greater"),
    _comparison("greater_equal", "ge", "lesser_equal", operator.ge, "1 where lhs is not less"),
    _comparison("lesser", "lt", "greater", operator.lt, "1 where lhs is less"),
    _comparison("lesser_equal", "le", "greater_equal", operator.le, "1 where lhs is not greater"),
    _logical("logical_and", lambda x, y: x and y, "1 where both are not zero"),
    _logical("logical_or", lambda x, y: x or y, "1 where one is not zero"),
    _logical("logical_xor", lambda x, y: bool(x) ^ bool(y), "1 where exactly one is not zero"),
)
# fmt: on

BY_NAME = {row.name: row for row in OPERATIONS}
BY_DUNDER = {row.dunder: row for row in OPERATIONS if row.dunder is not None}
