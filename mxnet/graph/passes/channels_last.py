"""Compute two-dimensional convolutions of training with channels last in memory.

    Convolution(x, w, b)      =>      _convolution_channels_last(x, w, b)

oneDNN would bring the data of every convolution into its own order and the result back. Here what
follows keeps the order of the first convolution's result, so that only its data is copied.
"""

from __future__ import annotations

from ...ops.fused.channels_last import convolution_channels_last
from ...ops.nn.convolution import CHANNELS_LAST, convolution
from ..node import Node
from ..patterns import Match, Pattern, Rule, make_node, named_inputs, rewrite
from ..typed import TypedGraph


def _is_suitable(node: Node) -> bool:
    return len(node.typed["kernel"]) == 2 and node.typed["layout"] not in CHANNELS_LAST


def _lay_out(match: Match) -> Node:
    node = match.root
    return make_node(convolution_channels_last, node.name, named_inputs(node), node.typed)


RULES = [Rule("channels_last", Pattern(convolution, when=_is_suitable), _lay_out)]


def channels_last(graph: TypedGraph) -> TypedGraph:
    """Lay out the data and weights of convolutions with channels last."""
    return rewrite(graph, RULES)
