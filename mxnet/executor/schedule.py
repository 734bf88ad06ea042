"""The schedule of a graph: kernels, slots and last uses. Nothing is rewritten here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ..graph.node import Entry, Node
from ..graph.optimize import IN_PLACE, SPECIALIZE
from ..graph.typed import TypedGraph
from ..ops.declare import Op
from .output_layers import keep_paths, nodes_behind_output_layers

if TYPE_CHECKING:
    from ..ndarray import NDArray

ABSENT = 0  # the slot that always holds None: for optional inputs that are not there
Wrap = Callable[[Node, Callable, Sequence[Entry | None]], Callable]
# What is fed and returned: tensors, or also arrays, where kernels are wrapped.
Value = TypeVar("Value", Tensor, "Tensor | NDArray")


class Step(NamedTuple):
    """One call: which kernel, from which slots, with what, into which slots."""

    kernel: Callable
    inputs: tuple[int, ...]
    attrs: dict[str, Any]
    first: int
    outputs: int
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


class Scheduler:
    """Makes the steps of a graph.

    Parameters
    ----------
    graph : the graph to run.
    variables : the nodes that are fed, in order; the graph may not need them all.
    device : where operators run.
    devices : the device of each node, when there are several.
    kernels : what other programs of the same graph run; operators with memory share it.
    wrap : replaces the kernels of nodes that need more than tensors.
    enabled : names of `graph.optimize` that are switched on.
    """

    def __init__(
        self,
        graph: TypedGraph,
        variables: Sequence[Node],
        device: torch.device,
        devices: Mapping[Node, torch.device] | None,
        kernels: dict[Node, Callable],
        wrap: Wrap | None,
        enabled: Sequence[str],
    ) -> None:
        self.graph, self.device, self.devices = graph, device, devices
        self.kernels, self.wrap = kernels, wrap
        self.specializes, self.writes_in_place = SPECIALIZE in enabled, IN_PLACE in enabled
        self.nodes = [n for n in graph.nodes if n.op is not None]
        self.first_slot: dict[Node, int] = {}
        self.slots = 1
        for node in (*variables, *self.nodes):
            self.first_slot[node] = self.slots
            self.slots += node.outputs
        self.heads = [self.slot(e) for e in graph.heads]
        self.shown = {e.node for e in graph.heads}
        self.behind = nodes_behind_output_layers(graph) if graph.mode.differentiable else {}

    def slot(self, entry: Entry | None) -> int:
        """Return where an entry's value is kept."""
        return ABSENT if entry is None else self.first_slot[entry[0]] + entry[1]

    def steps(self) -> list[Step]:
        """Return what is to be done, in order."""
        inputs = [self._inputs(node) for node in self.nodes]
        slots = [tuple([self.slot(e) for e in entries]) for entries in inputs]
        dead = self._last_uses(slots)
        steps = []
        for node, entries, read, dying in zip(self.nodes, inputs, slots, dead, strict=True):
            kernel, attrs = self._kernel(node, entries)
            if node in self.behind:
                kernel = keep_paths(kernel, entries, self.behind[node])
            device = None if self.devices is None else self.devices[node]
            wraps = type(node.op) is not Op or not isinstance(node.op._outputs, int)
            first = self.first_slot[node]
            steps.append(Step(kernel, read, attrs, first, node.outputs, dying, device, wraps))
        return steps

    def _inputs(self, node: Node) -> Sequence[Entry | None]:
        """Return one entry for each parameter of the operator, None where it is absent."""
        op = node.operator
        if op.variadic is not None or len(node.inputs) == len(op.inputs):
            return node.inputs
        by_name = dict(zip(node.input_names, node.inputs, strict=True))
        return [by_name.get(i.name) for i in op.inputs]

    def _last_uses(self, reads: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return for each step the slots that nothing reads afterward; heads never die."""
        last: dict[int, int] = {}
        for position, (node, read) in enumerate(zip(self.nodes, reads, strict=True)):
            first = self.first_slot[node]
            last.update(dict.fromkeys(range(first, first + node.outputs), position))
            last.update(dict.fromkeys(read, position))
        for slot in (ABSENT, *self.heads):
            last.pop(slot, None)
        dying: list[list[int]] = [[] for _ in self.nodes]
        for slot, position in last.items():
            dying[position].append(slot)
        return [tuple(slots) for slots in dying]

    # -- kernels ------------------------------------------------------------------------------

    def _kernel(
        self, node: Node, entries: Sequence[Entry | None]
    ) -> tuple[Callable, dict[str, Any]]:
        op, mode = node.operator, self.graph.mode
        device = self.device if self.devices is None else self.devices[node]
        attrs = {**node.typed, **op.context_for(mode.training, device)}
        # Inside a graph nobody writes into results, so views may stand for copies.
        view = None if node in self.shown else op.find_variant("view", attrs)
        if view is not None:
            kernel, attrs = view, {}
        else:
            kernel = self._instantiate(node) if op.has_memory else op.kernel
        if self.wrap is not None:
            return self.wrap(node, kernel, entries), attrs
        if self.writes_in_place and "in_place" in op.variants:
            written = self._in_place(node, kernel, attrs)
            if written is not None:
                return written, {}
        if self.specializes and kernel is op.kernel:
            narrow = op.find_variant("node", node.typed, mode.differentiable)
            if narrow is not None:
                return narrow, {}
        return kernel, attrs

    def _instantiate(self, node: Node) -> Callable:
        origin = self.graph.origin(node)
        if origin not in self.kernels:
            self.kernels[origin] = node.operator.instantiate(node.typed, node.subgraphs)
        return self.kernels[origin]

    def _in_place(self, node: Node, kernel: Callable, attrs: dict[str, Any]) -> Callable | None:
        """Return the kernel that writes over an input which nothing else reads."""
        op = node.operator
        if not self._is_free(node.inputs[0]):
            if not op.facts.commutative or not self._is_free(node.inputs[1]):
                return None
            target = 1
        else:
            target = 0
        written = op.find_variant("in_place", node.typed)
        if written is None:
            return None
        if len(node.inputs) == 1:
            return _write_unary(written, kernel, attrs, len(op.inputs) == 1)
        return _write_binary(written, kernel, attrs, target)

    def _is_free(self, entry: Entry) -> bool:
        maker = entry.node
        return (
            maker.op is not None
            and maker.op.facts.overwritable
            and maker.outputs == 1
            and self.graph.uses[maker, 0] == 1
        )


def _write_unary(
    written: Callable, kernel: Callable, attrs: dict[str, Any], has_one_input: bool
) -> Callable:
    def run(data: Tensor) -> Tensor:
        return written(data) if data.dtype.is_floating_point else kernel(data, **attrs)

    def run_with_absent(data: Tensor, *absent: None) -> Tensor:
        return written(data) if data.dtype.is_floating_point else kernel(data, *absent, **attrs)

    return run if has_one_input else run_with_absent


def _write_binary(
    written: Callable, kernel: Callable, attrs: dict[str, Any], target: int
) -> Callable:
    def run(lhs: Tensor, rhs: Tensor) -> Tensor:
        if lhs.shape != rhs.shape or lhs.dtype is not rhs.dtype:
            return kernel(lhs, rhs, **attrs)
        return written(rhs, lhs) if target else written(lhs, rhs)

    return run
