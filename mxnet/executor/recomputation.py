"""The kernel of `_recompute`: run a graph now, and again when backward needs its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ..graph.graph import Graph
from ..graph.node import Node
from ..graph.passes.infer_subgraphs import Axis, Merge, Solve
from ..graph.typed import Mode
from ..memory import map_large_arrays
from ..ops.declare import OpContext
from ..ops.fused.recompute import recompute
from .program import Program


class _Segment:
    """One node's graph, prepared once for each device."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        states = set(graph.auxiliary)
        self._states = [i for i, v in enumerate(graph.variables) if v in states]
        self._programs: dict[torch.device, Program] = {}
        self._is_second_run = False

    def __call__(self, *tensors: Tensor, run: OpContext, **_: Any) -> tuple[Tensor, ...]:
        program = self._programs.get(run.device)
        if program is None:
            mode = Mode(run.training, True)
            program = Program(self._graph, mode, run.device, recompute=False, keeps_layout=True)
            self._programs[run.device] = program

        # Torch keeps its arguments as they are: auxiliary states, which change, are none of them.
        states = {i: tensors[i] for i in self._states}
        given = [t for i, t in enumerate(tensors) if i not in states]

        def forward(*given: Tensor) -> tuple[Tensor, ...]:
            rest = iter(given)
            second = self._is_second_run  # the first run has changed the states already
            feed = [
                next(rest) if i not in states else states[i].clone() if second else states[i]
                for i in range(len(tensors))
            ]
            return tuple(program.run(feed))

        if not torch.is_grad_enabled():
            return forward(*given)
        made = checkpoint(forward, *given, use_reentrant=False, context_fn=self._contexts)
        map_large_arrays(max(t.nbytes for t in made))
        return made

    def _contexts(self) -> tuple[Any, Any]:
        return nullcontext(), self._second_run()

    @contextmanager
    def _second_run(self) -> Iterator[None]:
        before, self._is_second_run = self._is_second_run, True
        try:
            yield
        finally:
            self._is_second_run = before


def _make_kernel(graphs: Sequence[Graph], attrs: dict) -> Callable:
    return _Segment(graphs[0])


def infer_by_graph(
    node: Node, ins: list, solve: Solve, merge: Merge, axis: Axis
) -> tuple[tuple, tuple]:
    """Solve the graph with what is known of its inputs."""
    (body,) = node.subgraphs
    known = {v: value for v, value in zip(body.variables, ins, strict=True) if value is not None}
    found, heads = solve(body, known)
    return tuple(merge(new, old) for new, old in zip(found, ins, strict=True)), tuple(heads)


recompute.runner = _make_kernel
recompute.subgraph_rule = infer_by_graph
