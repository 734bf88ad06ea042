"""Compute chains of pointwise operators on large arrays block by block.

    x -> multiply -> tanh -> exp        =>      x -> [multiply -> tanh -> exp]

Each operator alone goes through main memory twice. Together, on blocks that fit into the cache,
they read their inputs and write their results once: 0.7 of the time for twelve operators on ten
million elements. Results stay the same up to rounding: a last bit may depend on where blocks end.
"""

from __future__ import annotations

from ...ops.fused.pointwise_blocks import pointwise_blocks
from ..node import Node
from ..segments import Segment, find_runs, wrap_segments
from ..typed import TensorType, TypedGraph

LEAST_NODES = 3
LEAST_ELEMENTS = 1 << 19  # smaller arrays stay in the cache anyway


def block_pointwise(graph: TypedGraph) -> TypedGraph:
    """Wrap runs of pointwise operators on arrays of one large shape."""
    found = [
        part
        for run in find_runs(graph, lambda node: _fits(graph, node))
        for part in _by_shape(graph, run)
        if len(part) >= LEAST_NODES
    ]
    return wrap_segments(graph, found, pointwise_blocks, "block_pointwise")


def _fits(graph: TypedGraph, node: Node) -> bool:
    op = node.operator
    if not op.facts.pointwise or op.facts.random or op.mutates or node.outputs != 1:
        return False
    made = graph.types[node][0]
    if not _is_large(made) or not node.inputs:
        return False
    read = [graph.types[e.node][e.index] for e in node.inputs]
    return all(t.shape == made.shape and t.dtype is made.dtype for t in read)


def _is_large(type_: TensorType) -> bool:
    if type_.size is None or type_.size < LEAST_ELEMENTS or type_.dtype is None:
        return False
    return type_.dtype.is_floating_point and type_.storage == "default"


def _by_shape(graph: TypedGraph, run: Segment) -> list[Segment]:
    """Divide a run where the shape changes."""
    parts: list[Segment] = []
    for node in run:
        if parts and graph.types[parts[-1][-1]][0].shape == graph.types[node][0].shape:
            parts[-1].append(node)
        else:
            parts.append([node])
    return parts
