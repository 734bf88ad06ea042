"""Mixed precision as an interpreter of operator calls, which `amp.init` makes active.

Tensors are cast before a kernel runs. In a symbol's graph the casts become nodes, also before
the variables that its function made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ... import dtypes
from ...graph import Entry
from ...graph.node import Node, auxiliary_positions
from ...name import NameManager
from ...ops.declare import Op
from ...ops.interpreters import Attrs, Interpreter, Proceed, Tensors
from ...ops.tensor.passing import amp_cast, amp_multicast

WIDEST = "widest"
MIXED = (torch.bfloat16, torch.float16, torch.float32)  # from narrow to wide


class MixedPrecision(Interpreter):
    """Casts the inputs of operators to the precision they want.

    Parameters
    ----------
    target : str
        The 16-bit type.
    precisions
        Operator -> the type its inputs should have, or "widest".
    conditional
        Operator -> rows (attribute, values) that ask for float32.
    loss_scale
        Returns the current scale of the loss, or None.
    """

    covers_graphs = False  # a graph has its casts as nodes

    def __init__(
        self,
        target: str,
        precisions: Mapping[Op, str],
        conditional: Mapping[Op, Sequence[tuple[str, Sequence[str]]]],
        loss_scale: Callable[[], float | None],
    ) -> None:
        self.target = target
        self.precisions = precisions
        self.conditional = conditional
        self.loss_scale = loss_scale

    def _wanted(self, op: Op, attrs: Attrs) -> str | None:
        for attribute, values in self.conditional.get(op, ()):
            if attrs.get(attribute) in values:
                return "float32"
        return self.precisions.get(op)

    def run(self, op: Op, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Cast the tensors, and scale the gradient that an output layer makes."""
        if op.facts.scales_loss and (scale := self.loss_scale()) is not None:
            attrs = {**attrs, "grad_scale": attrs.get("grad_scale", 1.0) * scale}
        wanted = self._wanted(op, attrs)
        if wanted == WIDEST:
            widest = _widest(tensors)
            cast = None if widest is None else [_cast(t, widest) for t in tensors]
        elif wanted is not None:
            dtype = dtypes.to_torch(wanted)
            cast = [self._cast_here(t, dtype) for t in tensors]
        else:
            cast = None
        return proceed(tensors if cast is None else cast, attrs)

    def _cast_here(self, tensor: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        # As in MXNet, float16 arrays on a CPU stay float16 where float32 is wanted.
        if dtype == torch.float32 and self._keeps_half(tensor):
            return tensor
        return _cast(tensor, dtype)

    def _keeps_half(self, tensor: Tensor | None) -> bool:
        return tensor is not None and self.target == "float16" and not tensor.is_cuda

    def build(self, node: Node) -> None:
        """Put casts between a new node and its inputs."""
        assert node.op is not None
        if node.op.facts.scales_loss:
            logging.warning(
                "%s does not support dynamic loss scaling in symbolic and hybridized execution.",
                node.op.name,
            )
        wanted = self._wanted(node.op, node.attrs)
        if wanted is not None:
            insert_casts(node, wanted)


def _cast(tensor: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return tensor.to(dtype) if tensor is not None and tensor.dtype in MIXED else tensor


def _widest(tensors: Tensors) -> torch.dtype | None:
    """Return the type that tensors of different floating types should have in common."""
    kinds = {t.dtype for t in tensors if t is not None}
    if len(kinds) < 2 or not kinds <= set(MIXED):
        return None
    return max(kinds, key=MIXED.index)


def insert_casts(node: Node, wanted: str) -> None:
    """Put casts between a node and its inputs."""
    kept = auxiliary_positions(node)
    places = [i for i in range(len(node.inputs)) if i not in kept]
    if wanted == WIDEST:
        if len(places) < 2:
            return
        count = str(len(places))
        cast = _node(amp_multicast, {"num_outputs": count}, [node.inputs[i] for i in places])
        made = {place: Entry(cast, k) for k, place in enumerate(places)}
    else:
        made = {i: Entry(_node(amp_cast, {"dtype": wanted}, [node.inputs[i]])) for i in places}
    node.inputs = [made.get(i, entry) for i, entry in enumerate(node.inputs)]


def _node(op: Op, attrs: dict[str, str], inputs: list[Entry]) -> Node:
    return Node(op, NameManager._current.value.get(None, op.name), attrs, inputs)
