"""Elementwise functions: math, rounding, clipping and simple losses."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ...accelerator import has_cuda
from ...error import DTypeError
from ..declare import Epilogue, Op, op
from ..families import BOOL, Kernel, in_floating_point, number, refuse_bool, shown, unary
from ..shapes import same


def function(name: str, kernel: Kernel, doc: str, given: str, result: str, **options: Any) -> Op:
    """Declare an elementwise function, with MXNet's alias for sparse arrays."""
    example = shown(f"mx.nd.{name}(mx.nd.array({given}))", result)
    return unary(name, kernel, f"_sparse_{name}", doc=doc, example=example, **options)


# name, kernel, sentence, example, its result
FULL_PRECISION = (
    ("rsqrt", torch.rsqrt, "Reciprocal square root: ``1 / sqrt(x)``.", "[4, 16]", "[0.5 , 0.25]"),
    ("log", torch.log, "Natural logarithm.", "[1, 10]", "[0.       , 2.3025851]"),
    ("log10", torch.log10, "Logarithm to base 10.", "[1, 100]", "[0., 2.]"),
    ("log2", torch.log2, "Logarithm to base 2.", "[1, 8]", "[0., 3.]"),
    ("arccos", torch.acos, "Inverse cosine, in ``[0, pi]``.", "[0, 1]", "[1.5707964, 0.       ]"),
    ("cosh", torch.cosh, "Hyperbolic cosine.", "[0, 1]", "[1.       , 1.5430806]"),
)
ZEROS_IN_FULL_PRECISION = (
    ("expm1", torch.expm1, "``e^x - 1``, exact near 0.", "[0, 2]", "[0.      , 6.389056]"),
    ("log1p", torch.log1p, "``log(1 + x)``, exact near 0.", "[0, 1]", "[0.       , 0.6931472]"),
    ("tan", torch.tan, "Tangent of radians.", "[0, 1]", "[0.       , 1.5574077]"),
    (
        "arcsin",
        torch.asin,
        "Inverse sine, in ``[-pi/2, pi/2]``.",
        "[0, 1]",
        "[0.       , 1.5707964]",
    ),
    ("sinh", torch.sinh, "Hyperbolic sine.", "[0, 1]", "[0.       , 1.1752012]"),
    (
        "arctanh",
        torch.atanh,
        "Inverse hyperbolic tangent, for ``|x| < 1``.",
        "[0, 0.5]",
        "[0.        , 0.54930615]",
    ),
)
ZEROS = (
    ("sin", torch.sin, "Sine of radians.", "[0, 1]", "[0.        , 0.84147096]"),
    (
        "arctan",
        torch.atan,
        "Inverse tangent, in ``[-pi/2, pi/2]``.",
        "[0, 1]",
        "[0.       , 0.7853982]",
    ),
    ("arcsinh", torch.asinh, "Inverse hyperbolic sine.", "[0, 1]", "[0.       , 0.8813736]"),
    ("degrees", torch.rad2deg, "Radians to degrees.", "[0, 3.1415927]", "[  0., 180.]"),
    ("radians", torch.deg2rad, "Degrees to radians.", "[0, 180]", "[0.       , 3.1415927]"),
)
ROUNDED = (
    ("floor", torch.floor, "Floor: largest integer not above.", "[-1.5, 1.5]", "[-2.,  1.]"),
    ("ceil", torch.ceil, "Ceiling: smallest integer not below.", "[-1.5, 1.5]", "[-1.,  2.]"),
    ("trunc", torch.trunc, "Nearest integer toward zero.", "[-1.5, 1.5]", "[-1.,  1.]"),
    ("fix", torch.trunc, "Nearest integer toward zero.", "[-1.5, 1.5]", "[-1.,  1.]"),
)
for _row in FULL_PRECISION:
    function(*_row, precision="full")
for _row in ZEROS_IN_FULL_PRECISION:
    function(*_row, precision="full", keeps_zeros=True)
for _row in ZEROS:
    function(*_row, keeps_zeros=True)
for _row in ROUNDED:
    function(*_row, exact=True, head_gradient=False, keeps_zeros=True)

absolute = function(
    "abs",
    torch.abs,
    "Absolute value; its gradient at 0 is 0.",
    "[-2, 0, 3]",
    "[2., 0., 3.]",
    exact=True,
    bfloat16="any",
    keeps_zeros=True,
)
function(
    "sign",
    torch.sign,
    "Sign: -1, 0 or 1.",
    "[-2, 0, 3]",
    "[-1.,  0.,  1.]",
    exact=True,
    keeps_zeros=True,
)
square = function(
    "square",
    torch.square,
    "Square: ``x * x``.",
    "[2, 3]",
    "[4., 9.]",
    exact=True,
    precision="full",
    bfloat16="any",
    keeps_zeros=True,
)
relu = function(
    "relu",
    torch.relu,
    "Rectified linear unit: ``max(x, 0)``.",
    "[-1, 2]",
    "[0., 2.]",
    exact=True,
    bfloat16="any",
    keeps_zeros=True,
    keeps_finite=True,
)
sqrt = function(
    "sqrt", torch.sqrt, "Square root.", "[4, 9]", "[2., 3.]", bfloat16="any", keeps_zeros=True
)
exp = function(
    "exp", torch.exp, "Exponential: ``e^x``.", "[0, 1]", "[1.       , 2.7182817]", precision="full"
)
function("cos", torch.cos, "Cosine of radians.", "[0, 3.1415927]", "[ 1., -1.]")
tanh = function(
    "tanh",
    torch.tanh,
    "Hyperbolic tangent.",
    "[0, 1]",
    "[0.       , 0.7615942]",
    bfloat16="any",
    keeps_finite=True,
    keeps_zeros=True,
)
function(
    "arccosh",
    torch.acosh,
    "Inverse hyperbolic cosine, for ``x >= 1``.",
    "[1, 2]",
    "[0.      , 1.316958]",
)
sigmoid = function(
    "sigmoid",
    torch.sigmoid,
    "Logistic function: ``1 / (1 + e^-x)``.",
    "[0, 2]",
    "[0.5     , 0.880797]",
    keeps_finite=True,
)
negative = function(
    "negative",
    torch.neg,
    "Change of sign.",
    "[-1, 2]",
    "[ 1., -2.]",
    exact=True,
    method=False,
    keeps_zeros=True,
)


def relu_into(data: Tensor, out: Tensor) -> Tensor:
    """Write ``max(x, 0)`` into `out`, which torch.relu does not support."""
    return torch.clamp_min(data, 0.0, out=out)


for _activation, _kernel in ((relu, torch.relu_), (sigmoid, torch.sigmoid_), (tanh, torch.tanh_)):
    _activation.epilogue(lambda attrs, name=_activation.name: Epilogue(name))
    _activation.variant("in_place")(lambda attrs, kernel=_kernel: kernel)
relu.variant("out")(lambda attrs, dtype: relu_into)


def round_away(x: Tensor) -> Tensor:
    """Round to the nearest integer, halves away from zero."""
    size = torch.abs(x)
    low = torch.floor(size)
    return torch.copysign(low + (size - low).ge(0.5), x)


def round_down(x: Tensor) -> Tensor:
    """Round to the nearest integer, halves down."""
    low = torch.floor(x)
    return low + (x - low).gt(0.5)


function(
    "round",
    round_away,
    "Nearest integer, halves away from zero.",
    "[-2.5, -0.5, 0.5, 1.5]",
    "[-3., -1.,  1.,  2.]",
    head_gradient=False,
    keeps_zeros=True,
)
function(
    "rint",
    round_down,
    "Nearest integer, halves down.",
    "[-2.5, -0.5, 0.5, 1.5]",
    "[-3., -1.,  0.,  1.]",
    head_gradient=False,
    keeps_zeros=True,
)


def cube_root(x: Tensor) -> Tensor:
    """Return the real cube root; integral roots are exact, so that truncation is correct."""
    wide = x.double()
    root = torch.copysign(wide.abs().pow(1 / 3), wide)
    whole = root.round()
    return torch.where(whole * whole * whole == wide, whole, root).to(x.dtype)


def reciprocal_cube_root(x: Tensor) -> Tensor:
    """Return ``1 / cbrt(x)``."""
    return torch.reciprocal(cube_root(x))


def gamma_function(x: Tensor) -> Tensor:
    """Return the gamma function; torch only has its logarithm."""
    wide = x.double()
    size = torch.lgamma(wide).exp()
    low = torch.floor(wide)
    is_negative = (wide < 0) & (torch.remainder(low, 2) == 1)
    value = torch.where(is_negative, -size, size)
    value = torch.where(wide == 0, wide.reciprocal(), value)  # with the sign of the zero
    return torch.where((wide < 0) & (low == wide), math.nan, value).to(x.dtype)


def digamma(x: Tensor) -> Tensor:
    """Return the derivative of the logarithm of the gamma function; infinity at its poles."""
    is_pole = (x <= 0) & (torch.floor(x) == x)
    return torch.where(is_pole, math.inf, torch.digamma(torch.where(is_pole, 1, x)))


def is_zero(x: Tensor) -> Tensor:
    """Return 1 where the element is 0, else 0."""
    return torch.logical_not(x).to(x.dtype)


unary(
    "cbrt",
    cube_root,
    "_sparse_cbrt",
    doc="Cube root.",
    example=shown("mx.nd.cbrt(mx.nd.array([-8, 27]))", "[-2.,  3.]"),
    gradient=lambda grad, out, data: grad / (3 * out * out),
    keeps_zeros=True,
)
unary(
    "rcbrt",
    reciprocal_cube_root,
    doc="Reciprocal cube root: ``1 / cbrt(x)``.",
    example=shown("mx.nd.rcbrt(mx.nd.array([-8, 1]))", "[-0.5,  1. ]"),
    gradient=lambda grad, out, data: -grad * out / (3 * data),
    precision="full",
)
unary(
    "reciprocal",
    torch.reciprocal,
    doc="Reciprocal: ``1 / x``.",
    example=shown("mx.nd.reciprocal(mx.nd.array([2, 4]))", "[0.5 , 0.25]"),
    precision="full",
)
unary(
    "softsign",
    functional.softsign,
    doc="``x / (1 + |x|)``.",
    example=shown("mx.nd.softsign(mx.nd.array([-1, 3]))", "[-0.5 ,  0.75]"),
    method=False,
)
unary(
    "erf",
    torch.erf,
    "_npx_erf",
    doc="Gauss error function.",
    example=shown("mx.nd.erf(mx.nd.array([0, 1]))", "[0.       , 0.8427008]"),
    method=False,
)
unary(
    "erfinv",
    torch.erfinv,
    "_npx_erfinv",
    doc="Inverse of the Gauss error function, for ``|x| < 1``.",
    example=shown("mx.nd.erfinv(mx.nd.array([0, 0.5]))", "[0.        , 0.47693628]"),
    method=False,
    precision="full",
)
unary(
    "gamma",
    gamma_function,
    "_npx_gamma",
    "_sparse_gamma",
    doc="Gamma function: ``gamma(n) = (n - 1)!``.",
    example=shown("mx.nd.gamma(mx.nd.array([1, 5]))", "[ 1., 24.]"),
    gradient=lambda grad, out, data: grad * out * digamma(data),
    method=False,
    precision="full",
)
unary(
    "gammaln",
    torch.lgamma,
    "_npx_gammaln",
    "_sparse_gammaln",
    doc="Logarithm of the absolute value of the gamma function.",
    example=shown("mx.nd.gammaln(mx.nd.array([1, 4]))", "[0.       , 1.7917595]"),
    gradient=lambda grad, out, data: grad * digamma(data),
    method=False,
    precision="full",
)
unary(
    "logical_not",
    is_zero,
    doc="1 where the element is 0, else 0.",
    example=shown("mx.nd.logical_not(mx.nd.array([0, 2]))", "[1., 0.]"),
    method=False,
    exact=True,
)


class _Limits(NamedTuple):
    """Limits of `clip` in a data type, and their neighboring numbers."""

    low: float
    high: float
    before: float
    after: float


@lru_cache(maxsize=1024)
def _limits_in(dtype: torch.dtype, low: float, high: float) -> _Limits:
    low = -math.inf if math.isnan(low) else low
    high = math.inf if math.isnan(high) else high
    limits = torch.tensor([low, high], dtype=dtype, device="cpu")
    if dtype is torch.float16:  # torch 2.8 has no kernel
        beyond = np.nextafter(limits.numpy(), np.array([-np.inf, np.inf], np.float16))
    else:
        ends = torch.tensor([-math.inf, math.inf], dtype=dtype, device="cpu")
        beyond = torch.nextafter(limits, ends)
    return _Limits(*limits.tolist(), *beyond.tolist())


class _Clip(torch.autograd.Function):
    """Clamp with MXNet's gradient: 1 at the limits too, and for NaN.

    Torch's gradient of `hardtanh` is zero at the limits, so it gets the numbers just beyond them.
    On devices other than CUDA it may be zero for NaN, so a number between the limits replaces NaN,
    and the largest number replaces infinity if a limit is infinite.
    """

    @staticmethod
    def forward(ctx: Any, data: Tensor, low: float, high: float) -> Tensor:
        ctx.save_for_backward(data)
        ctx.limits = low, high
        return torch.clamp(data, low, high)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        (data,) = ctx.saved_tensors
        low, high, before, after = _limits_in(data.dtype, *ctx.limits)
        value, inf = data.detach(), math.inf
        if data.is_cpu or not has_cuda() or low == -inf or high == inf:
            largest = None if high == inf else inf
            smallest = None if low == -inf else -inf
            value = torch.nan_to_num(value, min(max(low, 0.0), high), largest, smallest)
        return torch.ops.aten.hardtanh_backward(grads[0], value, before, after), None, None


@op(
    "clip",
    "_npi_clip",
    "_sparse_clip",
    shape=same,
    method=True,
    bfloat16="any",
    keeps_finite=True,
    repeatable=True,
)
def clip(data: Tensor, *, a_min: float, a_max: float) -> Tensor:
    """Clamp elements to ``[a_min, a_max]``; the gradient is 1 inside and at the limits.

    Parameters
    ----------
    a_min
        Lower limit.
    a_max
        Upper limit.

    >>> mx.nd.clip(mx.nd.array([-2, 0.5, 9]), -1, 1).asnumpy()
    array([-1. ,  0.5,  1. ], dtype=float32)
    """
    dtype = data.dtype
    if dtype.is_floating_point:
        if a_min > a_max:
            return _clip_crossed(data, a_min, a_max)
        if data.requires_grad and torch.is_grad_enabled():
            return _Clip.apply(data, a_min, a_max)
        return torch.clamp(data, a_min, a_max)
    if dtype is BOOL:
        raise refuse_bool("clip")
    range_ = torch.iinfo(dtype)
    low, high = (int(min(max(limit, range_.min), range_.max)) for limit in (a_min, a_max))
    return _clip_crossed(data, low, high) if low > high else torch.clamp(data, low, high)


@clip.epilogue
def clip_epilogue(attrs: dict) -> Epilogue | None:
    """Return the limits, unless they cross."""
    low, high = attrs["a_min"], attrs["a_max"]
    return Epilogue("clip", (low, high)) if low <= high else None


def _clip_crossed(data: Tensor, low: float, high: float) -> Tensor:
    """Clamp with a lower limit above the upper one: MXNet compares with the upper one first."""
    return torch.clamp(data, min=low).masked_fill(data > high, high)


def require_floating_point(name: str, data: Tensor) -> None:
    """Raise for integer types."""
    if not data.dtype.is_floating_point:
        raise DTypeError(
            f"Operator {name} only supports floating point types. Convert it: x.astype('float32')."
        )


@op("hard_sigmoid", shape=same)
def hard_sigmoid(data: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    """Compute the hard sigmoid ``clip(alpha * x + beta, 0, 1)``; the gradient at the limits is 0.

    Parameters
    ----------
    alpha
        Slope.
    beta
        Value at 0.

    >>> mx.nd.hard_sigmoid(mx.nd.array([-9, 0, 1])).asnumpy()
    array([0. , 0.5, 0.7], dtype=float32)
    """
    require_floating_point("hard_sigmoid", data)
    return torch.clamp(data * alpha + beta, 0, 1)


@hard_sigmoid.gradient
def hard_sigmoid_gradient(
    grad: Tensor, out: Tensor, data: Tensor, *, alpha: float, **_: float
) -> Tensor:
    """Return ``alpha`` strictly between the limits, else 0."""
    return torch.where((out > 0) & (out < 1), grad * alpha, 0)


@op("smooth_l1", "_npx_smooth_l1", shape=same, precision="full", repeatable=True)
def smooth_l1(data: Tensor, *, scalar: float = 1.0) -> Tensor:
    """Smooth L1 loss: ``(s x)^2 / 2`` if ``|x| <= 1 / s^2``, else ``|x| - 1 / (2 s^2)``.

    >>> mx.nd.smooth_l1(mx.nd.array([-3, 0.5]), scalar=1).asnumpy()
    array([2.5  , 0.125], dtype=float32)
    """
    edge = 1 / (scalar * scalar) if scalar else math.inf

    def kernel(x: Tensor) -> Tensor:
        return functional.smooth_l1_loss(x, torch.zeros_like(x), reduction="none", beta=edge)

    if data.dtype is torch.float16 and data.is_cpu:  # old versions of torch have no gradient for it
        return kernel(data.float()).half()
    if data.dtype.is_floating_point:
        return kernel(data)
    return in_floating_point("smooth_l1", kernel, data)


@op("_contrib_quadratic", shape=same, names_single_input=True)
def quadratic(data: Tensor, *, a: float = 0.0, b: float = 0.0, c: float = 0.0) -> Tensor:
    """Compute ``a x^2 + b x + c``.

    Parameters
    ----------
    a
        Coefficient of ``x^2``.
    b
        Coefficient of ``x``.
    c
        Constant term.

    >>> mx.nd.contrib.quadratic(mx.nd.array([1, 2]), a=1, b=2, c=3).asnumpy()
    array([ 6., 11.], dtype=float32)
    """

    def kernel(x: Tensor) -> Tensor:
        return (x * a + b) * x + c

    if data.dtype.is_floating_point:
        return kernel(data)
    return in_floating_point("_contrib_quadratic", kernel, data)


@op("_contrib_div_sqrt_dim", shape=same)
def div_sqrt_dim(data: Tensor) -> Tensor:
    """Divide by the square root of the size of the last axis, as for attention scores.

    >>> mx.nd.contrib.div_sqrt_dim(mx.nd.array([[2, 4, 6, 8]])).asnumpy()
    array([[1., 2., 3., 4.]], dtype=float32)
    """
    size = number(math.sqrt(data.shape[-1]), data.dtype)
    return data / size if data.dtype.is_floating_point else torch.div(data, size).to(data.dtype)
