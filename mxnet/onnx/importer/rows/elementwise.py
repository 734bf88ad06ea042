"""Import rows of elementwise functions and activations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...library import load_onnx
from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value

SAME: dict[str, Any] = {
    "Abs": F.abs,
    "Acos": F.arccos,
    "Acosh": F.arccosh,
    "Asin": F.arcsin,
    "Asinh": F.arcsinh,
    "Atan": F.arctan,
    "Atanh": F.arctanh,
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
    "Softsign": F.softsign,
    "Sqrt": F.sqrt,
    "Tan": F.tan,
    "Tanh": F.tanh,
}


def _same(op_type: str, function: Any) -> None:
    @imports(op_type)
    def build(node: OnnxNode, x: Value) -> Any:
        return function(x.symbol, name=node.name)


for _op_type, _function in SAME.items():
    _same(_op_type, _function)


@imports("Identity")
def identity(node: OnnxNode, x: Any) -> Any:
    """The value itself, a sequence too."""
    return F.identity(x.symbol, name=node.name) if isinstance(x, Value) else x


def is_nan(x: Any) -> Any:
    """Return 1 where a symbol is NaN, as floats."""
    return F.broadcast_not_equal(x, x)


@imports("Cast", "CastLike")
def cast(node: OnnxNode, x: Value, like: Value | None = None) -> Any:
    """Convert to another type."""
    target = node.output_dtype()
    if target is None:
        target = load_onnx().helper.tensor_dtype_to_np_dtype(node.get("to"))
    if target.name not in (
        "bfloat16",
        "float16",
        "float32",
        "float64",
        "int8",
        "uint8",
        "int32",
        "int64",
        "bool",
    ):
        raise node.unsupported(f"converts to {target}, which MXNet has not.")
    symbol = x.symbol
    if target.kind == "b" and x.is_float:
        symbol = F.broadcast_not_equal(symbol, F.zeros_like(symbol))
    return F.cast(symbol, dtype=target.name, name=node.name)


@imports("Round")
def round_even(node: OnnxNode, x: Value) -> Any:
    """Round halves to even numbers."""
    low = F.floor(x.symbol)
    rest = x.symbol - low
    is_odd = F.broadcast_not_equal(F.floor(low / 2) * 2, low)
    up = F.broadcast_greater(rest, F.ones_like(rest) * 0.5)
    half = F.broadcast_equal(rest, F.ones_like(rest) * 0.5)
    return F.identity(low + F.broadcast_maximum(up, half * is_odd), name=node.name)


@imports("Not")
def logical_not(node: OnnxNode, x: Value) -> Any:
    """Invert truth values."""
    number = F.cast(x.symbol, dtype="int32")
    return F.cast(F.logical_not(number), dtype="bool", name=node.name)


@imports("IsNaN")
def is_nan_row(node: OnnxNode, x: Value) -> Any:
    """Find NaN."""
    return F.cast(is_nan(x.symbol), dtype="bool", name=node.name)


@imports("IsInf")
def is_inf(node: OnnxNode, x: Value) -> Any:
    """Find infinities, of one sign or of both."""
    symbol = x.symbol
    if not node.get("detect_negative", 1):
        symbol = F.relu(symbol)
    elif not node.get("detect_positive", 1):
        symbol = F.relu(F.negative(symbol))
    is_infinite = F.abs(symbol) == math.inf
    return F.cast(is_infinite, dtype="bool", name=node.name)


@imports("Clip")
def clip(node: OnnxNode, x: Value, low: Value | None = None, high: Value | None = None) -> Any:
    """Limit to a range, whose ends may be absent."""
    ends = [node.get("min"), node.get("max")]
    if node.opset >= 11:
        ends = [None, None]
        for i, value in enumerate((low, high)):
            if value is None:
                continue
            if value.constant is None:
                return _clip_by_symbols(node, x, low, high)
            ends[i] = value.constant.item()
    if x.is_float:
        low_end, high_end = (
            (-math.inf if ends[0] is None else ends[0]),
            (math.inf if ends[1] is None else ends[1]),
        )
    else:
        limits = np.iinfo(x.dtype)
        low_end = limits.min if ends[0] is None else ends[0]
        high_end = limits.max if ends[1] is None else ends[1]
    made = F.maximum(F.minimum(x.symbol, high_end), low_end) if low_end > high_end else None
    if made is not None:
        return F.minimum(F.maximum(x.symbol, low_end), high_end, name=node.name)
    return F.clip(x.symbol, a_min=low_end, a_max=high_end, name=node.name)


def _clip_by_symbols(node: OnnxNode, x: Value, low: Value | None, high: Value | None) -> Any:
    made = x.symbol
    if low is not None:
        made = F.broadcast_maximum(made, F.reshape(low.symbol, shape=(1,) * max(x.rank, 1)))
    if high is not None:
        made = F.broadcast_minimum(made, F.reshape(high.symbol, shape=(1,) * max(x.rank, 1)))
    return F.identity(made, name=node.name)


@imports("Elu")
def elu(node: OnnxNode, x: Value) -> Any:
    """Exponential on the negative side."""
    return F.LeakyReLU(x.symbol, act_type="elu", slope=node.get("alpha", 1.0), name=node.name)


@imports("Celu")
def celu(node: OnnxNode, x: Value) -> Any:
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``."""
    alpha = node.get("alpha", 1.0)
    low = F.minimum(alpha * F.expm1(x.symbol / alpha), 0)
    return F.elemwise_add(F.relu(x.symbol), low, name=node.name)


@imports("Selu")
def selu(node: OnnxNode, x: Value) -> Any:
    """Scaled exponential."""
    alpha, gamma = (
        node.get("alpha", 1.67326319217681884765625),
        node.get("gamma", 1.05070102214813232421875),
    )
    high, low = F.relu(x.symbol), F.minimum(F.expm1(F.minimum(x.symbol, 0)) * alpha, 0)
    return F.identity((high + low) * gamma, name=node.name)


@imports("LeakyRelu")
def leaky_relu(node: OnnxNode, x: Value) -> Any:
    """A small slope on the negative side."""
    slope = node.get("alpha", 0.01)
    return F.LeakyReLU(x.symbol, act_type="leaky", slope=slope, name=node.name)


@imports("PRelu")
def prelu(node: OnnxNode, x: Value, slope: Value) -> Any:
    """A learned slope on the negative side; one for each channel where it can be."""
    shape, rank = slope.shape, x.rank
    if shape is not None and len(shape) == rank - 1 and all(n == 1 for n in shape[1:]) and rank > 2:
        gamma = F.reshape(slope.symbol, shape=(-1,))
        return F.LeakyReLU(x.symbol, gamma, act_type="prelu", name=node.name)
    low = F.broadcast_mul(F.minimum(x.symbol, 0), slope.symbol)
    return F.broadcast_add(F.relu(x.symbol), low, name=node.name)


@imports("HardSigmoid")
def hard_sigmoid(node: OnnxNode, x: Value) -> Any:
    """``max(0, min(1, alpha x + beta))``."""
    return F.hard_sigmoid(
        x.symbol, alpha=node.get("alpha", 0.2), beta=node.get("beta", 0.5), name=node.name
    )


@imports("HardSwish")
def hard_swish(node: OnnxNode, x: Value) -> Any:
    """``x max(0, min(1, x / 6 + 0.5))``."""
    gate = F.hard_sigmoid(x.symbol, alpha=1 / 6, beta=0.5)
    return F.elemwise_mul(x.symbol, gate, name=node.name)


@imports("Swish")
def swish(node: OnnxNode, x: Value) -> Any:
    """``x sigmoid(alpha x)``."""
    gate = F.sigmoid(x.symbol * node.get("alpha", 1.0))
    return F.elemwise_mul(x.symbol, gate, name=node.name)


@imports("Softplus")
def softplus(node: OnnxNode, x: Value) -> Any:
    """``log(1 + exp(x))``."""
    return F.Activation(x.symbol, act_type="softrelu", name=node.name)


@imports("Mish")
def mish(node: OnnxNode, x: Value) -> Any:
    """``x tanh(softplus(x))``."""
    gate = F.tanh(F.Activation(x.symbol, act_type="softrelu"))
    return F.elemwise_mul(x.symbol, gate, name=node.name)


@imports("Gelu")
def gelu(node: OnnxNode, x: Value) -> Any:
    """``x Phi(x)``, exact or by tanh."""
    if node.get("approximate", "none") == "none":
        return F.LeakyReLU(x.symbol, act_type="gelu", name=node.name)
    inner = (x.symbol + F.square(x.symbol) * x.symbol * 0.044715) * math.sqrt(2 / math.pi)
    return F.elemwise_mul(x.symbol * 0.5, F.tanh(inner) + 1, name=node.name)


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


@imports("Dropout")
def dropout(node: OnnxNode, x: Value, ratio: Value | None = None, mode: Value | None = None) -> Any:
    """Drop elements in training; a prediction passes them on."""
    is_training = mode is not None and bool(node.constant(mode, "training_mode"))
    if is_training and (ratio is None or float(node.constant(ratio, "ratio")) != 0):
        raise node.unsupported("is in training mode.")
    share = node.get("ratio", 0.5)
    if ratio is not None and ratio.constant is not None:
        share = float(ratio.constant)
    made = F.Dropout(x.symbol, p=share, name=node.name)
    kept = F.cast(F.ones_like(x.symbol), dtype="bool")
    return [made, kept][: len(node.output_names)]
