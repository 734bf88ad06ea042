"""The one walk over a graph; the caller says what variables and nodes mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from .graph import Graph
from .node import Node

Value = TypeVar("Value")


def interpret(
    graph: Graph,
    feed: Callable[[Node], Value],
    apply: Callable[[Node, list[Value]], Sequence[Value]],
) -> list[Value]:
    """Return the values of the heads.

    `feed` gives a variable's value; `apply` takes a node and the values of its inputs and
    returns one value for each visible output. Tensors make it run, symbols compose, text explain.
    """
    values: dict[Node, Sequence[Value]] = {}
    for node in graph.nodes:
        if node.op is None:
            values[node] = (feed(node),)
        else:
            values[node] = apply(node, [values[e.node][e.index] for e in node.inputs])
    return [values[e.node][e.index] for e in graph.heads]
