"""Give a shape to operators without inputs that leave theirs to their readers.

    zeros(shape=(0, 4)) + x      =>      zeros(shape=(2, 4)) + x       for x of shape (2, 4)

MXNet's classic shapes have 0 for an unknown size, those under `np_shape` have -1, and `arange` may
run as far as it is needed.
"""

from __future__ import annotations

from ...base import is_np_shape
from ...error import ShapeError
from ...ops.shapes import is_known
from ..graph import Graph
from ..node import Node
from ..patterns import Match, Pattern, Rule, make_node, rewrite
from ..typed import TypedGraph


def is_open(node: Node) -> bool:
    """Return whether a node's shape is left to its readers."""
    if node.op is None or node.inputs:
        return False
    typed = node.typed
    if typed.get("infer_range"):
        return True
    shape = typed.get("shape", (1,))
    if is_np_shape():
        return bool(shape) and min(shape) < 0
    return not shape or 0 in shape


def open_sources(graph: Graph) -> list[Node]:
    """Return the nodes whose shape is left to their readers."""
    return [node for node in graph.nodes if is_open(node)]


def _resolve(match: Match) -> Node:
    node = match.root
    shape = match.graph.types[node][0].shape
    if not is_known(shape):
        match.graph.infer_shapes()  # what conflicts says so itself
        raise ShapeError(
            f"The shape of {node.name!r} ({node.operator.name}) cannot be inferred from the inputs "
            f"{dict(match.graph.inputs.shapes)}: give all its sizes."
        )
    attrs = node.typed
    if "shape" in attrs:
        resolved = {"shape": shape}
    else:  # an arange
        steps = shape[0] / attrs["repeat"]
        resolved = {"stop": attrs["start"] + steps * attrs["step"], "infer_range": False}
    return make_node(node.operator, node.name, {}, {**attrs, **resolved})


RULES = [
    Rule("resolve_source", Pattern(lambda op: not op.inputs, when=is_open), _resolve),
]


def resolve_sources(graph: TypedGraph) -> TypedGraph:
    """Replace open shapes by those that inference finds."""
    return rewrite(graph, RULES)
