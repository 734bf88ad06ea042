"""Recomputation: keep fewer results for backward, and compute the others again.

    x -> a -> b -> c -> d -> loss      =>      x -> [a -> b] -> [c -> d] -> loss

Consecutive nodes become one `_recompute` node, which keeps only its inputs. Nodes marked
``__force_mirroring__`` are recomputed (those of one ``__mirror_stage__`` together). Without marks,
cuts are chosen to minimize the peak memory of backward: the results kept up to a segment, plus
those that the segment recomputes. For n equal nodes the peak is about sqrt(2 n) results. The last
nodes are not recomputed, because backward needs them first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

from ...ops.fused.subgraph_operators import recompute as recompute_op
from ..node import Node
from ..typed_graph import TypedGraph
from .segments import Segment, find_runs, wrap_segments

MARK, STAGE = "__force_mirroring__", "__mirror_stage__"
TRIALS, SHRINKING = 40, 1.15  # number of bounds to try, and the factor between them


class Plan(NamedTuple):
    """Segments of nodes that are recomputed together, and the estimated memory of training."""

    segments: list[Segment]
    total: int


def is_marked(node: Node) -> bool:
    """Return whether the user marked a node for recomputation."""
    return node.extra.get(MARK, "").lower() in ("1", "true")


def recompute(graph: TypedGraph, limit: int | None = None) -> TypedGraph:
    """Recompute marked nodes, or the segments of `plan_segments` without marks."""
    marked = marked_segments(graph)
    segments = marked or plan_segments(graph, limit).segments
    return wrap_segments(graph, segments, recompute_op, "recompute")


def recompute_marked(graph: TypedGraph) -> TypedGraph:
    """Recompute only marked nodes."""
    if not any(MARK in node.extra for node in graph.nodes):
        return graph
    segments = marked_segments(graph)
    return wrap_segments(graph, segments, recompute_op, "recompute")


# -- planning -------------------------------------------------------------------------------------


def kept_bytes(graph: TypedGraph, node: Node) -> int:
    """Return the bytes that training keeps of a node; 0 for views and in-place results."""
    op = node.op
    if op is None or "view" in op.variants:
        return 0
    if op.find_variant("in_place", node.typed) is not None:
        makers = [e.node for e in node.inputs]
        if any(m.op and m.op.facts.overwritable and graph.uses[m, 0] == 1 for m in makers):
            return 0
    return _result_bytes(graph, node)


def _result_bytes(graph: TypedGraph, node: Node) -> int:
    return sum(t.nbytes or 0 for t in graph.types[node])


def _kept_sizes(graph: TypedGraph) -> dict[Node, int]:
    differentiated = _differentiated_nodes(graph)
    return {n: kept_bytes(graph, n) if n in differentiated else 0 for n in graph.nodes}


def _differentiated_nodes(graph: TypedGraph) -> set[Node]:
    """Return the nodes through which gradients flow from heads to variables."""
    fed: set[Node] = set()
    reached = {e.node for e in graph.heads}
    for node in graph.nodes:
        is_fed = node.op is None or any(e.node in fed for e in node.inputs)
        if is_fed and not _stops_gradients(node):
            fed.add(node)
    for node in reversed(graph.nodes):
        if node in reached and node in fed:
            reached.update(e.node for e in node.inputs)
    return fed & reached


def _stops_gradients(node: Node) -> bool:
    facts = None if node.op is None else node.op.facts
    return facts is not None and facts.head_gradient is False and not facts.loss


def marked_segments(graph: TypedGraph) -> list[Segment]:
    """Return the runs of marked nodes, split where the stage changes."""
    runs = find_runs(graph, lambda n: is_marked(n) and _can_recompute(n))
    stages = (list(stage) for run in runs for _, stage in groupby(run, _stage_of))
    return [stage for stage in stages if len(stage) > 1]


def _stage_of(node: Node) -> str | None:
    return node.extra.get(STAGE)


def live_bytes(graph: TypedGraph) -> int:
    """Return the peak memory of results if nothing is kept."""
    crossing = _crossing_bytes(graph)
    shown = {e.node for e in graph.heads if e.node.op is not None}
    peak = before = outputs = 0
    for node in graph.nodes:
        if node.op is not None:
            peak = max(peak, before + outputs + kept_bytes(graph, node))
        if node in shown and not graph.uses[node, 0] > 1:  # no consumer: an output
            outputs += kept_bytes(graph, node)
        before = crossing[node]
    return peak


def training_bytes(graph: TypedGraph, recomputes: bool) -> int:
    """Return the estimated memory of results that training keeps for backward.

    If gradients reach only a small part of a graph, forward needs more memory than that.
    """
    marked = marked_plan(graph)
    chosen = plan_segments(graph) if recomputes and not marked.segments else marked
    return max(chosen.total, live_bytes(graph))


def marked_plan(graph: TypedGraph) -> Plan:
    """Return the plan of the users' marks."""
    segments = marked_segments(graph)
    return Plan(segments, _total_bytes(graph, segments, _kept_sizes(graph)))


def plan_segments(graph: TypedGraph, limit: int | None = None) -> Plan:
    """Search for cuts; with a `limit` in bytes, minimize recomputation within it."""
    sizes = _kept_sizes(graph)
    best = Plan([], _total_bytes(graph, [], sizes))
    if limit is not None and best.total <= limit:
        return best
    crossing = _crossing_bytes(graph)
    runs = list(find_runs(graph, _can_recompute))
    everything = sum(sizes.values())
    for trial in range(1, TRIALS + 1):
        bound = everything * SHRINKING**-trial
        segments = [segment for run in runs for segment in _cut(run, bound, sizes, crossing)]
        plan = Plan(segments, _total_bytes(graph, segments, sizes))
        if limit is not None and plan.total <= limit:
            return plan
        if plan.total < best.total:
            best = plan
    return best


def _cut(
    run: Segment, bound: float, sizes: dict[Node, int], crossing: dict[Node, int]
) -> list[Segment]:
    """Cut nodes into segments such that the peak memory of backward is at most `bound` bytes.

    While backward processes nodes i to j - 1, everything that crosses the cuts up to i is still
    kept, and the results of these nodes are recomputed. The cheapest cuts that end before node j
    extend the cheapest cuts that end before some i within the bound; a queue has the candidates i
    by cost.
    """
    sums = [0, *accumulate(sizes[n] for n in run)]
    cost, came_from = [0] * (len(run) + 1), [0] * (len(run) + 1)
    candidates: deque[int] = deque([0])
    for j in range(1, len(run) + 1):
        while len(candidates) > 1 and cost[(i := candidates[0])] + sums[j] - sums[i] > bound:
            candidates.popleft()
        came_from[j] = candidates[0]
        cost[j] = cost[candidates[0]] + (crossing[run[j - 1]] if j < len(run) else 0)
        while candidates and cost[candidates[-1]] >= cost[j]:
            candidates.pop()
        candidates.append(j)
    cuts = [len(run)]
    while cuts[-1]:
        cuts.append(came_from[cuts[-1]])
    cuts.reverse()
    segments = [run[a:b] for a, b in pairwise(cuts)]
    # Recomputing the last nodes, which backward needs first, would save nothing.
    return [segment for segment in segments[:-1] if len(segment) > 1]


def _total_bytes(graph: TypedGraph, segments: Sequence[Segment], sizes: dict[Node, int]) -> int:
    """Return the peak memory of backward.

    At the end of forward: the results outside of segments and the inputs of segments. During
    backward, for each segment: the results kept before it, those it recomputes, and the gradients
    of its results and inputs.
    """
    segment_of = {node: segment for segment in segments for node in segment}
    read: set[tuple[Node, int]] = set()
    before = peak = 0
    for node in graph.nodes:
        segment = segment_of.get(node)
        if segment is None:
            before += sizes[node]
            continue
        for e in node.inputs:
            if segment_of.get(e[0], segment) is not segment and (e[0], e[1]) not in read:
                read.add((e[0], e[1]))
                before += graph.types[e[0]][e[1]].nbytes or 0
        if node is segment[-1]:
            recomputed = sum(sizes[n] for n in segment)
            peak = max(peak, before + recomputed + 2 * _result_bytes(graph, node))
    return max(peak, before)


def _crossing_bytes(graph: TypedGraph) -> dict[Node, int]:
    """Return for each node the bytes of results that are read after it has run."""
    last: dict[Node, int] = {}
    for position, node in enumerate(graph.nodes):
        for entry in node.inputs:
            last[entry.node] = position
    leaving: list[int] = [0] * len(graph.nodes)
    live, crossing = 0, {}
    for position, node in enumerate(graph.nodes):
        if node.op is not None and node in last:
            size = _result_bytes(graph, node)
            live += size
            leaving[last[node]] += size
        live -= leaving[position]
        crossing[node] = live
    return crossing


def _can_recompute(node: Node) -> bool:
    op = node.operator
    return not (op.has_memory or node.subgraphs or op.mutates or op.value_dependent)
