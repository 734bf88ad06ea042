"""How operators come to be recorded under their names, at no cost while nothing is recorded.

Eager calls run the operators' kernels: starting watches these (`Op.watch`), stopping puts the
plain ones back. Prepared programs hold kernels of their own, so running them is replaced.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from torch._C._profiler import _RecordFunctionFast

from ..executor.program import Program
from ..ops import registry


class _Recorded:
    """A kernel that runs under its operator's name while the profiler is on."""

    __slots__ = ("kernel", "name")
    active = False

    def __init__(self, name: str, kernel: Callable) -> None:
        self.name, self.kernel = name, kernel

    def __call__(self, *tensors: Any, **attrs: Any) -> Any:
        # A program that was prepared while recording may keep this object afterwards.
        if not _Recorded.active:
            return self.kernel(*tensors, **attrs)
        with _RecordFunctionFast(self.name):
            return self.kernel(*tensors, **attrs)


def recorded(name: str, kernel: Callable) -> Callable:
    """Return a kernel that shows its name to torch's profiler."""
    return kernel if isinstance(kernel, _Recorded) else _Recorded(name, kernel)


class Hooks:
    """Puts recording kernels in place and takes them away again."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def install(self, *, eager: bool, graphs: bool) -> None:
        """Record operators called on arrays, in executors, or both."""
        _Recorded.active = True
        if eager:
            for op in set(map(registry.get, registry.names())):
                op.watch(recorded)
                self._undo.append(op.unwatch)
        if graphs:
            self._set(Program, "run", _with_recorded_steps(Program.run))
            self._set(Program, "run_watched", _with_recorded_steps(Program.run_watched))

    def _set(self, holder: Any, name: str, value: Any) -> None:
        before = getattr(holder, name)
        setattr(holder, name, value)
        self._undo.append(lambda: setattr(holder, name, before))

    def remove(self) -> None:
        """Put everything back as it was."""
        _Recorded.active = False
        while self._undo:
            self._undo.pop()()


def _with_recorded_steps(run: Callable) -> Callable:
    """Return a way of running programs that records each step under its operator's name."""

    def run_recorded(program: Program, *args: Any, **kwargs: Any) -> Any:
        shown = copy.copy(program)  # the program itself stays as it is, for other threads too
        shown.steps = [
            step._replace(kernel=recorded(node.op.name, step.kernel))
            for node, step in zip(program.nodes, program.steps, strict=True)
        ]
        return run(shown, *args, **kwargs)

    return run_recorded
