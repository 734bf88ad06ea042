"""`Graph`: output entries (heads), nodes in MXNet's order, and traversals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from .node import Entry, Node, auxiliary_positions


def topological(heads: Sequence[Entry]) -> list[Node]:
    """Return all nodes that the heads depend on, inputs first, in depth-first order.

    Iterative, because chains may be longer than Python's stack.
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
    """Output entries (heads) and everything they depend on, as plain data."""

    backend: str | None = None  # engine selected by the user for inference, or None

    def __init__(self, heads: Sequence[Entry]) -> None:
        self.heads = list(heads)

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes in MXNet's topological order."""
        return topological(self.heads)

    @cached_property
    def position(self) -> dict[Node, int]:
        """The index of each node in `nodes`."""
        return {node: i for i, node in enumerate(self.nodes)}

    @cached_property
    def consumers(self) -> dict[Node, list[int]]:
        """Positions of the consumers of each node, once per input."""
        consumers: dict[Node, list[int]] = {node: [] for node in self.nodes}
        for position, node in enumerate(self.nodes):
            for entry in node.inputs:
                consumers[entry[0]].append(position)
        return consumers

    @cached_property
    def variables(self) -> list[Node]:
        """All inputs, including auxiliary states."""
        return [n for n in self.nodes if n.op is None]

    @cached_property
    def _auxiliary_set(self) -> set[Node]:
        states = set()
        positions: dict[tuple[int, int], list[int]] = {}  # by signature and number of inputs
        for node in self.nodes:
            op = node.op
            if op is None or not (op.has_aux or op.mutates or op.auxiliary_rule):
                continue
            entries = node.inputs
            key = (node.signature.key, len(entries))
            indices = positions.get(key)
            if indices is None:
                indices = auxiliary_positions(node)
                if op.auxiliary_rule is None:
                    positions[key] = indices
            states.update([e[0] for i in indices if (e := entries[i])[0].op is None])
        return states

    @cached_property
    def arguments(self) -> list[Node]:
        """The inputs that are not auxiliary states."""
        states = self._auxiliary_set
        return [n for n in self.variables if n not in states]

    @cached_property
    def auxiliary(self) -> list[Node]:
        """The auxiliary states: inputs that operators mutate."""
        states = self._auxiliary_set
        return [n for n in self.variables if n in states]

    def output_names(self) -> list[str]:
        """Return the names of the heads."""
        return [e.node.output_names()[e.index] for e in self.heads]


Value = TypeVar("Value")


def interpret(
    graph: Graph,
    feed: Callable[[Node], Value],
    apply: Callable[[Node, list[Value]], Sequence[Value]],
) -> list[Value]:
    """Return the values of the heads.

    `feed` returns a variable's value; `apply` takes a node and the values of its inputs and returns
    one value for each visible output. Values may be tensors (execution), symbols (composition) or
    text (description).
    """
    values: dict[Node, Sequence[Value]] = {}
    for node in graph.nodes:
        if node.op is None:
            values[node] = (feed(node),)
        else:
            values[node] = apply(node, [values[e.node][e.index] for e in node.inputs])
    return [values[e.node][e.index] for e in graph.heads]


def compose(graph: Graph, replacements: Mapping[str, Entry] | None = None) -> list[Entry]:
    """Return the heads of a copy with variables replaced by entries, by name."""
    replacements = replacements or {}

    def feed(node: Node) -> Entry:
        return replacements.get(node.name) or Entry(node.copy(()))

    def apply(node: Node, inputs: list[Entry]) -> list[Entry]:
        entries = [
            Entry(new.node, new.index, old.version) if new.version != old.version else new
            for new, old in zip(inputs, node.inputs, strict=True)
        ]
        copy = node.copy(entries)
        return [Entry(copy, i) for i in range(node.outputs)]

    return interpret(graph, feed, apply)


MARK = "__subgraph_name__"


class Subgraph(NamedTuple):
    """The graph of a body, and the outer entry of each of its variables."""

    graph: Graph
    sources: list[Entry | None]

    def position(self, node: Node) -> int | None:
        """Return the index of a variable among the subgraph's inputs."""
        return next((i for i, n in enumerate(self.graph.variables) if n is node), None)


def extract_subgraph(heads: Sequence[Entry], name: str) -> Subgraph:
    """Extract the nodes marked with `name` as a subgraph.

    Outer entries become variables. Variables created inside have None as source, to be filled in by
    the caller.
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
            variable = Node(None, entry.node.output_names()[entry.index])
            outer[key] = Entry(variable)
            sources[variable] = entry
        return outer[key]

    for node in Graph(heads).nodes:
        if node in inside:
            # A variable is not copied, so that its creator can identify it.
            copies[node] = node.copy([inner(e) for e in node.inputs]) if node.op else node
    graph = Graph([inner(e) for e in heads])
    return Subgraph(graph, [sources.get(n) for n in graph.variables])


def describe(graph: Graph) -> str:
    """Return one paragraph for each operator, in MXNet's format."""
    if len(graph.heads) == len(graph.nodes) == 1 and graph.nodes[0].op is None:
        return f"Variable:{graph.nodes[0].name}\n"
    lines = ["Symbol Outputs:"]
    lines += [f"\toutput[{i}]={e.node.name}({e.index})" for i, e in enumerate(graph.heads)]
    for node in graph.nodes:
        lines += [f"Variable:{node.name}"] if node.op is None else _paragraph(node)
    return "\n".join(lines) + "\n"


def _paragraph(node: Node) -> list[str]:
    assert node.op is not None
    lines = ["-" * 20, f"Op:{node.op.name}, Name={node.name}", "Inputs:"]
    lines += [f"\targ[{i}]={_source(e)}" for i, e in enumerate(node.inputs)]
    attributes = node.all_attributes()
    if attributes:
        lines += ["Attrs:", *(f"\t{k}={attributes[k]}" for k in sorted(attributes))]
    return lines


def _source(entry: Entry) -> str:
    version = f" version={entry.version}" if entry.node.op is None else ""
    return f"{entry.node.name}({entry.index}){version}"
