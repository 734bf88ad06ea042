"""Fuse layers as MXNet's oneDNN backend does: ``symbol.get_backend_symbol("MKLDNN")``.

Before: ``Convolution -> BatchNorm -> Activation``. After: one `_sg_mkldnn_conv` that holds the
three. The executor fuses by itself; these nodes are for programs that look for them, quantize them
or store them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ..graph import Entry, Graph, Node, interpret
from ..ops.declare import Op
from ..ops.nn.activation import activation, leaky_relu
from ..ops.nn.convolution import convolution
from ..ops.nn.dense import fully_connected
from ..ops.nn.normalization import batch_norm
from ..ops.nn.sequence import interleaved_matmul_selfatt_qk, interleaved_matmul_selfatt_valatt
from ..ops.tensor.arithmetic import elemwise_add
from ..ops.tensor.elementwise import absolute, clip, exp, sqrt, square
from .fused_layers import (
    fused_attention_scores,
    fused_attention_values,
    fused_convolution_layer,
    fused_dense_layer,
)

__all__ = ["fuse_layers"]

ACTIVATIONS = ("relu", "sigmoid", "tanh", "softrelu")
ATTENTION = {
    interleaved_matmul_selfatt_qk: (fused_attention_scores, "sg_mkldnn_selfatt_qk"),
    interleaved_matmul_selfatt_valatt: (fused_attention_values, "sg_mkldnn_selfatt_valatt"),
}
CURVES = (square, sqrt, exp, absolute)
Uses = Counter[tuple[Node, int]]


@dataclass
class _Layer:
    """A layer and the nodes that are fused into it, in order."""

    op: Op
    nodes: list[Node]
    name: str
    attrs: dict[str, str] = field(default_factory=dict)

    def add(self, node: Node, word: str, attribute: str, value: str = "true") -> None:
        """Take one more node into the layer."""
        self.nodes.append(node)
        self.name = f"{self.name}_{word}"
        self.attrs[attribute] = value


def fuse_layers(graph: Graph) -> list[Entry]:
    """Return the heads of a graph in which layers and what follows them are one node each."""
    uses: Uses = Counter((e.node, e.index) for n in graph.nodes for e in n.inputs)
    uses.update((e.node, e.index) for e in graph.heads)
    layers: dict[Node, _Layer] = {}
    taken: set[Node] = set()
    # The last layer of a sum takes it, so that earlier ones end before it.
    for node in reversed(graph.nodes):
        made = _layer_at(graph, node, uses, taken)
        if made is not None:
            taken.update(made.nodes)
            layers[made.nodes[-1]] = made
    return _rewritten(graph, layers)


def _layer_at(graph: Graph, node: Node, uses: Uses, taken: set[Node]) -> _Layer | None:
    def after(at: Node) -> Node | None:
        """Return the only reader of a node, unless another layer has it."""
        readers = graph.readers.get(at, [])
        if uses[at, 0] != 1 or len(readers) != 1:
            return None
        found = graph.nodes[readers[0]]
        return None if found in taken else found

    if node.op is fully_connected:
        made = _Layer(fused_dense_layer, [node], "sg_mkldnn_fully_connected")
        _follow_dense(made, after)
        return made
    if node.op in ATTENTION:
        return _attention(node)
    if node.op is convolution and node.typed["layout"] in (None, "NCHW", "NCDHW"):
        made = _Layer(fused_convolution_layer, [node], "sg_mkldnn_conv")
        _follow_convolution(made, after)
        return made
    return None


def _attention(node: Node) -> _Layer:
    op, name = ATTENTION[node.operator]
    off = {"enable_float_output": "False", "quantized": "False"}
    return _Layer(op, [node], name, {**off, "heads": str(node.typed["heads"])})


def _follow_dense(layer: _Layer, after: Callable[[Node], Node | None]) -> None:
    found = after(layer.nodes[-1])
    if found is not None and (_is_activation(found, "elu") or found.op in CURVES):
        layer.add(found, "eltwise", "with_eltwise", "True")


def _follow_convolution(layer: _Layer, after: Callable[[Node], Node | None]) -> None:
    found = after(layer.nodes[-1])
    if found is not None and _normalizes(found, layer.nodes[-1]):
        layer.add(found, "bn", "with_bn")
        found = after(found)
    if found is not None and _is_activation(found):
        layer.add(found, "act", "with_act")
        found = after(found)
    if found is not None and found.op is elemwise_add:
        layer.add(found, "add", "with_sum")
        found = after(found)
        if found is not None and _is_activation(found):
            layer.add(found, "act", "with_postsum_act")


def _normalizes(node: Node, layer: Node) -> bool:
    return node.op is batch_norm and node.outputs == 1 and node.inputs[0].node is layer


def _is_activation(node: Node, *more: str) -> bool:
    if node.op is activation:
        return node.typed["act_type"] in ACTIVATIONS
    if node.op is leaky_relu:
        return node.typed["act_type"] in ("leaky", "gelu", *more)
    return node.op is clip and node.typed["a_min"] == 0


def _rewritten(graph: Graph, layers: dict[Node, _Layer]) -> list[Entry]:
    inner = {node for layer in layers.values() for node in layer.nodes}
    values: dict[Node, list[Entry]] = {}
    numbers: Counter[str] = Counter()

    def current(entry: Entry) -> Entry:
        if entry.node.op is None:
            return entry
        return values[entry.node][entry.index]

    def apply(node: Node, inputs: list[Entry]) -> list[Entry]:
        layer = layers.get(node)
        if layer is not None:
            family = "_".join(layer.name.split("_")[:3])
            made = _fused(layer, numbers[family], current)
            numbers[family] += 1
        elif node in inner:
            made = node  # read by its own layer alone
        else:
            made = node.copy(inputs)
        values[node] = [Entry(made, i) for i in range(node.outputs)]
        return values[node]

    return interpret(graph, Entry, apply)


def _fused(layer: _Layer, number: int, current: Callable[[Entry], Entry]) -> Node:
    """Return the node of a layer; its graph has variables of its own, as the files of MXNet."""
    outside: list[Entry] = []

    def feed(entry: Entry) -> Entry:
        found = current(entry)
        outside.append(found)
        variable = Node(None, f"{found.node.output_names()[found.index]}{len(outside) - 1}")
        variable.version = found.node.version
        return Entry(variable)

    last: Node | None = None
    for before, node in zip([None, *layer.nodes], layer.nodes, strict=False):
        rest = [feed(e) for e in node.inputs if before is None or e.node is not before]
        # The layer's own value comes first: that of a sum may be on either side.
        last = node.copy(rest if last is None else [Entry(last), *rest])
    assert last is not None
    body = Graph([Entry(last)])
    return Node(layer.op, f"{layer.name}_{number}", layer.attrs, outside, subgraphs=(body,))
