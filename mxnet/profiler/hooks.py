"""Records operators under their names, at no cost while nothing is recorded.

Eager calls are seen by an interpreter; the steps of prepared programs are wrapped one by one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from torch._C._profiler import _RecordFunctionFast

from ..executor.program import Program
from ..ops.declare import Op
from ..ops.interpreters import Attrs, Interpreter, Proceed, Tensors


class OperatorNames(Interpreter):
    """Shows each operator under its name to torch's profiler."""

    covers_graphs = False

    def run(self, op: Op, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Run an operator as one named event."""
        with _RecordFunctionFast(op.name):
            return proceed(tensors, attrs)


class _NamedKernel:
    """A kernel of a prepared program that runs under its operator's name."""

    __slots__ = ("kernel", "name")

    def __init__(self, name: str, kernel: Callable) -> None:
        self.name, self.kernel = name, kernel

    def __call__(self, *tensors: Any, **attrs: Any) -> Any:
        with _RecordFunctionFast(self.name):
            return self.kernel(*tensors, **attrs)


class Hooks:
    """Activates the recording of operators, and ends it."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def install(self, *, eager: bool, graphs: bool) -> None:
        """Record operators called on arrays, in executors, or both."""
        if eager:
            interpreter = OperatorNames().__enter__()
            self._undo.append(interpreter.__exit__)
        if graphs:
            self._set(Program, "run", _with_recorded_steps(Program.run))
            self._set(Program, "run_watched", _with_recorded_steps(Program.run_watched))

    def _set(self, holder: Any, name: str, value: Any) -> None:
        before = getattr(holder, name)
        setattr(holder, name, value)
        self._undo.append(lambda: setattr(holder, name, before))

    def remove(self) -> None:
        """Put everything back as it was."""
        while self._undo:
            self._undo.pop()()


def _with_recorded_steps(run: Callable) -> Callable:
    """Return a way of running programs that records each step under its operator's name."""

    def run_recorded(program: Program, *args: Any, **kwargs: Any) -> Any:
        shown = copy.copy(program)  # the program itself stays as it is, for other threads too
        shown.steps = [
            step._replace(kernel=_NamedKernel(node.op.name, step.kernel))
            for node, step in zip(program.nodes, program.steps, strict=True)
        ]
        return run(shown, *args, **kwargs)

    return run_recorded
