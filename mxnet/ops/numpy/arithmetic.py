"""NumPy's elementwise math: functions of one array, of two, and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...error import DTypeError
from ..declare import op
from ..families import BOOL, Kernel, refuse_bool, scalar, truncate
from ..shapes import same
from ..tensor.arithmetic import (
    hypotenuse,
    modulo,
    modulo_gradient,
    number_to_power,
    power,
    power_of_number,
)
from ..tensor.elementwise import cube_root, round_down
from .families import (
    binary,
    comparison,
    floats,
    question,
    quotient,
    scalar_bits,
    scalar_comparison,
    scalar_quotient,
    shown,
    strict,
    unary,
)


def sign(x: Tensor) -> Tensor:
    """Return -1, 0 or 1; 0 for NaN."""
    return torch.sign(x).masked_fill(x != x, 0)


# name, kernel, sentence, example, its result
EXACT = (
    ("_npi_square", torch.square, "Square: ``x * x``.", "[2, 3]", "[4., 9.]"),
    ("_npi_sign", sign, "Sign: -1, 0 or 1.", "[-2, 0, 3]", "[-1.,  0.,  1.]"),
    ("_npi_negative", torch.neg, "Change of sign.", "[-1, 2]", "[ 1., -2.]"),
    ("_npi_floor", torch.floor, "Floor: largest integer not above.", "[-1.5, 1.5]", "[-2.,  1.]"),
    ("_npi_ceil", torch.ceil, "Ceiling: smallest integer not below.", "[-1.5, 1.5]", "[-1.,  2.]"),
    ("_npi_trunc", torch.trunc, "Nearest integer toward zero.", "[-1.5, 1.5]", "[-1.,  1.]"),
    ("_npi_fix", torch.trunc, "Nearest integer toward zero.", "[-1.5, 1.5]", "[-1.,  1.]"),
)
INEXACT = (
    ("_npi_rint", round_down, "Nearest integer, halves down.", "[-0.5, 0.5]", "[-1.,  0.]"),
    ("_npi_reciprocal", torch.reciprocal, "Reciprocal: ``1 / x``.", "[2, 4]", "[0.5 , 0.25]"),
    ("_npi_sqrt", torch.sqrt, "Square root.", "[4, 9]", "[2., 3.]"),
    ("_npi_exp", torch.exp, "Exponential: ``e^x``.", "[0, 1]", "[1.       , 2.7182817]"),
    ("_npi_expm1", torch.expm1, "``e^x - 1``, exact near 0.", "[0, 2]", "[0.      , 6.389056]"),
    ("_npi_log", torch.log, "Natural logarithm.", "[1, 10]", "[0.       , 2.3025851]"),
    ("_npi_log10", torch.log10, "Logarithm to base 10.", "[1, 100]", "[0., 2.]"),
    ("_npi_log2", torch.log2, "Logarithm to base 2.", "[1, 8]", "[0., 3.]"),
    ("_npi_log1p", torch.log1p, "``log(1 + x)``, exact near 0.", "[0]", "[0.]"),
    ("_npi_sin", torch.sin, "Sine of radians.", "[0, 1]", "[0.        , 0.84147096]"),
    ("_npi_cos", torch.cos, "Cosine of radians.", "[0, 3.1415927]", "[ 1., -1.]"),
    ("_npi_tan", torch.tan, "Tangent of radians.", "[0, 1]", "[0.       , 1.5574077]"),
    ("_npi_arcsin", torch.asin, "Inverse sine.", "[0, 1]", "[0.       , 1.5707964]"),
    ("_npi_arccos", torch.acos, "Inverse cosine.", "[0, 1]", "[1.5707964, 0.       ]"),
    ("_npi_arctan", torch.atan, "Inverse tangent.", "[0, 1]", "[0.       , 0.7853982]"),
    ("_npi_sinh", torch.sinh, "Hyperbolic sine.", "[0, 1]", "[0.       , 1.1752012]"),
    ("_npi_cosh", torch.cosh, "Hyperbolic cosine.", "[0, 1]", "[1.       , 1.5430806]"),
    ("_npi_tanh", torch.tanh, "Hyperbolic tangent.", "[0, 1]", "[0.       , 0.7615942]"),
    ("_npi_arcsinh", torch.asinh, "Inverse hyperbolic sine.", "[0]", "[0.]"),
    ("_npi_arccosh", torch.acosh, "Inverse hyperbolic cosine, for ``x >= 1``.", "[1]", "[0.]"),
    ("_npi_arctanh", torch.atanh, "Inverse hyperbolic tangent, for ``|x| < 1``.", "[0]", "[0.]"),
    ("_npi_degrees", torch.rad2deg, "Radians to degrees.", "[0, 3.1415927]", "[  0., 180.]"),
    ("_npi_radians", torch.deg2rad, "Degrees to radians.", "[0, 180]", "[0.       , 3.1415927]"),
)
QUESTIONS = (
    ("_npi_isnan", torch.isnan, "Whether the element is NaN.", "[False,  True, False, False]"),
    ("_npi_isinf", torch.isinf, "Whether it is infinite.", "[False, False,  True,  True]"),
    ("_npi_isposinf", torch.isposinf, "Whether it is +inf.", "[False, False,  True, False]"),
    ("_npi_isneginf", torch.isneginf, "Whether it is -inf.", "[False, False, False,  True]"),
    (
        "_npi_isfinite",
        torch.isfinite,
        "Whether it is neither NaN nor infinite.",
        "[ True, False, False, False]",
    ),
    ("_npi_logical_not", torch.logical_not, "Whether it is 0.", "[ True, False, False, False]"),
)

for _name, _kernel, _doc, _given, _result in EXACT:
    unary(_name, _kernel, doc=_doc, given=_given, result=_result, exact=True)
for _name, _kernel, _doc, _given, _result in INEXACT:
    unary(_name, _kernel, doc=_doc, given=_given, result=_result)
for _name, _kernel, _doc, _result in QUESTIONS:
    question(_name, _kernel, doc=_doc, given="[0, np.nan, np.inf, -np.inf]", result=_result)

unary(
    "_npi_absolute",
    torch.abs,
    "_npi_abs",
    doc="Absolute value; its gradient at 0 is 0.",
    given="[-2, 0, 3]",
    result="[2., 0., 3.]",
    exact=True,
)
unary(
    "_npi_cbrt",
    cube_root,
    doc="Cube root.",
    given="[-8, 27]",
    result="[-2.,  3.]",
    gradient=lambda grad, out, x: grad / (3 * out * out),
)


@op("_npi_bitwise_not", shape=same)
def bitwise_not(x: Tensor) -> Tensor:
    """Bitwise NOT of integers; logical NOT of bool.

    >>> mx.nd._internal._npi_bitwise_not(mx.nd.array([0, 5], dtype="int32")).asnumpy()
    array([-1, -6], dtype=int32)
    """
    if x.dtype.is_floating_point:
        raise DTypeError(
            "Operator _npi_bitwise_not only supports integer types. Convert it: x.astype('int32')."
        )
    return torch.bitwise_not(x)


@op("_npi_around", shape=same)
def around(x: Tensor, *, decimals: int = 0) -> Tensor:
    """Round to a number of decimals, halves to even.

    Parameters
    ----------
    decimals
        Number of decimals; a negative one rounds to tens, hundreds and so on.

    >>> mx.nd._internal._npi_around(mx.nd.array([0.5, 1.5, 26]), decimals=0).asnumpy()
    array([ 0.,  2., 26.], dtype=float32)
    """
    if x.dtype is BOOL:
        raise refuse_bool("_npi_around")
    if not x.dtype.is_floating_point and decimals >= 0:
        return x.clone()
    if decimals == 0:
        return torch.round(x)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return torch.round(x * scale) / scale
    if x.dtype.is_floating_point:
        return torch.round(x / scale) * scale
    return truncate(
        torch.round(torch.div(x, int(scale), rounding_mode="trunc").double()) * scale, x.dtype
    )


@op("_npi_nan_to_num", shape=same, names_single_input=True)
def nan_to_num(
    data: Tensor,
    *,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Replace NaN and infinities by numbers.

    Parameters
    ----------
    copy
        Whether to return a new array; otherwise the array is changed in place.
    nan
        Number that replaces NaN.
    posinf
        Number that replaces infinity; by default the largest of the data type.
    neginf
        Number that replaces minus infinity; by default the smallest of the data type.

    >>> mx.nd._internal._npi_nan_to_num(mx.nd.array([np.nan, 1]), nan=7).asnumpy()
    array([7., 1.], dtype=float32)
    """
    if not data.dtype.is_floating_point:
        return data.clone()
    return torch.nan_to_num(data, nan, posinf, neginf)


def bool_power(base: Tensor, exponent: Tensor) -> Tensor:
    """Raise bool to bool: only ``False ** True`` is False."""
    return base | ~exponent


def angle(y: Tensor, x: Tensor) -> Tensor:
    """Return the angle of the point (x, y); truncated for integers."""
    if y.dtype.is_floating_point:
        return torch.atan2(y, x)
    return truncate(torch.atan2(y.double(), x.double()), y.dtype)


def with_sign(size: Tensor, sign: Tensor) -> Tensor:
    """Copy signs; -0.0 is treated as positive, and NaN changes every sign."""
    same = ((size >= 0) & (sign >= 0)) | ((size < 0) & (sign < 0))
    return torch.where(same, size, -size)


def with_sign_gradient(grad: Tensor, out: Tensor, size: Tensor, sign: Tensor) -> tuple:
    """Return -1 if the sign changed, else 1; None for the second operand."""
    changed = (size < 0) != (sign < 0)
    return torch.where(changed, -grad, grad), torch.zeros_like(grad)


def times_power_of_two(x: Tensor, exponent: Tensor) -> Tensor:
    """Return ``x * 2^exponent``; the exponent may be a fraction."""
    if x.dtype.is_floating_point:
        return x * torch.exp2(exponent)
    return truncate(x.double() * torch.exp2(exponent.double()), x.dtype)


def least_common_multiple(lhs: Tensor, rhs: Tensor) -> Tensor:
    """Return the nonnegative least common multiple."""
    if lhs.dtype is torch.bool:
        return lhs & rhs
    return torch.lcm(lhs, rhs)


def _example(name: str, lhs: str, rhs: str, result: str) -> str:
    return shown(name, f"{floats(lhs)}, {floats(rhs)}", result)


def _ints(name: str, lhs: str, rhs: str, result: str) -> str:
    call = ", ".join(f'mx.np.array({x}, dtype="int32")' for x in (lhs, rhs))
    return shown(name, call, result, "int32")


PAIR = ("[1, -2, 5]", "[4, 2, 5]")

binary(
    "_npi_add",
    torch.add,
    on_bool=torch.add,
    doc="Sum of two arrays, which may differ in dtype.",
    example=_example("_npi_add", *PAIR, "[ 5.,  0., 10.]"),
)
binary(
    "_npi_subtract",
    torch.sub,
    doc="Difference of two arrays, which may differ in dtype.",
    example=_example("_npi_subtract", *PAIR, "[-3., -4.,  0.]"),
)
binary(
    "_npi_multiply",
    torch.mul,
    on_bool=torch.mul,
    doc="Product of two arrays, which may differ in dtype.",
    example=_example("_npi_multiply", *PAIR, "[ 4., -4., 25.]"),
)
binary(
    "_npi_mod",
    modulo,
    doc="Remainder with the divisor's sign; 0 for a divisor of 0.",
    example=_example("_npi_mod", "[7, -7, 7]", "[3, 3, -3]", "[ 1.,  2., -2.]"),
    gradient=modulo_gradient,
    zero_for_integers=True,
)
binary(
    "_npi_power",
    power,
    on_bool=bool_power,
    doc="Power: ``lhs ** rhs``.",
    example=_example("_npi_power", "[2, 3]", "[3, 2]", "[8., 9.]"),
)
quotient(
    "_npi_true_divide",
    torch.div,
    doc="Quotient of two arrays; float32 for integers.",
    example=_example("_npi_true_divide", *PAIR, "[ 0.25, -1.  ,  1.  ]"),
)
strict(
    "_npi_hypot",
    hypotenuse,
    names=("x1", "x2"),
    floating=True,
    doc="Hypotenuse: ``sqrt(x1^2 + x2^2)``.",
    example=_example("_npi_hypot", "[3, 5]", "[4, 12]", "[ 5., 13.]"),
)
strict(
    "_npi_arctan2",
    angle,
    names=("x1", "x2"),
    floating=True,
    doc="Angle of the point ``(x2, x1)``, in ``[-pi, pi]``.",
    example=_example("_npi_arctan2", "[0, 1]", "[1, 1]", "[0.       , 0.7853982]"),
)
strict(
    "_npi_copysign",
    with_sign,
    doc="The first array's magnitudes with the second one's signs.",
    example=_example("_npi_copysign", "[1, -2, 3]", "[-1, 0, 5]", "[-1.,  2.,  3.]"),
    gradient=with_sign_gradient,
)
strict(
    "_npi_ldexp",
    times_power_of_two,
    doc="``lhs * 2^rhs``.",
    example=_example("_npi_ldexp", "[1, 3]", "[2, -1]", "[4. , 1.5]"),
)
strict(
    "_npi_lcm",
    least_common_multiple,
    floating=False,
    on_bool=True,
    doc="Least common multiple of integers.",
    example=_ints("_npi_lcm", "[4, 6]", "[6, 4]", "[12, 12]"),
)

BITS = (
    ("and", torch.bitwise_and, "[2, 1]", "[2, 0]"),
    ("or", torch.bitwise_or, "[3, 7]", "[ 3, 14]"),
    ("xor", torch.bitwise_xor, "[1, 6]", "[ 1, 14]"),
)
for _short, _kernel, _both, _one in BITS:
    _name = f"_npi_bitwise_{_short}"
    strict(
        _name,
        _kernel,
        floating=False,
        on_bool=True,
        doc=f"Bitwise {_short} of integers; of bool the logical one.",
        example=_ints(_name, "[3, 5]", "[2, 3]", _both),
    )
    scalar_bits(
        f"{_name}_scalar",
        _kernel,
        doc=f"Bitwise {_short} of integers and a number.",
        example=shown(
            f"{_name}_scalar", 'mx.nd.array([3, 12], dtype="int32"), scalar=2', _one, "int32"
        ),
    )
scalar_bits(
    "_npi_lcm_scalar",
    least_common_multiple,
    on_bool=False,
    doc="Least common multiple of integers and a number.",
    example=shown(
        "_npi_lcm_scalar", 'mx.nd.array([4, 6], dtype="int32"), scalar=6', "[12,  6]", "int32"
    ),
)


def with_number(
    short: str,
    kernel: Kernel,
    doc: str,
    number: str,
    result: str,
    swapped: bool = False,
    gradient: Callable | None = None,
    **facts: Any,
) -> None:
    """Declare the form of an array with a number."""
    name = f"_npi_{short}_scalar"
    example = shown(name, f"mx.nd.array([1, -2, 5]), scalar={number}", result)
    scalar(name, kernel, doc=doc, example=example, swapped=swapped, gradient=gradient, **facts)


with_number("add", torch.add, "Array plus number.", "2", "[3., 0., 7.]")
with_number("subtract", torch.sub, "Array minus number.", "2", "[-1., -4.,  3.]")
with_number("rsubtract", torch.sub, "Number minus array.", "2", "[ 1.,  4., -3.]", True)
with_number("multiply", torch.mul, "Array times number.", "2", "[ 2., -4., 10.]")
with_number(
    "mod",
    modulo,
    "Remainder by a number, with its sign.",
    "3",
    "[1., 1., 2.]",
    gradient=lambda grad, out, data, **_: grad,
    zero_for_integers=True,
)
with_number(
    "rmod",
    modulo,
    "Remainder of a number by the array, with the array's sign.",
    "3",
    "[ 0., -1.,  3.]",
    True,
    gradient=lambda grad, out, data, *, scalar, **_: -grad * torch.floor(scalar / data),
    zero_for_integers=True,
)
with_number("power", power_of_number, "Array to the power of a number.", "2", "[ 1.,  4., 25.]")
with_number(
    "rpower",
    number_to_power,
    "Number to the power of the array.",
    "2",
    "[ 2.  ,  0.25, 32.  ]",
    True,
)
with_number(
    "arctan2",
    angle,
    "Angle of the point whose x is a number.",
    "1",
    "[ 0.7853982, -1.1071488,  1.3734008]",
)
with_number(
    "rarctan2",
    angle,
    "Angle of the point whose y is a number.",
    "0",
    "[0.       , 3.1415927, 0.       ]",
    True,
)
with_number(
    "copysign",
    with_sign,
    "The array's magnitudes with a number's sign.",
    "-1",
    "[-1., -2., -5.]",
    gradient=lambda grad, out, data, *, scalar, **_: torch.where(
        (data < 0) != (scalar < 0), -grad, grad
    ),
)
with_number(
    "rcopysign",
    with_sign,
    "A number's magnitude with the array's signs.",
    "3",
    "[ 3., -3.,  3.]",
    True,
    gradient=lambda grad, out, data, **_: torch.zeros_like(grad),
)
with_number("ldexp", times_power_of_two, "``x * 2^number``.", "1", "[ 2., -4., 10.]")
with_number("rldexp", times_power_of_two, "``number * 2^x``.", "2", "[ 4. ,  0.5, 64. ]", True)

scalar_quotient(
    "_npi_true_divide_scalar",
    torch.div,
    doc="Array divided by number; integers give float32.",
    example=shown(
        "_npi_true_divide_scalar", "mx.nd.array([1, -2, 5]), scalar=2", "[ 0.5, -1. ,  2.5]"
    ),
)
scalar_quotient(
    "_npi_rtrue_divide_scalar",
    torch.div,
    swapped=True,
    doc="Number divided by array; integers give float32.",
    example=shown(
        "_npi_rtrue_divide_scalar", "mx.nd.array([1, -2, 5]), scalar=10", "[10., -5.,  2.]"
    ),
)


LEFT, RIGHT = "[0, 1, 2]", "[0, 2, 1]"
# name, kernel, sign, answers to two arrays, answers to an array and 1
COMPARISONS = (
    ("equal", torch.eq, "==", "[ True, False, False]", "[False,  True, False]"),
    ("not_equal", torch.ne, "!=", "[False,  True,  True]", "[ True, False,  True]"),
    ("greater", torch.gt, ">", "[False, False,  True]", "[False, False,  True]"),
    ("greater_equal", torch.ge, ">=", "[ True, False,  True]", "[False,  True,  True]"),
    ("less", torch.lt, "<", "[False,  True, False]", "[ True, False, False]"),
    ("less_equal", torch.le, "<=", "[ True,  True, False]", "[ True,  True, False]"),
)

for _short, _kernel, _sign, _both, _one in COMPARISONS:
    _name = f"_npi_{_short}"
    comparison(
        _name,
        _kernel,
        doc=f"True where ``lhs {_sign} rhs``.",
        example=shown(_name, f"{floats(LEFT)}, {floats(RIGHT)}", _both, "bool"),
    )
    scalar_comparison(
        f"{_name}_scalar",
        _kernel,
        doc=f"True where ``data {_sign} number``; without ``is_int`` integers meet it as floats.",
        example=shown(f"{_name}_scalar", f"{floats(LEFT)}, scalar=1", _one, "bool"),
    )
