"""The pass `fuse_quantized`: calibrated 8-bit networks stay in 8 bits, with constant ranges.

    requantize(quantized_conv(x, w, b, ..))                       =>  C(x, w, b)
    requantize(quantized_elemwise_add(y, requantize(conv(..))))   =>  C(x, w, b, y)
    dequantize(requantize(quantized_fully_connected(x, ..)))      =>  D(x, w, b)
    quantize_v2(relu(dequantize(C(x, w, b))))                     =>  C(x, w, b)
    _sg_mkldnn_conv{Convolution, BatchNorm, Activation}(x, w, ..) =>  C(x, w, gamma, ..)

Calibrated nodes have constant ranges, so 8-bit values need no arrays of ranges: step and zero point
are attributes of the operators in `ops/quantization/int8.py` (C, D). Nodes without calibration are
kept, and get their inputs with ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from ...ops.attributes import to_string
from ...ops.declare import Epilogue, Op
from ...ops.nn.convolution import convolution
from ...ops.nn.dense import fully_connected
from ...ops.quantization.arrays import (
    quantized_act,
    quantized_concat,
    quantized_elemwise_add,
    quantized_flatten,
    quantized_pooling,
)
from ...ops.quantization.conversions import (
    HALF_STEPS,
    STEPS,
    EightBitOrAuto,
    chosen_type,
    dequantize,
    quantize_v2,
    requantize,
)
from ...ops.quantization.int8 import (
    SIGNED_ZERO,
    int8_add,
    int8_concat,
    int8_convolution,
    int8_dense,
    int8_dequantize,
    int8_pooling,
    int8_quantize,
    int8_relu,
    int8_with_range,
)
from ...ops.quantization.layers import quantized_conv, quantized_fully_connected
from ...ops.tensor.arithmetic import elemwise_add
from ...ops.tensor.shape_changing import flatten
from ..node import Entry, Node
from ..rewrite import Rebuild, make_node, named_inputs
from ..typed_graph import TypedGraph
from .fused_layers import HeldLayer, take_apart

NORMALIZED_ORDERS = (None, "NCHW")


class Packed(NamedTuple):
    """An 8-bit value of the new graph: uint8 with a constant step and zero point.

    `layer` is the layer that computes it, if the value has no other consumer. `low` is the lower
    end of the range of an unsigned value.
    """

    entry: Entry
    step: float
    zero: int
    end: float
    layer: Node | None = None
    low: float = 0.0

    @property
    def out_type(self) -> str:
        """The data type in MXNet's operators."""
        return "int8" if self.zero else "uint8"


class Scale(NamedTuple):
    """A calibrated range and its number of steps."""

    step: float
    zero: int
    end: float


def calibrated_scale(
    attrs: dict[str, Any], steps: Mapping[str, float], out_type: EightBitOrAuto
) -> Scale | None:
    """Return the scale of a node with a calibrated range."""
    low, high = attrs["min_calib_range"], attrs["max_calib_range"]
    if low is None or high is None:
        return None
    end = max(abs(low), abs(high))
    if not 0 < end < float("inf"):
        return None
    kind = chosen_type(out_type, low)
    return Scale(end / steps[kind], SIGNED_ZERO if kind == "int8" else 0, end)


Lowered = Packed | Entry | None
LowerRule = Callable[["Lowering", Node], Lowered]


class Lowering(Rebuild):
    """A traversal with rules that keep values in 8 bits.

    A rule returns the replacement of a node: an 8-bit value, an entry of the new graph, or None to
    keep the node.
    """

    def __init__(self, graph: TypedGraph, rule_of: Callable[[Op], LowerRule | None]) -> None:
        super().__init__(graph)
        self.rule_of = rule_of
        self.packed: dict[Node, Packed] = {}

    def run(self) -> TypedGraph:
        """Return the new graph."""
        for node in self.graph.nodes:
            if node.op is not None:
                self._visit(node)
        if not self.anchors:
            return self.graph
        self.applied["fuse_quantized"] = len(self.anchors)
        lowered = self.result()
        _own_added_arrays(lowered)
        return lowered

    def _visit(self, node: Node) -> None:
        rule = self.rule_of(node.operator)
        value = None if rule is None else rule(self, node)
        if isinstance(value, Packed):
            self.packed[node] = value
        elif value is not None:
            self.entries[node, 0] = value
        else:
            self.keep(node)

    def mapped(self, entry: Entry) -> Entry:
        """Return the new entry, and for an 8-bit value its range."""
        key = (entry.node, entry.index)
        if key not in self.entries and entry.node in self.packed:
            value = self.packed[entry.node]
            attrs = {"end": value.end, "zero": value.zero, "out_type": value.out_type}
            attrs["low"] = value.low
            name = f"{entry.node.name}_with_range"
            ranged = self.make(int8_with_range, name, {"data": value.entry}, attrs, entry.node)
            for i in range(3):
                self.entries[entry.node, i] = Entry(ranged.node, i)
        return self.entries.get(key, entry)

    def make(
        self, op: Op, name: str, inputs: dict[str, Entry], attrs: dict[str, Any], anchor: Node
    ) -> Entry:
        """Create a node that runs at the position of `anchor`; return its first output."""
        return self.place(make_node(op, name, inputs, attrs), anchor)

    def place(self, node: Node, anchor: Node) -> Entry:
        """Add a node that runs at the position of `anchor`; return its first output."""
        node.source, node.extra = anchor.source, anchor.extra
        self.anchors[node] = anchor
        return Entry(node)

    def rounded(self, real: Entry, scale: Scale, anchor: Node) -> Packed:
        """Quantize real numbers to 8 bits."""
        attrs = {"step": scale.step, "zero": scale.zero}
        rounded = self.make(int8_quantize, anchor.name, {"data": real}, attrs, anchor)
        return Packed(rounded, *scale)

    def real(self, value: Packed, anchor: Node) -> Entry:
        """Dequantize an 8-bit value."""
        attrs = {"step": value.step, "zero": value.zero}
        return self.make(int8_dequantize, anchor.name, {"data": value.entry}, attrs, anchor)

    def layer(
        self, op: Op, inputs: dict[str, Entry], attrs: dict[str, Any], scale: Scale, anchor: Node
    ) -> Packed:
        """Return the 8-bit result of a layer."""
        ends = {"out_type": "uint8", "out_step": scale.step, "out_zero": scale.zero}
        entry = self.make(op, anchor.name, inputs, {**attrs, **ends}, anchor)
        return Packed(entry, *scale, entry.node if self.is_alone(anchor) else None)

    def real_layer(
        self, op: Op, inputs: dict[str, Entry], attrs: dict[str, Any], anchor: Node
    ) -> Entry:
        """Return the float result of a layer."""
        ends = {"out_type": "float32", "out_step": 1.0, "out_zero": 0}
        return self.make(op, anchor.name, inputs, {**attrs, **ends}, anchor)

    def value_at(self, entry: Entry) -> Packed | None:
        """Return the 8-bit value of an entry, or None."""
        return self.packed.get(entry.node) if entry.index == 0 else None

    def is_alone(self, node: Node) -> bool:
        """Return whether a result has only one consumer."""
        return self.graph.uses[node, 0] == 1


def _own_added_arrays(graph: TypedGraph) -> None:
    """Let convolutions overwrite the added array if it has no later consumers."""
    for node in graph.nodes:
        if node.op is int8_convolution and node.typed["adds"]:
            is_last = _is_last_consumer(graph, node, node.inputs[-1])
            node.set_attribute("owns_other", str(is_last))


def _is_last_consumer(graph: TypedGraph, consumer: Node, entry: Entry) -> bool:
    """Return whether all other consumers of an entry run earlier and return no view of it."""
    if not _is_fresh(entry.node) or (entry.node, entry.index) in graph.shown:
        return False
    consumers, mine = graph.consumers[entry.node], graph.position[consumer]
    others = [position for position in consumers if position != mine]
    # A layer must not write over its own data.
    is_only_added = len(others) == len(consumers) - 1
    return is_only_added and all(p < mine and _is_fresh(graph.nodes[p]) for p in others)


def _is_fresh(node: Node) -> bool:
    return node.op is not None and node.op.facts.fresh


LAYERS = {quantized_conv: int8_convolution, quantized_fully_connected: int8_dense}
HELD = {convolution: int8_convolution, fully_connected: int8_dense}


def _quantize(walk: Lowering, node: Node) -> Lowered:
    scale = calibrated_scale(node.typed, HALF_STEPS, node.typed["out_type"])
    entry = node.inputs[0]
    if scale is None or walk.graph.type_of(entry).dtype not in (torch.float32, None):
        return None  # 8-bit values are unchanged
    value = _round_in_layer(walk, node, scale) or walk.rounded(walk.mapped(entry), scale, node)
    return value if value.zero else value._replace(low=node.typed["min_calib_range"])


def _round_in_layer(walk: Lowering, node: Node, scale: Scale) -> Packed | None:
    """Make a layer quantize its result to the scale used after the following relu."""
    entry, relu = node.inputs[0], False
    if rectifies(entry.node, scale.end) and walk.is_alone(entry.node):
        entry, relu = entry.node.inputs[0], True
    if entry.node.op is not dequantize or not walk.is_alone(entry.node):
        return None
    value = walk.value_at(entry.node.inputs[0])
    if value is None or value.layer is None:
        return None
    # The ends of an unsigned range may represent a relu or a clip.
    if not value.zero and scale.end > value.end * (1 + 1e-6):
        return None
    layer = value.layer
    attrs = {**layer.typed, "relu": layer.typed["relu"] or relu or not value.zero}
    return walk.layer(layer.operator, named_inputs(layer), attrs, scale, node)


def _requantize(walk: Lowering, node: Node) -> Lowered:
    scale = calibrated_scale(node.typed, STEPS, node.typed["out_type"])
    maker = node.inputs[0].node
    if scale is None or any(e.node is not maker for e in node.inputs):
        return None
    if maker.op not in (*LAYERS, quantized_elemwise_add) or not walk.is_alone(maker):
        return None
    if maker.op is quantized_elemwise_add:
        return _add(walk, node, maker, scale)
    return _layer(walk, node, maker, scale)


def _layer(walk: Lowering, node: Node, maker: Node, scale: Scale) -> Lowered:
    data = walk.value_at(maker.inputs[0])
    if data is None or maker.typed.get("layout") not in NORMALIZED_ORDERS:
        return None
    inputs = {k: walk.mapped(e) for k, e in named_inputs(maker).items()}
    inputs["data"] = data.entry
    attrs = {**maker.typed, "data_step": data.step, "data_zero": data.zero}
    return walk.layer(LAYERS[maker.operator], inputs, attrs, scale, node)


def _add(walk: Lowering, node: Node, maker: Node, scale: Scale) -> Lowered:
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
    """Return whether a layer computed this value for an addition only, without clipping."""
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


def _dequantize(walk: Lowering, node: Node) -> Lowered:
    value = walk.value_at(node.inputs[0])
    if value is None:
        return None
    layer = value.layer
    # The ends of an unsigned range may represent a relu or a clip.
    if layer is None or layer.typed.get("adds") or value.zero != SIGNED_ZERO:
        return walk.real(value, node)
    return walk.real_layer(layer.operator, named_inputs(layer), layer.typed, node)


def _activate(walk: Lowering, node: Node) -> Lowered:
    value = walk.value_at(node.inputs[0])
    if value is None or node.typed["act_type"] != "relu":
        return None
    if value.zero == 0:
        return value._replace(layer=None)
    entry = walk.make(int8_relu, node.name, {"data": value.entry}, {"zero": value.zero}, node)
    return value._replace(entry=entry, layer=None)


def _pool(walk: Lowering, node: Node) -> Lowered:
    value = walk.value_at(node.inputs[0])
    if value is None or node.typed["layout"] not in NORMALIZED_ORDERS:
        return None
    if node.typed["pool_type"] not in ("max", "avg"):
        return None
    attrs = {**node.typed, "zero": value.zero}
    entry = walk.make(int8_pooling, node.name, {"data": value.entry}, attrs, node)
    return value._replace(entry=entry, layer=None)


def _flatten(walk: Lowering, node: Node) -> Lowered:
    value = walk.value_at(node.inputs[0])
    if value is None:
        return None
    entry = walk.make(flatten, node.name, {"data": value.entry}, {}, node)
    return value._replace(entry=entry, layer=None)


def _join(walk: Lowering, node: Node) -> Lowered:
    count = node.typed["num_args"]
    packed = [walk.packed.get(e.node) for e in node.inputs[:count]]
    values = [v for v in packed if v is not None]
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
    texts = {key: to_string(value) for key, value in attrs.items()}
    joined = Node(int8_concat, node.name, {**texts, "num_args": str(count)})
    joined.inputs = [v.entry for v in values]
    return Packed(walk.place(joined, node), *scale)


def rectifies(node: Node, end: float | None = None) -> bool:
    """Return whether a node is a relu on numbers below `end`."""
    epilogue = node.epilogue
    if epilogue is not None and epilogue.name == "clip":
        low, high = epilogue.constants
        return low == 0 and end is not None and high >= end * (1 - 1e-6)
    return epilogue == Epilogue("relu")


def _lower_held(walk: Lowering, node: Node) -> Lowered:
    """Extract a layer from its fused node if its data and result have known ranges."""
    parts = take_apart(node)
    if parts is None or not node.typed["quantized"]:
        return None
    is_real = node.typed["enable_float_output"]
    scale = None if is_real else calibrated_scale(node.typed, STEPS, "auto")
    data = walk.value_at(parts.outer[parts.layer.inputs[0].node])
    if data is None or (scale is None and not is_real):
        return None
    if parts.layer.typed.get("layout") not in NORMALIZED_ORDERS:
        return None
    attrs = {**parts.attributes(), "data_step": data.step, "data_zero": data.zero}
    attrs["channel_wise"] = node.typed["channel_wise_quantize"] is not False
    parameters = {
        k: e for k, e in parts.inputs().items() if k not in ("data", "min_data", "max_data")
    }
    inputs = {"data": data.entry, **{k: walk.mapped(e) for k, e in parameters.items()}}
    return _finish(walk, node, parts, inputs, attrs, scale)


def _finish(
    walk: Lowering,
    node: Node,
    parts: HeldLayer,
    inputs: dict[str, Entry],
    attrs: dict[str, Any],
    scale: Scale | None,
) -> Lowered:
    """Fold supported functions into a layer; the others run on real numbers."""
    op, rest = HELD[parts.layer.operator], list(parts.rest)
    end = None if scale is None else scale.end
    relu = bool(rest) and rectifies(rest[-1], end)
    inner = rest[:-1] if relu else rest
    if not inner:
        attrs["relu"] = relu
    elif scale is not None and [n.op for n in inner] == [elemwise_add] and op is int8_convolution:
        other = walk.value_at(parts.added(inner[0]))
        if other is not None:
            attrs.update(relu=relu, adds=True, other_step=other.step, other_zero=other.zero)
            inputs["other"], inner = other.entry, []
    if inner:
        real = _run_rest(walk, node, parts, walk.real_layer(op, inputs, attrs, node))
        return real if scale is None else walk.rounded(real, scale, node)
    if scale is None:
        return walk.real_layer(op, inputs, attrs, node)
    return walk.layer(op, inputs, attrs, scale, node)


def _run_rest(walk: Lowering, node: Node, parts: HeldLayer, real: Entry) -> Entry:
    """Return the result of the functions after a layer."""
    for each in parts.rest:
        inputs = []
        for entry in each.inputs:
            outer = parts.outer.get(entry.node)
            value = None if outer is None else walk.value_at(outer)
            if value is not None:
                inputs.append(walk.real(value, node))
            else:
                inputs.append(real if outer is None else walk.mapped(outer))
        real = walk.place(each.copy(inputs), node)
    return real


RULES: dict[Op, LowerRule] = {
    quantize_v2: _quantize,
    requantize: _requantize,
    dequantize: _dequantize,
    quantized_act: _activate,
    quantized_pooling: _pool,
    quantized_flatten: _flatten,
    quantized_concat: _join,
}


def _rule_of(op: Op) -> LowerRule | None:
    return _lower_held if op.facts.holds_layer else RULES.get(op)


def fuse_quantized(graph: TypedGraph) -> TypedGraph:
    """Use constant ranges in calibrated 8-bit layers."""
    if not any(node.op in RULES for node in graph.nodes):
        return graph
    return Lowering(graph, _rule_of).run()
