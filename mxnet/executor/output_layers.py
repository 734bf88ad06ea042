"""Lets backward reach output layers that stand before operators without gradients.

MXNet's output layers make their gradients whatever the gradients of their outputs are, so
``BlockGrad(SoftmaxOutput(x))`` trains ``x``; see `ops/gradients`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from ..graph.graph import Graph
from ..graph.node import Entry, Node
from ..ops.gradients import keep_path
from .differentiation import needs_head_gradient

__all__ = ["keep_paths", "nodes_behind_output_layers"]


def nodes_behind_output_layers(graph: Graph) -> dict[Node, set[Node]]:
    """Return the nodes that read results of output layers, and which of their inputs do so."""
    layers = {n for n in graph.nodes if n.op is not None and not needs_head_gradient(n)}
    behind: dict[Node, set[Node]] = {}
    for node in graph.nodes if layers else ():
        sources = {e.node for e in node.inputs if e.node in layers or e.node in behind}
        if sources:
            behind[node] = sources
    return behind


def keep_paths(
    kernel: Callable, entries: Sequence[Entry | None], sources: set[Node]
) -> Callable[..., Any]:
    """Return a kernel whose results stay in the graph of those inputs."""
    places = [i for i, entry in enumerate(entries) if entry is not None and entry.node in sources]

    def keeping(*arguments: Any, **attrs: Any) -> Any:
        made = kernel(*arguments, **attrs)
        inputs = [arguments[i] for i in places if type(arguments[i]) is Tensor]
        inputs = [t for t in inputs if t.requires_grad]
        if not inputs:
            return made
        if isinstance(made, tuple | list):
            return tuple(_member(each, inputs) for each in made)
        return _member(made, inputs)

    return keeping


def _member(made: Any, inputs: Sequence[Tensor]) -> Any:
    if type(made) is not Tensor or made.requires_grad or not made.is_floating_point():
        return made
    return keep_path(made, inputs)
