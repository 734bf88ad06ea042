"""Operators that contain graphs: loops, branches, recomputed segments and blockwise regions.

`mx.sym.contrib.foreach`, `while_loop` and `cond` create nodes of the operators declared here. Each
body is prepared once and run in every iteration; torch's autograd records its kernels.
`_recompute` and `_pointwise_blocks` get their kernels here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._process.memory import map_large_arrays
from ..error import MXNetError
from ..graph.graph import Graph
from ..graph.node import Entry, Node
from ..graph.passes.infer import Axis, Merge, Solve, infer_cond, infer_foreach, infer_while_loop
from ..ops.attributes import Positive, Shape
from ..ops.declare import OpContext, op
from ..ops.fused.subgraph_operators import HoldsGraphs, pointwise_blocks, recompute
from .function import GraphFunction, Request


class Body:
    """A graph inside a node."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._function = GraphFunction(graph, is_inside=True)

    def run(self, feed: Sequence[Tensor], context: OpContext) -> list[Tensor]:
        """Return the heads' values for one tensor per variable."""
        # It is not known here whether gradients will be requested.
        return self._function.run(feed, Request(context.training, True, False, context.device))


HoldsGraphs.prepare = Body


def _only_in_graphs(name: str) -> MXNetError:
    return MXNetError(
        f"{name} runs inside graphs only: build it with mx.sym.contrib.{name.lstrip('_')}, or "
        f"compute with arrays by mx.nd.contrib.{name.lstrip('_')}."
    )


def _pick(tensors: Sequence[Tensor], positions: Sequence[int]) -> list[Tensor]:
    return [tensors[i] for i in positions]


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
        for position, value in zip(rest_at, tensors[n_data + n_states :], strict=True):
            feed[position] = value
        steps = []
        for t in range(data[0].shape[0]):
            for position, value in zip(data_at, data, strict=True):
                # In MXNet, slices of a vector are arrays with one element.
                feed[position] = value[t] if value.ndim > 1 else value[t : t + 1]
            for position, value in zip(state_at, states, strict=True):
                feed[position] = value
            heads = body.run(feed, run)
            steps.append(heads[:n_out])
            states = heads[n_out:]
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
    # Position of each loop variable among the inputs of the operator.
    positions = [attrs["func_input_locs"][i] for i in attrs["func_var_locs"]]

    def kernel(*tensors: Tensor, run: OpContext, **_: Any) -> tuple[Tensor, ...]:
        values = list(tensors)
        steps = []
        while len(steps) < limit:
            holds = condition.run(_pick(values, attrs["cond_input_locs"]), run)[0]
            if not bool(holds):
                break
            heads = body.run(_pick(values, attrs["func_input_locs"]), run)
            steps.append(heads[:n_out])
            for position, value in zip(positions, heads[n_out:], strict=True):
                values[position] = value
        if steps:
            rows = limit if attrs["pad_outputs"] else len(steps)
            outs = [_pad(column, rows) for column in zip(*steps, strict=True)]
        else:  # no iteration: run the body once to get the shapes
            with torch.no_grad():
                heads = body.run(_pick(values, attrs["func_input_locs"]), run)
            rows = limit if attrs["pad_outputs"] else 0
            outs = [m.new_zeros((rows, *m.shape)) for m in heads[:n_out]]
        return (*outs, *_pick(values, positions))

    return kernel


def _pad(column: Sequence[Tensor], limit: int) -> Tensor:
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
    """Run one of two bodies, depending on a condition.

    >>> x = mx.sym.var("x")
    >>> out = mx.sym.contrib.cond(x > 0, lambda: x * 2, lambda: x - 1)
    >>> out.bind(mx.cpu(), {"x": mx.nd.array([5])}).forward()[0].asnumpy()
    array([10.], dtype=float32)
    """
    raise _only_in_graphs("_cond")


def _run_cond(graphs: Sequence[Graph], attrs: dict) -> Callable:
    condition, then_body, else_body = map(Body, graphs)

    def kernel(*tensors: Tensor, run: OpContext, **_: Any) -> tuple[Tensor, ...]:
        holds = condition.run(_pick(tensors, attrs["cond_input_locs"]), run)[0]
        if bool(holds):
            return tuple(then_body.run(_pick(tensors, attrs["then_input_locs"]), run))
        return tuple(else_body.run(_pick(tensors, attrs["else_input_locs"]), run))

    return kernel


foreach.runner, while_loop.runner, cond.runner = _run_foreach, _run_while_loop, _run_cond
foreach.subgraph_rule = infer_foreach
while_loop.subgraph_rule = infer_while_loop
cond.subgraph_rule = infer_cond


class _Segment:
    """The graph of a node, which is recomputed in backward."""

    def __init__(self, graphs: Sequence[Graph], attrs: dict[str, Any]) -> None:
        (graph,) = graphs
        states = set(graph.auxiliary)
        self._states = [i for i, v in enumerate(graph.variables) if v in states]
        self._function = GraphFunction(graph, is_inside=True, recompute=False, keeps_layout=True)
        self._is_second_run = False

    def __call__(self, *tensors: Tensor, run: OpContext, **_: Any) -> tuple[Tensor, ...]:
        request = Request(run.training, True, False, run.device)
        # Do not pass auxiliary states as arguments: they are mutated, and torch saves arguments.
        states = {i: tensors[i] for i in self._states}
        arguments = [t for i, t in enumerate(tensors) if i not in states]

        def forward(*arguments: Tensor) -> tuple[Tensor, ...]:
            rest = iter(arguments)
            second = self._is_second_run  # the first run has already updated the states
            feed = [
                next(rest) if i not in states else states[i].clone() if second else states[i]
                for i in range(len(tensors))
            ]
            return tuple(self._function.run(feed, request))

        if not torch.is_grad_enabled():
            return forward(*arguments)
        from torch.utils.checkpoint import checkpoint  # lazy import: it brings in SymPy

        outputs = checkpoint(forward, *arguments, use_reentrant=False, context_fn=self._contexts)
        map_large_arrays(max(t.nbytes for t in outputs))
        return outputs

    def _contexts(self) -> tuple[Any, Any]:
        return nullcontext(), self._second_run()

    @contextmanager
    def _second_run(self) -> Iterator[None]:
        before, self._is_second_run = self._is_second_run, True
        try:
            yield
        finally:
            self._is_second_run = before


def infer_by_graph(
    node: Node, ins: list, solve: Solve, merge: Merge, axis: Axis
) -> tuple[tuple, tuple]:
    """Infer the graph of a node from the known properties of its inputs."""
    (body,) = node.subgraphs
    inputs = {v: value for v, value in zip(body.variables, ins, strict=True) if value is not None}
    variables, heads = solve(body, inputs)
    return tuple(merge(new, old) for new, old in zip(variables, ins, strict=True)), tuple(heads)


recompute.runner = _Segment
recompute.subgraph_rule = infer_by_graph


# Elements per thread of torch: a few blocks fit into the cache, and the overhead of a call is small
# compared with its work. A power of two, so that blocks are whole vectors.
BLOCK = 1 << 17


class _Call(NamedTuple):
    """A call of an operator on a block, with the indices of its input and output buffers."""

    kernel: Callable[..., Tensor]
    inputs: tuple[int, ...]
    output: int


class _Region:
    """The graph of a node, run block by block."""

    def __init__(self, graphs: Sequence[Graph], attrs: dict[str, Any]) -> None:
        (self._graph,) = graphs
        # For small arrays, or arrays of different shapes or types.
        self._function = GraphFunction(self._graph, is_inside=True, keeps_layout=True)
        self._plans: dict[torch.dtype, tuple[list[_Call], int]] = {}

    def __call__(self, *tensors: Tensor, run: OpContext, **_: Any) -> tuple[Tensor, ...]:
        first = tensors[0]
        block = BLOCK * torch.get_num_threads()
        if first.numel() <= 2 * block or not all(_is_alike(t, first) for t in tensors):
            return self._run_whole(tensors, run)
        if first.dtype not in self._plans:
            self._plans[first.dtype] = _plan(self._graph, first.dtype, run)
        calls, scratch = self._plans[first.dtype]
        outputs = [torch.empty_like(first) for _ in self._graph.heads]
        rest = [torch.empty(block, dtype=first.dtype) for _ in range(scratch)]
        flat = [t.view(-1).split(block) for t in (*tensors, *outputs)]
        with torch.no_grad():  # kernels with `out=` raise for tensors with gradients
            for buffers in zip(*flat, strict=True):
                size = len(buffers[0])
                own = rest if size == block else [r[:size] for r in rest]
                values = [*buffers, *own]
                for kernel, inputs, output in calls:
                    kernel(*[values[i] for i in inputs], out=values[output])
        return tuple(outputs)

    def _run_whole(self, tensors: Sequence[Tensor], run: OpContext) -> tuple[Tensor, ...]:
        request = Request(run.training, False, False, run.device)
        return tuple(self._function.run(tensors, request))


def _is_alike(tensor: Tensor, first: Tensor) -> bool:
    same = tensor.shape == first.shape and tensor.dtype is first.dtype
    return same and tensor.is_cpu and tensor.is_contiguous() and tensor.is_floating_point()


def _plan(graph: Graph, dtype: torch.dtype, run: OpContext) -> tuple[list[_Call], int]:
    """Return the calls and the number of temporary buffers.

    A buffer can be reused after its last use, also by the operator that reads it last.
    """
    buffers = {Entry(node)[:2]: i for i, node in enumerate(graph.variables)}
    shown = {e[:2]: len(buffers) + i for i, e in enumerate(graph.heads)}
    nodes = [n for n in graph.nodes if n.op is not None]
    last = {e[:2]: i for i, n in enumerate(nodes) for e in n.inputs}
    taken = fixed = len(buffers) + len(shown)
    free: list[int] = []
    calls = []
    for i, node in enumerate(nodes):
        read = [e[:2] for e in node.inputs]
        inputs = tuple(buffers[e] for e in read)
        free += {buffers[e] for e in read if last[e] == i and buffers[e] >= fixed}
        output = shown.get((node, 0))
        if output is None:
            output = free.pop() if free else taken
            taken = max(taken, output + 1)
        buffers[node, 0] = output
        calls.append(_Call(_kernel_into(node, dtype, run), inputs, output))
    return calls, taken - fixed


def _kernel_into(node: Node, dtype: torch.dtype, run: OpContext) -> Callable[..., Tensor]:
    """Return the variant of an operator's kernel that writes into a buffer."""
    op = node.operator
    variant = op.find_variant("out", node.typed, dtype)
    if variant is not None:
        return variant
    kernel, attrs = op.kernel, {**node.typed, **op.context_for(run.training, run.device)}

    def copy(*tensors: Tensor, out: Tensor) -> Tensor:
        return out.copy_(kernel(*tensors, **attrs))

    return copy


pointwise_blocks.runner = _Region
pointwise_blocks.subgraph_rule = infer_by_graph
