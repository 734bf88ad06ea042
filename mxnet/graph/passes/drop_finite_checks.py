"""Look for values that are not finite only where they can enter a chain of convolutions.

    F(x, check_data) -> relu -> F(check_data)      =>      F(x, check_data) -> relu -> F

A fused convolution that has run made finite numbers, or asked for plain kernels. What operators
with the fact `keeps_finite` make of such numbers is finite too and need not be checked again.
"""

from __future__ import annotations

from ...ops.fused.convolution import fused_convolution
from ..node import Node
from ..rewrite import Match, Pattern, Rule, make_node, named_inputs, rewrite
from ..typed import TypedGraph


def _finite_nodes(graph: TypedGraph) -> set[Node]:
    """Return the nodes whose results are known to be finite."""
    found: set[Node] = set()
    for node in graph.nodes:
        if node.op is None or node.subgraphs:
            continue
        is_kept = node.op.facts.keeps_finite and all(e.node in found for e in node.inputs)
        if node.op is fused_convolution or is_kept:
            found.add(node)
    return found


def drop_finite_checks(graph: TypedGraph) -> TypedGraph:
    """Take away the checks of inputs that are known to be finite."""
    if not any(node.op is fused_convolution for node in graph.nodes):
        return graph
    finite = _finite_nodes(graph)

    def drop(match: Match) -> Node | None:
        node = match.root
        inputs = named_inputs(node)
        needed = {
            f"check_{name}": node.typed[f"check_{name}"] and match.origin(e.node) not in finite
            for name, e in inputs.items()
            if name in ("data", "other")
        }
        attrs = {**node.typed, **needed}
        if attrs == node.typed:
            return None
        return make_node(fused_convolution, node.name, inputs, attrs)

    return rewrite(graph, [Rule("drop_finite_check", Pattern(fused_convolution), drop)])
