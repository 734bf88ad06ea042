"""NumPy's functions of one array, element by element: math, rounding, and questions."""

from __future__ import annotations

import torch
from torch import Tensor

from ....error import DTypeError
from ...declare import op
from ...families import BOOL, refuse_bool, truncate
from ...shapes import same
from ...tensor.math.elementwise import cube_root, round_down
from .families import question, unary


def sign(x: Tensor) -> Tensor:
    """Return -1, 0 or 1; NaN has no sign, so it gives 0."""
    return torch.sign(x).masked_fill(x != x, 0)


# name, kernel, sentence, example, its result
EXACT = (
    ("_npi_square", torch.square, "Square: ``x * x``.", "[2, 3]", "[4., 9.]"),
    ("_npi_sign", sign, "Sign: -1, 0 or 1.", "[-2, 0, 3]", "[-1.,  0.,  1.]"),
    ("_npi_negative", torch.neg, "Change of sign.", "[-1, 2]", "[ 1., -2.]"),
    ("_npi_floor", torch.floor, "Largest integer not above.", "[-1.5, 1.5]", "[-2.,  1.]"),
    ("_npi_ceil", torch.ceil, "Smallest integer not below.", "[-1.5, 1.5]", "[-1.,  2.]"),
    ("_npi_trunc", torch.trunc, "Nearest integer toward zero.", "[-1.5, 1.5]", "[-1.,  1.]"),
    ("_npi_fix", torch.trunc, "Nearest integer toward zero.", "[-1.5, 1.5]", "[-1.,  1.]"),
)
INEXACT = (
    ("_npi_rint", round_down, "Nearest integer; halves go down.", "[-0.5, 0.5]", "[-1.,  0.]"),
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
    ("_npi_isnan", torch.isnan, "True where the element is NaN.", "[False,  True, False, False]"),
    ("_npi_isinf", torch.isinf, "True where it is infinite.", "[False, False,  True,  True]"),
    ("_npi_isposinf", torch.isposinf, "True where it is +inf.", "[False, False,  True, False]"),
    ("_npi_isneginf", torch.isneginf, "True where it is -inf.", "[False, False, False,  True]"),
    (
        "_npi_isfinite",
        torch.isfinite,
        "True where it is neither NaN nor infinite.",
        "[ True, False, False, False]",
    ),
    ("_npi_logical_not", torch.logical_not, "True where it is 0.", "[ True, False, False, False]"),
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
    """Inverse of every bit of integers; the opposite of bool.

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
    """Round to a number of decimals; halves go to the even neighbor.

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


@op("_npi_nan_to_num", shape=same)
def nan_to_num(
    data: Tensor,
    *,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Replace NaN and infinities by numbers; by default infinities by the largest there are.

    Parameters
    ----------
    copy
        Whether to make a new array; with False the array itself is changed.
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
