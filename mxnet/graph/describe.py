"""A graph as text for people."""

from __future__ import annotations

from .graph import Graph
from .node import Entry, Node


def describe(graph: Graph) -> str:
    """Return one paragraph for each operator, in MXNet's wording."""
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
