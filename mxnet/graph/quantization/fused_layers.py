"""Layers as nodes with subgraphs, as in MXNet's oneDNN backend.

    Convolution(x, ..) -> BatchNorm -> Activation      <=>      _sg_mkldnn_conv{the three}(x, ..)

`fuse_layers` is ``symbol.get_backend_symbol("MKLDNN")``. The executor fuses operators itself; these
nodes are for programs that use, quantize or save them. For inference `open_layers` replaces them by
the original nodes, which the usual passes fuse. 8-bit layers are handled by `lowering`, which
splits them by `take_apart`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ...ops.declare import Op
from ...ops.fused.convolution import NORM
from ...ops.nn.activation import activation, leaky_relu
from ...ops.nn.convolution import convolution
from ...ops.nn.dense import fully_connected
from ...ops.nn.normalization import batch_norm
from ...ops.nn.sequence import interleaved_matmul_selfatt_qk, interleaved_matmul_selfatt_valatt
from ...ops.quantization.subgraph_layers import (
    fused_attention_scores,
    fused_attention_values,
    fused_convolution_layer,
    fused_dense_layer,
)
from ...ops.tensor.arithmetic import elemwise_add
from ...ops.tensor.elementwise import absolute, clip, exp, sqrt, square
from .. import Entry, Graph, Node, interpret
from ..rewrite import Match, Pattern, Replace, Rule, named_inputs, rewrite
from ..typed_graph import INFERENCE, TypedGraph

ACTIVATIONS = ("relu", "sigmoid", "tanh", "softrelu")
ACTIVATING = (activation, leaky_relu, clip)
CURVES = (square, sqrt, exp, absolute)
# The operator of each layer's node, and its name prefix.
LAYERS = {
    convolution: (fused_convolution_layer, "sg_mkldnn_conv"),
    fully_connected: (fused_dense_layer, "sg_mkldnn_fully_connected"),
    interleaved_matmul_selfatt_qk: (fused_attention_scores, "sg_mkldnn_selfatt_qk"),
    interleaved_matmul_selfatt_valatt: (fused_attention_values, "sg_mkldnn_selfatt_valatt"),
}
RANGED = ("data", "weight", "bias")  # in the order of stored ranges


# -- fusing -----------------------------------------------------------------------------------


def fuse_layers(graph: Graph) -> list[Entry]:
    """Return the heads of a graph with layers and the following operators fused."""
    fusion = _Fusion()
    fused = rewrite(TypedGraph(graph.heads, INFERENCE), fusion.rules())
    numbers: Counter[str] = Counter()

    def apply(node: Node, inputs: list[Entry]) -> list[Entry]:
        is_layer = node in fusion.layers
        copy = _name_layer(node, inputs, numbers) if is_layer else node.copy(inputs)
        return [Entry(copy, i) for i in range(node.outputs)]

    return interpret(fused, Entry, apply)


class _Fusion:
    """The rules that fuse layers, and the created nodes."""

    def __init__(self) -> None:
        self.layers: set[Node] = set()

    def rules(self) -> list[Rule]:
        """Return the rules; a sum is fused into its last layer."""
        bare = self._layer(convolution)
        normalized = self._layer(convolution, "with_bn")
        activated = self._layer(convolution, "with_bn", "with_act")
        summed = self._layer(convolution, "with_bn", "with_act", "with_sum", needs="with_sum")
        dense = self._layer(fully_connected)
        is_activation = Pattern(ACTIVATING, when=_is_activation, data=normalized)
        is_curve = Pattern((*ACTIVATING, *CURVES), when=_is_curve, data=dense)
        post_sum = Pattern(ACTIVATING, when=_is_activation, data=summed)
        one_output = Pattern(batch_norm, when=lambda node: node.outputs == 1, data=bare)
        return [
            Rule("fuse_layer", Pattern(list(LAYERS), when=_can_hold), self._start),
            Rule("fuse_layer", one_output, self._take("bn", "with_bn")),
            Rule("fuse_layer", is_activation, self._take("act", "with_act")),
            Rule("fuse_layer", is_curve, self._take("eltwise", "with_eltwise", "True")),
            Rule("fuse_layer", post_sum, self._take("act", "with_postsum_act")),
            Rule("fuse_layer", Pattern(elemwise_add, rhs=activated), self._take("add", "with_sum")),
            Rule("fuse_layer", Pattern(elemwise_add, lhs=activated), self._take("add", "with_sum")),
        ]

    def _layer(self, layer: Op, *may_have: str, needs: str | None = None) -> Pattern:
        """Return the pattern of a fused layer with at most these operators."""

        def is_open(node: Node) -> bool:
            has_all = needs is None or needs in node.attrs
            return node in self.layers and has_all and node.attrs.keys() <= set(may_have)

        return Pattern(LAYERS[layer][0], "layer", alone=True, when=is_open)

    def _start(self, match: Match) -> Node:
        """Return a fused node that contains only the layer."""
        node = match.root
        op, name = LAYERS[node.operator]
        attrs = {}
        if "heads" in op.attributes:
            attrs = {"enable_float_output": "False", "quantized": "False"}
            attrs["heads"] = str(node.typed["heads"])
        return self._hold(Node(op, name, attrs, node.inputs), node.copy(_variables(node.inputs)))

    def _take(self, word: str, attribute: str, value: str = "true") -> Replace:
        """Return the function that adds a node to a fused layer."""

        def take(match: Match) -> Node:
            node, layer = match.root, match["layer"]
            rest = [e for e in node.inputs if e.node is not layer]
            # The layer's value is first; in a sum it may be either operand.
            last = node.copy([layer.subgraphs[0].heads[0], *_variables(rest)])
            attrs = {**layer.attrs, attribute: value}
            longer = Node(layer.op, f"{layer.name}_{word}", attrs, [*layer.inputs, *rest])
            return self._hold(longer, last)

        return take

    def _hold(self, layer: Node, last: Node) -> Node:
        layer.subgraphs = (Graph([Entry(last)]),)
        self.layers.add(layer)
        return layer


def _variables(entries: Sequence[Entry]) -> list[Entry]:
    return [Entry(Node(None, "")) for _ in entries]


def _can_hold(node: Node) -> bool:
    return node.op is not convolution or node.typed["layout"] in (None, "NCHW", "NCDHW")


def _is_activation(node: Node, *more: str) -> bool:
    if node.op is activation:
        return node.typed["act_type"] in ACTIVATIONS
    if node.op is leaky_relu:
        return node.typed["act_type"] in ("leaky", "gelu", *more)
    return node.op is clip and node.typed["a_min"] == 0


def _is_curve(node: Node) -> bool:
    return node.op in CURVES or _is_activation(node, "elu")


def _name_layer(node: Node, inputs: list[Entry], numbers: Counter[str]) -> Node:
    """Number a layer, and name the variables of its graph as in MXNet's files."""
    family = "_".join(node.name.split("_")[:3])
    name = f"{node.name}_{numbers[family]}"
    numbers[family] += 1
    pairs = zip(inputs, node.inputs, strict=True)
    inputs = [old if old.node.op is None else new for new, old in pairs]  # with their versions
    for i, (variable, entry) in enumerate(zip(node.subgraphs[0].variables, inputs, strict=True)):
        variable.name = f"{entry.node.output_names()[entry.index]}{i}"
        variable.version = entry.node.version
    return Node(node.op, name, node.attrs, inputs, subgraphs=node.subgraphs)


# -- conversion back
# ----------------------------------------------------------------------------------


def _can_open(node: Node) -> bool:
    if node.typed.get("quantized") or len(node.subgraphs) != 1:
        return False
    body = node.subgraphs[0]
    is_single = len(body.heads) == 1 and body.heads[0].index == 0
    return is_single and len(body.variables) == len(node.inputs)


def _open(match: Match) -> Node:
    body = match.root.subgraphs[0]
    outer = dict(zip(body.variables, match.root.inputs, strict=True))
    copies: dict[Node, Node] = {}
    for node in body.nodes:
        if node.op is not None:
            inputs = [outer.get(e.node) or Entry(copies[e.node], e.index) for e in node.inputs]
            copies[node] = node.copy(inputs)
    return copies[body.heads[0].node]


OPEN = [Rule("open_layers", Pattern(lambda op: op.facts.holds_layer, when=_can_open), _open)]


def open_layers(graph: TypedGraph) -> TypedGraph:
    """Replace fused nodes by the nodes of their subgraphs."""
    return rewrite(graph, OPEN)


# -- decomposition -----------------------------------------------------------------------------


class HeldLayer(NamedTuple):
    """A layer, its normalization, and the following functions.

    Inputs of a fused node are the inputs of its graph, then both ends of the range of each integer
    input: `outer` maps the graph's variables to entries, `ends` has the ranges.
    """

    layer: Node
    norm: Node | None
    rest: list[Node]
    outer: dict[Node, Entry]
    ends: list[Entry]

    def inputs(self) -> dict[str, Entry]:
        """Return the inputs of layer and normalization by name, with the ranges of weights."""
        entries = {name: self.outer[e.node] for name, e in named_inputs(self.layer).items()}
        if self.norm is not None:
            names = named_inputs(self.norm)
            entries.update({name: self.outer[names[name].node] for name in NORM})
        if self.has_integers:
            for i, name in enumerate(name for name in RANGED if name in entries):
                entries[f"min_{name}"], entries[f"max_{name}"] = self.ends[2 * i : 2 * i + 2]
        return entries

    @property
    def has_integers(self) -> bool:
        """Whether weights are integers, so that all inputs of the layer have ranges."""
        return self.layer.op is fully_connected and len(self.ends) == 2 * len(self.layer.inputs)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of layer and normalization."""
        attrs = {**self.layer.typed, "stored": self.has_integers}
        if self.norm is not None:
            attrs.update(normalized=True, eps=self.norm.typed["eps"])
            attrs["fix_gamma"] = self.norm.typed["fix_gamma"]
        return attrs

    def added(self, addition: Node) -> Entry:
        """Return the second operand of the addition, or None."""
        return next(self.outer[e.node] for e in addition.inputs if e.node in self.outer)


def take_apart(node: Node) -> HeldLayer | None:
    """Decompose a fused node; None if its graph is not the expected chain."""
    if len(node.subgraphs) != 1 or len(node.subgraphs[0].heads) != 1:
        return None
    body = node.subgraphs[0]
    count, chain = len(body.variables), [n for n in body.nodes if n.op is not None]
    if (
        not chain
        or chain[0].op not in (convolution, fully_connected)
        or body.heads[0][:2] != (chain[-1], 0)
    ):
        return None
    if len(node.inputs) < count or not all(_reads_once(b, a) for a, b in pairwise(chain)):
        return None
    norm = next((n for n in chain[1:2] if n.op is batch_norm), None)
    if not _is_complete(chain[0]) or (norm is not None and not _normalizes(norm, chain[0])):
        return None
    outer = dict(zip(body.variables, node.inputs, strict=False))
    rest = chain[1 if norm is None else 2 :]
    return HeldLayer(chain[0], norm, rest, outer, list(node.inputs[count:]))


def _is_complete(layer: Node) -> bool:
    return len(layer.inputs) == (2 if layer.typed["no_bias"] else 3)


def _normalizes(norm: Node, layer: Node) -> bool:
    """Return whether a normalization is over a layer's channels."""
    is_first = len(norm.inputs) == 5 and norm.inputs[0].node is layer
    return is_first and norm.typed["axis"] == 1


def _reads_once(node: Node, before: Node) -> bool:
    """Return whether a node's inputs are variables and, once, the previous result."""
    return [e[:2] for e in node.inputs if e.node.op is not None] == [(before, 0)]
