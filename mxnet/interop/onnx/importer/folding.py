"""Constant folding at import, within bounds.

Exporters compute shapes element by element. An element of a small array of integers is a number,
the name of a dynamic size, or None. A shape such as ``(batch, 6, 32)`` is thus known except for its
batch, and a reshape to it needs no computation when the model runs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..library import load_onnx
from .value import OnnxNode, Value

__all__ = ["Element", "elements_of", "fold", "infer_elements"]

Element = int | str | None
MAX_ELEMENTS = 64

MAX_INPUT, MAX_OUTPUT = 1 << 16, 1 << 20
# Operators whose result is at most as large as all inputs together, and others.
SHRINKING = {
    *("Abs", "Cast", "Ceil", "Concat", "Exp", "Flatten", "Floor", "Gather", "Identity", "Log"),
    *("Neg", "NonZero", "Not", "Reciprocal", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"),
    *("Reshape", "Round", "Shape", "Sign", "Size", "Slice", "Split", "Sqrt", "Squeeze"),
    *("Transpose", "Unsqueeze"),
}
BROADCASTING = {
    *("Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max"),
    *("Min", "Mod", "Mul", "Or", "Pow", "Sub", "Where", "Xor"),
}


def fold(node: Any, inputs: Sequence[Value | None], opset: int) -> list[np.ndarray] | None:
    """Return the outputs of a node whose inputs are small constants, else None."""
    values = [v for v in inputs if v is not None]
    if not values or any(v.constant is None or v.constant.size > MAX_INPUT for v in values):
        return None
    total = sum(np.asarray(v.constant).size for v in values)
    if (total if node.op_type in SHRINKING else _output_size(node, values)) > MAX_OUTPUT:
        return None
    by_name = {n: np.asarray(v.constant) for n, v in zip(node.input, inputs, strict=True) if v}
    return _evaluate(node, by_name, opset)


def _output_size(node: Any, values: Sequence[Value]) -> float:
    """Return the number of elements of the result, infinity if unknown."""
    arrays = [np.asarray(v.constant) for v in values]
    try:
        if node.op_type in BROADCASTING:
            return math.prod(np.broadcast_shapes(*(a.shape for a in arrays)))
        if node.op_type == "ConstantOfShape":
            return math.prod(int(n) for n in arrays[0])
        if node.op_type == "Expand":
            return math.prod(np.broadcast_shapes(arrays[0].shape, tuple(map(int, arrays[1]))))
        if node.op_type == "Tile":
            return arrays[0].size * math.prod(int(n) for n in arrays[1])
        if node.op_type == "Range":
            start, stop, step = (float(a) for a in arrays)
            return max(math.ceil((stop - start) / step), 0)
    except (ValueError, ArithmeticError, TypeError):
        pass
    return math.inf


def _evaluate(node: Any, feed: Mapping[str, np.ndarray], opset: int) -> list[np.ndarray] | None:
    onnx = load_onnx()
    from onnx.reference import ReferenceEvaluator

    helper = onnx.helper
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feed.items()
    ]
    results = [onnx.ValueInfoProto(name=n) for n in node.output if n]
    graph = helper.make_graph([node], "constant", infos, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        return [np.asarray(a) for a in ReferenceEvaluator(model).run(None, dict(feed))]
    except Exception:  # if the evaluator fails, the node is built as symbols
        return None


# -- elements -------------------------------------------------------------------------------


def elements_of(value: Value | None) -> tuple[Element, ...] | None:
    """Return the elements of a value of at most one axis, or None if none is known."""
    if not isinstance(value, Value):
        return None
    if value.constant is not None:
        array = np.asarray(value.constant)
        if array.ndim > 1 or array.dtype.kind not in "iu" or array.size > MAX_ELEMENTS:
            return None
        return tuple(int(n) for n in array.ravel())
    return value.elements


def infer_elements(node: OnnxNode, inputs: Sequence[Value | None]) -> tuple[Element, ...] | None:
    """Return the known elements of a node's first output, or None if none is known."""
    rule = RULES.get(node.op_type)
    if rule is None:
        return None
    if node.op_type == "Shape":
        return _shape(node, inputs[0])
    elements = [elements_of(v) for v in inputs]
    if not elements or elements[0] is None:
        return None
    result = rule(node, *elements)
    return None if result is None or len(result) > MAX_ELEMENTS else result


def _shape(node: OnnxNode, x: Any) -> tuple[Element, ...] | None:
    if x is None or x.shape is None:
        return None
    names: Any = node.importer.dims.get(x.name, x.shape)
    if len(names) != len(x.shape):
        names = x.shape
    sizes = [n if size is None else size for size, n in zip(x.shape, names, strict=True)]
    return tuple(sizes[slice(node.get("start"), node.get("end"))])


def _same(node: OnnxNode, x: Any, *_: Any) -> Any:
    return x


def _gather(node: OnnxNode, x: Any, indices: Any) -> Any:
    if indices is None or any(not isinstance(p, int) or not -len(x) <= p < len(x) for p in indices):
        return None
    return tuple(x[p] for p in indices)


def _slice(node: OnnxNode, x: Any, *rest: Any) -> Any:
    if rest:
        bounds = [*rest, *[None] * 4][:4]
    else:
        bounds = [node.get("starts"), node.get("ends"), node.get("axes"), None]
    starts, ends, _, steps = bounds
    numbers = [b for b in (starts, ends, steps or (1,)) if b is not None]
    if len(numbers) < 3 or any(len(b) != 1 or not isinstance(b[0], int) for b in numbers):
        return None
    return x[slice(numbers[0][0], numbers[1][0], numbers[2][0])]


def _concat(node: OnnxNode, *parts: Any) -> Any:
    return None if None in parts else tuple(e for p in parts for e in p)


def _arithmetic(function: Callable[[int, int], int], neutral: int) -> Callable[..., Any]:
    def rule(node: OnnxNode, x: Any, y: Any) -> Any:
        if y is None or (len(x) != len(y) and 1 not in (len(x), len(y))):
            return None
        size = max(len(x), len(y)) if x and y else 0
        pairs = zip((x * size)[:size], (y * size)[:size], strict=True)
        return tuple(_apply(function, neutral, a, b) for a, b in pairs)

    return rule


def _apply(function: Callable, neutral: int, a: Element, b: Element) -> Element:
    if isinstance(a, int) and isinstance(b, int):
        return None if function is _divide and b == 0 else function(a, b)
    return a if b == neutral else None


def _divide(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)  # ONNX rounds toward 0


RULES: dict[str, Callable[..., Any]] = {
    "Shape": _shape,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Cast": _same,
    "Identity": _same,
    "Squeeze": _same,
    "Unsqueeze": _same,
    "Add": _arithmetic(operator.add, 0),
    "Sub": _arithmetic(operator.sub, 0),
    "Mul": _arithmetic(operator.mul, 1),
    "Div": _arithmetic(_divide, 1),
}
