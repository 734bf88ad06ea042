"""Graphs of nothing but arithmetic on small arrays, run by NumPy.

A call of torch costs about a microsecond and a half before it computes anything, one of NumPy a
fifth of that. Only functions whose results both round alike are taken, so bits stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..graph.optimize import SPECIALIZE, enabled_passes
from ..ops.families import number
from .schedule import ABSENT, Step
from .straight_line import compile_lines

if TYPE_CHECKING:
    from ..graph.node import Node
    from .program import Program

__all__ = ["SmallArithmetic", "small_arithmetic"]

LARGEST = 2048  # elements; from here on the work itself counts
LEAST_STEPS = 4
DTYPES = (torch.float32, torch.float64)
EXACT = {
    torch.add: np.add,
    torch.sub: np.subtract,
    torch.mul: np.multiply,
    torch.neg: np.negative,
    torch.abs: np.absolute,
    torch.square: np.square,
}


def small_arithmetic(program: Program) -> SmallArithmetic | None:
    """Return the form of a program for small arrays, if it is nothing but arithmetic."""
    if program.mode.differentiable or len(program.nodes) < LEAST_STEPS:
        return None
    if SPECIALIZE not in enabled_passes() or any(e.node.op is None for e in program.graph.heads):
        return None
    if not all(_is_exact(node) for node in program.nodes):
        return None
    return SmallArithmetic(program)


def _is_exact(node: Node) -> bool:
    op = node.op
    return op is not None and op.gradient_rule is None and op.raw in EXACT


class SmallArithmetic:
    """Runs a program on small arrays of one shape and dtype."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._functions: dict[torch.dtype, Callable] = {}

    def run(self, feed: Sequence[Tensor]) -> list[Tensor] | None:
        """Return the heads' values, or None if these tensors are not small and alike."""
        first = feed[0]
        dtype, shape = first.dtype, first.shape
        # Of an array without axes NumPy would make numbers.
        if not shape or first.numel() > LARGEST or dtype not in DTYPES or not first.is_cpu:
            return None
        for tensor in feed[1:]:
            if tensor.shape != shape or tensor.dtype is not dtype or not tensor.is_cpu:
                return None
        function = self._functions.get(dtype)
        if function is None:
            function = self._functions[dtype] = self._compile(dtype)
        with np.errstate(all="ignore"):
            heads = function([t.detach().numpy() for t in feed])
        return [torch.from_numpy(h) for h in heads]

    def _compile(self, dtype: torch.dtype) -> Callable:
        program = self._program
        inputs = "".join(f"v{i}, " for i in range(1, len(program.variables) + 1))
        known: dict[str, Any] = {}
        lines = ["def run(feed):", f" [{inputs}] = feed"]
        for i, (node, step) in enumerate(zip(program.nodes, program.steps, strict=True)):
            lines.append(self._line(i, node, step, dtype, known))
        heads = ", ".join(f"v{slot}" for slot in program.heads)
        return compile_lines([*lines, f" return [{heads}]"], known)

    def _line(
        self, position: int, node: Node, step: Step, dtype: torch.dtype, known: dict[str, Any]
    ) -> str:
        """Return one call, which writes over a value that nothing reads afterward."""
        op = node.operator
        kernel = f"k{position}"
        known[kernel] = EXACT[op.raw]
        given = [f"v{slot}" for slot in step.inputs if slot != ABSENT]
        if len(op.inputs) == 1 and "scalar" in node.typed:
            known[f"n{position}"] = number(node.typed["scalar"], dtype).numpy()
            given.insert(0 if op.swapped else 1, f"n{position}")
        own = [s for s in step.inputs if s in step.dead and s > len(self._program.variables)]
        place = f", v{own[0]}" if own else ""
        return f" v{step.first} = {kernel}({', '.join(given)}{place})"
