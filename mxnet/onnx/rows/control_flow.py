"""Rows of loops and branches, whose bodies are graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ...graph import Graph
from ..builder import INT64, Builder, Call, onnx_dtype
from ..library import load_onnx
from ..table import row

BOOL = torch.bool


def _body(name: str, g: Builder, inputs: Sequence, outputs: Sequence) -> object:
    """Return an ONNX graph; inputs and outputs are (name, torch dtype, shape or None)."""
    helper = load_onnx().helper
    infos = [
        [helper.make_tensor_value_info(n, onnx_dtype(t), s) for n, t, s in side]
        for side in (inputs, outputs)
    ]
    return helper.make_graph(g.nodes, name, *infos)


def _child(g: Builder) -> Builder:
    made = Builder(g.opset, g)
    made.scope = g.scope
    return made


def _truth(g: Builder, value: str, dtype: torch.dtype) -> str:
    """Return a condition as a bool without axes."""
    return g.reshape(g.cast(value, dtype, BOOL), [])


def _run(
    g: Builder, call: Call, graph: Graph, names: Sequence[str], facts: Sequence[tuple]
) -> tuple[list[str], list[torch.dtype]]:
    """Export a body into a builder; outputs are fresh names."""
    made, dtypes = call.export_graph(graph, g, names, facts)
    return [g.Identity(m) for m in made], dtypes


@row("_foreach")
def foreach(g: Builder, call: Call, *xs: str) -> list[str]:
    """Loop over axis 0 of the data; outputs are stacked, states are carried."""
    a, (graph,) = call.attrs, call.node.subgraphs
    data_at, state_at, rest_at = (a[k] for k in ("in_data_locs", "in_state_locs", "remain_locs"))
    n_data, n_states, n_out = len(data_at), len(state_at), a["num_out_data"]
    body = _child(g)
    step, going = body.unique("step"), body.unique("going")
    carried = [body.unique("state") for _ in state_at]
    feed: list[str] = [""] * len(xs)
    facts: list[tuple] = [()] * len(xs)
    for i, place in enumerate(data_at):
        feed[place] = body.Gather(xs[i], step, axis=0)
        if len(call.shapes[i]) == 1:
            feed[place] = body.reshape(feed[place], [1])
        facts[place] = (call.shapes[i][1:] or (1,), call.dtypes[i])
    for i, place in enumerate(state_at):
        feed[place] = carried[i]
        facts[place] = (call.shapes[n_data + i], call.dtypes[n_data + i])
    for i, place in enumerate(rest_at):
        at = n_data + n_states + i
        feed[place], facts[place] = xs[at], (call.shapes[at], call.dtypes[at])
    made, dtypes = _run(body, call, graph, feed, facts)
    more = body.Identity(going)
    states = [(n, t, None) for n, t in zip(made[n_out:], dtypes[n_out:], strict=True)]
    outs = [(n, t, None) for n, t in zip(made[:n_out], dtypes[:n_out], strict=True)]
    inputs = [(step, INT64, []), (going, BOOL, [])]
    inputs += [(n, t, None) for n, (_, t, _) in zip(carried, states, strict=True)]
    loop = _body(f"{call.name}_body", body, inputs, [(more, BOOL, []), *states, *outs])
    trips = g.squeeze(g.size_of(xs[0], 0), 0)
    count = len(states) + len(outs)
    found = g.add(
        "Loop",
        trips,
        "",
        *xs[n_data : n_data + n_states],
        outputs=[g.unique(f"{g.scope}_loop") for _ in range(count)],
        body=loop,
    )
    return [*found[len(states) :], *found[: len(states)]]


@row("_while_loop")
def while_loop(g: Builder, call: Call, *xs: str) -> list[str]:
    """Loop while a condition holds; outputs are stacked and padded with zeros."""
    a, (test, graph) = call.attrs, call.node.subgraphs
    n_out, places = a["num_out_data"], [a["func_input_locs"][i] for i in a["func_var_locs"]]
    facts = list(zip(call.shapes, call.dtypes, strict=True))

    def holds(b: Builder, values: list[str]) -> str:
        at = a["cond_input_locs"]
        chosen: list[str] = [values[i] for i in at]
        made, dtypes = _run(b, call, test, chosen, [facts[i] for i in at])
        return _truth(b, made[0], dtypes[0])

    body = _child(g)
    step, going = body.unique("step"), body.unique("going")
    carried = [body.unique("state") for _ in places]
    values: list[str] = list(xs)
    for place, name in zip(places, carried, strict=True):
        values[place] = name
    at = a["func_input_locs"]
    made, dtypes = _run(body, call, graph, [values[i] for i in at], [facts[i] for i in at])
    for place, name in zip(places, made[n_out:], strict=True):
        values[place] = name
    more = holds(body, values)
    states = [(n, t, None) for n, t in zip(made[n_out:], dtypes[n_out:], strict=True)]
    outs = [(n, t, None) for n, t in zip(made[:n_out], dtypes[:n_out], strict=True)]
    inputs = [(step, INT64, []), (going, BOOL, [])]
    inputs += [(n, t, None) for n, (_, t, _) in zip(carried, states, strict=True)]
    loop = _body(f"{call.name}_body", body, inputs, [(more, BOOL, []), *states, *outs])
    limit = g.array(np.array(a["max_iterations"], np.int64))
    found = g.add(
        "Loop",
        limit,
        holds(g, list(xs)),
        *(xs[p] for p in places),
        outputs=[g.unique(f"{g.scope}_loop") for _ in range(len(states) + len(outs))],
        body=loop,
    )
    stacked = found[len(states) :]
    if a["pad_outputs"]:
        stacked = [_padded(g, call, name, i) for i, name in enumerate(stacked)]
    return [*stacked, *found[: len(states)]]


def _padded(g: Builder, call: Call, x: str, output: int) -> str:
    """Pad what a loop stacked with zeros, up to the largest number of steps."""
    rank = len(call.out_shapes[output])
    limit = g.ints(call.attrs["max_iterations"])
    missing = g.Sub(limit, g.size_of(x, 0))
    rest = [g.ints(*[0] * (rank - 1))] if rank > 1 else []
    around = g.Concat(g.ints(*[0] * rank), missing, *rest, axis=0)
    return g.Pad(x, around, g.scalar(0, call.out_dtypes[output]))


@row("_cond")
def cond(g: Builder, call: Call, *xs: str) -> list[str]:
    """Run one of two bodies."""
    a, graphs = call.attrs, call.node.subgraphs
    facts = list(zip(call.shapes, call.dtypes, strict=True))

    def part(b: Builder, graph: Graph, key: str) -> tuple[list[str], list[torch.dtype]]:
        return _run(b, call, graph, [xs[i] for i in a[key]], [facts[i] for i in a[key]])

    test, dtypes = part(g, graphs[0], "cond_input_locs")
    branches = []
    for graph, key in zip(graphs[1:], ("then_input_locs", "else_input_locs"), strict=True):
        body = _child(g)
        made, kinds = part(body, graph, key)
        outs = [(n, t, None) for n, t in zip(made, kinds, strict=True)]
        branches.append(_body(f"{call.name}_{key[:4]}", body, [], outs))
    return g.add(
        "If",
        _truth(g, test[0], dtypes[0]),
        outputs=[g.unique(f"{g.scope}_if") for _ in call.out_shapes],
        then_branch=branches[0],
        else_branch=branches[1],
    )
