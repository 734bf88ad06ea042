"""Narrow the 32-bit sums of 8-bit layers while they are computed.

    requantize(quantized_conv(x, w, b, ..))             =>  Q(x, w, b, ..)
    requantize(quantized_fully_connected(x, w, b, ..))  =>  D(x, w, b, ..)

Q and D are `_fused_quantized_conv` and `_fused_quantized_fully_connected`. Only calibrated ranges
are fused: others follow from the sums, which must be known first.
"""

from __future__ import annotations

from ...ops.fused.quantized_layers import fused_quantized_conv, fused_quantized_fully_connected
from ...ops.quantization.conversions import requantize
from ...ops.quantization.layers import quantized_conv, quantized_fully_connected
from ..node import Node
from ..patterns import Match, Pattern, Rule, make_node, named_inputs, rewrite
from ..typed import TypedGraph

FUSED = {
    quantized_conv: fused_quantized_conv,
    quantized_fully_connected: fused_quantized_fully_connected,
}


def _fuse(match: Match) -> Node | None:
    node, layer = match.root, match["layer"]
    if node.typed["min_calib_range"] is None or node.typed["max_calib_range"] is None:
        return None
    if any(e.node is not layer for e in node.inputs) or len(layer.typed.get("kernel", (1, 1))) != 2:
        return None
    if layer.typed.get("layout") not in (None, "NCHW"):
        return None
    attrs = {**layer.typed, **node.typed}
    return make_node(FUSED[layer.operator], node.name, named_inputs(layer), attrs)


RULES = [
    Rule(
        "fuse_requantize",
        Pattern(requantize, data=Pattern(tuple(FUSED), "layer", alone=True)),
        _fuse,
    )
]


def fuse_quantized(graph: TypedGraph) -> TypedGraph:
    """Let 8-bit layers narrow their results."""
    return rewrite(graph, RULES)
