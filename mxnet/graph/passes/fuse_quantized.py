"""Keep calibrated 8-bit networks in 8 bits, with ranges that are known before anything runs.

    requantize(quantized_conv(x, w, b, ..))                       =>  C(x, w, b)
    requantize(quantized_elemwise_add(y, requantize(conv(..))))   =>  C(x, w, b, y)
    dequantize(requantize(quantized_fully_connected(x, ..)))      =>  D(x, w, b)

Calibrated nodes have constant ranges, so an 8-bit value needs no arrays for the ends of its range:
step and zero point are attributes of the operators in `ops/fused/int8` (C, D). What is not
calibrated stays as it is, and gets its inputs with their ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from ...ops.attributes import to_string
from ...ops.declare import Op
from ...ops.fused.int8.arrays import (
    SIGNED_ZERO,
    int8_add,
    int8_concat,
    int8_dequantize,
    int8_pooling,
    int8_quantize,
    int8_relu,
    int8_with_range,
)
from ...ops.fused.int8.layers import int8_convolution, int8_dense
from ...ops.quantization.conversions import (
    HALF_STEPS,
    STEPS,
    _chosen,
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
from ...ops.tensor.shaping.shape_changing import flatten
from ..node import Entry, Node
from ..patterns import make_node, named_inputs
from ..typed import TypedGraph

LAYERS = {quantized_conv: int8_convolution, quantized_fully_connected: int8_dense}
NORMALIZED_ORDERS = (None, "NCHW")


class Packed(NamedTuple):
    """An 8-bit value of the new graph: uint8 with a known step and zero point.

    `layer` is the layer that computes it, where the value has no other reader to mind.
    """

    entry: Entry
    step: float
    zero: int
    end: float
    layer: Node | None = None

    @property
    def out_type(self) -> str:
        """The type that MXNet's operators keep it in."""
        return "int8" if self.zero else "uint8"


class Scale(NamedTuple):
    """How real numbers become integers: a calibrated range and its steps."""

    step: float
    zero: int
    end: float


def calibrated_scale(attrs: dict[str, Any], steps: Mapping[str, float]) -> Scale | None:
    """Return the scale of a node with a calibrated range."""
    low, high = attrs["min_calib_range"], attrs["max_calib_range"]
    if low is None or high is None:
        return None
    end = max(abs(low), abs(high))
    if not 0 < end < float("inf"):
        return None
    kind = _chosen(attrs["out_type"], low)
    return Scale(end / steps[kind], SIGNED_ZERO if kind == "int8" else 0, end)


class _Lowering:
    """One walk over a graph that builds the next one."""

    def __init__(self, graph: TypedGraph) -> None:
        self.graph = graph
        self.entries: dict[tuple[Node, int], Entry] = {}
        self.packed: dict[Node, Packed] = {}
        self.replaced: dict[Node, Node] = {}
        self.anchors: dict[Node, Node] = {}

    def run(self) -> TypedGraph:
        for node in self.graph.nodes:
            if node.op is not None:
                self.visit(node)
        if not self.anchors:
            return self.graph
        history = {**self.graph.history, "fuse_quantized": len(self.anchors)}
        heads = [self.moved(e) for e in self.graph.heads]
        return TypedGraph(
            heads,
            self.graph.mode,
            self.graph.inputs,
            parent=self.graph,
            replaced=self.replaced,
            anchors=self.anchors,
            history=history,
        )

    def visit(self, node: Node) -> None:
        rule = RULES.get(node.operator)
        made = None if rule is None else rule(self, node)
        if isinstance(made, Packed):
            self.packed[node] = made
        elif made is not None:
            self.entries[node, 0] = made
        else:
            self.keep(node)

    def keep(self, node: Node) -> None:
        """Copy a node whose inputs have changed."""
        inputs = [self.moved(e) for e in node.inputs]
        if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            return
        made = node.copy(inputs)
        made.source = node.source
        self.replaced[made] = node
        for i in range(node.outputs):
            self.entries[node, i] = Entry(made, i)

    def moved(self, entry: Entry) -> Entry:
        """Return what an entry has become, with its range if it is an 8-bit value."""
        key = (entry.node, entry.index)
        if key not in self.entries and entry.node in self.packed:
            value = self.packed[entry.node]
            attrs = {"end": value.end, "zero": value.zero, "out_type": value.out_type}
            name = f"{entry.node.name}_with_range"
            made = self.make(int8_with_range, name, {"data": value.entry}, attrs, entry.node)
            for i in range(3):
                self.entries[entry.node, i] = Entry(made.node, i)
        return self.entries.get(key, entry)

    def make(
        self, op: Op, name: str, inputs: dict[str, Entry], attrs: dict[str, Any], anchor: Node
    ) -> Entry:
        """Return a node's first output; the node runs in the place of `anchor`."""
        node = make_node(op, name, inputs, attrs)
        node.source, node.extra = anchor.source, anchor.extra
        self.anchors[node] = anchor
        return Entry(node)

    def value_of(self, node: Node) -> Packed | None:
        """Return a node's data as an 8-bit value, if it has become one."""
        entry = node.inputs[0]
        return self.packed.get(entry.node) if entry.index == 0 else None

    def is_alone(self, node: Node) -> bool:
        """Return whether only one node reads a result."""
        return self.graph.uses[node, 0] == 1

    # -- rules --------------------------------------------------------------------------------

    def quantize(self, node: Node) -> Packed | None:
        found = calibrated_scale(node.typed, HALF_STEPS)
        if found is None:
            return None
        attrs = {"step": found.step, "zero": found.zero}
        inputs = {"data": self.moved(node.inputs[0])}
        return Packed(self.make(int8_quantize, node.name, inputs, attrs, node), *found)

    def requantize(self, node: Node) -> Packed | None:
        found, maker = calibrated_scale(node.typed, STEPS), node.inputs[0].node
        if found is None or any(e.node is not maker for e in node.inputs):
            return None
        if maker.op not in (*LAYERS, quantized_elemwise_add) or not self.is_alone(maker):
            return None
        if maker.op is quantized_elemwise_add:
            return self.add(node, maker, found)
        return self.layer(node, maker, found)

    def layer(self, node: Node, maker: Node, scale: Scale) -> Packed | None:
        data = self.value_of(maker)
        if data is None or maker.typed.get("layout") not in NORMALIZED_ORDERS:
            return None
        inputs = {k: self.moved(e) for k, e in named_inputs(maker).items()}
        inputs["data"] = data.entry
        attrs = {
            **maker.typed,
            "data_step": data.step,
            "data_zero": data.zero,
            "out_step": scale.step,
            "out_zero": scale.zero,
        }
        made = self.make(LAYERS[maker.operator], node.name, inputs, attrs, node)
        return Packed(made, *scale, made.node if self.is_alone(node) else None)

    def add(self, node: Node, maker: Node, scale: Scale) -> Packed | None:
        lhs, rhs = (self.packed.get(e.node) for e in maker.inputs[:2])
        if lhs is None or rhs is None:
            return None
        for value, other, entry in ((lhs, rhs, maker.inputs[1]), (rhs, lhs, maker.inputs[0])):
            if value.layer is not None and self.can_add(value, value.layer):
                made = self.add_to_layer(node, value.layer, other, scale)
                # The layer must not write over its own data.
                is_data = made.node.inputs[0] == other.entry
                owns = not is_data and self.is_last_reader(maker, entry.node)
                made.node.set_attribute("owns_other", str(owns))
                return Packed(made, *scale)
        attrs = {
            "lhs_step": lhs.step,
            "lhs_zero": lhs.zero,
            "step": scale.step,
            "rhs_step": rhs.step,
            "rhs_zero": rhs.zero,
            "zero": scale.zero,
        }
        inputs = {"lhs": lhs.entry, "rhs": rhs.entry}
        return Packed(self.make(int8_add, node.name, inputs, attrs, node), *scale)

    @staticmethod
    def can_add(value: Packed, layer: Node) -> bool:
        """Return whether a layer made this value for an addition alone, without clipping it."""
        return (
            layer.op is int8_convolution
            and value.zero == SIGNED_ZERO
            and not layer.typed["adds"]
            and not layer.typed["relu"]
        )

    def add_to_layer(self, node: Node, layer: Node, other: Packed, scale: Scale) -> Entry:
        attrs = {
            **layer.typed,
            "adds": True,
            "other_step": other.step,
            "other_zero": other.zero,
            "out_step": scale.step,
            "out_zero": scale.zero,
        }
        inputs = {**named_inputs(layer), "other": other.entry}
        return self.make(int8_convolution, node.name, inputs, attrs, node)

    def is_last_reader(self, addition: Node, node: Node) -> bool:
        """Return whether nothing reads a node's result after it is added.

        Layers that come before in the graph have read it by then.
        """
        if (node, 0) in self.graph.shown or node.op not in (quantize_v2, requantize):
            return False
        position, readers = self.graph.position, self.readers
        others = [n for n in readers[node] if n is not addition]
        # A layer runs in the place of the node that narrows its result.
        places = [position[n] for layer in others for n in (layer, *readers[layer])]
        return all(n.op in LAYERS for n in others) and max(places, default=0) < position[addition]

    @cached_property
    def readers(self) -> dict[Node, list[Node]]:
        """The nodes that read the first output of each node."""
        found: dict[Node, list[Node]] = {}
        for node in self.graph.nodes:
            for entry in node.inputs:
                if entry.index == 0:
                    found.setdefault(entry.node, []).append(node)
        return found

    def dequantize(self, node: Node) -> Entry | None:
        value = self.value_of(node)
        if value is None:
            return None
        layer = value.layer
        # The ends of an unsigned range may stand for a relu or a clip.
        if layer is None or layer.typed.get("adds") or value.zero != SIGNED_ZERO:
            attrs = {"step": value.step, "zero": value.zero}
            return self.make(int8_dequantize, node.name, {"data": value.entry}, attrs, node)
        attrs = {**layer.typed, "out_type": "float32", "out_step": 1.0, "out_zero": 0}
        return self.make(layer.operator, node.name, named_inputs(layer), attrs, node)

    def activate(self, node: Node) -> Packed | None:
        value = self.value_of(node)
        if value is None or node.typed["act_type"] != "relu":
            return None
        if value.zero == 0:
            return value._replace(layer=None)
        made = self.make(int8_relu, node.name, {"data": value.entry}, {"zero": value.zero}, node)
        return Packed(made, value.step, value.zero, value.end)

    def pool(self, node: Node) -> Packed | None:
        value = self.value_of(node)
        if value is None or node.typed["layout"] not in NORMALIZED_ORDERS:
            return None
        if node.typed["pool_type"] not in ("max", "avg"):
            return None
        attrs = {**node.typed, "zero": value.zero}
        made = self.make(int8_pooling, node.name, {"data": value.entry}, attrs, node)
        return Packed(made, value.step, value.zero, value.end)

    def flatten(self, node: Node) -> Packed | None:
        value = self.value_of(node)
        if value is None:
            return None
        made = self.make(flatten, node.name, {"data": value.entry}, {}, node)
        return Packed(made, value.step, value.zero, value.end)

    def join(self, node: Node) -> Packed | None:
        count = node.typed["num_args"]
        found = [self.packed.get(e.node) for e in node.inputs[:count]]
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
        made.source, made.extra = node.source, node.extra
        self.anchors[made] = node
        return Packed(Entry(made), *scale)


RULES: dict[Op, Callable[[_Lowering, Node], Packed | Entry | None]] = {
    quantize_v2: _Lowering.quantize,
    requantize: _Lowering.requantize,
    dequantize: _Lowering.dequantize,
    quantized_act: _Lowering.activate,
    quantized_pooling: _Lowering.pool,
    quantized_flatten: _Lowering.flatten,
    quantized_concat: _Lowering.join,
}


def fuse_quantized(graph: TypedGraph) -> TypedGraph:
    """Let calibrated 8-bit layers compute with known ranges."""
    if not any(node.op in RULES for node in graph.nodes):
        return graph
    return _Lowering(graph).run()
