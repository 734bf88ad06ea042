"""Replace variables of a graph by entries of others; the graph itself is copied."""

from __future__ import annotations

from collections.abc import Mapping

from .graph import Graph
from .interpret import interpret
from .node import Entry, Node


def compose(graph: Graph, replacements: Mapping[str, Entry] | None = None) -> list[Entry]:
    """Return heads of a copy in which variables of these names are the given entries."""
    replacements = replacements or {}

    def feed(node: Node) -> Entry:
        return replacements.get(node.name) or Entry(node.copy(()))

    def apply(node: Node, inputs: list[Entry]) -> list[Entry]:
        kept = [
            Entry(new.node, new.index, old.version) if new.version != old.version else new
            for new, old in zip(inputs, node.inputs, strict=True)
        ]
        made = node.copy(kept)
        return [Entry(made, i) for i in range(node.outputs)]

    return interpret(graph, feed, apply)
