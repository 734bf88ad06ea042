"""Import rows of arithmetic and comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value
from .axes import with_rank

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
    if not node.get("fmod", 0):
        return F.broadcast_mod(a.symbol, b.symbol, name=node.name)
    left = F.cast(a.symbol, dtype="float64") if not a.is_float else a.symbol
    right = F.cast(b.symbol, dtype="float64") if not b.is_float else b.symbol
    rest = F.broadcast_mul(F.sign(left), F.broadcast_mod(F.abs(left), F.abs(right)))
    return rest if a.is_float else F.cast(rest, dtype=a.dtype.name, name=node.name)


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
    dtype = node.output_dtype() or np.dtype("float32")
    chosen = F.cast(condition.symbol, dtype=dtype.name if dtype.kind != "b" else "int32")
    shapes = [v.shape for v in (condition, x, y)]
    if None not in shapes and all(None not in s for s in shapes):
        wanted = np.broadcast_shapes(*shapes)
        parts = [
            p if s == wanted else F.broadcast_to(with_rank(p, len(s), len(wanted)), shape=wanted)
            for p, s in zip((chosen, x.symbol, y.symbol), shapes, strict=True)
        ]
        return F.where(*parts, name=node.name)
    like = F.broadcast_add(F.broadcast_add(chosen, _zero(x, dtype)), _zero(y, dtype))
    parts = [F.broadcast_like(v, like) for v in (chosen, x.symbol, y.symbol)]
    return F.where(*parts, name=node.name)


def _zero(value: Value, dtype: np.dtype) -> Any:
    made = F.zeros_like(value.symbol)
    return F.cast(made, dtype="int32") if dtype.kind == "b" else made


def _bitwise(op_type: str, function: Any) -> None:
    @imports(op_type)
    def build(node: OnnxNode, a: Value, b: Value) -> Any:
        if not a.is_bool:
            raise node.unsupported("of whole numbers has no operator.")
        pair = (F.cast(x.symbol, dtype="int32") for x in (a, b))
        return F.cast(function(*pair), dtype="bool", name=node.name)


for _op_type in ("And", "Or", "Xor"):
    _bitwise(f"Bitwise{_op_type}", COMPARISONS[_op_type])
