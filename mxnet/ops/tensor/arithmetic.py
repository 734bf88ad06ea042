"""Arithmetic and comparisons of two arrays, or of an array and a number.

Each operation has MXNet's forms: broadcasting, same-shape, with a number, and with the number
first. All forms share a kernel. Comparisons and logic return 1 or 0 in the operands' dtype.

Operator overloads (``x + y``), functions (`mx.nd.add`) and mixed precision are derived from
`OPERATIONS`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...error import MXNetError, ShapeError
from .. import registry
from ..declare import Op, op
from ..families import (
    BOOL,
    Kernel,
    binary,
    check_same_dtype,
    elementwise,
    refuse_bool,
    scalar,
    shown,
    truncate,
)
from ..shapes import same


def divide(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Divide; integer quotients are truncated."""
    if lhs.dtype.is_floating_point:
        return torch.div(lhs, rhs)
    return torch.div(lhs, rhs, rounding_mode="trunc")


def modulo(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Return the remainder with the divisor's sign; 0 for a divisor of 0."""
    by_zero = rhs == 0
    if not lhs.dtype.is_floating_point:
        rhs = rhs.masked_fill(by_zero, 1)
    return torch.remainder(lhs, rhs).masked_fill(by_zero, 0)


def modulo_gradient(grad: Tensor, out: Tensor, lhs: Tensor, rhs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``lhs - rhs * floor(lhs / rhs)``."""
    return grad, -grad * torch.floor(lhs / rhs)


def power(base: Tensor, exponent: Tensor) -> Tensor:
    """Raise to a power; integers are computed in floating point and truncated."""
    if base.dtype.is_floating_point:
        return torch.pow(base, exponent)
    return truncate(torch.pow(base.double(), exponent.double()), base.dtype)


def power_of_number(base: Tensor, exponent: Tensor) -> Tensor:
    """Raise to the power of a number: torch has a faster kernel for it."""
    if not base.dtype.is_floating_point or exponent.is_meta:  # a meta tensor has no value
        return power(base, exponent)
    value = exponent.item()
    return torch.square(base) if value == 2 else torch.pow(base, value)


def number_to_power(base: Tensor, exponent: Tensor) -> Tensor:
    """Raise a number to powers."""
    if exponent.dtype.is_floating_point and not base.is_meta:
        return torch.pow(base.item(), exponent)
    return power(base, exponent)


def hypotenuse(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Return ``sqrt(lhs^2 + rhs^2)`` without intermediate overflow."""
    if lhs.dtype.is_floating_point:
        return torch.hypot(lhs, rhs)
    return truncate(torch.hypot(lhs.double(), rhs.double()), lhs.dtype)


def larger(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Return the larger element; at a tie the gradient goes to the first (torch may split it)."""
    if lhs.requires_grad or rhs.requires_grad:
        return torch.where((lhs >= rhs) | (lhs != lhs), lhs, rhs)  # NaN is larger than all
    return torch.clamp_min(lhs, rhs)


def smaller(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Return the smaller element; at a tie the gradient goes to the first (torch may split it)."""
    if lhs.requires_grad or rhs.requires_grad:
        return torch.where((lhs <= rhs) | (lhs != lhs), lhs, rhs)
    return torch.clamp_max(lhs, rhs)


def forms(
    broadcasting: tuple[str, ...],
    same_shape: tuple[str, ...],
    kernel: Kernel,
    doc: str,
    given: tuple[str, str],
    result: str,
    names_output: bool = False,
    **facts: Any,
) -> tuple[Op, Op]:
    """Declare and return the broadcasting and the same-shape form.

    `names_output` applies to the same-shape form.
    """
    lhs, rhs = (f"mx.nd.array({x})" for x in given)
    name, twin = broadcasting[0], same_shape[0]
    example = shown(f"mx.nd.{name}({lhs}, {rhs})", result)
    first = binary(name, kernel, *broadcasting[1:], doc=doc, example=example, **facts)
    home = "mx.nd._internal." if twin.startswith("_") else "mx.nd."
    example = shown(f"{home}{twin}({lhs}, {rhs})", result)
    doc = f"{doc} Both arrays have the same shape."
    facts["names_output"] = names_output
    second = elementwise(twin, kernel, *same_shape[1:], doc=doc, example=example, **facts)
    return first, second


def with_number(
    short: str,
    kernel: Kernel,
    doc: str,
    number: str,
    result: str,
    *aliases: str,
    **options: Any,
) -> Op:
    """Declare the form with a number, such as ``_plus_scalar``."""
    name = f"_{short}_scalar"
    example = shown(f"mx.nd._internal.{name}(mx.nd.array([1, -2, 5]), scalar={number})", result)
    return scalar(name, kernel, *aliases, doc=doc, example=example, **options)


PAIR = ("[1, -2, 5]", "[4, 2, 5]")

broadcast_add, elemwise_add = forms(
    ("broadcast_add", "broadcast_plus", "_sparse_broadcast_add", "_sparse_broadcast_plus"),
    ("elemwise_add", "_Plus", "_add", "_plus", "_sparse_elemwise_add"),
    torch.add,
    "Sum of two arrays.",
    PAIR,
    "[ 5.,  0., 10.]",
    names_output=True,
    overwritable=True,
    commutative=True,
    keeps_finite=True,
)


def add_in_place(attrs: dict) -> Callable[[Tensor, Tensor], Tensor]:
    """Add the second array to the first in place."""
    return Tensor.add_


broadcast_add.variant("in_place")(add_in_place)
elemwise_add.variant("in_place")(add_in_place)

broadcast_sub, elemwise_sub = forms(
    ("broadcast_sub", "broadcast_minus", "_sparse_broadcast_sub", "_sparse_broadcast_minus"),
    ("elemwise_sub", "_Minus", "_minus", "_sub", "_sparse_elemwise_sub"),
    torch.sub,
    "Difference of two arrays.",
    PAIR,
    "[-3., -4.,  0.]",
    overwritable=True,
)
broadcast_mul, elemwise_mul = forms(
    ("broadcast_mul", "_sparse_broadcast_mul"),
    ("elemwise_mul", "_Mul", "_mul", "_sparse_elemwise_mul"),
    torch.mul,
    "Product of two arrays.",
    PAIR,
    "[ 4., -4., 25.]",
    overwritable=True,
    commutative=True,
)
forms(
    ("broadcast_div", "_sparse_broadcast_div"),
    ("elemwise_div", "_Div", "_div", "_sparse_elemwise_div"),
    divide,
    "Quotient of two arrays; integer quotients are truncated.",
    PAIR,
    "[ 0.25, -1.  ,  1.  ]",
)
forms(
    ("broadcast_mod",),
    ("_mod", "_Mod"),
    modulo,
    "Remainder with the divisor's sign; a divisor of 0 leaves 0.",
    ("[7, -7, 7]", "[3, 3, -3]"),
    "[ 1.,  2., -2.]",
    gradient=modulo_gradient,
    zero_for_integers=True,
)
forms(
    ("broadcast_power",),
    ("_power", "_Power"),
    power,
    "Power: ``lhs ** rhs``.",
    PAIR,
    "[1.000e+00, 4.000e+00, 3.125e+03]",
    precision="full",
)
forms(
    ("broadcast_maximum", "_npi_maximum"),
    ("_maximum", "_Maximum"),
    larger,
    "Larger of two elements; at a tie the gradient goes to the first array.",
    PAIR,
    "[4., 2., 5.]",
)
forms(
    ("broadcast_minimum", "_npi_minimum"),
    ("_minimum", "_Minimum"),
    smaller,
    "Smaller of two elements; at a tie the gradient goes to the first array.",
    PAIR,
    "[ 1., -2.,  5.]",
)
forms(
    ("broadcast_hypot",),
    ("_hypot", "_Hypot"),
    hypotenuse,
    "Hypotenuse: ``sqrt(lhs^2 + rhs^2)``.",
    ("[3, 5]", "[4, 12]"),
    "[ 5., 13.]",
    precision="full",
)

with_number("plus", torch.add, "Array plus number.", "2", "[3., 0., 7.]", "_PlusScalar")
with_number("minus", torch.sub, "Array minus number.", "2", "[-1., -4.,  3.]", "_MinusScalar")
rminus_scalar = with_number(
    "rminus",
    torch.sub,
    "Number minus array.",
    "2",
    "[ 1.,  4., -3.]",
    "_RMinusScalar",
    swapped=True,
)
mul_scalar = with_number(
    "mul", torch.mul, "Array times number.", "2", "[ 2., -4., 10.]", "_MulScalar", keeps_zeros=True
)
div_scalar = with_number(
    "div",
    divide,
    "Array divided by number.",
    "2",
    "[ 0.5, -1. ,  2.5]",
    "_DivScalar",
    keeps_zeros=True,
)
with_number(
    "rdiv",
    divide,
    "Number divided by array.",
    "10",
    "[10., -5.,  2.]",
    "_RDivScalar",
    swapped=True,
    precision="full",
)
with_number(
    "mod",
    modulo,
    "Remainder by a number, with its sign.",
    "3",
    "[1., 1., 2.]",
    "_ModScalar",
    gradient=lambda grad, out, data, **_: grad,
    zero_for_integers=True,
)
with_number(
    "rmod",
    modulo,
    "Remainder of a number by the array, with the array's sign.",
    "3",
    "[ 0., -1.,  3.]",
    "_RModScalar",
    swapped=True,
    gradient=lambda grad, out, data, *, scalar, **_: -grad * torch.floor(scalar / data),
    zero_for_integers=True,
)
with_number(
    "power",
    power_of_number,
    "Array to the power of a number.",
    "2",
    "[ 1.,  4., 25.]",
    "_PowerScalar",
    precision="full",
)
with_number(
    "rpower",
    number_to_power,
    "Number to the power of the array.",
    "2",
    "[ 2.  ,  0.25, 32.  ]",
    "_RPowerScalar",
    swapped=True,
    precision="full",
)
with_number(
    "maximum",
    larger,
    "Larger of element and number; the gradient passes at a tie.",
    "1",
    "[1., 1., 5.]",
    "_MaximumScalar",
    "_npi_maximum_scalar",
)
with_number(
    "minimum",
    smaller,
    "Smaller of element and number; the gradient passes at a tie.",
    "1",
    "[ 1., -2.,  1.]",
    "_MinimumScalar",
    "_npi_minimum_scalar",
)
with_number(
    "hypot",
    hypotenuse,
    "Hypotenuse of element and number.",
    "0",
    "[1., 2., 5.]",
    "_HypotScalar",
    "_npi_hypot_scalar",
    precision="full",
)
scatter_add_number = with_number(
    "scatter_plus",
    torch.add,
    "Array plus number; of a sparse array only the stored elements.",
    "2",
    "[3., 0., 7.]",
)
scatter_subtract_number = with_number(
    "scatter_minus",
    torch.sub,
    "Array minus number; of a sparse array only the stored elements.",
    "2",
    "[-1., -4.,  3.]",
)
scatter_divide = elementwise(
    "_scatter_elemwise_div",
    divide,
    doc="Quotient of two arrays of the same shape; of a sparse array only the stored elements.",
    example=shown(
        "mx.nd._internal._scatter_elemwise_div(mx.nd.array([1, 6]), mx.nd.array([2, 3]))",
        "[0.5, 2. ]",
    ),
    precision="widest",
)
grad_add = elementwise(
    "_grad_add",
    torch.add,
    doc="Sum of two gradients of the same shape.",
    precision="any",
    example=shown(
        "mx.nd._internal._grad_add(mx.nd.array([1, 2]), mx.nd.array([3, 4]))", "[4., 6.]"
    ),
)


@op(
    "add_n",
    "ElementWiseSum",
    "_sparse_add_n",
    "_sparse_ElementWiseSum",
    count="num_args",
    shape=same,
    precision="widest",
    repeatable=True,
)
def add_n(*args: Tensor) -> Tensor:
    """Compute the sum of arrays of the same shape and dtype.

    >>> mx.nd.add_n(mx.nd.array([1, 2]), mx.nd.array([3, 4]), mx.nd.array([5, 6])).asnumpy()
    array([ 9., 12.], dtype=float32)
    """
    if not args:
        raise MXNetError("Operator add_n needs at least one array.")
    first, *others = args
    if first.dtype is BOOL:
        raise refuse_bool("add_n")
    for position, x in enumerate(others, 1):
        check_same_dtype("add_n", first, x)
        if x.shape != first.shape:
            raise ShapeError(
                f"Incompatible attr in node add_n at {position}-th input: expected "
                f"{list(first.shape)}, got {list(x.shape)}"
            )
    if not others:
        return first.clone()
    # The first sum is a new tensor, so the others are added in place.
    return reduce(torch.Tensor.add_, others[1:], torch.add(first, others[0]))


LEFT, RIGHT = "[0, 1, 2]", "[0, 2, 1]"


# name, kernel, MXNet's older spelling, sentence, results of two arrays and of an array and 1
COMPARISONS = (
    ("equal", torch.eq, "Equal", "``lhs == rhs``", "[1., 0., 0.]", "[0., 1., 0.]"),
    ("not_equal", torch.ne, "Not_Equal", "``lhs != rhs``", "[0., 1., 1.]", "[1., 0., 1.]"),
    ("greater", torch.gt, "Greater", "``lhs > rhs``", "[0., 0., 1.]", "[0., 0., 1.]"),
    ("greater_equal", torch.ge, "Greater_Equal", "``lhs >= rhs``", "[1., 0., 1.]", "[0., 1., 1.]"),
    ("lesser", torch.lt, "Lesser", "``lhs < rhs``", "[0., 1., 0.]", "[1., 0., 0.]"),
    ("lesser_equal", torch.le, "Lesser_Equal", "``lhs <= rhs``", "[1., 1., 0.]", "[1., 1., 0.]"),
    (
        "logical_and",
        torch.logical_and,
        "Logical_And",
        "both lhs and rhs are not 0",
        "[0., 1., 1.]",
        "[0., 1., 1.]",
    ),
    (
        "logical_or",
        torch.logical_or,
        "Logical_Or",
        "lhs or rhs is not 0",
        "[0., 1., 1.]",
        "[1., 1., 1.]",
    ),
    (
        "logical_xor",
        torch.logical_xor,
        "Logical_Xor",
        "one of lhs and rhs is 0 and the other is not",
        "[0., 0., 0.]",
        "[1., 0., 0.]",
    ),
)
for _name, _kernel, _old, _condition, _both, _one in COMPARISONS:
    _doc = f"1 where {_condition}."
    forms((f"broadcast_{_name}",), (f"_{_name}", f"_{_old}"), _kernel, _doc, (LEFT, RIGHT), _both)
    scalar(
        f"_{_name}_scalar",
        _kernel,
        f"_{_old.replace('_', '')}Scalar",
        doc=_doc.replace("rhs", "number"),
        example=shown(f"mx.nd._internal._{_name}_scalar(mx.nd.array({LEFT}), scalar=1)", _one),
    )


@op("_contrib_allclose", types="T T -> uint8")
def allclose(
    a: Tensor, b: Tensor, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = True
) -> Tensor:
    """Return 1 if ``|a - b| <= atol + rtol * |b|`` for all elements, else 0.

    Parameters
    ----------
    a
        The first array.
    b
        The second array, of the same shape.
    rtol
        Relative tolerance.
    atol
        Absolute tolerance.
    equal_nan
        Whether NaN equals NaN.

    >>> mx.nd.contrib.allclose(mx.nd.array([1, 2]), mx.nd.array([1, 2.1]), atol=0.2).asnumpy()
    array(1, dtype=uint8)
    """
    check_same_dtype("_contrib_allclose", a, b)
    if a.shape != b.shape:
        raise ShapeError(
            f"Error in operator _contrib_allclose: shapes differ, {list(a.shape)} and "
            f"{list(b.shape)}; they must be equal."
        )
    return torch.isclose(a, b, rtol, atol, equal_nan).all().to(torch.uint8)


@allclose.infer_outputs
def allclose_outputs(a: tuple | None, b: tuple | None, **_: float) -> tuple:
    """Return the shape of one number."""
    return ()


class Operation(NamedTuple):
    """A binary operation.

    Arrays broadcast; the operands of symbols must have the same shape.
    """

    name: str  # name of the function: mx.nd.subtract
    dunder: str | None  # "sub" for __sub__, __rsub__ and __isub__
    broadcast: Op
    elementwise: Op
    scalar: Op  # an array with a number
    reversed_scalar: Op  # a number with an array
    on_numbers: Callable[[Any, Any], Any]
    summary: str
    returns_bool: bool  # the result of torch's kernels; MXNet's has the dtype of the operands

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
    """Return the capitalized alias in lower case.

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
