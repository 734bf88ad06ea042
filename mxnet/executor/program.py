"""A graph made ready to run: attributes typed, order fixed, straight calls, early release.

Preparing happens once for each way of running; `run` is a plain loop over kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..error import MXNetError
from ..graph.graph import Graph
from ..graph.node import Node
from ..ops.attributes import to_string

_ABSENT = 0  # the slot that always holds None: for optional inputs that are not there
KERNEL_ERRORS = (RuntimeError, IndexError, TypeError, ValueError)


class Step(NamedTuple):
    """One call: which kernel, from which slots, with what, into which slots."""

    kernel: Callable
    inputs: tuple[int, ...]
    attrs: dict[str, Any]
    first: int
    count: int
    dead: tuple[int, ...]
    device: torch.device | None  # where inputs must be, when a graph spans devices


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


def _with_shape(attrs: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    if "shape" in attrs:
        return {**attrs, "shape": shape}
    steps = shape[0] / attrs["repeat"]  # an arange that runs as far as it is needed
    return {**attrs, "stop": attrs["start"] + steps * attrs["step"], "infer_range": False}


class Program:
    """The prepared form of a graph for training or for prediction.

    Parameters
    ----------
    graph : what to run.
    training : the mode that operators see.
    device_of : the device of each node; None when there is only one.
    shapes : the inferred shapes of `open_sources`, which cannot know them by themselves.
    kernels : what other programs of this graph run; operators with memory share it.
    """

    def __init__(
        self,
        graph: Graph,
        training: bool,
        device: torch.device,
        device_of: Mapping[Node, torch.device] | None = None,
        shapes: Mapping[Node, tuple[int, ...]] | None = None,
        kernels: dict[Node, Callable] | None = None,
    ) -> None:
        self.graph = graph
        self.training = training
        self.variables = graph.variables
        self._device, self._device_of = device, device_of
        self._shapes = shapes or {}
        self._kernels = {} if kernels is None else kernels
        self._first_slot: dict[Node, int] = {}
        self._slots = 1
        for node in self.variables:
            self._claim(node, 1)
        self.nodes = [n for n in graph.nodes if n.op is not None]
        for node in self.nodes:
            self._claim(node, node.outputs)
        self._shown = {e.node for e in graph.heads}
        self.heads = [self._first_slot[e.node] + e.index for e in graph.heads]
        self.steps = self._make_steps()

    def _claim(self, node: Node, count: int) -> None:
        self._first_slot[node] = self._slots
        self._slots += count

    def _make_steps(self) -> list[Step]:
        last_use = self._last_uses()
        dying: dict[int, list[int]] = {}
        for slot, position in last_use.items():
            dying.setdefault(position, []).append(slot)
        return [self._step(node, tuple(dying.get(i, ()))) for i, node in enumerate(self.nodes)]

    def _last_uses(self) -> dict[int, int]:
        """Return for each slot the step after which nothing needs it; heads are always needed."""
        last: dict[int, int] = {}
        for position, node in enumerate(self.nodes):
            first = self._first_slot[node]
            for slot in range(first, first + node.outputs):
                last[slot] = position
            for entry in node.inputs:
                last[self._first_slot[entry.node] + entry.index] = position
        for slot in self.heads:
            last.pop(slot, None)
        return last

    def _step(self, node: Node, dead: tuple[int, ...]) -> Step:
        op = node.op
        slots = [self._first_slot[e.node] + e.index for e in node.inputs]
        if op.variadic is None and len(slots) < len(op.inputs):
            by_name = dict(zip(node.input_names, slots, strict=True))
            slots = [by_name.get(i.name, _ABSENT) for i in op.inputs]
        device = self._device if self._device_of is None else self._device_of[node]
        attrs = {**node.typed, **op.context_for(self.training, device)}
        if node in self._shapes:
            attrs = _with_shape(attrs, self._shapes[node])
        where = None if self._device_of is None else device
        first = self._first_slot[node]
        # Inside a graph nobody writes into results, so views may stand for copies.
        if op.shared and node not in self._shown:
            kernel = op.shared
        else:
            kernel = self._kernels.get(node) or op.instantiate(node.typed, node.subgraphs)
            self._kernels[node] = kernel
        return Step(kernel, tuple(slots), attrs, first, node.outputs, dead, where)

    def run(self, feed: Sequence[Tensor]) -> list[Tensor]:
        """Return the heads' values for one tensor per variable, in the order of `variables`."""
        values = self._start(feed)
        position = -1
        try:
            for position, step in enumerate(self.steps):  # noqa: B007 (read when it fails)
                self._do(step, values)
        except KERNEL_ERRORS as error:
            raise self._explain(position, values, error) from error
        return [values[slot] for slot in self.heads]

    def run_watched(
        self, feed: Sequence[Tensor], watch: Callable[[str, Tensor], None], inputs_too: bool
    ) -> list[Tensor]:
        """Run as `run` does, showing every result (and perhaps input) under its name."""
        values = self._start(feed)
        for position, (step, node) in enumerate(zip(self.steps, self.nodes, strict=True)):
            if inputs_too:
                for entry, slot in zip(node.inputs, step.inputs, strict=False):
                    if entry.node.op is None and slot != _ABSENT:
                        watch(entry.node.name, values[slot])
            shown = step._replace(dead=())
            try:
                self._do(shown, values)
            except KERNEL_ERRORS as error:
                raise self._explain(position, values, error) from error
            for name, slot in zip(node.output_names(), range(step.first, self._slots), strict=False):
                watch(name, values[slot])
            for slot in step.dead:
                values[slot] = None
        return [values[slot] for slot in self.heads]

    def _start(self, feed: Sequence[Tensor]) -> list[Tensor | None]:
        values: list[Tensor | None] = [None] * self._slots
        values[1 : 1 + len(feed)] = feed
        return values

    @staticmethod
    def _do(step: Step, values: list[Tensor | None]) -> None:
        kernel, inputs, attrs, first, count, dead, device = step
        arguments = [values[i] for i in inputs]
        if device is not None:
            arguments = [a if a is None or a.device == device else a.to(device) for a in arguments]
        made = kernel(*arguments, **attrs)
        if count == 1 and not isinstance(made, tuple):
            values[first] = made
        else:
            values[first : first + count] = made
        for slot in dead:
            values[slot] = None

    def _explain(self, position: int, values: list, error: Exception) -> MXNetError:
        node, step = self.nodes[position], self.steps[position]
        shapes = []
        for name, slot in zip(node.input_names, step.inputs, strict=False):
            value = values[slot]
            if value is not None:
                shapes.append(f"{name} {tuple(value.shape)} {to_string(value.dtype)}")
        made_at = f" The node was made at {node.source[0]}:{node.source[1]}." if node.source else ""
        text = str(error)
        prefix = "" if text.startswith("Error in operator") else f"Error in operator {node.name}: "
        kind = type(error) if isinstance(error, MXNetError) else MXNetError
        return kind(f"{prefix}{text} ({node.op.name}; inputs: {', '.join(shapes)}).{made_at}")
