"""Computes at import what follows from constants, within bounds: shapes are often computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..library import load_onnx
from .value import Value

__all__ = ["fold"]

MAX_INPUT, MAX_OUTPUT = 1 << 16, 1 << 20
# What cannot be larger than all its inputs together, and what can.
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
    given = [v for v in inputs if v is not None]
    if not given or any(v.constant is None or v.constant.size > MAX_INPUT for v in given):
        return None
    if node.op_type not in SHRINKING and _output_size(node, given) > MAX_OUTPUT:
        return None
    by_name = {n: np.asarray(v.constant) for n, v in zip(node.input, inputs, strict=True) if v}
    return _evaluate(node, by_name, opset)


def _output_size(node: Any, given: Sequence[Value]) -> float:
    """Return how many elements the result has, infinity if that is not clear beforehand."""
    arrays = [np.asarray(v.constant) for v in given]
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
    except Exception:  # whatever the evaluator lacks, the node is built as symbols instead
        return None
