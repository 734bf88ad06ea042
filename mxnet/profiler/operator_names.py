"""Shows operators under their names to torch's profiler, at no cost while nothing is recorded."""

from __future__ import annotations

from typing import Any

from torch._C._profiler import _RecordFunctionFast

from ..imperative.state import state
from ..ops.declare import Op
from ..ops.interpreters import Attrs, Interpreter, Proceed, Tensors


class OperatorNames(Interpreter):
    """Runs each operator as one named event.

    Parameters
    ----------
    eager
        Whether operators called on arrays are recorded.
    graphs
        Whether the steps of prepared graphs are recorded.
    """

    def __init__(self, *, eager: bool, graphs: bool) -> None:
        self.covers_eager, self.covers_graphs = eager, graphs

    def run(self, op: Op, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Run an operator as one event, named ``MyOp::exp`` inside the custom operator MyOp."""
        caller = state.custom_operator
        with _RecordFunctionFast(op.name if caller is None else f"{caller}::{op.name}"):
            return proceed(tensors, attrs)
