"""Project all steps of a sequence at once.

    FC(slice_0(x), w, b), FC(slice_1(x), w, b), ..  =>      slices of _project_steps(x, w, b)

An unrolled recurrent cell multiplies each step of its input by the same weight. One product of the
whole sequence takes a fraction of the time; what goes from step to step stays as it is.
"""

from __future__ import annotations

from ...ops.fused.projection import project_steps
from ...ops.nn.dense import fully_connected
from ...ops.tensor.joining import slice_channel
from ..node import Entry, Node
from ..patterns import Match, Pattern, Rule, make_node, named_inputs, rewrite
from ..typed import TypedGraph

LEAST_STEPS = 3


def batch_projections(graph: TypedGraph) -> TypedGraph:
    """Move fully connected layers before the slicing of their data, where all slices have one."""
    hoisted = _find(graph)
    if not hoisted:
        return graph

    def take_slice(match: Match) -> Entry | None:
        data = match.root.inputs[0]
        slices = hoisted.get(match.origin(data.node))
        return None if slices is None else Entry(slices, data.index)

    return rewrite(graph, [Rule("batch_projection", Pattern(fully_connected), take_slice)])


def _find(graph: TypedGraph) -> dict[Node, Node]:
    """Return for the slicing nodes that are to go the nodes that slice projections instead."""
    readers: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for entry in node.inputs:
            if entry.node.op is slice_channel:
                readers.setdefault(entry.node, []).append(node)
    return {
        node: _hoist(node, found[0])
        for node, found in readers.items()
        if len(found) == node.outputs >= LEAST_STEPS and _may_hoist(graph, node, found)
    }


def _may_hoist(graph: TypedGraph, node: Node, readers: list[Node]) -> bool:
    if not node.typed["squeeze_axis"] or any((node, i) in graph.shown for i in range(node.outputs)):
        return False
    first = readers[0]
    return all(
        reader.op is fully_connected
        and reader.inputs[0].node is node
        and reader.typed["flatten"]
        and reader.typed == first.typed
        and [e[:2] for e in reader.inputs[1:]] == [e[:2] for e in first.inputs[1:]]
        and all(e.node.op is None for e in reader.inputs[1:])
        for reader in readers
    )


def _hoist(slices: Node, reader: Node) -> Node:
    inputs = {**named_inputs(reader), "data": slices.inputs[0]}
    attrs = {**reader.typed, "axis": slices.typed["axis"]}
    projection = make_node(project_steps, f"{reader.name}_steps", inputs, attrs)
    again = {**slices.typed, "axis": 0}
    return make_node(slice_channel, slices.name, {"data": Entry(projection)}, again)
