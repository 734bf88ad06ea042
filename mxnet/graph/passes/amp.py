"""Leave out the casts that mixed precision put into a graph."""

from __future__ import annotations

from collections.abc import Sequence

from ...ops.tensor.passing import amp_cast, amp_multicast
from ..graph import Graph
from ..interpret import interpret
from ..node import Entry, Node

_CASTS = (amp_cast, amp_multicast)


def without_casts(graph: Graph) -> Sequence[Entry]:
    """``x -> amp_cast -> op``  =>  ``x -> op``; a cast that is itself a head stays."""
    if not any(n.op in _CASTS for n in graph.nodes):
        return graph.heads

    def apply(node: Node, inputs: list[Entry]) -> list[Entry]:
        if node.op in _CASTS:
            return inputs
        pairs = list(zip(inputs, node.inputs, strict=True))
        kept = [old if new[:2] == old[:2] else new for new, old in pairs]
        made = node if kept == list(node.inputs) else node.copy(kept)
        return [Entry(made, i) for i in range(node.outputs)]

    kept = interpret(graph, Entry, apply)
    return [
        old if old.node.op in _CASTS else new for old, new in zip(graph.heads, kept, strict=True)
    ]
