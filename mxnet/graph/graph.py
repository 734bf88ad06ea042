"""`Graph`: heads, and what follows from them in MXNet's order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from .node import Entry, Node, auxiliary_positions


def topological(heads: Sequence[Entry]) -> list[Node]:
    """Return all nodes below the heads, inputs before users, as a depth-first walk meets them.

    It is a loop, not a recursion: chains may be longer than Python's stack.
    """
    order: list[Node] = []
    seen: set[Node] = set()
    for head in heads:
        if head.node in seen:
            continue
        seen.add(head.node)
        stack = [(head.node, iter(head.node.inputs))]
        while stack:
            node, rest = stack[-1]
            for entry in rest:
                child = entry[0]
                if child in seen:
                    continue
                seen.add(child)
                if child.inputs:
                    stack.append((child, iter(child.inputs)))
                    break
                order.append(child)
            else:
                order.append(node)
                stack.pop()
    return order


class Graph:
    """Entries that are asked for, and everything they need. Plain data; nothing runs here."""

    backend: str | None = None  # the engine that runs it in inference, if a user chose one

    def __init__(self, heads: Sequence[Entry]) -> None:
        self.heads = list(heads)

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes in topological order, MXNet's own."""
        return topological(self.heads)

    @cached_property
    def position(self) -> dict[Node, int]:
        """Where each node stands in `nodes`."""
        return {node: i for i, node in enumerate(self.nodes)}

    @cached_property
    def readers(self) -> dict[Node, list[int]]:
        """Positions of the nodes that read some output of each node, once for each input."""
        found: dict[Node, list[int]] = {node: [] for node in self.nodes}
        for position, node in enumerate(self.nodes):
            for entry in node.inputs:
                found[entry[0]].append(position)
        return found

    @cached_property
    def variables(self) -> list[Node]:
        """All inputs, auxiliary states among them."""
        return [n for n in self.nodes if n.op is None]

    @cached_property
    def _auxiliary_set(self) -> set[Node]:
        found = set()
        positions: dict[tuple, list[int]] = {}  # equal nodes have them at equal places
        for node in self.nodes:
            op = node.op
            if op is None or not (op.has_aux or op.mutates or op.auxiliary_rule):
                continue
            entries = node.inputs
            key = (op, node.signature.key, len(entries))
            places = positions.get(key)
            if places is None:
                places = auxiliary_positions(node)
                if op.auxiliary_rule is None:
                    positions[key] = places
            found.update([e[0] for i in places if (e := entries[i])[0].op is None])
        return found

    @cached_property
    def arguments(self) -> list[Node]:
        """The inputs that are not auxiliary states."""
        kept = self._auxiliary_set
        return [n for n in self.variables if n not in kept]

    @cached_property
    def auxiliary(self) -> list[Node]:
        """The inputs that operators keep between calls and change in place."""
        kept = self._auxiliary_set
        return [n for n in self.variables if n in kept]

    def output_names(self) -> list[str]:
        """Return the names of the heads."""
        return [e.node.output_names()[e.index] for e in self.heads]
