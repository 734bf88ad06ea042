"""Rows of elementwise functions."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ..builder import Builder, Call, is_float
from ..table import emit_nothing_new, row

Formula = Callable[[Builder, torch.dtype, str], str]
# MXNet name -> ONNX operator of the same meaning.
SAME = {
    "abs": "Abs",
    "arccos": "Acos",
    "arccosh": "Acosh",
    "arcsin": "Asin",
    "arcsinh": "Asinh",
    "arctan": "Atan",
    "arctanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "negative": "Neg",
    "reciprocal": "Reciprocal",
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "softsign": "Softsign",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
    "_contrib_sign_ste": "Sign",
}
INTEGERS_TOO = {"Abs", "Neg", "Sign"}
SMALL = (torch.int8, torch.uint8)
ROUNDING = {"Ceil", "Floor"}


def in_float(g: Builder, call: Call, x: str) -> tuple[str, torch.dtype]:
    """Return the input as a float; ONNX computes most functions of floats only."""
    if is_float(call.dtype):
        return x, call.dtype
    return g.cast(x, call.dtype, torch.float32), torch.float32


def _same(op_type: str) -> None:
    def emit(g: Builder, call: Call, x: str) -> str:
        if not is_float(call.dtype) and op_type in ROUNDING:
            return x
        if op_type in INTEGERS_TOO and call.dtype in SMALL:
            wide = g.add(op_type, g.cast(x, call.dtype, torch.int32))
            return g.cast(wide, torch.int32, call.out_dtypes[0])
        if is_float(call.dtype) or op_type in INTEGERS_TOO:
            return g.add(op_type, x)
        y, dtype = in_float(g, call, x)
        return g.cast(g.add(op_type, y), dtype, call.out_dtypes[0])

    for name in [n for n, t in SAME.items() if t == op_type]:
        row(name)(emit)


for _op_type in sorted(set(SAME.values())):
    _same(_op_type)


@row(
    "_copy",
    "_copyto",
    "BlockGrad",
    "MakeLoss",
    "make_loss",
    "IdentityAttachKLSparseReg",
    "_contrib_gradientmultiplier",
    "cast_storage",
    "_identity_with_attr_like_rhs",
)
def identity(g: Builder, call: Call, x: str, *_: str) -> str:
    """Pass a value on under the node's own name."""
    return g.Identity(x)


@row("Dropout")
def dropout(g: Builder, call: Call, x: str) -> str:
    """Write Dropout, which does nothing when a model predicts."""
    if call.attrs["mode"] == "always" and call.attrs["p"]:
        raise call.unsupported("draws random numbers in prediction too (mode='always').")
    return g.Dropout(x, g.scalar(call.attrs["p"], torch.float32))


@row("Cast", "amp_cast")
def cast(g: Builder, call: Call, x: str) -> str:
    """Convert to another type."""
    return g.cast(x, call.dtype, call.out_dtypes[0])


@row("amp_multicast")
def amp_multicast(g: Builder, call: Call, *xs: str) -> list[str]:
    """Convert all inputs to one type."""
    return [
        g.cast(x, source, target)
        for x, source, target in zip(xs, call.dtypes, call.out_dtypes, strict=True)
    ]


@row("square")
def square(g: Builder, call: Call, x: str) -> str:
    """``x * x``."""
    if call.dtype in SMALL:
        wide = g.cast(x, call.dtype, torch.int32)
        return g.cast(g.Mul(wide, wide), torch.int32, call.dtype)
    return g.Mul(x, x)


def of_floats(name: str, formula: Formula) -> None:
    """Register a function that is computed of floats: ``formula(builder, dtype, x)``."""

    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        y, dtype = in_float(g, call, x)
        return g.cast(formula(g, dtype, y), dtype, call.out_dtypes[0])


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


FORMULAS: dict[str, Formula] = {
    "rsqrt": lambda g, dtype, x: g.Reciprocal(g.Sqrt(x)),
    "cbrt": _cube_root,
    "rcbrt": lambda g, dtype, x: g.Reciprocal(_cube_root(g, dtype, x)),
    "expm1": _expm1,
    "log1p": _log1p,
    "log2": _log_base(2.0),
    "log10": _log_base(10.0),
    "degrees": _times(180 / math.pi),
    "radians": _times(math.pi / 180),
}
for _name, _formula in FORMULAS.items():
    of_floats(_name, _formula)


def _truncated(g: Builder, x: str) -> str:
    return g.Mul(g.Sign(x), g.Floor(g.Abs(x)))


@row("fix", "trunc")
def trunc(g: Builder, call: Call, x: str) -> str:
    """Cut toward 0."""
    return _truncated(g, x) if is_float(call.dtype) else x


@row("round", "_contrib_round_ste")
def round_half_away(g: Builder, call: Call, x: str) -> str:
    """Round halves away from 0; ONNX's Round takes them to even numbers."""
    if not is_float(call.dtype):
        return x
    # The largest number below a half plus a half is 1, so compare before rounding up.
    size = g.Abs(x)
    low = g.Floor(size)
    is_up = g.GreaterOrEqual(g.Sub(size, low), g.scalar(0.5, call.dtype))
    return g.Mul(g.Sign(x), g.Add(low, g.cast(is_up, torch.bool, call.dtype)))


@row("rint")
def rint(g: Builder, call: Call, x: str) -> str:
    """Round halves down, as MXNet does."""
    if not is_float(call.dtype):
        return x
    return g.Ceil(g.Sub(x, g.scalar(0.5, call.dtype)))


@row("logical_not")
def logical_not(g: Builder, call: Call, x: str) -> str:
    """1 where the input is 0."""
    zero = g.scalar(0, call.dtype)
    is_zero = g.Not(x) if call.dtype is torch.bool else g.Equal(x, zero)
    return g.cast(is_zero, torch.bool, call.out_dtypes[0])


@row("clip")
def clip(g: Builder, call: Call, x: str) -> str:
    """Limit to a range; its ends are cut to integers for arrays of those."""
    ends = [call.attrs["a_min"], call.attrs["a_max"]]
    if not is_float(call.dtype):
        limits = torch.iinfo(call.dtype)
        ends = [min(max(int(e), limits.min), limits.max) for e in ends]
    return g.Clip(x, *(g.scalar(e, call.dtype) for e in ends))


@row("hard_sigmoid")
def hard_sigmoid(g: Builder, call: Call, x: str) -> str:
    """``max(0, min(1, alpha x + beta))``."""
    return g.HardSigmoid(x, alpha=call.attrs["alpha"], beta=call.attrs["beta"])


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
    width = g.cast(g.size_of(x, call.ndim - 1), torch.int64, call.dtype)
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


row("LinearRegressionOutput", "MAERegressionOutput", "SVMOutput", ignores=("label",))(
    emit_nothing_new
)


@row("LogisticRegressionOutput", ignores=("label",))
def logistic_output(g: Builder, call: Call, x: str, *_: str) -> str:
    """Sigmoid of the data; the label is for training."""
    return g.Sigmoid(x)
