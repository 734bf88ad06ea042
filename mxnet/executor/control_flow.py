"""Loops and branches in graphs: operators that hold graphs, so they are declared up here.

`mx.sym.contrib.foreach`, `while_loop` and `cond` make their nodes. Each body is prepared once and
run as often as the loop asks; torch's autograd sees through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..error import MXNetError
from ..graph.graph import Graph
from ..graph.passes.infer_subgraphs import infer_cond, infer_foreach, infer_while_loop
from ..graph.typed import Mode
from ..ops.attributes import Positive, Shape
from ..ops.declare import OpContext, op
from ..ops.fused.holds_graphs import HoldsGraphs
from .program import Program


class Body:
    """A graph inside a node, with one prepared program for each way of running it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._programs: dict[tuple, Program] = {}

    def run(self, feed: Sequence[Tensor], context: OpContext) -> list[Tensor]:
        """Return the heads' values for one tensor per variable."""
        program = self._programs.get(context)
        if program is None:
            # Whether gradients will be asked for is not known here.
            mode = Mode(context.training, True)
            program = Program(self.graph, mode, context.device)
            self._programs[context] = program
        return program.run(feed)


def _only_in_graphs(name: str) -> MXNetError:
    return MXNetError(
        f"{name} runs inside graphs only: build it with mx.sym.contrib.{name.lstrip('_')}, or "
        f"compute with arrays by mx.nd.contrib.{name.lstrip('_')}."
    )


def _picked(tensors: Sequence[Tensor], places: Sequence[int]) -> list[Tensor]:
    return [tensors[i] for i in places]


@op("_foreach", count="num_args", outputs=lambda a: a["num_outputs"], cls=HoldsGraphs, random=True)
def foreach(
    *data: Tensor,
    num_outputs: int,
    num_out_data: int,
    in_state_locs: Shape,
    in_data_locs: Shape,
    remain_locs: Shape,
    run: OpContext,
) -> tuple[Tensor, ...]:
    """Run a body over axis 0 of the data; outputs are stacked, states go from step to step.

    >>> step = lambda x, total: (x + total, x + total)
    >>> out, last = mx.sym.contrib.foreach(step, mx.sym.var("x"), mx.sym.var("s"))
    >>> args = {"x": mx.nd.array([1, 2, 3]), "s": mx.nd.zeros((1,))}
    >>> out.bind(mx.cpu(), args).forward()[0].asnumpy().ravel()
    array([1., 3., 6.], dtype=float32)
    """
    raise _only_in_graphs("_foreach")


def _run_foreach(graphs: Sequence[Graph], attrs: dict) -> Callable:
    (body,) = map(Body, graphs)
    data_at, state_at, rest_at = (
        attrs[k] for k in ("in_data_locs", "in_state_locs", "remain_locs")
    )
    n_data, n_states, n_out = len(data_at), len(state_at), attrs["num_out_data"]

    def kernel(*tensors: Tensor, run: OpContext, **_: Any) -> tuple[Tensor, ...]:
        data, states = tensors[:n_data], list(tensors[n_data : n_data + n_states])
        feed: list[Any] = [None] * (n_data + n_states + len(rest_at))
        for place, value in zip(rest_at, tensors[n_data + n_states :], strict=True):
            feed[place] = value
        steps = []
        for t in range(data[0].shape[0]):
            for place, value in zip(data_at, data, strict=True):
                # MXNet's slices of a vector are arrays of one element.
                feed[place] = value[t] if value.ndim > 1 else value[t : t + 1]
            for place, value in zip(state_at, states, strict=True):
                feed[place] = value
            made = body.run(feed, run)
            steps.append(made[:n_out])
            states = made[n_out:]
        if not steps:
            raise MXNetError("foreach: the data has no slices along axis 0.")
        outs = [torch.stack(column) for column in zip(*steps, strict=True)]
        return (*outs, *states)

    return kernel


@op(
    "_while_loop",
    count="num_args",
    outputs=lambda a: a["num_outputs"],
    cls=HoldsGraphs,
    random=True,
)
def while_loop(
    *data: Tensor,
    num_outputs: int,
    num_out_data: int,
    max_iterations: Positive,
    cond_input_locs: Shape,
    func_input_locs: Shape,
    func_var_locs: Shape,
    pad_outputs: bool = True,
    run: OpContext,
) -> tuple[Tensor, ...]:
    """Run a body while a condition holds; outputs are stacked and padded with zeros.

    Without `pad_outputs` they have as many rows as there were steps.

    >>> out, last = mx.sym.contrib.while_loop(
    ...     lambda i: i < 3, lambda i: (i * 10, [i + 1]), [mx.sym.var("i")], max_iterations=4)
    >>> out.bind(mx.cpu(), {"i": mx.nd.zeros((1,))}).forward()[0].asnumpy().ravel()
    array([ 0., 10., 20.,  0.], dtype=float32)
    """
    raise _only_in_graphs("_while_loop")


def _run_while_loop(graphs: Sequence[Graph], attrs: dict) -> Callable:
    condition, body = map(Body, graphs)
    n_out, limit = attrs["num_out_data"], attrs["max_iterations"]
    # Where each loop variable stands among the inputs of the operator.
    places = [attrs["func_input_locs"][i] for i in attrs["func_var_locs"]]

    def kernel(*tensors: Tensor, run: OpContext, **_: Any) -> tuple[Tensor, ...]:
        values = list(tensors)
        steps = []
        while len(steps) < limit:
            holds = condition.run(_picked(values, attrs["cond_input_locs"]), run)[0]
            if not bool(holds):
                break
            made = body.run(_picked(values, attrs["func_input_locs"]), run)
            steps.append(made[:n_out])
            for place, value in zip(places, made[n_out:], strict=True):
                values[place] = value
        if steps:
            rows = limit if attrs["pad_outputs"] else len(steps)
            outs = [_padded(column, rows) for column in zip(*steps, strict=True)]
        else:  # never entered: run the body once, only to learn the shapes
            with torch.no_grad():
                made = body.run(_picked(values, attrs["func_input_locs"]), run)
            rows = limit if attrs["pad_outputs"] else 0
            outs = [m.new_zeros((rows, *m.shape)) for m in made[:n_out]]
        return (*outs, *_picked(values, places))

    return kernel


def _padded(column: Sequence[Tensor], limit: int) -> Tensor:
    rest = limit - len(column)
    return torch.stack([*column, *[torch.zeros_like(column[0])] * rest])


@op("_cond", count="num_args", outputs=lambda a: a["num_outputs"], cls=HoldsGraphs, random=True)
def cond(
    *data: Tensor,
    num_outputs: int,
    cond_input_locs: Shape,
    then_input_locs: Shape,
    else_input_locs: Shape,
    run: OpContext,
) -> tuple[Tensor, ...]:
    """Run one of two bodies, as a condition says.

    >>> x = mx.sym.var("x")
    >>> out = mx.sym.contrib.cond(x > 0, lambda: x * 2, lambda: x - 1)
    >>> out.bind(mx.cpu(), {"x": mx.nd.array([5])}).forward()[0].asnumpy()
    array([10.], dtype=float32)
    """
    raise _only_in_graphs("_cond")


def _run_cond(graphs: Sequence[Graph], attrs: dict) -> Callable:
    condition, then_body, else_body = map(Body, graphs)

    def kernel(*tensors: Tensor, run: OpContext, **_: Any) -> tuple[Tensor, ...]:
        holds = condition.run(_picked(tensors, attrs["cond_input_locs"]), run)[0]
        if bool(holds):
            return tuple(then_body.run(_picked(tensors, attrs["then_input_locs"]), run))
        return tuple(else_body.run(_picked(tensors, attrs["else_input_locs"]), run))

    return kernel


foreach.runner, while_loop.runner, cond.runner = _run_foreach, _run_while_loop, _run_cond
foreach.subgraph_rule = infer_foreach
while_loop.subgraph_rule = infer_while_loop
cond.subgraph_rule = infer_cond
