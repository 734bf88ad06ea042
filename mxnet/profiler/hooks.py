"""How operators come to be recorded under their names, at no cost while nothing is recorded.

Kernels are held in three places: by the operator itself, by the eager functions and signs (as
variables of their closures), and by prepared programs. Starting puts recording kernels there;
stopping puts the plain ones back, also into functions that were made meanwhile.
"""

from __future__ import annotations

import copy
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from torch._C._profiler import _RecordFunctionFast

from ..executor.program import Program
from ..ops import registry
from ..ops.declare import Op

# In closures of eager functions: the variable that holds a kernel, and the one that holds its op
# (functions made for one operator also carry it as an attribute).
_CLOSURE_NAMES = (("kernel", "op"), ("number_kernel", "with_number"))
_EAGER_ROOMS = ("mxnet.ndarray", "mxnet.numpy", "mxnet.numpy_extension")


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
            for op in _operators():
                self._set(op, "kernel", recorded(op.name, op.kernel))
                if op.raw is not None:
                    self._set(op, "raw", recorded(op.name, op.raw))
            for cell, op in _closure_cells():
                self._set(cell, "cell_contents", recorded(op.name, cell.cell_contents))
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
        for cell, _ in _closure_cells():
            if isinstance(cell.cell_contents, _Recorded):
                cell.cell_contents = cell.cell_contents.kernel


def _operators() -> Iterator[Op]:
    seen = set()
    for name in registry.names():
        op = registry.get(name)
        if id(op) not in seen:
            seen.add(id(op))
            yield op


def _closure_cells() -> Iterator[tuple[types.CellType, Op]]:
    """Yield the closure variables of eager functions and methods that hold kernels."""
    seen = set()
    for function in _eager_functions():
        named = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for kernel_name, op_name in _CLOSURE_NAMES:
            if kernel_name not in named:
                continue
            cell = named[kernel_name]
            op = named[op_name].cell_contents if op_name in named else vars(function).get("op")
            if id(cell) not in seen and callable(cell.cell_contents) and isinstance(op, Op):
                seen.add(id(cell))
                yield cell, op


def _eager_functions() -> Iterator[types.FunctionType]:
    for name, module in list(sys.modules.items()):
        if module is None or not name.startswith(_EAGER_ROOMS):
            continue
        for value in list(vars(module).values()):
            members = list(vars(value).values()) if isinstance(value, type) else [value]
            for member in members:
                if isinstance(member, types.FunctionType) and member.__closure__:
                    yield member
                    yield from _held_functions(member)


def _held_functions(function: types.FunctionType) -> Iterator[types.FunctionType]:
    """Yield the functions that a function falls back to: they know operator and kernel."""
    for cell in function.__closure__:
        held = cell.cell_contents
        if isinstance(held, types.FunctionType) and held.__closure__:
            yield held


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
