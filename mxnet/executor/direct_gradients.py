"""Forward and backward of a small graph as two straight-line functions.

Torch records a node for each kernel, walks the nodes and hands gradients over one by one. In a
small network that takes longer than the products. If all operators of a graph have formulas of
their derivatives (`ops/derivatives.py`), the whole graph is one node here: backward calls the
formulas, and gradients of parameters are written into their arrays at once.

Nothing else changes: `autograd.grad`, `retain_graph`, ``grad_req='add'`` and parameters that other
parts of a recording use as well see the same gradients, and a gradient that is recorded itself
(`create_graph`) comes from torch's own graph.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ..graph.optimize import DIRECT_GRADIENTS, IN_PLACE, enabled_passes
from ..ops.declare import Op
from .schedule import ABSENT, Scheduler, Step
from .straight_line import compile_lines, forward_lines

if TYPE_CHECKING:
    from ..graph.node import Node
    from ..ops.derivatives import Formulas
    from .program import Program

__all__ = ["DirectGradients", "direct_gradients"]

LARGEST = 1 << 23  # bytes of all results; in larger networks the cost of torch's graph is small


class Derivable(NamedTuple):
    """A step with the formulas of its gradients, and the slots of its inputs by name."""

    step: Step
    formulas: Formulas
    slots: Mapping[str, int]

    @property
    def targets(self) -> list[tuple[str, int]]:
        """Inputs that can get a gradient, and their slots."""
        found = [(name, self.slots[name]) for name in self.formulas if name in self.slots]
        return [(name, slot) for name, slot in found if slot != ABSENT]

    def arguments(self, name: str) -> list[tuple[str, int]]:
        """Return what a formula is given: values (v) and gradients (g) of slots."""
        found = []
        for parameter in inspect.signature(self.formulas[name]).parameters.values():
            if parameter.name == "grad":
                found.append(("g", self.step.first))
            elif parameter.name == "out":
                found.append(("v", self.step.first))
            elif parameter.name in self.slots:
                found.append(("v", self.slots[parameter.name]))
        return found

    def takes_place(self, name: str) -> bool:
        """Return whether a formula can write into given memory."""
        return "into" in inspect.signature(self.formulas[name]).parameters


def direct_gradients(program: Program) -> DirectGradients | None:
    """Return the two functions of a program's graph, if its operators have formulas."""
    graph, enabled = program.graph, enabled_passes()
    if DIRECT_GRADIENTS not in enabled or len(program.heads) != 1 or program.rearranged:
        return None
    nodes = [n for n in graph.nodes if n.op is not None]
    formulas = [_formulas(n) for n in nodes]
    if not nodes or None in formulas or graph.heads[0].node.op is None:
        return None
    if graph.result_bytes > LARGEST:
        return None
    kept = [name for name in enabled if name != IN_PLACE]  # formulas read results
    steps = Scheduler(graph, program.variables, program.device, None, {}, None, kept).steps()
    derivable = [
        Derivable(step, found, dict(zip(_input_names(n), step.inputs, strict=True)))
        for n, step, found in zip(nodes, steps, formulas, strict=True)
        if found is not None
    ]
    return DirectGradients(program, derivable)


def _input_names(node: Node) -> list[str]:
    return [] if node.op is None else [i.name for i in node.op.inputs]


def _formulas(node: Node) -> Formulas | None:
    op = node.op
    if type(op) is not Op or op.derivative_rule is None or op.gradient_rule is not None:
        return None
    return None if node.outputs != 1 or op.variadic else op.derivative_rule(node.typed)


class DirectGradients:
    """Runs a graph forward, and later its gradients backward.

    Parameters
    ----------
    program : the same graph on torch's autograd.
    steps : what runs forward, nothing in place, with formulas.
    """

    def __init__(self, program: Program, steps: Sequence[Derivable]) -> None:
        self.program, self._steps, self._head = program, steps, program.heads[0]
        read = {
            slot
            for step in steps
            for name, _ in step.targets
            for kind, slot in step.arguments(name)
            if kind == "v"
        }
        variables = range(1, len(program.variables) + 1)
        self._saved = [*variables, *sorted(read - {ABSENT, *variables})]
        self._backward: dict[tuple[bool, ...], Callable] = {}
        self.forward = self._compile_forward()

    def gradients(
        self,
        grad: Tensor,
        saved: Sequence[Tensor],
        wanted: tuple[bool, ...],
        into: Sequence[Tensor | None],
    ) -> list[Tensor | None]:
        """Return gradients of the variables, computed into given memory where possible."""
        function = self._backward.get(wanted)
        if function is None:
            function = self._backward[wanted] = self._compile_backward(wanted)
        return function(grad, saved, into)

    def recorded_gradients(
        self, grad: Tensor, feed: Sequence[Tensor], wanted: tuple[bool, ...]
    ) -> list[Tensor | None]:
        """Return gradients that can be differentiated again: torch's, of the graph run again."""
        asked = [t for t, is_wanted in zip(feed, wanted, strict=True) if is_wanted]
        head = self.program.run(feed)[0]
        found = iter(torch.autograd.grad(head, asked, grad, create_graph=True, allow_unused=True))
        return [next(found) if is_wanted else None for is_wanted in wanted]

    # -- code ---------------------------------------------------------------------------------

    def _compile_forward(self) -> Callable:
        """Return ``run(feed) -> result, saved values``."""
        known: dict[str, Any] = {}
        kept = {self._head, *self._saved}
        steps = [
            s.step._replace(dead=tuple(d for d in s.step.dead if d not in kept))
            for s in self._steps
        ]
        lines = forward_lines(steps, len(self.program.variables), known)
        saved = [f"v{slot}" for slot in self._saved]
        if self._head in self._saved:  # a result that kept itself would never be freed
            saved[self._saved.index(self._head)] += ".detach()"
        return compile_lines([*lines, f" return v{self._head}, ({', '.join(saved)},)"], known)

    def _compile_backward(self, wanted: tuple[bool, ...]) -> Callable:
        """Return ``run(grad, saved, into) -> gradients of the variables``."""
        places = {i + 1 for i, is_wanted in enumerate(wanted) if is_wanted}
        calls = self._calls(places)
        uses = Counter(target for _, _, target in calls)
        known: dict[str, Any] = {}
        saved = "".join(f"v{slot}, " for slot in self._saved)
        lines = ["def run(grad, saved, into):", f" {saved}= saved", f" g{self._head} = grad"]
        made = {self._head}
        for number, (step, name, target) in enumerate(calls):
            known[f"f{number}"] = step.formulas[name]
            given = [f"{kind}{slot}" for kind, slot in step.arguments(name)]
            if step.takes_place(name) and target in places and uses[target] == 1:
                given.append(f"into=into[{target - 1}]")
            before = f"g{target} + " if target in made else ""
            lines.append(f" g{target} = {before}f{number}({', '.join(given)})")
            made.add(target)
        found = [f"g{i + 1}" if i + 1 in made & places else "None" for i in range(len(wanted))]
        return compile_lines([*lines, f" return [{', '.join(found)}]"], known)

    def _calls(self, places: set[int]) -> list[tuple[Derivable, str, int]]:
        """Return which formulas to call, last steps first, and whose gradients they give."""
        tracked = set(places)  # slots that depend on a variable that wants a gradient
        for step in self._steps:
            if any(slot in tracked for _, slot in step.targets):
                tracked.add(step.step.first)
        calls, reached = [], {self._head} & tracked
        for step in reversed(self._steps):
            if step.step.first in reached:
                found = [(step, name, slot) for name, slot in step.targets if slot in tracked]
                reached.update(slot for _, _, slot in found)
                calls += found
        return calls
