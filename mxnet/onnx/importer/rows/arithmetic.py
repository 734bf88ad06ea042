"""Import rows of arithmetic and comparison."""

from __future__ import annotations

from typing import Any

from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value

BINARY = {
    "Add": F.broadcast_add,
    "Sub": F.broadcast_sub,
    "Mul": F.broadcast_mul,
    "Div": F.broadcast_div,
}
COMPARISONS = {
    "Equal": F.broadcast_equal,
    "Greater": F.broadcast_greater,
    "GreaterOrEqual": F.broadcast_greater_equal,
    "Less": F.broadcast_lesser,
    "LessOrEqual": F.broadcast_lesser_equal,
    "And": F.broadcast_logical_and,
    "Or": F.broadcast_logical_or,
    "Xor": F.broadcast_logical_xor,
}


def _aligned(node: OnnxNode, a: Value, b: Value) -> tuple[Any, Any]:
    """Return both symbols; before opset 7 the second starts at an axis that is given."""
    axis = node.get("axis")
    if node.opset >= 7 or not node.get("broadcast") or axis is None:
        return a.symbol, b.symbol
    missing = a.rank - axis - b.rank
    return a.symbol, F.reshape(b.symbol, shape=(0,) * b.rank + (1,) * missing)


def _binary(op_type: str, function: Any) -> None:
    @imports(op_type)
    def build(node: OnnxNode, a: Value, b: Value) -> Any:
        return function(*_aligned(node, a, b), name=node.name)


def _comparison(op_type: str, function: Any) -> None:
    @imports(op_type)
    def build(node: OnnxNode, a: Value, b: Value) -> Any:
        pair = _aligned(node, a, b)
        if a.is_bool:  # MXNet compares numbers
            pair = tuple(F.cast(x, dtype="int32") for x in pair)
        return F.cast(function(*pair), dtype="bool", name=node.name)


for _op_type, _function in BINARY.items():
    _binary(_op_type, _function)
for _op_type, _function in COMPARISONS.items():
    _comparison(_op_type, _function)


@imports("Pow")
def power(node: OnnxNode, a: Value, b: Value) -> Any:
    """Power; the result has the type of the base."""
    left, right = _aligned(node, a, b)
    if a.dtype == b.dtype:
        return F.broadcast_power(left, right, name=node.name)
    made = F.broadcast_power(F.cast(left, dtype="float64"), F.cast(right, dtype="float64"))
    return F.cast(made, dtype=a.dtype.name, name=node.name)


@imports("Mod")
def modulo(node: OnnxNode, a: Value, b: Value) -> Any:
    """Remainder with the sign of the divisor, or with ``fmod`` of the dividend."""
    function = F._internal._onnx_fmod if node.get("fmod", 0) else F._internal._onnx_mod
    return function(a.symbol, b.symbol, name=node.name)


def _folded(op_type: str, function: Any) -> None:
    @imports(op_type)
    def build(node: OnnxNode, *values: Value) -> Any:
        made = values[0].symbol
        for value in values[1:]:
            made = function(made, value.symbol)
        return F.identity(made, name=node.name)


_folded("Max", F.broadcast_maximum)
_folded("Min", F.broadcast_minimum)
_folded("Sum", F.broadcast_add)


@imports("Mean")
def mean(node: OnnxNode, *values: Value) -> Any:
    """Mean of all inputs."""
    made = values[0].symbol
    for value in values[1:]:
        made = F.broadcast_add(made, value.symbol)
    return F.identity(made / len(values), name=node.name)


@imports("Where")
def where(node: OnnxNode, condition: Value, x: Value, y: Value) -> Any:
    """Choose by a condition; all three are broadcast."""
    symbols = [v.symbol for v in (condition, x, y)]
    if condition.shape == x.shape == y.shape and x.shape is not None and not x.is_bool:
        return F.where(*symbols, name=node.name)
    return F._internal._npi_where(*symbols, name=node.name)


def _bitwise(op_type: str, function: Any) -> None:
    @imports(op_type)
    def build(node: OnnxNode, a: Value, b: Value) -> Any:
        return function(a.symbol, b.symbol, name=node.name)


_bitwise("BitwiseAnd", F._internal._npi_bitwise_and)
_bitwise("BitwiseOr", F._internal._npi_bitwise_or)
_bitwise("BitwiseXor", F._internal._npi_bitwise_xor)


@imports("BitwiseNot")
def bitwise_not(node: OnnxNode, x: Value) -> Any:
    """Invert all bits."""
    return F._internal._npi_bitwise_not(x.symbol, name=node.name)
