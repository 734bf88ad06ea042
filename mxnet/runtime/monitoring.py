"""Shows results, inputs and gradients to monitors and hooks.

Rows have MXNet's order and names. To show gradients, each node reads its own views of its inputs,
so that torch computes the gradient for each of them, and not only their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..graph.gradient_flow import needs_head_gradient
from ..graph.graph import Graph
from ..graph.monitored_names import (
    gradient_rows,
    has_joint_gradient,
    hidden_rows,
    hook_names,
    input_rows,
)
from ..graph.node import Entry, Node
from ..ndarray import NDArray
from ..ops.interpreters import Attrs, Interpreter, Proceed, Tensors
from .array import wrap_plain
from .recording import state

Callback = Callable[[bytes, bytes, NDArray], None]


def run_revealed(
    node: Node, tensors: Tensors, attrs: Attrs, proceed: Proceed
) -> tuple[tuple[Tensor, ...], list[str]]:
    """Run a node with its hidden outputs enabled. Return the results and the hidden names."""
    switch, hidden = hidden_rows(node)
    if hidden and switch is None:
        output = node.operator.variants["hidden_outputs"](attrs)(*tensors)
    else:
        output = proceed(tensors, attrs if switch is None else {**attrs, switch: True})
    return output if isinstance(output, tuple) else (output,), hidden


class OpHook(Interpreter):
    """Calls ``callback(name, operator, array)`` for every result (and input, if `inputs_too`)."""

    def __init__(self, callback: Callback, inputs_too: bool, graph: Graph) -> None:
        self._callback, self._inputs_too = callback, inputs_too
        inputs = [entry for node in graph.nodes for entry in node.inputs]
        # MXNet does not report unused outputs
        self._used = {(entry.node.name, entry.index) for entry in [*inputs, *graph.heads]}

    def run_node(self, node: Node, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Run a node and show its inputs and results."""
        if self._inputs_too:
            present = [t for t in tensors if t is not None]
            for label, value in zip(input_rows(node), present, strict=True):
                self._show(label, node, value)
        if state.recording:  # backward reads hidden outputs, such as a mask of Dropout
            results, hidden = run_revealed(node, tensors, attrs, proceed)
            output = results[: node.outputs] if node.outputs > 1 else results[0]
        else:
            output = proceed(tensors, attrs)
            results, hidden = output if isinstance(output, tuple) else (output,), []
        names = hook_names(node)
        for i, (label, value) in enumerate(zip([*names, *hidden], results, strict=False)):
            if (node.name, i) in self._used or i >= len(names):
                self._show(label, node, value)
        return output

    def _show(self, name: str, node: Node, value: Tensor | NDArray) -> None:
        shown = value.detach()
        array = shown if isinstance(shown, NDArray) else wrap_plain(NDArray, shown)
        self._callback(name.encode(), node.operator.name.encode(), array)  # bytes, as in MXNet


Show = Callable[[str, Tensor], None]


class Watcher(Interpreter):
    """Shows the results of one run, and keeps the views whose gradients backward shows."""

    def __init__(self, show: Show, inputs_too: bool, silent: bool = False) -> None:
        self._show, self._inputs_too, self._silent = show, inputs_too, silent
        self._views: dict[tuple[Node, int], Tensor] = {}
        self._unwanted: dict[Node, list[tuple[int, Tensor]]] = {}

    def run_node(self, node: Node, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Run a node with its hidden outputs enabled, and show its inputs and results."""
        if self._inputs_too and not self._silent:
            self._show_inputs(node, [t for t in tensors if t is not None])
        results, hidden = run_revealed(node, self._split(node, tensors), attrs, proceed)
        if not self._silent:
            for name, value in zip([*node.output_names(), *hidden], results, strict=False):
                self._show(name, value)
        return results[: node.outputs]

    def _show_inputs(self, node: Node, present: Sequence[Tensor]) -> None:
        for entry, name, value in zip(node.inputs, input_rows(node), present, strict=False):
            if entry.node.op is None:
                self._show(entry.node.name, value)
            self._show(name, value)

    def _split(self, node: Node, tensors: Tensors) -> Tensors:
        """Give a node its own view of each input that requires a gradient."""
        if not torch.is_grad_enabled():
            return tensors
        views, position, unwanted = list(tensors), 0, []
        for i, tensor in enumerate(tensors):
            if tensor is None:
                continue
            if isinstance(tensor, Tensor) and tensor.requires_grad:
                views[i] = self._views[node, position] = tensor.view_as(tensor)
            elif isinstance(tensor, Tensor):
                unwanted.append((position, tensor))
            position += 1
        self._unwanted[node] = unwanted
        return views

    @property
    def views(self) -> tuple[Tensor, ...]:
        """The tensors whose gradients are passed to `show_gradients`."""
        return tuple(self._views.values())

    def show_gradients(
        self,
        graph: Graph,
        starts: Sequence[Node],
        head_grads: Mapping[int, Tensor],
        gradients: Sequence[Tensor | None],
    ) -> None:
        """Show the gradients that backward computed for `views`.

        `starts` are the variables whose gradients were requested. `head_grads` are the head
        gradients, keyed by output index.
        """
        grads = dict(zip(self._views, gradients, strict=True))
        reached = {node for (node, _), g in grads.items() if g is not None}
        for (node, i), grad in grads.items():
            if grad is None and node in reached:  # such as a label's
                grads[node, i] = torch.zeros_like(self._views[node, i])
        # MXNet also shows the memory of gradients that were not requested from an operator.
        unwanted = {
            (node, i): torch.zeros_like(tensor)
            for node in reached
            if has_joint_gradient(node)
            for i, tensor in self._unwanted[node]
        }
        for name, value in _Backward(graph, grads, head_grads, unwanted).rows(starts):
            self._show(name, value)


class _Backward:
    """The order in which MXNet computes gradients: a depth-first walk back from the arguments."""

    def __init__(
        self,
        graph: Graph,
        grads: Mapping[tuple[Node, int], Tensor | None],
        head_grads: Mapping[int, Tensor],
        unwanted: Mapping[tuple[Node, int], Tensor],
    ) -> None:
        self._grads, self._head_grads = {**grads, **unwanted}, head_grads
        self._sources: dict[tuple[Node, int], list[tuple]] = {}
        self._shown: dict[Node, list[int]] = {}
        for number in head_grads:
            head = graph.heads[number]
            self._sources.setdefault((head.node, head.index), []).append(("head", number))
        reached = {node for (node, _), g in grads.items() if g is not None}
        for node in reversed(graph.nodes):
            if node in reached:
                for i, entry in enumerate(node.inputs):
                    if (node, i) in grads:
                        self._shown.setdefault(node, []).append(i)
                        self._sources.setdefault(_key(entry), []).append(("node", node, i))
                    elif (node, i) in unwanted:
                        self._shown.setdefault(node, []).append(i)

    def rows(self, starts: Sequence[Node]) -> Iterator[tuple[str, Tensor]]:
        """Return names and values."""
        done: set[tuple] = set()
        # Sparse inputs have no views: nodes that only they lead to come last.
        first = [("sum", start, 0) for start in starts]
        for begin in (*first, *(("node", n) for n in self._shown)):
            stack = [(begin, False)]
            while stack:  # no recursion: chains may be longer than Python's stack
                task, finished = stack.pop()
                if finished:
                    yield from self._rows_of(task)
                elif task not in done:
                    done.add(task)
                    stack.append((task, True))
                    stack.extend((t, False) for t in reversed(self._needs(task)))

    def _needs(self, task: tuple) -> list[tuple]:
        kind, what, *index = task
        if kind == "sum":
            sources = self._sources.get((what, *index), ())
            return [("node", s[1]) if s[0] == "node" else s for s in sources]
        if kind == "node" and needs_head_gradient(what):
            return [("sum", what, i) for i in range(what.outputs) if (what, i) in self._sources]
        return []

    def _rows_of(self, task: tuple) -> Iterator[tuple[str, Tensor]]:
        kind, what, *index = task
        if kind == "head":
            yield f"_head_grad_{what}_id_output", self._head_grads[what]
        elif kind == "node":
            names = gradient_rows(what)
            for i in self._shown.get(what, ()):
                name = names[i]
                if name is not None:
                    yield name, self._grads[what, i]
        else:
            parts = [self._value(s) for s in self._sources.get((what, *index), ())]
            if len(parts) > 1:
                yield "sum_grad_output", sum(parts[1:], parts[0])

    def _value(self, source: tuple) -> Tensor:
        return self._head_grads[source[1]] if source[0] == "head" else self._grads[source[1:]]


def _key(entry: Entry) -> tuple[Node, int]:
    return entry.node, entry.index
