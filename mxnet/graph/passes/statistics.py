"""Update the running statistics of all BatchNorm layers together, after the last one.

    x -> BatchNorm -> f -> BatchNorm -> g

    =>  x -> normalize -> f -> normalize -> move_statistics -> g
                |                 |            ^
                +-- mean, 1/std --+------------+

Separately, each layer needs several kernels on a few elements; together three are enough. States
with other consumers in the graph are updated in their original position.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ops.attributes import to_string
from ...ops.fused.batch_norm import batch_norm_with_statistics, move_statistics
from ...ops.nn.normalization import batch_norm
from ..node import Entry, Node
from ..rewrite import Rebuild, make_node, named_inputs
from ..typed_graph import TensorType, TypedGraph

MIN_LAYERS = 2
STATES = ("moving_mean", "moving_var")


def join_statistics(graph: TypedGraph) -> TypedGraph:
    """Split normalizations from their updates of states, which follow the last layer."""
    if not graph.mode.training:
        return graph
    groups: dict[tuple[float, float], list[Node]] = {}
    for node in graph.nodes:
        if node.op is batch_norm and _can_wait(graph, node):
            key = node.typed["momentum"], node.typed["eps"]
            groups.setdefault(key, []).append(node)
    layers = [group for group in groups.values() if len(group) >= MIN_LAYERS]
    return _Joining(graph, layers).run() if layers else graph


def _can_wait(graph: TypedGraph, node: Node) -> bool:
    attrs, entries = node.typed, named_inputs(node)
    if attrs["use_global_stats"] or attrs["output_mean_var"]:
        return False
    states = [entries[name] for name in STATES]
    return all(e.node.op is None and graph.uses[e.node, 0] == 1 for e in states)


class _Joining(Rebuild):
    """Rebuilds the graph with one update for each group of layers."""

    def __init__(self, graph: TypedGraph, groups: Sequence[Sequence[Node]]) -> None:
        super().__init__(graph)
        self.group_of = {node: group for group in groups for node in group}
        self.normalized: dict[Node, Node] = {}

    def run(self) -> TypedGraph:
        for node in self.graph.nodes:
            group = self.group_of.get(node)
            if group is None:
                self.keep(node)
                continue
            self.normalize(node)
            if node is group[-1]:
                self.update(group)
        return self.result()

    def normalize(self, node: Node) -> None:
        """Replace a layer by one that returns its statistics."""
        inputs = {name: self.mapped(e) for name, e in named_inputs(node).items()}
        new = make_node(batch_norm_with_statistics, node.name, inputs, node.typed)
        new.source, new.extra = node.source, node.extra
        (out,) = self.graph.types[node]
        state = self.graph.type_of(named_inputs(node)[STATES[0]])
        statistic = TensorType(state.shape, state.dtype, device=out.device)
        self.types[new] = (out, statistic, statistic)
        self.replace(node, new)
        self.normalized[node] = new

    def update(self, group: Sequence[Node]) -> None:
        """Update the states of a group after its last layer."""
        last = group[-1]
        inputs = [Entry(self.normalized[last])]
        for node in group:
            new, states = self.normalized[node], named_inputs(node)
            inputs += [*(states[name] for name in STATES), Entry(new, 1), Entry(new, 2)]
        attrs = {"num_args": len(inputs), **{k: last.typed[k] for k in ("momentum", "eps")}}
        texts = {key: to_string(value) for key, value in attrs.items()}
        updating = Node(move_statistics, f"{last.name}_statistics", texts, inputs)
        self.anchors[updating] = last
        self.types[updating] = self.graph.types[last]
        self.entries[last, 0] = Entry(updating)
        self.applied["join_statistics"] += len(group)
