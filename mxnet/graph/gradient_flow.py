"""Analysis of the values of a graph that have gradients.

MXNet's output layers define their gradients whatever the gradients of their outputs, so
``BlockGrad(SoftmaxOutput(x))`` trains ``x``; see `ops/gradients`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..ops.gradients import walk
from .graph import Graph, topological
from .node import Node


def needs_head_gradient(node: Node) -> bool:
    """Return whether backward from a node's outputs uses the gradients of those outputs."""
    return node.op is None or node.op.needs_head_gradient(node.typed)


def reaches_variable(head: Node, variables: Collection[Node]) -> bool:
    """Return whether the gradient of an output flows on to one of these variables.

    It ends at loss layers, which define their own, and at `BlockGrad`:
    ``Reshape(SoftmaxOutput(x))`` needs no head gradient.
    """

    def below(node: Node) -> Iterator[Node]:
        if node.op is not None and needs_head_gradient(node):
            yield from (entry.node for entry in node.inputs)

    return any(node.op is None and node in variables for node in walk([head], below))


def nodes_behind_output_layers(graph: Graph) -> dict[Node, set[Node]]:
    """Return the nodes that read results of output layers, and which of their inputs do so."""
    layers = {n for n in graph.nodes if n.op is not None and not needs_head_gradient(n)}
    behind: dict[Node, set[Node]] = {}
    for node in graph.nodes if layers else ():
        sources = {e.node for e in node.inputs if e.node in layers or e.node in behind}
        if sources:
            behind[node] = sources
    return behind


INLINE_LIMIT = 2  # MXNet records graphs with so few operators one by one, by default


def has_partial_outputs(graph: Graph, inline_limit: int = INLINE_LIMIT) -> bool:
    """Return whether some output does not depend on all inputs, in a graph that is one step."""
    variables = len(graph.variables)
    if len(graph.heads) < 2 or len(graph.nodes) - variables <= inline_limit:
        return False
    return any(
        sum(node.op is None for node in topological([head])) < variables for head in graph.heads
    )


def without_gradients(graph: Graph) -> set[Node]:
    """Return the variables that operators read as indices, conditions or lengths."""
    return {
        entry.node
        for node in graph.nodes
        if node.op is not None and node.op.facts.without_gradient
        for name, entry in zip(node.input_names, node.inputs, strict=True)
        if name in node.op.facts.without_gradient
    }


def label_variables(graph: Graph) -> set[Node]:
    """Return what losses read as labels and lengths: they define no gradients for them."""
    return {
        entry.node
        for node in graph.nodes
        if node.op is not None and (node.op.facts.loss or node.op.facts.has_labels)
        for entry in node.inputs[1:]
    }
