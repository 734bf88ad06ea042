"""Put the layers that nodes hold (`Facts.holds_layer`) back into the graph, for prediction.

    _sg_mkldnn_conv{Convolution, BatchNorm, Activation}(x, ..)   =>   the three nodes

The passes that follow fold and fuse them as those of any other graph. 8-bit layers are left to
`fuse_quantized`.
"""

from __future__ import annotations

from ...ops.declare import Op
from ..node import Entry, Node
from ..rewrite import Match, Pattern, Rule, rewrite
from ..typed import TypedGraph


def _holds_layer(op: Op) -> bool:
    return op.facts.holds_layer


def _can_open(node: Node) -> bool:
    if node.typed.get("quantized") or len(node.subgraphs) != 1:
        return False
    body = node.subgraphs[0]
    is_single = len(body.heads) == 1 and body.heads[0].index == 0
    return is_single and len(body.variables) == len(node.inputs)


def _open(match: Match) -> Node:
    body = match.root.subgraphs[0]
    outer = dict(zip(body.variables, match.root.inputs, strict=True))
    made: dict[Node, Node] = {}
    for node in body.nodes:
        if node.op is not None:
            inputs = [outer.get(e.node) or Entry(made[e.node], e.index) for e in node.inputs]
            made[node] = node.copy(inputs)
    return made[body.heads[0].node]


RULES = [Rule("open_layers", Pattern(_holds_layer, when=_can_open), _open)]


def open_layers(graph: TypedGraph) -> TypedGraph:
    """Replace nodes that hold a layer by the nodes of the layer."""
    return rewrite(graph, RULES)
