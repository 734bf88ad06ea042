"""A graph made ready to run: attributes typed, order fixed, straight calls, early release.

Preparing happens once for each way of running; passes may rewrite the calls before they are fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from ..error import MXNetError, ShapeError
from ..graph.graph import Graph
from ..graph.node import Node
from ..graph.passes.infer import infer_shapes
from ..ops.attributes import to_string
from ..ops.declare import KERNEL_ERRORS, Op
from ..ops.shapes import is_known
from .plan import ABSENT, Call, Plan, Unsuited
from .straight_line import compile_steps, where

Pass = Callable[[Plan], None]


class Step(NamedTuple):
    """One call: which kernel, from which slots, with what, into which slots."""

    kernel: Callable
    inputs: tuple[int, ...]
    attrs: dict[str, Any]
    first: int
    count: int
    dead: tuple[int, ...]
    device: torch.device | None  # where inputs must be, when a graph spans devices
    wraps: bool = True  # whether a single result may come in a tuple

    def call(self, arguments: Sequence[Tensor | None], attrs: Mapping[str, Any]) -> Any:
        """Run the kernel, with inputs moved to where it runs."""
        device = self.device
        if device is not None:
            arguments = [
                a if not isinstance(a, Tensor) or a.device == device else a.to(device)
                for a in arguments
            ]
        return self.kernel(*arguments, **attrs)


class Watching(Protocol):
    """Who looks on while a program runs."""

    def before(self, node: Node, step: Step, arguments: list[Tensor | None]) -> tuple[list, dict]:
        """Return the arguments and attributes to run a step with."""

    def after(self, node: Node, results: Sequence[Tensor]) -> None:
        """See what it made."""


def open_sources(graph: Graph) -> list[Node]:
    """Return the nodes without inputs whose shape is left to their users: ``zeros((0, 4))``."""
    found = []
    for node in graph.nodes:
        if node.op is not None and not node.inputs:
            typed = node.typed
            shape = typed.get("shape", (1,))
            if typed.get("infer_range") or not shape or 0 in shape:
                found.append(node)
    return found


def source_shapes(
    graph: Graph, sources: Sequence[Node], known: Mapping[str, tuple[int, ...]]
) -> dict[Node, tuple[int, ...]]:
    """Return the shapes of `open_sources`, inferred from those of the graph's inputs."""
    if not sources:
        return {}
    found = infer_shapes(graph, known)
    shapes = {node: found.values[node][0] for node in sources}
    for node, shape in shapes.items():
        if not is_known(shape):
            raise ShapeError(
                f"The shape of {node.name!r} ({node.op.name}) cannot be told from the "
                f"inputs {dict(known)}: give it without zeros."
            )
    return shapes


def _with_shape(attrs: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    if "shape" in attrs:
        return {**attrs, "shape": shape}
    steps = shape[0] / attrs["repeat"]  # an arange that runs as far as it is needed
    return {**attrs, "stop": attrs["start"] + steps * attrs["step"], "infer_range": False}


class Program:
    """The prepared form of a graph for training or for prediction.

    It runs step by step at first; a program that is run again and again becomes one function.

    Parameters
    ----------
    graph : what to run.
    training : the mode that operators see.
    device_of : the device of each node; None when there is only one.
    shapes : the inferred shapes of `open_sources`, which cannot know them by themselves.
    kernels : what other programs of this graph run; operators with memory share it.
    passes : what rewrites the calls, in this order; they see graphs on one device only.
    always : rewrites without which the graph does not run, before the others.
    """

    def __init__(
        self,
        graph: Graph,
        training: bool,
        device: torch.device,
        device_of: Mapping[Node, torch.device] | None = None,
        shapes: Mapping[Node, tuple[int, ...]] | None = None,
        kernels: dict[Node, Callable] | None = None,
        passes: Sequence[Pass] = (),
        always: Sequence[Pass] = (),
    ) -> None:
        self.graph = graph
        self.training = training
        self.variables = graph.variables
        self._device, self._device_of = device, device_of
        self._shapes = shapes or {}
        self._kernels = {} if kernels is None else kernels
        self._passes = passes if device_of is None else ()
        self._always = always
        self._written: Program | None = None
        self._first_slot: dict[Node, int] = {}
        self._slots = 1
        for node in self.variables:
            self._claim(node, 1)
        nodes = [n for n in graph.nodes if n.op is not None]
        for node in nodes:
            self._claim(node, node.outputs)
        self._shown = {e.node for e in graph.heads}
        heads = [self._first_slot[e.node] + e.index for e in graph.heads]
        calls = [self._call(node) for node in nodes]
        plan = Plan(calls, heads, len(self.variables), training, device)
        for rewrite in (*self._always, *self._passes):
            rewrite(plan)
        self.heads, self.rearranged = plan.heads, plan.rearranged
        self.nodes = [call.node for call in plan.calls]
        self.steps = self._make_steps(plan.calls)

    @property
    def steps(self) -> list[Step]:
        """What is run, in order; new ones may be set."""
        return self._steps

    @steps.setter
    def steps(self, steps: list[Step]) -> None:
        self._steps = steps
        self._function: Callable | None = None
        self._runs = 0

    def _claim(self, node: Node, count: int) -> None:
        self._first_slot[node] = self._slots
        self._slots += count

    def _call(self, node: Node) -> Call:
        op = node.op
        slots = [self._first_slot[e.node] + e.index for e in node.inputs]
        if op.variadic is None and len(slots) < len(op.inputs):
            by_name = dict(zip(node.input_names, slots, strict=True))
            slots = [by_name.get(i.name, ABSENT) for i in op.inputs]
        attrs = {**node.typed, **op.context_for(self.training, self._where(node))}
        if node in self._shapes:
            attrs = _with_shape(attrs, self._shapes[node])
        # Inside a graph nobody writes into results, so views may stand for copies.
        if op.shared and node not in self._shown:
            kernel = op.shared
        else:
            kernel = self._kernels.get(node) or op.instantiate(node.typed, node.subgraphs)
            self._kernels[node] = kernel
        return Call(node, kernel, tuple(slots), attrs, self._first_slot[node], node.outputs)

    def _where(self, node: Node) -> torch.device:
        return self._device if self._device_of is None else self._device_of[node]

    def _make_steps(self, calls: Sequence[Call]) -> list[Step]:
        dying: dict[int, list[int]] = {}
        for slot, position in self._last_uses(calls).items():
            dying.setdefault(position, []).append(slot)
        steps = []
        for position, c in enumerate(calls):
            device = None if self._device_of is None else self._device_of[c.node]
            dead = tuple(dying.get(position, ()))
            wraps = type(c.node.op) is not Op or not isinstance(c.node.op._outputs, int)
            steps.append(Step(c.kernel, c.inputs, c.attrs, c.first, c.count, dead, device, wraps))
        return steps

    def _last_uses(self, calls: Sequence[Call]) -> dict[int, int]:
        """Return for each slot the step after which nothing needs it; heads are always needed."""
        last: dict[int, int] = {}
        for position, call in enumerate(calls):
            last.update(dict.fromkeys(range(call.first, call.first + call.count), position))
            last.update(dict.fromkeys(call.inputs, position))
        last.pop(ABSENT, None)
        for slot in self.heads:
            last.pop(slot, None)
        return last

    def run(self, feed: Sequence[Tensor]) -> list[Tensor]:
        """Return the heads' values for one tensor per variable, in the order of `variables`."""
        function = self._function
        if function is None:
            return self._run_steps(feed)
        try:
            heads = function(feed)
        except Unsuited:
            return self._as_written().run(feed)
        except KERNEL_ERRORS as error:
            position, values = where(error, function)
            raise self._explain(position, feed, values, error) from error
        return [h.contiguous() for h in heads] if self.rearranged else heads

    def _run_steps(self, feed: Sequence[Tensor]) -> list[Tensor]:
        values = self._start(feed)
        position = -1
        try:
            for position, step in enumerate(self._steps):  # noqa: B007 (read when it fails)
                self._do(step, values)
        except Unsuited:
            return self._as_written().run(feed)
        except KERNEL_ERRORS as error:
            raise self._explain(position, feed, values, error) from error
        self._runs += 1
        if self._runs > 1 and self._device_of is None:
            self._function = compile_steps(self._steps, len(self.variables), self.heads)
        heads = [values[slot] for slot in self.heads]
        return [h.contiguous() for h in heads] if self.rearranged else heads

    def run_watched(self, feed: Sequence[Tensor], watcher: Watching) -> list[Tensor]:
        """Run as `run` does, with somebody who looks on before and after each step."""
        values = self._start(feed)
        for position, (step, node) in enumerate(zip(self.steps, self.nodes, strict=True)):
            arguments, attrs = watcher.before(node, step, [values[i] for i in step.inputs])
            try:
                made = step.call(arguments, attrs)
            except KERNEL_ERRORS as error:
                raise self._explain(position, feed, values, error) from error
            results = made if isinstance(made, tuple) else (made,)
            values[step.first : step.first + step.count] = results[: step.count]
            watcher.after(node, results)
            for slot in step.dead:
                values[slot] = None
        return [values[slot] for slot in self.heads]

    def _as_written(self) -> Program:
        """Return the program that no pass has rewritten."""
        if self._written is None:
            same = (self.graph, self.training, self._device, self._device_of, self._shapes)
            self._written = Program(*same, self._kernels, always=self._always)
        return self._written

    def _start(self, feed: Sequence[Tensor]) -> list[Tensor | None]:
        values: list[Tensor | None] = [None] * self._slots
        values[1 : 1 + len(feed)] = feed
        return values

    @staticmethod
    def _do(step: Step, values: list[Tensor | None]) -> None:
        first, count = step.first, step.count
        made = step.call([values[i] for i in step.inputs], step.attrs)
        if count == 1 and not isinstance(made, tuple):
            values[first] = made
        else:
            values[first : first + count] = made
        for slot in step.dead:
            values[slot] = None

    def _explain(
        self, position: int, feed: Sequence[Tensor], values: Any, error: Exception
    ) -> Exception:
        if position < 0:
            return error
        if (
            self._passes and not self.training
        ):  # the graph as the user wrote it says best what is wrong
            self._as_written().run(feed)
        node, step = self.nodes[position], self.steps[position]
        shapes = []
        for name, slot in zip(node.input_names, step.inputs, strict=False):
            value = values[slot] if slot else None
            if value is not None:
                shapes.append(f"{name} {tuple(value.shape)} {to_string(value.dtype)}")
        made_at = f" The node was made at {node.source[0]}:{node.source[1]}." if node.source else ""
        text = str(error)
        prefix = "" if text.startswith("Error in operator") else f"Error in operator {node.name}: "
        kind = type(error) if isinstance(error, MXNetError) else MXNetError
        return kind(f"{prefix}{text} ({node.op.name}; inputs: {', '.join(shapes)}).{made_at}")
