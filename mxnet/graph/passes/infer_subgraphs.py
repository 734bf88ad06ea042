"""Inference through operators that hold graphs: bodies are solved with what is known outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...error import ShapeError
from ..graph import Graph
from ..node import Node

Solve = Callable[[Graph, dict[Node, Any]], tuple[list, list]]
Merge = Callable[[Any, Any], Any]


class Axis(NamedTuple):
    """How one slice and the stack of all slices are related, for shapes or for types."""

    first: Callable[[Any], int]
    slice: Callable[[Any], Any]
    stack: Callable[[Any, int], Any]


SHAPE_AXIS = Axis(
    lambda shape: shape[0] if shape else -1,
    lambda shape: (shape[1:] or (1,)) if shape else None,  # a slice of a vector has one element
    lambda shape, length: None if shape is None else (length, *shape),
)
TYPE_AXIS = Axis(lambda dtype: -1, lambda dtype: dtype, lambda dtype, length: dtype)


def infer_subgraphs(
    node: Node, ins: tuple, outs: tuple, solve: Solve, merge: Merge, axis: Axis
) -> tuple[tuple, tuple]:
    """Complete what is known of a loop's or branch's inputs and outputs.

    `solve` takes a graph and what is known of its variables, and returns what it finds of its
    variables and heads.
    """
    rule = node.operator.subgraph_rule
    if rule is None:
        return ins, outs
    return rule(node, list(ins), solve, merge, axis)


def _run(
    graph: Graph, places: Sequence[int], ins: list, solve: Solve, merge: Merge
) -> tuple[list, list]:
    """Solve one body whose variables stand at `places` among the inputs."""
    variables = graph.variables
    given = {v: ins[p] for v, p in zip(variables, places, strict=True) if ins[p] is not None}
    found, heads = solve(graph, given)
    for value, place in zip(found, places, strict=True):
        ins[place] = merge(value, ins[place])
    return ins, heads


def infer_foreach(
    node: Node, ins: list, solve: Solve, merge: Merge, axis: Axis
) -> tuple[tuple, tuple]:
    """Solve the body for one slice; a state keeps its type over the steps."""
    attrs, (body,) = node.typed, node.subgraphs
    n_data, n_out = len(attrs["in_data_locs"]), attrs["num_out_data"]
    order = [*attrs["in_data_locs"], *attrs["in_state_locs"], *attrs["remain_locs"]]
    places = [order.index(i) for i in range(len(order))]
    length = _one_length([axis.first(s) for s in ins[:n_data]])
    inner = [axis.slice(s) if i < n_data else s for i, s in enumerate(ins)]
    inner, heads = _run(body, places, inner, solve, merge)
    for i, state in enumerate(heads[n_out:], n_data):  # a state keeps its shape over the steps
        inner[i] = merge(state, inner[i])
    found = list(inner)
    for i, data in enumerate(ins[:n_data]):
        found[i] = data if inner[i] == axis.slice(data) else axis.stack(inner[i], length)
    stacked = [axis.stack(s, length) for s in heads[:n_out]]
    return tuple(found), (*stacked, *inner[n_data : n_data + len(heads) - n_out])


def _one_length(lengths: list[int]) -> int:
    """Return how many slices the data has; all arrays must agree where they are known."""
    known = [n for n in lengths if n > 0]
    if known and min(known) != max(known):
        raise ShapeError(
            f"foreach: the data must be equally long along axis 0, but the lengths are {lengths}."
        )
    return max(lengths, default=-1)


def infer_while_loop(
    node: Node, ins: list, solve: Solve, merge: Merge, axis: Axis
) -> tuple[tuple, tuple]:
    """Solve the condition and the body; outputs are stacked to the largest number of steps."""
    attrs, (test, body) = node.typed, node.subgraphs
    ins, _ = _run(test, attrs["cond_input_locs"], ins, solve, merge)
    ins, heads = _run(body, attrs["func_input_locs"], ins, solve, merge)
    n_out = attrs["num_out_data"]
    steps = attrs["max_iterations"] if attrs["pad_outputs"] else -1
    stacked = [axis.stack(s, steps) for s in heads[:n_out]]
    return tuple(ins), (*stacked, *heads[n_out:])


def infer_cond(
    node: Node, ins: list, solve: Solve, merge: Merge, axis: Axis
) -> tuple[tuple, tuple]:
    """Solve the condition and both branches, whose outputs have one type."""
    attrs, (test, then, other) = node.typed, node.subgraphs
    ins, _ = _run(test, attrs["cond_input_locs"], ins, solve, merge)
    ins, first = _run(then, attrs["then_input_locs"], ins, solve, merge)
    ins, second = _run(other, attrs["else_input_locs"], ins, solve, merge)
    return tuple(ins), tuple(merge(b, a) for a, b in zip(first, second, strict=True))
