"""Rows of functions of single elements: math, arithmetic, comparison, activations, softmax."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from .... import dtypes
from ..builder import INT64, Builder, Call, is_float, row

Formula = Callable[[Builder, torch.dtype, str], str]
Binary = Callable[[Builder, torch.dtype, str, str], str]
BOOL, FLOAT, INT32 = torch.bool, torch.float32, torch.int32
SMALL_TYPES = (BOOL, torch.int8, torch.uint8)

# Functions that ONNX has, as `arccos` and as `_npi_arccos`.
MATH = {
    "arccos": "Acos",
    "arccosh": "Acosh",
    "arcsin": "Asin",
    "arcsinh": "Asinh",
    "arctan": "Atan",
    "arctanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "negative": "Neg",
    "reciprocal": "Reciprocal",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}
OTHER_NAMES = {
    "abs": "Abs",
    "_npi_absolute": "Abs",
    "_contrib_sign_ste": "Sign",
    "erf": "Erf",
    "relu": "Relu",
    "_npx_relu": "Relu",
    "sigmoid": "Sigmoid",
    "_npx_sigmoid": "Sigmoid",
    "softsign": "Softsign",
}
ROUNDING, OF_INTEGERS = {"Ceil", "Floor"}, {"Abs", "Neg", "Sign"}


def _is_numpy(call: Call) -> bool:
    """Return whether an operator is one of `mx.np`, which handles integers differently."""
    return call.op.name.startswith("_np")


def _integer_type(call: Call) -> torch.dtype:
    if _is_numpy(call):
        return INT64
    return INT32 if call.dtype in SMALL_TYPES else call.dtype


def in_float(g: Builder, call: Call, x: str) -> tuple[str, torch.dtype]:
    """Return the input as a float; ONNX computes most functions of floats only."""
    if is_float(call.dtype):
        return x, call.dtype
    return g.cast(x, call.dtype, FLOAT), FLOAT


def _function(op_type: str, *names: str) -> None:
    @row(*names)
    def apply(g: Builder, call: Call, x: str) -> str:
        target = call.out_dtypes[0]
        if is_float(call.dtype) or op_type not in ROUNDING | OF_INTEGERS:
            y, dtype = in_float(g, call, x)
            return g.cast(g.add(op_type, y), dtype, target)
        if op_type in ROUNDING:
            return g.cast(x, call.dtype, target)
        wide = _integer_type(call)
        return g.cast(g.add(op_type, g.cast(x, call.dtype, wide)), wide, target)


for _name, _op_type in MATH.items():
    _function(_op_type, _name, f"_npi_{_name}")
for _name, _op_type in OTHER_NAMES.items():
    _function(_op_type, _name)


@row("square", "_npi_square")
def square(g: Builder, call: Call, x: str) -> str:
    """``x * x``."""
    dtype = call.dtype if is_float(call.dtype) else _integer_type(call)
    wide = g.cast(x, call.dtype, dtype)
    return g.cast(g.Mul(wide, wide), dtype, call.out_dtypes[0])


# -- copies and types -----------------------------------------------------------------------


@row(
    *("_copy", "_copyto", "_np_copy", "BlockGrad", "MakeLoss", "make_loss", "cast_storage"),
    *("IdentityAttachKLSparseReg", "_contrib_gradientmultiplier", "_identity_with_attr_like_rhs"),
)
def identity(g: Builder, call: Call, x: str, *_: str) -> str:
    """Pass a value through under the node's own name."""
    return g.Identity(x)


@row("LinearRegressionOutput", "MAERegressionOutput", "SVMOutput", ignores=("label",))
def training_output(g: Builder, call: Call, x: str, *_: str) -> str:
    """Pass the data through: the operator has an effect in training only."""
    return x


@row("Dropout")
def dropout(g: Builder, call: Call, x: str) -> str:
    """Write Dropout, which has no effect in inference."""
    if call.attrs["mode"] == "always" and call.attrs["p"]:
        raise call.unsupported("draws random numbers in prediction too (mode='always').")
    if call.attrs["p"] == 1:  # runtimes refuse a ratio of 1
        return g.Identity(x)
    return g.Dropout(x, g.scalar(call.attrs["p"], FLOAT))


row("Cast", "amp_cast")(lambda g, call, x: g.cast(x, call.dtype, call.out_dtypes[0]))


@row("amp_multicast")
def amp_multicast(g: Builder, call: Call, *xs: str) -> list[str]:
    """Convert all inputs to one type."""
    types = zip(xs, call.dtypes, call.out_dtypes, strict=True)
    return [g.cast(x, source, target) for x, source, target in types]


# -- formulas -------------------------------------------------------------------------------


def _cube_root(g: Builder, dtype: torch.dtype, x: str) -> str:
    return g.Mul(g.Sign(x), g.Pow(g.Abs(x), g.scalar(1 / 3, dtype)))


def _expm1(g: Builder, dtype: torch.dtype, x: str) -> str:
    """``exp(x) - 1``, as ``2 tanh(x/2) / (1 - tanh(x/2))`` to keep the digits near 0."""
    half = g.Tanh(g.Mul(x, g.scalar(0.5, dtype)))
    small = g.Div(g.Add(half, half), g.Sub(g.scalar(1, dtype), half))
    large = g.Sub(g.Exp(x), g.scalar(1, dtype))
    return g.Where(g.Less(g.Abs(x), g.scalar(0.5, dtype)), small, large)


def _log1p(g: Builder, dtype: torch.dtype, x: str) -> str:
    """``log(1 + x)``, as ``2 atanh(x / (2 + x))`` to keep the digits near 0."""
    half = g.Atanh(g.Div(x, g.Add(x, g.scalar(2, dtype))))
    large = g.Log(g.Add(x, g.scalar(1, dtype)))
    return g.Where(g.Less(g.Abs(x), g.scalar(0.5, dtype)), g.Add(half, half), large)


def _times(factor: float) -> Formula:
    return lambda g, dtype, x: g.Mul(x, g.scalar(factor, dtype))


def _log_base(base: float) -> Formula:
    return lambda g, dtype, x: g.Mul(g.Log(x), g.scalar(1 / math.log(base), dtype))


FORMULAS: dict[tuple[str, ...], Formula] = {
    ("rsqrt",): lambda g, dtype, x: g.Reciprocal(g.Sqrt(x)),
    ("cbrt", "_npi_cbrt"): _cube_root,
    ("rcbrt",): lambda g, dtype, x: g.Reciprocal(_cube_root(g, dtype, x)),
    ("expm1", "_npi_expm1"): _expm1,
    ("log1p", "_npi_log1p"): _log1p,
    ("log2", "_npi_log2"): _log_base(2.0),
    ("log10", "_npi_log10"): _log_base(10.0),
    ("degrees", "_npi_degrees"): _times(180 / math.pi),
    ("radians", "_npi_radians"): _times(math.pi / 180),
}


def _formula(names: tuple[str, ...], formula: Formula) -> None:
    @row(*names)
    def apply(g: Builder, call: Call, x: str) -> str:
        y, dtype = in_float(g, call, x)
        return g.cast(formula(g, dtype, y), dtype, call.out_dtypes[0])


for _names, _one in FORMULAS.items():
    _formula(_names, _one)


def truncate(g: Builder, x: str) -> str:
    """Truncate floats."""
    return g.Mul(g.Sign(x), g.Floor(g.Abs(x)))


@row("fix", "trunc", "_npi_fix", "_npi_trunc")
def trunc(g: Builder, call: Call, x: str) -> str:
    """Truncate."""
    return truncate(g, x) if is_float(call.dtype) else g.cast(x, call.dtype, call.out_dtypes[0])


@row("rint", "_npi_rint")
def rint(g: Builder, call: Call, x: str) -> str:
    """Round halves down, as MXNet does."""
    if not is_float(call.dtype):
        return g.cast(x, call.dtype, call.out_dtypes[0])
    return g.Ceil(g.Sub(x, g.scalar(0.5, call.dtype)))


@row("round", "_contrib_round_ste")
def round_half_away(g: Builder, call: Call, x: str) -> str:
    """Round halves away from 0; ONNX's Round takes them to even numbers."""
    if not is_float(call.dtype):
        return x
    # The largest number below a half plus a half is 1, so compare before rounding up.
    size = g.Abs(x)
    low = g.Floor(size)
    is_up = g.GreaterOrEqual(g.Sub(size, low), g.scalar(0.5, call.dtype))
    return g.Mul(g.Sign(x), g.Add(low, g.cast(is_up, BOOL, call.dtype)))


@row("_npi_around")
def around(g: Builder, call: Call, x: str) -> str:
    """Round halves to even numbers, at a decimal digit."""
    y, dtype = in_float(g, call, x)
    scale = 10.0 ** call.attrs["decimals"]
    if scale < 1 and not is_float(call.dtype):
        raise call.unsupported("of integers at tens has no ONNX form.")
    if scale == 1:
        return g.cast(g.Round(y), dtype, call.out_dtypes[0])
    factor = g.scalar(scale, dtype)
    return g.cast(g.Div(g.Round(g.Mul(y, factor)), factor), dtype, call.out_dtypes[0])


@row("clip")
def clip(g: Builder, call: Call, x: str) -> str:
    """Clip to a range; for integer arrays its limits are truncated."""
    ends = [call.attrs["a_min"], call.attrs["a_max"]]
    if not is_float(call.dtype):
        limits = torch.iinfo(call.dtype)
        ends = [min(max(int(e), limits.min), limits.max) for e in ends]
    return g.Clip(x, *(g.scalar(e, call.dtype) for e in ends))


@row("smooth_l1")
def smooth_l1(g: Builder, call: Call, x: str) -> str:
    """Quadratic near 0, linear beyond ``1 / scalar^2``."""
    square = call.attrs["scalar"] ** 2
    if not square or not is_float(call.dtype):
        raise call.unsupported("needs floats and a scalar other than 0.")
    size = g.Abs(x)
    inner = g.Mul(g.Mul(x, x), g.scalar(0.5 * square, call.dtype))
    outer = g.Sub(size, g.scalar(0.5 / square, call.dtype))
    return g.Where(g.Less(size, g.scalar(1 / square, call.dtype)), inner, outer)


@row("_contrib_quadratic")
def quadratic(g: Builder, call: Call, x: str) -> str:
    """``a x^2 + b x + c``."""
    a, b, c = (g.scalar(call.attrs[k], call.dtype) for k in "abc")
    return g.Add(g.Mul(g.Add(g.Mul(a, x), b), x), c)


@row("_contrib_div_sqrt_dim")
def div_sqrt_dim(g: Builder, call: Call, x: str) -> str:
    """Divide by the square root of the last size."""
    if call.shape[-1] > 0:
        return g.Div(x, g.scalar(math.sqrt(call.shape[-1]), call.dtype))
    width = g.cast(g.size_of(x, call.ndim - 1), INT64, call.dtype)
    return g.Div(x, g.Sqrt(width))


@row("erfinv")
def erfinv(g: Builder, call: Call, x: str) -> str:
    """Inverse error function: Winitzki's formula, then two Newton steps."""
    a, pi = 0.147, math.pi

    def number(value: float) -> str:
        return g.scalar(value, call.dtype)

    log = g.Log(g.Sub(number(1), g.Mul(x, x)))
    first = g.Add(number(2 / (pi * a)), g.Mul(log, number(0.5)))
    root = g.Sqrt(g.Sub(g.Mul(first, first), g.Mul(log, number(1 / a))))
    y = g.Mul(g.Sign(x), g.Sqrt(g.Sub(root, first)))
    for _ in range(2):
        slope = g.Mul(number(2 / math.sqrt(pi)), g.Exp(g.Neg(g.Mul(y, y))))
        y = g.Sub(y, g.Div(g.Sub(g.Erf(y), x), slope))
    edge = g.Equal(g.Abs(x), number(1))
    return g.Where(edge, g.Mul(x, number(math.inf)), y)


# -- truth ----------------------------------------------------------------------------------


@row("logical_not")
def logical_not(g: Builder, call: Call, x: str) -> str:
    """1 where the input is 0."""
    zero = g.scalar(0, call.dtype)
    is_zero = g.Not(x) if call.dtype is BOOL else g.Equal(x, zero)
    return g.cast(is_zero, BOOL, call.out_dtypes[0])


row("_npi_logical_not")(lambda g, call, x: g.Not(g.cast(x, call.dtype, BOOL)))
row("_npi_isnan")(lambda g, call, x: g.IsNaN(in_float(g, call, x)[0]))


def _wide(g: Builder, x: str, dtype: torch.dtype) -> str:
    """Return floats as float32 or wider, as IsInf requires."""
    return g.cast(x, dtype, FLOAT) if dtype is torch.float16 else x


def _infinite(name: str, **signs: int) -> None:
    row(name)(lambda g, call, x: g.IsInf(_wide(g, *in_float(g, call, x)), **signs))


_infinite("_npi_isinf")
_infinite("_npi_isposinf", detect_negative=0)
_infinite("_npi_isneginf", detect_positive=0)


@row("_npi_isfinite")
def isfinite(g: Builder, call: Call, x: str) -> str:
    """Find numbers that are neither infinite nor NaN."""
    y = _wide(g, *in_float(g, call, x))
    return g.Not(g.Or(g.IsInf(y), g.IsNaN(y)))


@row("all_finite", "multi_all_finite")
def all_finite(g: Builder, call: Call, *xs: str) -> str:
    """1 if all elements of all arrays are finite numbers."""
    flags = []
    for x, dtype in zip(xs, call.dtypes, strict=True):
        wide = _wide(g, x, dtype)
        is_bad = g.cast(g.Or(g.IsInf(wide), g.IsNaN(wide)), BOOL, FLOAT)
        flags.append(g.reduce("ReduceMax", g.reshape(is_bad, [-1]), [0], True))
    worst = g.Max(*flags) if len(flags) > 1 else flags[0]
    return g.cast(g.Sub(g.scalar(1, FLOAT), worst), FLOAT, call.out_dtypes[0])


@row("_npi_nan_to_num")
def nan_to_num(g: Builder, call: Call, x: str) -> str:
    """Replace NaN and infinities."""
    if not is_float(call.dtype):
        return g.Identity(x)
    a, limits = call.attrs, torch.finfo(call.dtype)
    wide = _wide(g, x, call.dtype)
    high = limits.max if a["posinf"] is None else a["posinf"]
    low = limits.min if a["neginf"] is None else a["neginf"]
    output = g.Where(g.IsNaN(x), g.scalar(a["nan"], call.dtype), x)
    output = g.Where(g.IsInf(wide, detect_negative=0), g.scalar(high, call.dtype), output)
    return g.Where(g.IsInf(wide, detect_positive=0), g.scalar(low, call.dtype), output)


@row("_contrib_allclose")
def allclose(g: Builder, call: Call, a: str, b: str) -> str:
    """1 if all elements are close."""
    rtol, atol = (g.scalar(call.attrs[k], call.dtype) for k in ("rtol", "atol"))
    limit = g.Add(atol, g.Mul(rtol, g.Abs(b)))
    near = g.Or(g.LessOrEqual(g.Abs(g.Sub(a, b)), limit), g.Equal(a, b))
    if call.attrs["equal_nan"] and is_float(call.dtype):
        near = g.Or(near, g.And(g.IsNaN(a), g.IsNaN(b)))
    least = g.reduce("ReduceMin", g.cast(near, BOOL, FLOAT), None, False)
    return g.cast(g.reshape(least, call.out_shapes[0]), FLOAT, call.out_dtypes[0])


# -- two arrays, or an array and a number ---------------------------------------------------


def _binary(op_type: str) -> Binary:
    return lambda g, dtype, a, b: g.add(op_type, a, b)


def _logical(op_type: str) -> Binary:
    return lambda g, dtype, a, b: g.add(op_type, g.cast(a, dtype, BOOL), g.cast(b, dtype, BOOL))


def _modulo(g: Builder, dtype: torch.dtype, a: str, b: str) -> str:
    """Remainder with the sign of the divisor; 0 where the divisor is 0."""
    zero, one = g.scalar(0, dtype), g.scalar(1, dtype)
    is_zero = g.Equal(b, zero)
    safe = g.Where(is_zero, one, b)
    if not is_float(dtype):
        return g.Where(is_zero, zero, g.Mod(a, safe))
    return g.Where(is_zero, zero, g.Sub(a, g.Mul(g.Floor(g.Div(a, safe)), safe)))


BINARY: dict[str, Binary] = {
    "add": _binary("Add"),
    "sub": _binary("Sub"),
    "mul": _binary("Mul"),
    "div": _binary("Div"),
    "power": _binary("Pow"),
    "maximum": _binary("Max"),
    "minimum": _binary("Min"),
    "mod": _modulo,
    "hypot": lambda g, dtype, a, b: g.Sqrt(g.Add(g.Mul(a, a), g.Mul(b, b))),
}
COMPARISONS: dict[str, Binary] = {
    "equal": _binary("Equal"),
    "not_equal": lambda g, dtype, a, b: g.Not(g.Equal(a, b)),
    "greater": _binary("Greater"),
    "greater_equal": _binary("GreaterOrEqual"),
    "lesser": _binary("Less"),
    "lesser_equal": _binary("LessOrEqual"),
    "logical_and": _logical("And"),
    "logical_or": _logical("Or"),
    "logical_xor": _logical("Xor"),
}


def _computed_in(call: Call, kind: str) -> torch.dtype:
    """Return the type to compute in; ONNX has no arithmetic of small integers."""
    dtype, target = call.dtypes[0], call.out_dtypes[0]
    if len(call.dtypes) > 1:
        dtype = torch.promote_types(dtype, call.dtypes[1])
    if is_float(dtype) and not _is_numpy(call):
        return dtype
    if is_float(target) and not (_is_numpy(call) and kind in COMPARISONS):
        return target
    if kind == "hypot":
        return FLOAT
    return INT32 if dtype in SMALL_TYPES else dtype


def _scalar_of(call: Call, dtype: torch.dtype) -> float:
    """Return the scalar in the type of the array, as in MXNet."""
    number = float(call.attrs["scalar"])
    if is_float(dtype):
        return number if is_float(call.dtype) or is_float(call.out_dtypes[0]) else int(number)
    if not math.isfinite(number) or abs(number) >= 2**31:
        raise call.unsupported(f"has scalar={number}, which integers cannot hold.")
    return int(number) & 0xFF if call.dtype is torch.uint8 else int(number)


def _numpy_scalar_of(call: Call, dtype: torch.dtype, kind: str) -> tuple[torch.dtype, float]:
    """Return the scalar for `mx.np`: in the array's type, unless it is a float."""
    number = float(call.attrs["scalar"])
    if not math.isfinite(number) and not is_float(call.dtype):
        raise call.unsupported(f"has scalar={number}, which integers cannot hold.")
    if is_float(dtype):
        return dtype, number
    if kind in COMPARISONS and call.dtype is BOOL:
        return dtype, float(bool(number))
    return (dtype, int(number)) if call.attrs["is_int"] else (torch.float64, number)


def _arrays(kind: str, *names: str) -> None:
    compute = (BINARY | COMPARISONS)[kind]

    @row(*names)
    def apply(g: Builder, call: Call, a: str, b: str) -> str:
        dtype = _computed_in(call, kind)
        output = compute(g, dtype, *g.cast_all(call, (a, b), dtype))
        return g.cast(output, BOOL if kind in COMPARISONS else dtype, call.out_dtypes[0])


def _scalar(kind: str, *names: str, is_reversed: bool = False) -> None:
    compute = (BINARY | COMPARISONS)[kind]

    @row(*names)
    def apply(g: Builder, call: Call, x: str) -> str:
        dtype = _computed_in(call, kind)
        if _is_numpy(call):
            dtype, number = _numpy_scalar_of(call, dtype, kind)
        else:
            number = _scalar_of(call, dtype)
        pair = [g.cast(x, call.dtype, dtype), g.scalar(number, dtype)]
        output = compute(g, dtype, *(pair[::-1] if is_reversed else pair))
        return g.cast(output, BOOL if kind in COMPARISONS else dtype, call.out_dtypes[0])


ELEMWISE = ("add", "sub", "mul", "div")
SCALAR_NAMES = {"add": "plus", "sub": "minus"}
NUMPY_NAMES = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "true_divide",
    "power": "power",
    "mod": "mod",
    "equal": "equal",
    "not_equal": "not_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "lesser": "less",
    "lesser_equal": "less_equal",
}
for _kind in BINARY | COMPARISONS:
    _prefix = "elemwise_" if _kind in ELEMWISE else "_"
    _arrays(_kind, f"broadcast_{_kind}", f"{_prefix}{_kind}")
    _scalar(_kind, f"_{SCALAR_NAMES.get(_kind, _kind)}_scalar")
for _kind, _name in NUMPY_NAMES.items():
    _arrays(_kind, f"_npi_{_name}")
    _scalar(_kind, f"_npi_{_name}_scalar")
for _kind in ("sub", "div", "mod", "power"):
    _scalar(_kind, f"_r{SCALAR_NAMES.get(_kind, _kind)}_scalar", is_reversed=True)
    _scalar(_kind, f"_npi_r{NUMPY_NAMES[_kind]}_scalar", is_reversed=True)
_arrays("add", "_grad_add")
_arrays("div", "_scatter_elemwise_div")
_arrays("hypot", "_npi_hypot")
_scalar("add", "_scatter_plus_scalar")
_scalar("sub", "_scatter_minus_scalar")


def _arctan2(g: Builder, y: str, x: str, dtype: torch.dtype) -> str:
    zero = g.scalar(0, dtype)
    is_axis = g.Equal(x, zero)
    ratio = g.Div(y, g.Where(is_axis, g.scalar(1, dtype), x))
    angle = g.Atan(ratio)
    half = g.Where(g.Less(y, zero), g.scalar(-math.pi, dtype), g.scalar(math.pi, dtype))
    angle = g.Where(g.Less(x, zero), g.Add(angle, half), angle)
    return g.Where(is_axis, g.Mul(g.Sign(y), g.scalar(math.pi / 2, dtype)), angle)


def _copysign(g: Builder, size: str, sign: str, dtype: torch.dtype) -> str:
    """Return magnitudes with the signs of other numbers; -0 is treated as negative."""
    zero = g.scalar(0, dtype)
    is_zero = g.Equal(sign, zero)
    inverse = g.Reciprocal(g.Where(is_zero, sign, g.scalar(1, dtype)))
    is_negative = g.Or(g.Less(sign, zero), g.And(is_zero, g.Less(inverse, zero)))
    positive = g.Abs(size)
    return g.Where(is_negative, g.Neg(positive), positive)


def _polyval(g: Builder, call: Call, dtype: torch.dtype, p: str, x: str) -> str:
    output = g.Mul(x, g.scalar(0, dtype))
    for i in range(call.shapes[0][0]):
        output = g.Add(g.Mul(output, x), g.reshape(g.slice(p, [i], [i + 1], [0]), []))
    return output


def _power_of_two(g: Builder, x: str, dtype: torch.dtype) -> str:
    return g.Pow(g.scalar(2, dtype), x)


def _number(g: Builder, call: Call, dtype: torch.dtype, like: str) -> str:
    """Return the scalar of an operator, repeated for each element of an array."""
    return g.Expand(g.scalar(call.attrs["scalar"], dtype), g.Shape(like))


# Functions of arrays that are computed in floats.
IN_FLOATS: dict[str, Callable[..., str]] = {
    "_npi_arctan2": lambda g, call, t, y, x: _arctan2(g, y, x, t),
    "_npi_arctan2_scalar": lambda g, call, t, y: _arctan2(g, y, _number(g, call, t, y), t),
    "_npi_rarctan2_scalar": lambda g, call, t, x: _arctan2(g, _number(g, call, t, x), x, t),
    "_npi_copysign": lambda g, call, t, a, b: _copysign(g, a, b, t),
    "_npi_copysign_scalar": lambda g, call, t, x: _copysign(g, x, _number(g, call, t, x), t),
    "_npi_rcopysign_scalar": lambda g, call, t, x: _copysign(g, _number(g, call, t, x), x, t),
    "_npi_polyval": _polyval,
    "_npi_ldexp": lambda g, call, t, a, b: g.Mul(a, _power_of_two(g, b, t)),
    "_npi_ldexp_scalar": lambda g, call, t, x: g.Mul(x, g.scalar(2.0 ** call.attrs["scalar"], t)),
    "_npi_rldexp_scalar": lambda g, call, t, x: g.Mul(
        g.scalar(call.attrs["scalar"], t), _power_of_two(g, x, t)
    ),
}


def _in_floats(name: str, compute: Callable[..., str]) -> None:
    @row(name)
    def apply(g: Builder, call: Call, *xs: str) -> str:
        target = call.out_dtypes[0]
        dtype = target if is_float(target) else torch.float64
        return g.cast(compute(g, call, dtype, *g.cast_all(call, xs, dtype)), dtype, target)


for _name, _compute in IN_FLOATS.items():
    _in_floats(_name, _compute)


def _bits(name: str, on_numbers: str, on_truths: str) -> None:
    @row(f"_npi_bitwise_{name}", since=18)
    def of_arrays(g: Builder, call: Call, a: str, b: str) -> str:
        dtype = torch.promote_types(*call.dtypes)
        pair = g.cast_all(call, (a, b), dtype)
        output = g.add(on_truths if dtype is BOOL else on_numbers, *pair)
        return g.cast(output, dtype, call.out_dtypes[0])

    @row(f"_npi_bitwise_{name}_scalar", since=18)
    def of_scalar(g: Builder, call: Call, x: str) -> str:
        dtype = call.out_dtypes[0]
        wide = INT64 if dtype is BOOL else dtype
        number = int(call.attrs["scalar"])
        other = g.scalar(int(bool(number)) if dtype is BOOL else number, wide)
        return g.cast(g.add(on_numbers, g.cast(x, call.dtype, wide), other), wide, dtype)


_bits("and", "BitwiseAnd", "And")
_bits("or", "BitwiseOr", "Or")
_bits("xor", "BitwiseXor", "Xor")


@row("_npi_bitwise_not", since=18)
def bitwise_not(g: Builder, call: Call, x: str) -> str:
    """All bits inverted."""
    return g.Not(x) if call.dtype is BOOL else g.BitwiseNot(x)


@row("add_n")
def add_n(g: Builder, call: Call, *xs: str) -> str:
    """Sum of all inputs."""
    if is_float(call.dtype):
        return g.Sum(*xs)
    total = xs[0]
    for x in xs[1:]:
        total = g.Add(total, x)
    return total


@row("where")
def where(g: Builder, call: Call, condition: str, x: str, y: str) -> str:
    """Select by a condition, which may have one element per row."""
    chosen = g.cast(condition, call.dtypes[0], BOOL)
    rank = len(call.shapes[1])
    if call.ndim == 1 and rank > 1:
        chosen = g.unsqueeze(chosen, *range(1, rank))
    return g.Where(chosen, x, y)


@row("_npi_where")
def numpy_where(g: Builder, call: Call, condition: str, x: str, y: str) -> str:
    """Choose by a condition."""
    target = call.out_dtypes[0]
    pair = [g.cast(v, t, target) for v, t in zip((x, y), call.dtypes[1:], strict=True)]
    return g.Where(g.cast(condition, call.dtype, BOOL), *pair)


@row("_npi_where_lscalar", "_npi_where_rscalar")
def where_scalar(g: Builder, call: Call, condition: str, x: str) -> str:
    """Select a number by a condition, or by its opposite."""
    dtype = call.dtypes[1]
    chosen = g.cast(condition, call.dtype, BOOL)
    pair = [g.scalar(call.attrs["scalar"], dtype), x]
    is_left = call.op.name == "_npi_where_lscalar"
    return g.cast(g.Where(chosen, *(pair if is_left else pair[::-1])), dtype, call.out_dtypes[0])


@row("_npi_where_scalar2")
def where_scalars(g: Builder, call: Call, condition: str) -> str:
    """One of two numbers."""
    chosen = g.cast(condition, call.dtype, BOOL)
    return g.Where(chosen, *(g.scalar(call.attrs[k], call.out_dtypes[0]) for k in ("x", "y")))


# -- activations and softmax ----------------------------------------------------------------

ACTIVATIONS = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "softrelu": "Softplus",
    "softsign": "Softsign",
    "tanh": "Tanh",
}
row("Activation")(lambda g, call, x: g.add(ACTIVATIONS[call.attrs["act_type"]], x))
row("LogisticRegressionOutput", ignores=("label",))(lambda g, call, x, *_: g.Sigmoid(x))


@row("hard_sigmoid")
def hard_sigmoid(g: Builder, call: Call, x: str) -> str:
    """``max(0, min(1, alpha x + beta))``."""
    return g.HardSigmoid(x, alpha=call.attrs["alpha"], beta=call.attrs["beta"])


def _gelu(g: Builder, call: Call, x: str) -> str:
    """``x Phi(x)``; one operator from opset 20 on."""
    if g.opset >= 20:
        return g.Gelu(x)
    erf = g.Erf(g.Mul(x, g.scalar(math.sqrt(0.5), call.dtype)))
    half = g.Mul(x, g.scalar(0.5, call.dtype))
    return g.Mul(half, g.Add(erf, g.scalar(1, call.dtype)))


@row("LeakyReLU")
def leaky_relu(g: Builder, call: Call, x: str, gamma: str = "") -> str | list[str]:
    """Write a function with a small slope on the negative side."""
    kind, slope = call.attrs["act_type"], call.attrs["slope"]
    if kind == "prelu":
        # MXNet has slopes for the first axes; ONNX matches axes from the back.
        slopes = call.shapes[1]
        if call.ndim > 2:
            head = [-1] if len(slopes) == 1 else list(slopes)
            gamma = g.reshape(gamma, [*head, *[1] * (call.ndim - 2)])
        return g.PRelu(x, gamma)
    if kind == "rrelu":
        middle = (call.attrs["lower_bound"] + call.attrs["upper_bound"]) / 2
        mask = g.Expand(g.scalar(0, call.dtype), g.sizes(x, call.shape))
        return [g.LeakyRelu(x, alpha=middle), mask]
    if kind == "gelu":
        return _gelu(g, call, x)
    if kind == "selu":
        return g.Selu(x)
    return g.add("Elu" if kind == "elu" else "LeakyRelu", x, alpha=slope)


def _softmax(g: Builder, op_type: str, x: str, axis: int, rank: int) -> str:
    if g.opset >= 13 or axis == rank - 1:
        return g.add(op_type, x, axis=axis)
    order = [i for i in range(rank) if i != axis] + [axis]
    output = g.add(op_type, g.Transpose(x, perm=order), axis=rank - 1)
    return g.Transpose(output, perm=[int(i) for i in np.argsort(order)])


def _along_axis(g: Builder, call: Call, op_type: str, x: str) -> str:
    temperature, name, inner = call.attrs["temperature"], call.attrs["dtype"], call.dtype
    if temperature is not None and temperature != 1.0:
        x = g.Div(x, g.scalar(temperature, call.dtype))
    if name is not None:
        asked = dtypes.to_torch(name)
        if torch.promote_types(asked, inner) is asked:
            x, inner = g.cast(x, inner, asked), asked
    output = _softmax(g, op_type, x, call.axis, call.ndim)
    return g.cast(output, inner, call.out_dtypes[0])


row("log_softmax")(lambda g, call, x: _along_axis(g, call, "LogSoftmax", x))
row("softmin")(lambda g, call, x: _along_axis(g, call, "Softmax", g.Neg(x)))


@row("softmax")
def softmax(g: Builder, call: Call, x: str, length: str = "") -> str:
    """Softmax along an axis, over the first `length` elements if given."""
    if not length:
        return _along_axis(g, call, "Softmax", x)
    axis = call.axis
    steps = g.reshape(g.positions(x, call.shape, axis), [-1, *[1] * (call.ndim - 1 - axis)])
    inside = g.Less(steps, g.unsqueeze(g.cast(length, call.dtypes[1], INT64), axis))
    lowest = g.scalar(torch.finfo(call.dtype).min, call.dtype)
    output = _along_axis(g, call, "Softmax", g.Where(inside, x, lowest))
    return g.Where(inside, output, g.scalar(0, call.out_dtypes[0]))


@row("SoftmaxActivation")
def softmax_activation(g: Builder, call: Call, x: str) -> str:
    """Softmax of the last axis, or over channels."""
    axis = 1 if call.attrs["mode"] == "channel" else call.ndim - 1
    return _softmax(g, "Softmax", x, axis, call.ndim)


@row("SoftmaxOutput", ignores=("label",))
def softmax_output(g: Builder, call: Call, x: str, *_: str) -> str:
    """Softmax of the data; the label is for training."""
    if call.attrs["multi_output"]:
        return _softmax(g, "Softmax", x, 1, call.ndim)
    if call.attrs["preserve_shape"] or call.ndim == 2:
        return _softmax(g, "Softmax", x, call.ndim - 1, call.ndim)
    flat = _softmax(g, "Softmax", g.Flatten(x, axis=1), 1, 2)
    return g.Reshape(flat, g.sizes(x, call.shape))


@row("softmax_cross_entropy")
def softmax_cross_entropy(g: Builder, call: Call, data: str, label: str) -> str:
    """Sum of the negative log-probabilities of the labels."""
    classes = g.cast(label, call.dtypes[1], INT64)
    logs = g.LogSoftmax(data, axis=1)
    picked = g.GatherElements(logs, g.unsqueeze(classes, 1), axis=1)
    return g.reshape(g.Neg(g.reduce("ReduceSum", picked, None, False)), [1])
