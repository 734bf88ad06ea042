"""Keep calibrated 8-bit networks in 8 bits, with ranges that are known before anything runs.

    requantize(quantized_conv(x, w, b, ..))                       =>  C(x, w, b)
    requantize(quantized_elemwise_add(y, requantize(conv(..))))   =>  C(x, w, b, y)
    dequantize(requantize(quantized_fully_connected(x, ..)))      =>  D(x, w, b)
    quantize_v2(relu(dequantize(C(x, w, b))))                     =>  C(x, w, b)
    _sg_mkldnn_conv{Convolution, BatchNorm, Activation}(x, w, ..) =>  C(x, w, gamma, ..)

Calibrated nodes have constant ranges, so an 8-bit value needs no arrays for the ends of its range:
step and zero point are attributes of the operators in `ops/fused/int8` (C, D). What is not
calibrated stays as it is, and gets its inputs with their ranges.
"""

from __future__ import annotations

import torch

from ...ops.attributes import to_string
from ...ops.declare import Op
from ...ops.fused.int8.arrays import (
    SIGNED_ZERO,
    int8_add,
    int8_concat,
    int8_pooling,
    int8_relu,
)
from ...ops.fused.int8.layers import int8_convolution, int8_dense
from ...ops.quantization.conversions import (
    HALF_STEPS,
    STEPS,
    dequantize,
    quantize_v2,
    requantize,
)
from ...ops.quantization.elementwise import (
    quantized_act,
    quantized_elemwise_add,
    quantized_flatten,
    quantized_pooling,
)
from ...ops.quantization.joining import quantized_concat
from ...ops.quantization.layers import quantized_conv, quantized_fully_connected
from ...ops.tensor.shape_changing import flatten
from ..node import Node
from ..patterns import named_inputs
from ..typed import TypedGraph
from .held_layers import lower_held, rectifies
from .lower_int8 import NORMALIZED_ORDERS, Lowering, Made, Packed, Rule, Scale, calibrated_scale

LAYERS = {quantized_conv: int8_convolution, quantized_fully_connected: int8_dense}


def _quantize(walk: Lowering, node: Node) -> Made:
    scale = calibrated_scale(node.typed, HALF_STEPS, node.typed["out_type"])
    entry = node.inputs[0]
    if scale is None or walk.graph.type_of(entry).dtype not in (torch.float32, None):
        return None  # 8-bit numbers pass as they are
    return _round_in_layer(walk, node, scale) or walk.rounded(walk.mapped(entry), scale, node)


def _round_in_layer(walk: Lowering, node: Node, scale: Scale) -> Packed | None:
    """Let a layer round its result to the scale that it is rounded to after a relu."""
    entry, relu = node.inputs[0], False
    if rectifies(entry.node, scale.end) and walk.is_alone(entry.node):
        entry, relu = entry.node.inputs[0], True
    if entry.node.op is not dequantize or not walk.is_alone(entry.node):
        return None
    value = walk.value_at(entry.node.inputs[0])
    if value is None or value.layer is None:
        return None
    # The ends of an unsigned range may stand for a relu or a clip.
    if not value.zero and scale.end > value.end * (1 + 1e-6):
        return None
    layer = value.layer
    attrs = {**layer.typed, "relu": layer.typed["relu"] or relu or not value.zero}
    return walk.layer(layer.operator, named_inputs(layer), attrs, scale, node)


def _requantize(walk: Lowering, node: Node) -> Made:
    scale = calibrated_scale(node.typed, STEPS, node.typed["out_type"])
    maker = node.inputs[0].node
    if scale is None or any(e.node is not maker for e in node.inputs):
        return None
    if maker.op not in (*LAYERS, quantized_elemwise_add) or not walk.is_alone(maker):
        return None
    if maker.op is quantized_elemwise_add:
        return _add(walk, node, maker, scale)
    return _layer(walk, node, maker, scale)


def _layer(walk: Lowering, node: Node, maker: Node, scale: Scale) -> Made:
    data = walk.value_at(maker.inputs[0])
    if data is None or maker.typed.get("layout") not in NORMALIZED_ORDERS:
        return None
    inputs = {k: walk.mapped(e) for k, e in named_inputs(maker).items()}
    inputs["data"] = data.entry
    attrs = {**maker.typed, "data_step": data.step, "data_zero": data.zero}
    return walk.layer(LAYERS[maker.operator], inputs, attrs, scale, node)


def _add(walk: Lowering, node: Node, maker: Node, scale: Scale) -> Made:
    lhs, rhs = (walk.packed.get(e.node) for e in maker.inputs[:2])
    if lhs is None or rhs is None:
        return None
    for value, other in ((lhs, rhs), (rhs, lhs)):
        if value.layer is not None and _can_add(value, value.layer):
            return _add_to_layer(walk, node, value.layer, other, scale)
    attrs = {
        "lhs_step": lhs.step,
        "lhs_zero": lhs.zero,
        "step": scale.step,
        "rhs_step": rhs.step,
        "rhs_zero": rhs.zero,
        "zero": scale.zero,
    }
    inputs = {"lhs": lhs.entry, "rhs": rhs.entry}
    return Packed(walk.make(int8_add, node.name, inputs, attrs, node), *scale)


def _can_add(value: Packed, layer: Node) -> bool:
    """Return whether a layer made this value for an addition alone, without clipping it."""
    return (
        layer.op is int8_convolution
        and value.zero == SIGNED_ZERO
        and not layer.typed["adds"]
        and not layer.typed["relu"]
    )


def _add_to_layer(walk: Lowering, node: Node, layer: Node, other: Packed, scale: Scale) -> Packed:
    sums = {"adds": True, "other_step": other.step, "other_zero": other.zero}
    inputs = {**named_inputs(layer), "other": other.entry}
    return walk.layer(int8_convolution, inputs, {**layer.typed, **sums}, scale, node)


def _dequantize(walk: Lowering, node: Node) -> Made:
    value = walk.value_at(node.inputs[0])
    if value is None:
        return None
    layer = value.layer
    # The ends of an unsigned range may stand for a relu or a clip.
    if layer is None or layer.typed.get("adds") or value.zero != SIGNED_ZERO:
        return walk.real(value, node)
    return walk.real_layer(layer.operator, named_inputs(layer), layer.typed, node)


def _activate(walk: Lowering, node: Node) -> Made:
    value = walk.value_at(node.inputs[0])
    if value is None or node.typed["act_type"] != "relu":
        return None
    if value.zero == 0:
        return value._replace(layer=None)
    made = walk.make(int8_relu, node.name, {"data": value.entry}, {"zero": value.zero}, node)
    return Packed(made, value.step, value.zero, value.end)


def _pool(walk: Lowering, node: Node) -> Made:
    value = walk.value_at(node.inputs[0])
    if value is None or node.typed["layout"] not in NORMALIZED_ORDERS:
        return None
    if node.typed["pool_type"] not in ("max", "avg"):
        return None
    attrs = {**node.typed, "zero": value.zero}
    made = walk.make(int8_pooling, node.name, {"data": value.entry}, attrs, node)
    return Packed(made, value.step, value.zero, value.end)


def _flatten(walk: Lowering, node: Node) -> Made:
    value = walk.value_at(node.inputs[0])
    if value is None:
        return None
    made = walk.make(flatten, node.name, {"data": value.entry}, {}, node)
    return Packed(made, value.step, value.zero, value.end)


def _join(walk: Lowering, node: Node) -> Made:
    count = node.typed["num_args"]
    found = [walk.packed.get(e.node) for e in node.inputs[:count]]
    values = [v for v in found if v is not None]
    if len(values) < count:
        return None
    end = max(v.end for v in values)
    kind = "int8" if any(v.zero for v in values) else "uint8"
    scale = Scale(end / STEPS[kind], SIGNED_ZERO if kind == "int8" else 0, end)
    attrs = {
        "dim": node.typed["dim"],
        "steps": tuple(v.step for v in values),
        "zeros": tuple(v.zero for v in values),
        "step": scale.step,
        "zero": scale.zero,
    }
    given = {key: to_string(value) for key, value in attrs.items()}
    made = Node(int8_concat, node.name, {**given, "num_args": str(count)})
    made.inputs = [v.entry for v in values]
    return Packed(walk.place(made, node), *scale)


RULES: dict[Op, Rule] = {
    quantize_v2: _quantize,
    requantize: _requantize,
    dequantize: _dequantize,
    quantized_act: _activate,
    quantized_pooling: _pool,
    quantized_flatten: _flatten,
    quantized_concat: _join,
}


def _rule_of(op: Op) -> Rule | None:
    return lower_held if op.facts.holds_layer else RULES.get(op)


def fuse_quantized(graph: TypedGraph) -> TypedGraph:
    """Let calibrated 8-bit layers compute with known ranges."""
    if not any(node.op in RULES for node in graph.nodes):
        return graph
    return Lowering(graph, _rule_of).run()
