"""`Program`: a graph made ready to run in one mode.

It is optimized and scheduled once, runs step by step at first, and becomes one Python function
when it is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ..error import MXNetError, memory_error
from ..graph.graph import Graph
from ..graph.node import Node
from ..graph.optimize import enabled_passes, optimize, select_passes
from ..graph.passes.resolve_sources import resolve_sources
from ..graph.typed import Inputs, Mode, TypedGraph
from ..ops import interpreters
from ..ops.attributes import to_string
from ..ops.declare import KERNEL_ERRORS
from ..ops.fused.fallback import Fallback
from ..ops.interpreters import Interpreter
from ..ops.kernel_errors import describe_kernel_error
from .schedule import Scheduler, Step, Value, Wrap
from .straight_line import compile_steps, failed_step

__all__ = ["Program", "Step"]


class Program:
    """A graph that is optimized, scheduled and run.

    Parameters
    ----------
    graph : what to run.
    mode : how it is run.
    device : where operators run.
    inputs : what is known of the types of variables.
    devices : the device of each node; None when there is only one. Such graphs are not optimized.
    kernels : what other programs of this graph run; operators with memory share it.
    wrap : replaces the kernels of nodes that need more than tensors.
    optimized : whether passes run and kernels are specialized.
    recompute : whether training computes results again for backward instead of keeping them, or
        the bytes that it may keep; by default ``MXNET_BACKWARD_DO_MIRROR`` decides.
    keeps_layout : whether results may stay in another order in memory, inside another program.
    """

    def __init__(
        self,
        graph: Graph,
        mode: Mode,
        device: torch.device,
        inputs: Inputs = Inputs(),  # noqa: B008 (immutable)
        *,
        devices: Mapping[Node, torch.device] | None = None,
        kernels: dict[Node, Callable] | None = None,
        wrap: Wrap | None = None,
        optimized: bool = True,
        recompute: int | bool | None = None,
        keeps_layout: bool = False,
    ) -> None:
        # Whether some input with a gradient is missing in torch's graph of the outputs, once known.
        self.hides_inputs: bool | None = None
        if not isinstance(graph, TypedGraph):
            graph = TypedGraph(graph.heads, mode, inputs)
        self.source = resolve_sources(graph)
        self.mode, self.device = mode, device
        self.variables = graph.variables
        self._devices, self._wrap = devices, wrap
        self._kernels = {} if kernels is None else kernels
        self._optimized = optimized and devices is None and wrap is None
        self._plain: Program | None = None
        enabled = enabled_passes() if self._optimized else ()
        self.graph = optimize(self.source, select_passes(mode, device, enabled, recompute))
        scheduler = Scheduler(
            self.graph, self.variables, device, devices, self._kernels, wrap, enabled
        )
        self.rearranged = self.graph.is_rearranged and not keeps_layout
        self.nodes, self.heads = scheduler.nodes, scheduler.heads
        self._slots = scheduler.slots
        self.steps = scheduler.steps()

    @property
    def steps(self) -> list[Step]:
        """What is run, in order; new ones may be set."""
        return self._steps

    @steps.setter
    def steps(self, steps: list[Step]) -> None:
        self._steps = steps
        self._function: Callable | None = None
        self._runs = 0

    def run(self, feed: Sequence[Value], *watchers: Interpreter) -> list[Value]:
        """Return the heads' values for one tensor per variable, in the order of `variables`.

        Watchers are interpreters for this run alone.
        """
        function = self._function
        if function is None or interpreters.graphs or watchers:
            return self._run_steps(feed, (*interpreters.graphs, *watchers))
        try:
            heads = function(feed)
        except Fallback:
            return self._unoptimized().run(feed)
        except KERNEL_ERRORS as error:
            position, values = failed_step(error, function)
            raise self._explain(position, feed, values, error) from error
        return [h.contiguous() for h in heads] if self.rearranged else heads

    def _run_steps(self, feed: Sequence[Value], stack: Sequence[Interpreter] = ()) -> list[Value]:
        values: list[Any] = [None] * self._slots
        values[1 : 1 + len(feed)] = feed
        try:
            for position, step in enumerate(self._steps):
                made = self._call(position, step, feed, values, stack)
                if step.outputs == 1 and not isinstance(made, tuple):
                    values[step.first] = made
                else:
                    values[step.first : step.first + step.outputs] = made
                for slot in step.dead:
                    values[slot] = None
        except Fallback:
            return self._unoptimized().run(feed)
        self._runs += not stack
        if self._runs > 1 and self._devices is None and self._function is None:
            self._function = compile_steps(self._steps, len(self.variables), self.heads)
        heads = [values[slot] for slot in self.heads]
        return [h.contiguous() for h in heads] if self.rearranged else heads

    def _call(
        self,
        position: int,
        step: Step,
        feed: Sequence[Any],
        values: list[Any],
        stack: Sequence[Interpreter],
    ) -> Any:
        """Run one step through the interpreters; errors of its kernel name the node."""

        def kernel(*tensors: Any, **attrs: Any) -> Any:
            try:
                return step.call(tensors, attrs)
            except Fallback:
                raise
            except KERNEL_ERRORS as error:
                raise self._explain(position, feed, values, error) from error

        arguments = [values[i] for i in step.inputs]
        return interpreters.run_node(stack, self.nodes[position], kernel, arguments, step.attrs)

    def _unoptimized(self) -> Program:
        """Return the program of the same graph with plain kernels."""
        if self._plain is None:
            self._plain = Program(
                self.source,
                self.mode,
                self.device,
                devices=self._devices,
                kernels=self._kernels,
                wrap=self._wrap,
                optimized=False,
            )
        return self._plain

    def _explain(
        self, position: int, feed: Sequence[Any], values: Any, error: Exception
    ) -> Exception:
        if position < 0:
            return memory_error(error, "a prepared graph") or error
        if self._optimized and not self.mode.training:
            self._unoptimized().run(feed)  # the graph as written names the node that fails
        node, step = self.nodes[position], self.steps[position]
        tensors = [values[slot] if slot else None for slot in step.inputs]
        shapes = [
            f"{name} {tuple(value.shape)} {to_string(value.dtype)}"
            for name, value in zip(node.input_names, tensors, strict=False)
            if value is not None
        ]
        op = node.operator
        memory = memory_error(error, f"Error in operator {node.name} ({op.name})")
        if memory is not None:
            return memory
        made_at = f" The node was made at {node.source[0]}:{node.source[1]}." if node.source else ""
        described = describe_kernel_error(op, tensors, node.typed, error)
        text = str(described)
        prefix = "" if text.startswith("Error in operator") else f"Error in operator {node.name}: "
        kind = type(described) if isinstance(described, MXNetError) else MXNetError
        made = kind(f"{prefix}{text} ({op.name}; inputs: {', '.join(shapes)}).{made_at}")
        made.node = node.name
        return made
