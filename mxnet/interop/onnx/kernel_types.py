"""Casts around nodes that runtimes support for fewer types than the ONNX standard.

ONNX Runtime, for instance, supports Conv and Erf only for float32, and not Add of 8-bit numbers. A
valid model in float64 or int8 would not load.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .library import load_onnx

__all__ = ["cast_to_kernel_types"]

FLOAT32_ONLY = frozenset(
    {
        *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "Celu", "Conv"),
        *("ConvTranspose", "Cosh", "Det", "Elu", "Erf", "GlobalAveragePool", "GlobalLpPool"),
        *("GlobalMaxPool", "GRU", "Hardmax", "HardSigmoid", "HardSwish", "InstanceNormalization"),
        *("LeakyRelu", "LpPool", "LRN", "LSTM", "MaxRoiPool", "Mean", "MeanVarianceNormalization"),
        *("Mish", "PRelu", "Resize", "RNN", "Selu", "Sinh", "Softplus", "Softsign", "Tan"),
        "ThresholdedRelu",
    }
)
NUMBERS = frozenset(
    {
        *("Add", "CumSum", "Div", "Einsum", "MatMul", "Mul", "Pow", "Range", "ReduceL1"),
        *("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd"),
        *("ReduceSum", "ReduceSumSquare", "Sub"),
    }
)


def cast_to_kernel_types(model: Any) -> None:
    """Insert casts into a model, in place, if runtimes lack a kernel."""
    opset = model.opset_import[0].version
    types = _value_types(model)
    for graph in _graphs(model.graph):
        nodes = [cast for node in graph.node for cast in _cast_node(node, types, opset)]
        del graph.node[:]
        graph.node.extend(nodes)


def _value_types(model: Any) -> dict[str, int]:
    """Return the element type of every value; the weights are left out of the inference."""
    onnx = load_onnx()
    bare = onnx.ModelProto()
    bare.ir_version = model.ir_version
    bare.opset_import.extend(model.opset_import)
    bare.graph.name = model.graph.name
    bare.graph.node.extend(model.graph.node)
    bare.graph.input.extend(model.graph.input)
    bare.graph.output.extend(model.graph.output)
    listed = {i.name for i in model.graph.input}
    bare.graph.input.extend(
        onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims))
        for t in model.graph.initializer
        if t.name not in listed
    )
    inferred = onnx.shape_inference.infer_shapes(bare)
    return {
        value.name: value.type.tensor_type.elem_type
        for graph in _graphs(inferred.graph)
        for values in (graph.input, graph.output, graph.value_info)
        for value in values
    }


def _graphs(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)
    yield graph


def _computed_as(op_type: str, dtype: int) -> int:
    """Return the type in which runtimes compute an operator for values of a type."""
    proto = load_onnx().TensorProto
    if op_type in FLOAT32_ONLY and dtype == proto.DOUBLE:
        return proto.FLOAT
    if op_type in NUMBERS and dtype in (proto.INT8, proto.UINT8, proto.INT16):
        return proto.INT32
    return dtype


def _cast_node(node: Any, types: dict[str, int], opset: int) -> list[Any]:
    """Return the replacement of a node: itself, or itself between casts."""
    if node.op_type not in FLOAT32_ONLY and node.op_type not in NUMBERS:
        return [node]
    onnx = load_onnx()
    schema = onnx.defs.get_schema(node.op_type, opset)
    before, after = [], []
    main = schema.inputs[0].type_str
    source = next((types.get(name, 0) for name in node.input if name), 0)
    target = _computed_as(node.op_type, source)
    if target == source:
        return [node]
    for at, name in enumerate(node.input):
        formal = schema.inputs[min(at, len(schema.inputs) - 1)]
        if name and formal.type_str == main and types.get(name) == source:
            node.input[at] = f"{node.name}_input{at}"
            before.append(onnx.helper.make_node("Cast", [name], [node.input[at]], to=target))
    for at, name in enumerate(node.output):
        formal = schema.outputs[min(at, len(schema.outputs) - 1)]
        if name and formal.type_str == main:
            node.output[at] = f"{node.name}_output{at}"
            after.append(onnx.helper.make_node("Cast", [node.output[at]], [name], to=source))
    for cast in (*before, *after):
        cast.name = f"{cast.output[0]}_Cast"
    return [*before, node, *after]
