"""The walk that keeps 8-bit values in 8 bits, with ranges that are known before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...ops.declare import Op
from ...ops.fused.int8.arrays import (
    SIGNED_ZERO,
    int8_dequantize,
    int8_quantize,
    int8_with_range,
)
from ...ops.fused.int8.layers import int8_convolution
from ...ops.quantization.conversions import EightBitOrAuto, chosen_type
from ..node import Entry, Node
from ..rewrite import Rebuild, make_node
from ..typed import TypedGraph

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


Made = Packed | Entry | None
Rule = Callable[["Lowering", Node], Made]


class Lowering(Rebuild):
    """One walk that lets rules keep values in 8 bits.

    A rule returns what a node becomes: an 8-bit value, an entry of the new graph, or None where
    the node stays.
    """

    def __init__(self, graph: TypedGraph, rule_of: Callable[[Op], Rule | None]) -> None:
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
        made = self.result()
        _own_added_arrays(made)
        return made

    def _visit(self, node: Node) -> None:
        rule = self.rule_of(node.operator)
        made = None if rule is None else rule(self, node)
        if isinstance(made, Packed):
            self.packed[node] = made
        elif made is not None:
            self.entries[node, 0] = made
        else:
            self.keep(node)

    def mapped(self, entry: Entry) -> Entry:
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
        return self.place(make_node(op, name, inputs, attrs), anchor)

    def place(self, node: Node, anchor: Node) -> Entry:
        """Let a new node run in the place of `anchor`; return its first output."""
        node.source, node.extra = anchor.source, anchor.extra
        self.anchors[node] = anchor
        return Entry(node)

    def rounded(self, real: Entry, scale: Scale, anchor: Node) -> Packed:
        """Return real numbers in 8 bits."""
        attrs = {"step": scale.step, "zero": scale.zero}
        made = self.make(int8_quantize, anchor.name, {"data": real}, attrs, anchor)
        return Packed(made, *scale)

    def real(self, value: Packed, anchor: Node) -> Entry:
        """Return the real numbers of an 8-bit value."""
        attrs = {"step": value.step, "zero": value.zero}
        return self.make(int8_dequantize, anchor.name, {"data": value.entry}, attrs, anchor)

    def layer(
        self, op: Op, inputs: dict[str, Entry], attrs: dict[str, Any], scale: Scale, anchor: Node
    ) -> Packed:
        """Return the result of a layer in 8 bits."""
        ends = {"out_type": "uint8", "out_step": scale.step, "out_zero": scale.zero}
        made = self.make(op, anchor.name, inputs, {**attrs, **ends}, anchor)
        return Packed(made, *scale, made.node if self.is_alone(anchor) else None)

    def real_layer(
        self, op: Op, inputs: dict[str, Entry], attrs: dict[str, Any], anchor: Node
    ) -> Entry:
        """Return the result of a layer as real numbers."""
        ends = {"out_type": "float32", "out_step": 1.0, "out_zero": 0}
        return self.make(op, anchor.name, inputs, {**attrs, **ends}, anchor)

    def value_at(self, entry: Entry) -> Packed | None:
        """Return an entry as an 8-bit value, if it has become one."""
        return self.packed.get(entry.node) if entry.index == 0 else None

    def is_alone(self, node: Node) -> bool:
        """Return whether only one node reads a result."""
        return self.graph.uses[node, 0] == 1


def _own_added_arrays(graph: TypedGraph) -> None:
    """Let convolutions write over the array that they add, where nothing reads it afterward."""
    for node in graph.nodes:
        if node.op is int8_convolution and node.typed["adds"]:
            is_last = _is_last_reader(graph, node, node.inputs[-1])
            node.set_attribute("owns_other", str(is_last))


def _is_last_reader(graph: TypedGraph, reader: Node, entry: Entry) -> bool:
    """Return whether all others that read an entry have read it, and keep nothing of it."""
    if not _is_fresh(entry.node) or (entry.node, entry.index) in graph.shown:
        return False
    places, mine = graph.readers[entry.node], graph.position[reader]
    others = [place for place in places if place != mine]
    # A layer must not write over its own data.
    is_only_added = len(others) == len(places) - 1
    return is_only_added and all(p < mine and _is_fresh(graph.nodes[p]) for p in others)


def _is_fresh(node: Node) -> bool:
    return node.op is not None and node.op.facts.fresh
