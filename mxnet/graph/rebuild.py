"""`Rebuild`: the walk that builds a new graph from an old one, under all graph passes."""

from __future__ import annotations

from collections import Counter

from .node import Entry, Node
from .typed import TensorType, TypedGraph


class Rebuild:
    """What the entries of a graph become in the next one.

    A subclass visits the nodes, inputs first, keeps or replaces each, and counts in `applied`
    what it did. A node in `anchors` is new and runs in the place of the node it maps to; the
    types of new nodes go to `types` where they are known.
    """

    def __init__(self, graph: TypedGraph) -> None:
        self.graph = graph
        self.entries: dict[tuple[Node, int], Entry] = {}  # only those that have changed
        self.replaced: dict[Node, Node] = {}  # new nodes, and the old ones they stand for
        self.anchors: dict[Node, Node] = {}
        self.types: dict[Node, tuple[TensorType, ...]] = {}
        self.applied: Counter[str] = Counter()

    def mapped(self, entry: Entry) -> Entry:
        """Return what an entry of the old graph has become."""
        return self.entries.get((entry[0], entry[1]), entry)

    def updated(self, node: Node) -> Node:
        """Return a copy that reads what the inputs have become; the node itself if none has."""
        inputs = [self.mapped(e) for e in node.inputs]
        if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            return node
        return node.copy(inputs)

    def replace(self, old: Node, new: Node) -> None:
        """Let a new node stand for an old one, output by output."""
        self.replaced[new] = old
        for i in range(old.outputs):
            self.entries[old, i] = Entry(new, i)

    def keep(self, node: Node) -> None:
        """Keep a node, as a copy where its inputs have changed."""
        made = self.updated(node)
        if made is not node:
            self.replace(node, made)

    def result(self) -> TypedGraph:
        """Return the new graph."""
        return TypedGraph(
            [self.mapped(e) for e in self.graph.heads],
            self.graph.mode,
            self.graph.inputs,
            parent=self.graph,
            replaced=self.replaced,
            anchors=self.anchors,
            types=self.types,
            history=Counter(self.graph.history) + self.applied,
        )
