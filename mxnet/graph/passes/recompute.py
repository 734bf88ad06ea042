"""Keep fewer results for backward, and compute the others again.

    x -> a -> b -> c -> d -> loss      =>      x -> [a -> b] -> [c -> d] -> loss

Nodes that run one after another become one `_recompute` node, which keeps its inputs alone. Nodes
marked ``__force_mirroring__`` are what is recomputed (those of one ``__mirror_stage__`` together);
without marks, cuts are chosen such that the most memory that backward needs at once is small: what
is kept up to a segment, and what that segment recomputes. With n equal nodes this is about
sqrt(2 n) of them. What runs last is needed first by backward and stays as it is.
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
TRIALS, SHRINKING = 40, 1.15  # of the most bytes that may be needed at once


class Plan(NamedTuple):
    """Which nodes are recomputed together, and the estimated bytes that training then needs."""

    segments: list[Segment]
    total: int


def is_marked(node: Node) -> bool:
    """Return whether a user asks to recompute a node."""
    return node.extra.get(MARK, "").lower() in ("1", "true")


def recompute(graph: TypedGraph, limit: int | None = None) -> TypedGraph:
    """Recompute marked nodes, or, without marks, what `plan_segments` chooses."""
    marked = marked_segments(graph)
    segments = marked or plan_segments(graph, limit).segments
    return wrap_segments(graph, segments, recompute_op, "recompute")


def recompute_marked(graph: TypedGraph) -> TypedGraph:
    """Recompute marked nodes alone."""
    if not any(MARK in node.extra for node in graph.nodes):
        return graph
    segments = marked_segments(graph)
    return wrap_segments(graph, segments, recompute_op, "recompute")


# -- planning -------------------------------------------------------------------------------------


def kept_bytes(graph: TypedGraph, node: Node) -> int:
    """Return what training keeps of a node: nothing of views and of what is written in place."""
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
    """Return the nodes between variables and heads; what `stop_gradient` cuts off keeps nothing."""
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
    """Return the runs of nodes that users marked, divided where the stage changes."""
    runs = find_runs(graph, lambda n: is_marked(n) and _can_recompute(n))
    stages = (list(stage) for run in runs for _, stage in groupby(run, _stage_of))
    return [stage for stage in stages if len(stage) > 1]


def _stage_of(node: Node) -> str | None:
    return node.extra.get(STAGE)


def live_bytes(graph: TypedGraph) -> int:
    """Return the most bytes of results that are needed at once when nothing is kept."""
    crossing = _crossing_bytes(graph)
    shown = {e.node for e in graph.heads if e.node.op is not None}
    peak = before = outputs = 0
    for node in graph.nodes:
        if node.op is not None:
            peak = max(peak, before + outputs + kept_bytes(graph, node))
        if node in shown and not graph.uses[node, 0] > 1:  # nothing but the user reads it
            outputs += kept_bytes(graph, node)
        before = crossing[node]
    return peak


def training_bytes(graph: TypedGraph, recomputes: bool) -> int:
    """Return the estimated bytes of results that training keeps for backward.

    Where gradients reach little of a graph, running the rest needs more than what is kept.
    """
    marked = marked_plan(graph)
    chosen = plan_segments(graph) if recomputes and not marked.segments else marked
    return max(chosen.total, live_bytes(graph))


def marked_plan(graph: TypedGraph) -> Plan:
    """Return the plan that users' marks make."""
    segments = marked_segments(graph)
    return Plan(segments, _total_bytes(graph, segments, _kept_sizes(graph)))


def plan_segments(graph: TypedGraph, limit: int | None = None) -> Plan:
    """Search for cuts; with a `limit` in bytes, the plan that recomputes least and keeps to it."""
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
    """Cut nodes into segments such that backward needs at most `bound` bytes at once.

    When backward comes to nodes i to j - 1, all that crosses the cuts up to i is still kept, and
    what these nodes make is there again. The cheapest way to cut before node j continues the
    cheapest way to cut before some i that keeps to the bound; a queue has the candidates i by
    their costs.
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
    # What runs last is needed first, so recomputing it would save nothing.
    return [segment for segment in segments[:-1] if len(segment) > 1]


def _total_bytes(graph: TypedGraph, segments: Sequence[Segment], sizes: dict[Node, int]) -> int:
    """Return the most bytes of results that backward needs at once.

    At the end of forward these are the results of nodes outside of segments and what segments
    read; then, as backward goes through the segments, what was kept before each, what it
    recomputes, and gradients of its results and of what they were made of.
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
