"""Rows of `mx.np`: elementwise functions, arithmetic and reductions with NumPy's types."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..builder import INT64, UNKNOWN, Builder, Call, is_float
from ..table import row
from .arithmetic import BINARY, SMALL
from .elementwise import FORMULAS, in_float

SAME = {
    "_npi_absolute": "Abs",
    "_npi_arccos": "Acos",
    "_npi_arccosh": "Acosh",
    "_npi_arcsin": "Asin",
    "_npi_arcsinh": "Asinh",
    "_npi_arctan": "Atan",
    "_npi_arctanh": "Atanh",
    "_npi_ceil": "Ceil",
    "_npi_cos": "Cos",
    "_npi_cosh": "Cosh",
    "_npi_exp": "Exp",
    "_npi_floor": "Floor",
    "_npi_log": "Log",
    "_npi_negative": "Neg",
    "_npi_reciprocal": "Reciprocal",
    "_npi_sign": "Sign",
    "_npi_sin": "Sin",
    "_npi_sinh": "Sinh",
    "_npi_sqrt": "Sqrt",
    "_npi_tan": "Tan",
    "_npi_tanh": "Tanh",
    "_npx_relu": "Relu",
    "_npx_sigmoid": "Sigmoid",
}
EXACT = {"Abs", "Neg", "Sign", "Ceil", "Floor"}


def _same(name: str, op_type: str) -> None:
    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        wanted = call.out_dtypes[0]
        if not is_float(call.dtype) and op_type in EXACT:
            wide = g.cast(x, call.dtype, INT64)
            made = wide if op_type in ("Ceil", "Floor") else g.add(op_type, wide)
            return g.cast(made, INT64, wanted)
        y, dtype = in_float(g, call, x)
        return g.cast(g.add(op_type, y), dtype, wanted)


for _name, _op_type in SAME.items():
    _same(_name, _op_type)


def _formula(name: str, legacy: str) -> None:
    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        y, dtype = in_float(g, call, x)
        return g.cast(FORMULAS[legacy](g, dtype, y), dtype, call.out_dtypes[0])


for _legacy in ("cbrt", "expm1", "log1p", "log2", "log10", "degrees", "radians"):
    _formula(f"_npi_{_legacy}", _legacy)


@row("_npi_square")
def square(g: Builder, call: Call, x: str) -> str:
    """``x * x``."""
    dtype = call.dtype if is_float(call.dtype) else INT64
    wide = g.cast(x, call.dtype, dtype)
    return g.cast(g.Mul(wide, wide), dtype, call.out_dtypes[0])


@row("_npi_fix", "_npi_trunc")
def trunc(g: Builder, call: Call, x: str) -> str:
    """Cut toward 0."""
    if not is_float(call.dtype):
        return g.cast(x, call.dtype, call.out_dtypes[0])
    return g.Mul(g.Sign(x), g.Floor(g.Abs(x)))


@row("_npi_around")
def around(g: Builder, call: Call, x: str) -> str:
    """Round halves to even numbers, at a decimal place."""
    y, dtype = in_float(g, call, x)
    scale = 10.0 ** call.attrs["decimals"]
    if scale < 1 and not is_float(call.dtype):
        raise call.unsupported("of integers at tens has no ONNX form.")
    if scale == 1:
        return g.cast(g.Round(y), dtype, call.out_dtypes[0])
    factor = g.scalar(scale, dtype)
    return g.cast(g.Div(g.Round(g.Mul(y, factor)), factor), dtype, call.out_dtypes[0])


@row("_npi_logical_not")
def logical_not(g: Builder, call: Call, x: str) -> str:
    """True where the input is 0."""
    return g.Not(g.cast(x, call.dtype, torch.bool))


def _wide(g: Builder, call: Call, x: str) -> str:
    """Return the input as float32 or wider, which IsInf wants."""
    y, dtype = in_float(g, call, x)
    return g.cast(y, dtype, torch.float32) if dtype is torch.float16 else y


def _classified(name: str, **signs: int) -> None:
    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        return g.IsInf(_wide(g, call, x), **signs)


_classified("_npi_isinf")
_classified("_npi_isposinf", detect_negative=0)
_classified("_npi_isneginf", detect_positive=0)


@row("_npi_isnan")
def isnan(g: Builder, call: Call, x: str) -> str:
    """Find NaN."""
    return g.IsNaN(in_float(g, call, x)[0])


@row("_npi_isfinite")
def isfinite(g: Builder, call: Call, x: str) -> str:
    """Find numbers that are neither infinite nor NaN."""
    y = _wide(g, call, x)
    return g.Not(g.Or(g.IsInf(y), g.IsNaN(y)))


IDEAS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "true_divide": "div",
    "power": "power",
    "mod": "mod",
    "equal": "equal",
    "not_equal": "not_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "less": "lesser",
    "less_equal": "lesser_equal",
}
REVERSED = {"rsubtract": "sub", "rtrue_divide": "div", "rpower": "power", "rmod": "mod"}


def _computed_in(call: Call, gives_bool: bool) -> torch.dtype:
    dtype = call.dtypes[0]
    if len(call.dtypes) > 1:
        dtype = torch.promote_types(*call.dtypes)
    if not gives_bool and is_float(call.out_dtypes[0]):
        return call.out_dtypes[0]
    return torch.int32 if dtype in SMALL else dtype


def _pair(name: str, idea: str) -> None:
    compute, gives_bool = BINARY[idea]

    @row(name)
    def emit(g: Builder, call: Call, a: str, b: str) -> str:
        dtype = _computed_in(call, gives_bool)
        left, right = (g.cast(x, t, dtype) for x, t in zip((a, b), call.dtypes, strict=True))
        made = compute(g, dtype, left, right)
        return g.cast(made, torch.bool if gives_bool else dtype, call.out_dtypes[0])


def _taken(
    call: Call, dtype: torch.dtype, number: float, gives_bool: bool
) -> tuple[torch.dtype, float]:
    """Return how MXNet takes a number next to integers: in their type, unless it is a float."""
    if gives_bool and call.dtype is torch.bool:
        return dtype, float(bool(number))
    if not call.attrs["is_int"]:
        return torch.float64, number
    return dtype, int(number)


def _scalar(name: str, idea: str, is_reversed: bool = False) -> None:
    compute, gives_bool = BINARY[idea]

    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        number = float(call.attrs["scalar"])
        if not math.isfinite(number) and not is_float(call.dtype):
            raise call.unsupported(f"has scalar={number}, which integers cannot hold.")
        dtype = _computed_in(call, gives_bool)
        if not is_float(dtype):
            dtype, number = _taken(call, dtype, number, gives_bool)
        value, other = g.cast(x, call.dtype, dtype), g.scalar(number, dtype)
        made = compute(g, dtype, *((other, value) if is_reversed else (value, other)))
        return g.cast(made, torch.bool if gives_bool else dtype, call.out_dtypes[0])


for _name, _idea in IDEAS.items():
    _pair(f"_npi_{_name}", _idea)
    _scalar(f"_npi_{_name}_scalar", _idea)
for _name, _idea in REVERSED.items():
    _scalar(f"_npi_{_name}_scalar", _idea, is_reversed=True)
_pair("_npi_hypot", "hypot")


def axes_of(call: Call) -> list[int]:
    """Return the axes that are reduced, counted from the front."""
    axes = call.attrs["axis"]
    if axes is None:
        return list(range(call.ndim))
    return [a % call.ndim for a in ((axes,) if isinstance(axes, int) else axes)]


WIDENING = ("ReduceSum", "ReduceProd", "ReduceMean")


def _reduction(name: str, op_type: str) -> None:
    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        if call.attrs.get("initial") is not None:
            raise call.unsupported("with initial= has no ONNX form.")
        wanted = call.out_dtypes[0]
        dtype = torch.int32 if call.dtype in SMALL else call.dtype
        if op_type in WIDENING and wanted not in SMALL and not is_float(call.dtype):
            dtype = wanted
        axes = axes_of(call)
        value = g.cast(x, call.dtype, dtype)
        made = g.reduce(op_type, value, axes, call.attrs["keepdims"]) if axes else g.Identity(value)
        return g.cast(made, dtype, wanted)


_reduction("_np_sum", "ReduceSum")
_reduction("_np_prod", "ReduceProd")
_reduction("_np_max", "ReduceMax")
_reduction("_np_min", "ReduceMin")
_reduction("_npi_mean", "ReduceMean")


def _truth(name: str, op_type: str) -> None:
    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        number = g.cast(g.cast(x, call.dtype, torch.bool), torch.bool, torch.int32)
        if 0 in call.shape:
            raise call.unsupported("of an empty array has no ONNX form.")
        if not axes_of(call):
            return g.cast(number, torch.int32, call.out_dtypes[0])
        made = g.reduce(op_type, number, axes_of(call), call.attrs["keepdims"])
        return g.cast(made, torch.int32, call.out_dtypes[0])


_truth("_np_all", "ReduceMin")
_truth("_np_any", "ReduceMax")


def _spread(name: str, is_root: bool) -> None:
    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        axes, wanted = axes_of(call), call.out_dtypes[0]
        dtype = wanted if is_float(wanted) else torch.float32
        if not axes or not is_float(call.dtype):
            raise call.unsupported("of integers, or over no axes, has no ONNX form.")
        sizes = [call.shape[a] for a in axes]
        if UNKNOWN in sizes:
            raise call.unsupported("needs the reduced sizes as numbers.")
        value = g.cast(x, call.dtype, dtype)
        distance = g.Sub(value, g.reduce("ReduceMean", value, axes, True))
        total = g.reduce("ReduceSum", g.Mul(distance, distance), axes, call.attrs["keepdims"])
        made = g.Div(total, g.scalar(math.prod(sizes) - call.attrs["ddof"], dtype))
        return g.cast(g.Sqrt(made) if is_root else made, dtype, wanted)


_spread("_npi_var", False)
_spread("_npi_std", True)


def _position(name: str, op_type: str) -> None:
    @row(name)
    def emit(g: Builder, call: Call, x: str) -> str:
        axis, kept = call.attrs["axis"], call.attrs["keepdims"]
        if not is_float(call.dtype):
            x = g.cast(x, call.dtype, torch.int32)
        if axis is not None:
            found = g.add(op_type, x, axis=axis, keepdims=int(kept))
        else:
            found = g.add(op_type, g.reshape(x, [-1]), axis=0, keepdims=0)
            found = g.reshape(found, [1] * call.ndim) if kept else found
        return g.cast(found, INT64, call.out_dtypes[0])


_position("_npi_argmax", "ArgMax")
_position("_npi_argmin", "ArgMin")


@row("_np_cumsum")
def cumsum(g: Builder, call: Call, x: str) -> str:
    """Running sums."""
    dtype = call.out_dtypes[0]
    inner = torch.int32 if dtype in SMALL else dtype
    inner = torch.float32 if dtype is torch.float16 else inner
    value = g.cast(x, call.dtype, inner)
    axis = call.attrs["axis"]
    if axis is None:
        value, axis = g.reshape(value, [-1]), 0
    made = g.CumSum(value, g.array(np.array(axis, np.int64)))
    return g.cast(made, inner, dtype)
