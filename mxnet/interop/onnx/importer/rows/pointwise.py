"""Import rows of functions of single elements: math, arithmetic, comparison, activations."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from ...library import load_onnx
from ..value import F, OnnxNode, Value, direct, imports, internal

DIRECT = {
    "Abs": F.abs,
    "Acos": F.arccos,
    "Acosh": F.arccosh,
    "Asin": F.arcsin,
    "Asinh": F.arcsinh,
    "Atan": F.arctan,
    "Atanh": F.arctanh,
    "BitwiseAnd": internal._npi_bitwise_and,
    "BitwiseNot": internal._npi_bitwise_not,
    "BitwiseOr": internal._npi_bitwise_or,
    "BitwiseXor": internal._npi_bitwise_xor,
    "Ceil": F.ceil,
    "Cos": F.cos,
    "Cosh": F.cosh,
    "Erf": F.erf,
    "Exp": F.exp,
    "Floor": F.floor,
    "Log": F.log,
    "Neg": F.negative,
    "Reciprocal": F.reciprocal,
    "Relu": F.relu,
    "Sigmoid": F.sigmoid,
    "Sign": F.sign,
    "Sin": F.sin,
    "Sinh": F.sinh,
    "Softplus": partial(F.Activation, act_type="softrelu"),
    "Softsign": F.softsign,
    "Sqrt": F.sqrt,
    "Tan": F.tan,
    "Tanh": F.tanh,
}
for _op_type, _function in DIRECT.items():
    direct(_op_type, _function)
direct("BitShift", internal._onnx_bit_shift, direction=None)
direct("Elu", partial(F.LeakyReLU, act_type="elu"), slope=("alpha", 1.0))
direct("HardSigmoid", F.hard_sigmoid, alpha=0.2, beta=0.5)
direct("LeakyRelu", partial(F.LeakyReLU, act_type="leaky"), slope=("alpha", 0.01))


@imports("Identity")
def identity(node: OnnxNode, x: Any) -> Any:
    """The value itself, a sequence too."""
    return F.identity(x.symbol, name=node.name) if isinstance(x, Value) else x


# -- types and truth ------------------------------------------------------------------------

CAST_TYPES = (
    *("bfloat16", "float16", "float32", "float64"),
    *("int8", "uint8", "int32", "int64", "bool"),
)


@imports("Cast", "CastLike")
def cast(node: OnnxNode, x: Value, like: Value | None = None) -> Any:
    """Convert to another type."""
    target = node.output_dtype()
    if target is None:
        target = load_onnx().helper.tensor_dtype_to_np_dtype(node.get("to"))
        target = node.importer.integers.widen_type(target)
    if target.name not in CAST_TYPES:
        raise node.unsupported(f"converts to {target}, which MXNet has not.")
    symbol = x.symbol
    if target.kind == "b" and x.is_float:
        symbol = F.broadcast_not_equal(symbol, F.zeros_like(symbol))
    return F.cast(symbol, dtype=target.name, name=node.name)


@imports("BitCast")
def bit_cast(node: OnnxNode, x: Value) -> Any:
    """Read the bits as another type."""
    target = load_onnx().helper.tensor_dtype_to_np_dtype(node.get("to"))
    if np.dtype(target).itemsize != x.dtype.itemsize:
        raise node.unsupported(f"from {x.dtype} to {target} changes the size.")
    return internal._onnx_bit_cast(x.symbol, dtype=target.name, name=node.name)


@imports("Not")
def logical_not(node: OnnxNode, x: Value) -> Any:
    """Invert truth values."""
    number = F.cast(x.symbol, dtype="int32")
    return F.cast(F.logical_not(number), dtype="bool", name=node.name)


@imports("IsNaN")
def is_nan(node: OnnxNode, x: Value) -> Any:
    """Find NaN."""
    return F.cast(F.broadcast_not_equal(x.symbol, x.symbol), dtype="bool", name=node.name)


@imports("IsInf")
def is_inf(node: OnnxNode, x: Value) -> Any:
    """Find infinities, of one sign or of both."""
    symbol = x.symbol
    if not node.flag("detect_negative", 1):
        symbol = F.relu(symbol)
    elif not node.flag("detect_positive", 1):
        symbol = F.relu(F.negative(symbol))
    return F.cast(F.abs(symbol) == math.inf, dtype="bool", name=node.name)


# -- two arrays or more ---------------------------------------------------------------------


def _align(node: OnnxNode, a: Value, b: Value) -> tuple[Any, Any]:
    """Return both symbols; before opset 7 the second one is aligned to a given axis."""
    axis = node.get("axis")
    if node.opset >= 7 or not node.get("broadcast") or axis is None:
        return a.symbol, b.symbol
    missing = a.rank - axis - b.rank
    return a.symbol, F.reshape(b.symbol, shape=(0,) * b.rank + (1,) * missing)


def _binary(op_type: str, function: Any) -> None:
    imports(op_type)(lambda node, a, b: function(*_align(node, a, b), name=node.name))


def _comparison(op_type: str, function: Any) -> None:
    @imports(op_type)
    def compare(node: OnnxNode, a: Value, b: Value) -> Any:
        pair = _align(node, a, b)
        if a.is_bool:  # MXNet compares numbers
            pair = tuple(F.cast(x, dtype="int32") for x in pair)
        return F.cast(function(*pair), dtype="bool", name=node.name)


def _fold(op_type: str, function: Any) -> None:
    @imports(op_type)
    def combine(node: OnnxNode, *values: Value) -> Any:
        output = values[0].symbol
        for value in values[1:]:
            output = function(output, value.symbol)
        output = output / len(values) if op_type == "Mean" else output
        return F.identity(output, name=node.name)


_binary("Add", F.broadcast_add)
_binary("Sub", F.broadcast_sub)
_binary("Mul", F.broadcast_mul)
_binary("Div", F.broadcast_div)
_comparison("Equal", F.broadcast_equal)
_comparison("Greater", F.broadcast_greater)
_comparison("GreaterOrEqual", F.broadcast_greater_equal)
_comparison("Less", F.broadcast_lesser)
_comparison("LessOrEqual", F.broadcast_lesser_equal)
_comparison("And", F.broadcast_logical_and)
_comparison("Or", F.broadcast_logical_or)
_comparison("Xor", F.broadcast_logical_xor)
_fold("Max", F.broadcast_maximum)
_fold("Min", F.broadcast_minimum)
_fold("Sum", F.broadcast_add)
_fold("Mean", F.broadcast_add)


@imports("Pow")
def power(node: OnnxNode, a: Value, b: Value) -> Any:
    """Power; the result has the type of the base."""
    left, right = _align(node, a, b)
    if a.dtype == b.dtype:
        return F.broadcast_power(left, right, name=node.name)
    output = F.broadcast_power(F.cast(left, dtype="float64"), F.cast(right, dtype="float64"))
    return F.cast(output, dtype=a.dtype.name, name=node.name)


@imports("Mod")
def modulo(node: OnnxNode, a: Value, b: Value) -> Any:
    """Remainder with the sign of the divisor, or with ``fmod`` of the dividend."""
    function = internal._onnx_fmod if node.flag("fmod") else internal._onnx_mod
    return function(a.symbol, b.symbol, name=node.name)


@imports("Where")
def where(node: OnnxNode, condition: Value, x: Value, y: Value) -> Any:
    """Select by a condition; all three inputs are broadcast."""
    is_plain = condition.shape == x.shape == y.shape and x.shape is not None and not x.is_bool
    function = F.where if is_plain else internal._npi_where
    return function(condition.symbol, x.symbol, y.symbol, name=node.name)


# -- rounding and limits --------------------------------------------------------------------


@imports("Round")
def round_even(node: OnnxNode, x: Value) -> Any:
    """Round halves to even numbers."""
    low = F.floor(x.symbol)
    rest = x.symbol - low
    is_odd = F.broadcast_not_equal(F.floor(low / 2) * 2, low)
    up = F.broadcast_greater(rest, F.ones_like(rest) * 0.5)
    half = F.broadcast_equal(rest, F.ones_like(rest) * 0.5)
    return F.identity(low + F.broadcast_maximum(up, half * is_odd), name=node.name)


@imports("Clip")
def clip(node: OnnxNode, x: Value, low: Value | None = None, high: Value | None = None) -> Any:
    """Clip to a range, whose limits are optional."""
    if any(v is not None and v.constant is None for v in (low, high)):
        return _clip_by_symbols(node, x, low, high)
    if x.is_float:
        low_end, high_end = -math.inf, math.inf
    else:
        limits = np.iinfo(x.dtype)
        low_end, high_end = limits.min, limits.max
    low_end = node.get("min", low_end) if low is None else node.item(low, "min")
    high_end = node.get("max", high_end) if high is None else node.item(high, "max")
    if low_end > high_end:
        return F.minimum(F.maximum(x.symbol, low_end), high_end, name=node.name)
    return F.clip(x.symbol, a_min=low_end, a_max=high_end, name=node.name)


def _clip_by_symbols(node: OnnxNode, x: Value, low: Value | None, high: Value | None) -> Any:
    output, shape = x.symbol, (1,) * max(x.rank, 1)
    if low is not None:
        output = F.broadcast_maximum(output, F.reshape(low.symbol, shape=shape))
    if high is not None:
        output = F.broadcast_minimum(output, F.reshape(high.symbol, shape=shape))
    return F.identity(output, name=node.name)


@imports("ThresholdedRelu")
def thresholded_relu(node: OnnxNode, x: Value) -> Any:
    """The value above a threshold, 0 below."""
    return F.elemwise_mul(x.symbol, x.symbol > node.get("alpha", 1.0), name=node.name)


@imports("Shrink")
def shrink(node: OnnxNode, x: Value) -> Any:
    """Move toward 0 outside a range, 0 inside."""
    bias, limit = node.get("bias", 0.0), node.get("lambd", 0.5)
    high = (x.symbol - bias) * (x.symbol > limit)
    low = (x.symbol + bias) * (x.symbol < -limit)
    return F.elemwise_add(high, low, name=node.name)


# -- activations ----------------------------------------------------------------------------


@imports("Celu")
def celu(node: OnnxNode, x: Value) -> Any:
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``."""
    alpha = node.get("alpha", 1.0)
    low = F.minimum(alpha * F.expm1(x.symbol / alpha), 0)
    return F.elemwise_add(F.relu(x.symbol), low, name=node.name)


@imports("Selu")
def selu(node: OnnxNode, x: Value) -> Any:
    """Scaled exponential."""
    alpha = node.get("alpha", 1.67326319217681884765625)
    gamma = node.get("gamma", 1.05070102214813232421875)
    high, low = F.relu(x.symbol), F.minimum(F.expm1(F.minimum(x.symbol, 0)) * alpha, 0)
    return F.identity((high + low) * gamma, name=node.name)


@imports("PRelu")
def prelu(node: OnnxNode, x: Value, slope: Value) -> Any:
    """A learned slope on the negative side; one for each channel where it can be."""
    shape, rank = slope.shape, x.rank
    if shape is not None and len(shape) == rank - 1 and all(n == 1 for n in shape[1:]) and rank > 2:
        gamma = F.reshape(slope.symbol, shape=(-1,))
        return F.LeakyReLU(x.symbol, gamma, act_type="prelu", name=node.name)
    low = F.broadcast_mul(F.minimum(x.symbol, 0), slope.symbol)
    return F.broadcast_add(F.relu(x.symbol), low, name=node.name)


def _gated(op_type: str, gate: Any) -> None:
    imports(op_type)(lambda node, x: F.elemwise_mul(x.symbol, gate(node, x.symbol), name=node.name))


_gated("HardSwish", lambda node, x: F.hard_sigmoid(x, alpha=1 / 6, beta=0.5))
_gated("Swish", lambda node, x: F.sigmoid(x * node.get("alpha", 1.0)))
_gated("Mish", lambda node, x: F.tanh(F.Activation(x, act_type="softrelu")))


@imports("Gelu")
def gelu(node: OnnxNode, x: Value) -> Any:
    """``x Phi(x)``, exact or by tanh."""
    if node.get("approximate", "none") == "none":
        return F.LeakyReLU(x.symbol, act_type="gelu", name=node.name)
    inner = (x.symbol + F.square(x.symbol) * x.symbol * 0.044715) * math.sqrt(2 / math.pi)
    return F.elemwise_mul(x.symbol * 0.5, F.tanh(inner) + 1, name=node.name)


@imports("Dropout")
def dropout(node: OnnxNode, x: Value, ratio: Value | None = None, mode: Value | None = None) -> Any:
    """Drop elements in training; a no-op in prediction."""
    is_training = mode is not None and bool(node.constant(mode, "training_mode"))
    if is_training and (ratio is None or float(node.constant(ratio, "ratio")) != 0):
        raise node.unsupported("is in training mode.")
    share = node.get("ratio", 0.5)
    if ratio is not None and ratio.constant is not None:
        share = float(ratio.constant)
    output = F.Dropout(x.symbol, p=share, name=node.name)
    mask = F.cast(F.ones_like(x.symbol), dtype="bool")
    return [output, mask][: len(node.output_names)]
