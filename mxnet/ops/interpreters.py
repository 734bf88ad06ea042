"""Interpreters, which change or observe operator calls while they are active.

Mixed precision, profiling, monitoring and calibration are interpreters. An interpreter handles each
operator call; ``proceed(tensors, attrs)`` runs the next interpreter and finally the kernel:

>>> class Count(Interpreter):
...     calls = 0
...     def run(self, op, tensors, attrs, proceed):
...         self.calls += 1
...         return proceed(tensors, attrs)
>>> x = mx.nd.ones(2)
>>> with Count() as count:
...     _ = mx.nd.relu(x) + 1
>>> count.calls
2

An interpreter for a single graph is not entered, but passed to the run of its program.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from typing_extensions import Self

    from .declare import Op

Tensors = Sequence[Tensor | None]
Attrs = Mapping[str, Any]
Proceed = Callable[[Tensors, Attrs], Any]

# The active interpreters, outermost first: of eager calls, and of the steps of prepared graphs.
# Hot code tests these lists for emptiness, so they are never replaced.
eager: list[Interpreter] = []
graphs: list[Interpreter] = []
# One entry for each interpreter of eager calls, and one for each thread that records. If empty, the
# fastest path skips both checks. (Appending and popping need no lock.)
active: list[None] = []
_lock = threading.Lock()


class Interpreter:
    """Base class; a context manager that is active in all threads between enter and exit."""

    covers_eager: bool = True
    covers_graphs: bool = True

    def run(self, op: Op, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Run an operator; subclasses observe or change inputs and outputs."""
        return proceed(tensors, attrs)

    def run_node(self, node: Any, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Run a node of a graph; by default like a call of its operator."""
        return self.run(node.op, tensors, attrs, proceed)

    def build(self, node: Any) -> None:
        """Observe or change a new node of a function of `mx.sym`."""

    def __enter__(self) -> Self:
        with _lock:
            if self.covers_eager:
                eager.append(self)
                active.append(None)
            if self.covers_graphs:
                graphs.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        with _lock:
            if self in eager:
                eager.remove(self)
                active.pop()
            if self in graphs:
                graphs.remove(self)


def run_kernel(op: Op, tensors: Tensors, attrs: Attrs) -> Any:
    """Run an eager call's kernel through the active interpreters.

    Fused operators are decomposed into MXNet's operators.
    """
    if not eager:
        return op.kernel(*tensors, **attrs)
    if op.decomposition_rule is not None:
        return op.decomposition_rule(_run_part, *tensors, **op.complete(attrs))
    return _descend([partial(i.run, op) for i in eager], op.kernel, tensors, attrs)


def _run_part(op: Op, *tensors: Tensor | None, **attrs: Any) -> Any:
    return run_kernel(op, tensors, attrs)


def run_node(
    stack: Sequence[Interpreter], node: Any, kernel: Callable, tensors: Tensors, attrs: Attrs
) -> Any:
    """Run the kernel of a node in a prepared graph through some interpreters."""
    return _descend([partial(i.run_node, node) for i in stack], kernel, tensors, attrs)


def _descend(runs: Sequence[Callable], kernel: Callable, tensors: Tensors, attrs: Attrs) -> Any:
    if not runs:
        return kernel(*tensors, **attrs)
    *below, innermost = runs
    return innermost(tensors, attrs, partial(_descend, below, kernel))
