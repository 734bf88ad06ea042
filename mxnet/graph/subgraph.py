"""Extract the body of a loop or a branch from the graph that it was made in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .graph import Graph
from .node import Entry, Node

MARK = "__subgraph_name__"


class Subgraph(NamedTuple):
    """The graph of a body, and for each of its variables what it stands for outside."""

    graph: Graph
    sources: list[Entry | None]

    def position(self, node: Node) -> int | None:
        """Return the place of a variable among the subgraph's inputs."""
        return next((i for i, n in enumerate(self.graph.variables) if n is node), None)


def extract_subgraph(heads: Sequence[Entry], name: str) -> Subgraph:
    """Return the nodes marked with `name` as a graph of its own.

    What they use from outside becomes variables. Variables made inside are the body's own: their
    source is None for the caller to fill.
    """
    inside = {n for n in Graph(heads).nodes if n.extra.get(MARK) == name}
    outer: dict[tuple[Node, int], Entry] = {}
    copies: dict[Node, Node] = {}
    sources: dict[Node, Entry] = {}

    def inner(entry: Entry) -> Entry:
        if entry.node in inside:
            return Entry(copies[entry.node], entry.index, entry.version)
        key = (entry.node, entry.index)
        if key not in outer:
            made = Node(None, entry.node.output_names()[entry.index])
            outer[key] = Entry(made)
            sources[made] = entry
        return outer[key]

    for node in Graph(heads).nodes:
        if node in inside:
            # A variable stays the same object, so that its maker finds it again.
            copies[node] = node.copy([inner(e) for e in node.inputs]) if node.op else node
    graph = Graph([inner(e) for e in heads])
    return Subgraph(graph, [sources.get(n) for n in graph.variables])
