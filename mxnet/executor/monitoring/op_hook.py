"""`OpHook`: what ``register_op_hook`` of Gluon blocks shows, and what calibration sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ...graph.node import Node
from ...imperative.handle import wrap_plain
from ...ndarray import NDArray
from ...ops.interpreters import Attrs, Interpreter, Proceed, Tensors

Callback = Callable[[str, str, NDArray], None]


class OpHook(Interpreter):
    """Calls ``callback(name, operator, array)`` for every result, perhaps every input too."""

    def __init__(self, callback: Callback, inputs_too: bool) -> None:
        self._callback, self._inputs_too = callback, inputs_too

    def run_node(self, node: Node, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Run a node and show what goes in and comes out."""
        if self._inputs_too:
            present = [t for t in tensors if t is not None]
            for label, value in zip(node.input_names, present, strict=True):
                self._show(f"{node.name}_{label}", node, value)
        made = proceed(tensors, attrs)
        results = made if isinstance(made, tuple) else (made,)
        for label, value in zip(node.output_names(), results, strict=False):
            self._show(label, node, value)
        return made

    def _show(self, name: str, node: Node, value: Tensor | NDArray) -> None:
        shown = value.detach()
        array = shown if isinstance(shown, NDArray) else wrap_plain(NDArray, shown)
        self._callback(name, node.operator.name, array)
