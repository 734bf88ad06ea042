"""Rows of loops and branches for `to_torch`.

Loops are written out step by step, which `torch.export` and `torch.compile` would do as well;
branches become `torch.cond`.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch

from .torch_rows import row

if TYPE_CHECKING:
    from .to_torch import TorchCall, TorchWriter

__all__: list[str] = []

# Longer loops make code that nobody reads and compilers take minutes for.
MAX_STEPS = 512


def _known(w: TorchWriter, call: TorchCall, what: str) -> list[tuple[int, ...]]:
    if call.shapes is None:
        raise w.unsupported(call, f"needs the shapes of its inputs: {what}. Give shapes=...")
    return call.shapes


def _check_steps(w: TorchWriter, call: TorchCall, steps: int) -> None:
    if not 0 < steps <= MAX_STEPS:
        raise w.unsupported(call, f"has {steps} steps; loops of 1 to {MAX_STEPS} are written out.")


@row("_foreach")
def foreach(w: TorchWriter, call: TorchCall, *xs: Any) -> list[Any]:
    """The body once for each slice; outputs are stacked."""
    a, (graph,) = call.attrs, call.node.subgraphs
    shapes = _known(w, call, "how many steps there are follows from them")
    data_at, state_at, rest_at = (a[k] for k in ("in_data_locs", "in_state_locs", "remain_locs"))
    n_data, n_states, n_out = len(data_at), len(state_at), a["num_out_data"]
    _check_steps(w, call, shapes[0][0])
    order = [*data_at, *state_at, *rest_at]
    facts: list[Any] = [None] * len(order)
    for i, place in enumerate(order):
        shape = (shapes[i][1:] or (1,)) if i < n_data else shapes[i]
        facts[place] = (shape, call.dtypes[i])
    states, rows = list(xs[n_data : n_data + n_states]), []
    for step in range(shapes[0][0]):
        feed: list[Any] = [None] * len(order)
        for i, place in enumerate(data_at):
            is_vector = len(shapes[i]) == 1
            at = slice(step, step + 1) if is_vector else step
            feed[place] = w.call(operator.getitem, xs[i], at)
        for place, value in zip(state_at, states, strict=True):
            feed[place] = value
        for place, value in zip(rest_at, xs[n_data + n_states :], strict=True):
            feed[place] = value
        made = w.inline_body(graph, feed, [f[0] for f in facts], [f[1] for f in facts])
        rows.append(made[:n_out])
        states = made[n_out:]
    stacked = [w.call(torch.stack, list(column)) for column in zip(*rows, strict=True)]
    return [*stacked, *states]


@row("_while_loop")
def while_loop(w: TorchWriter, call: TorchCall, *xs: Any) -> list[Any]:
    """The body as often as the loop may run; after its end nothing changes any more."""
    a, (test, graph) = call.attrs, call.node.subgraphs
    shapes = _known(w, call, "they are those of the body's inputs")
    limit, n_out = a["max_iterations"], a["num_out_data"]
    _check_steps(w, call, limit)
    if not a["pad_outputs"] and n_out:
        raise w.unsupported(call, "returns as many rows as there were steps, which is dynamic.")
    places = [a["func_input_locs"][i] for i in a["func_var_locs"]]
    values, rows, going = list(xs), [], None

    def body(part: Any, at: Any) -> list[Any]:
        chosen = [[source[i] for i in at] for source in (values, shapes, call.dtypes)]
        return w.inline_body(part, *chosen)

    for _ in range(limit):
        holds = w.method("bool", w.method("reshape", body(test, a["cond_input_locs"])[0], ()))
        going = holds if going is None else w.call(torch.logical_and, going, holds)
        made = body(graph, a["func_input_locs"])
        rows.append([w.call(torch.where, going, m, 0) for m in made[:n_out]])
        for place, new in zip(places, made[n_out:], strict=True):
            values[place] = w.call(torch.where, going, new, values[place])
    stacked = [w.call(torch.stack, list(column)) for column in zip(*rows, strict=True)]
    return [*stacked, *(values[p] for p in places)]


@row("_cond")
def cond(w: TorchWriter, call: TorchCall, *xs: Any) -> list[Any]:
    """`torch.cond` with a module for each branch."""
    a, (test, then, other) = call.attrs, call.node.subgraphs
    shapes = _known(w, call, "they are those of the branches' inputs")
    at = a["cond_input_locs"]
    chosen = [[source[i] for i in at] for source in (xs, shapes, call.dtypes)]
    holds = w.inline_body(test, *chosen)[0]
    truth = w.method("bool", w.method("reshape", holds, ()))
    name = w.identifier(call.node.name)
    branches = [
        w.body_module(graph, a[key], shapes, call.dtypes, f"{name}_{key[:4]}")
        for graph, key in ((then, "then_input_locs"), (other, "else_input_locs"))
    ]
    made = w.call(torch.ops.higher_order.cond, truth, *branches, tuple(xs))
    return [w.call(operator.getitem, made, i) for i in range(a["num_outputs"])]
