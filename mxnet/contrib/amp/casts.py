"""The casts of mixed precision: before operators that are called, and in graphs.

`MixedPrecision` is an interpreter of operator calls, activated by `amp.init`: tensors are cast
before a kernel runs. In a symbol's graph the casts are nodes, also before automatically created
variables. `MixedGraph` converts a graph: ``x -> FullyConnected -> softmax`` becomes ``x ->
amp_cast(float16) -> FullyConnected -> amp_cast(float32) -> softmax``. Values known to have the
right type are not cast.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ... import dtypes
from ...graph import Entry
from ...graph.graph import Graph, interpret
from ...graph.node import Node, auxiliary_positions
from ...name import NameManager
from ...ops import registry
from ...ops.declare import Op
from ...ops.interpreters import Attrs, Interpreter, Proceed, Tensors
from ...ops.tensor.identity import amp_cast, amp_multicast

WIDEST = "widest"
MIXED = (torch.bfloat16, torch.float16, torch.float32)  # from narrow to wide


class MixedPrecision(Interpreter):
    """Casts the inputs of operators to their precision.

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

    def _precision_of(self, op: Op, attrs: Attrs) -> str | None:
        for attribute, values in self.conditional.get(op, ()):
            if attrs.get(attribute) in values:
                return "float32"
        return self.precisions.get(op)

    def run(self, op: Op, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Cast the tensors, and scale the gradient of an output layer."""
        if op.facts.scales_loss and (scale := self.loss_scale()) is not None:
            attrs = {**attrs, "grad_scale": attrs.get("grad_scale", 1.0) * scale}
        precision = self._precision_of(op, attrs)
        if precision == WIDEST:
            widest = _widest(tensors)
            cast = None if widest is None else [_cast(t, widest) for t in tensors]
        elif precision is not None:
            dtype = dtypes.to_torch(precision)
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
        return tensor is not None and self.target == "float16" and tensor.is_cpu

    def build(self, node: Node) -> None:
        """Insert casts between a new node and its inputs."""
        assert node.op is not None
        if node.op.facts.scales_loss:
            logging.warning(
                "%s does not support dynamic loss scaling in symbolic and hybridized execution.",
                node.op.name,
            )
        precision = self._precision_of(node.op, node.attrs)
        if precision is not None:
            insert_casts(node, precision)


def _cast(tensor: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return tensor.to(dtype) if tensor is not None and tensor.dtype in MIXED else tensor


def _widest(tensors: Tensors) -> torch.dtype | None:
    kinds = {t.dtype for t in tensors if t is not None}
    if len(kinds) < 2 or not kinds <= set(MIXED):
        return None
    return max(kinds, key=MIXED.index)


def insert_casts(node: Node, precision: str) -> None:
    """Insert casts between a node and its inputs."""
    states = auxiliary_positions(node)
    positions = [i for i in range(len(node.inputs)) if i not in states]
    if precision == WIDEST:
        if len(positions) < 2:
            return
        count = str(len(positions))
        cast = _node(amp_multicast, {"num_outputs": count}, [node.inputs[i] for i in positions])
        casts = {position: Entry(cast, k) for k, position in enumerate(positions)}
    else:
        casts = {
            i: Entry(_node(amp_cast, {"dtype": precision}, [node.inputs[i]])) for i in positions
        }
    node.inputs = [casts.get(i, entry) for i, entry in enumerate(node.inputs)]


def _node(op: Op, attrs: dict[str, str], inputs: list[Entry]) -> Node:
    return Node(op, NameManager._current.value.get(None, op.name), attrs, inputs)


class Value(NamedTuple):
    """An entry of the new graph, and its type if it is known to be one of the two."""

    entry: Entry
    dtype: str | None

    @property
    def is_variable(self) -> bool:
        """Whether it is an input of the graph."""
        return self.entry.node.op is None


@dataclass
class Precision:
    """The requested conversion: the 16-bit type, and the operators of each kind by name."""

    target: str
    target_ops: Collection[str]
    full_ops: Collection[str]
    widest_ops: Collection[str]
    conditional: Collection[tuple[str, str, Collection[str]]]
    excluded: Collection[str]

    def wants(self, node: Node) -> str | None:
        """Return the required type of a node's inputs, "widest", or None for any type."""
        if node.name in self.excluded:
            return "float32"
        names = _names(node.operator)
        for name, attribute, values in self.conditional:
            value = node.typed.get(attribute) if name in names else None
            if value is not None and str(value) in values:
                return "float32"
        kinds = (
            (self.target_ops, self.target),
            (self.full_ops, "float32"),
            (self.widest_ops, "widest"),
        )
        return next((kind for ops, kind in kinds if not names.isdisjoint(ops)), None)


@functools.lru_cache(maxsize=1024)
def _names(op: Op) -> frozenset[str]:
    names = (name for name in registry.names() if registry.find(name) is op)
    return frozenset((*names, op.name))


@dataclass
class MixedGraph:
    """One conversion: the requested precision, and the casts added so far."""

    precision: Precision
    types: dict[str, str]
    casts: dict[tuple, Entry] = field(default_factory=dict)

    def convert(self, graph: Graph) -> list[Entry]:
        """Return the heads of the new graph, all in 32 bits."""
        heads = interpret(graph, self.feed, self.apply)
        return [
            value.entry if value.is_variable else self.cast(value, "float32").entry
            for value in heads
        ]

    def feed(self, node: Node) -> Value:
        """Set the type that was chosen for a variable."""
        target = self.precision.target
        dtype = self.types.get(node.name)
        if dtype is None:
            declared = node.extra.get("__dtype__") == str(dtypes.BY_NAME[target].code)
            return Value(Entry(node), target if declared else None)
        extra = {**node.extra, "__dtype__": str(dtypes.BY_NAME[dtype].code)}
        variable = Node(None, node.name, extra=extra)
        variable.version = node.version
        return Value(Entry(variable), dtype if dtype == target else None)

    def apply(self, node: Node, inputs: list[Value]) -> list[Value]:
        """Apply a node to inputs that are cast to its precision."""
        precision = self.precision.wants(node)
        if precision is None:
            types = {value.dtype for value in inputs if not value.is_variable}
            dtype = types.pop() if len(types) == 1 else None
        elif precision == "widest":
            inputs, dtype = self.widest(inputs)
        elif precision == "float32":
            # Variables hold 32 bits, unless they were chosen to be 16.
            keep = [value.is_variable and value.dtype is None for value in inputs]
            inputs = [
                value if keeps else self.cast(value, precision)
                for value, keeps in zip(inputs, keep, strict=True)
            ]
            dtype = precision
        else:
            states = auxiliary_positions(node)
            inputs = [v if i in states else self.cast(v, precision) for i, v in enumerate(inputs)]
            dtype = precision
        entries = [
            Entry(value.entry.node, value.entry.index, old.version)
            if value.is_variable
            else value.entry
            for value, old in zip(inputs, node.inputs, strict=True)
        ]
        copy = node.copy(entries)
        return [Value(Entry(copy, i), dtype) for i in range(node.outputs)]

    def cast(self, value: Value, dtype: str) -> Value:
        """Return the value in a type; each cast is added once."""
        if value.dtype == dtype:
            return value
        key = (value.entry.node, value.entry.index, dtype)
        if key not in self.casts:
            name = f"{_output_name(value.entry)}_amp_cast_{dtype}"
            cast = Node(amp_cast, name, {"dtype": dtype}, [value.entry])
            self.casts[key] = Entry(cast)
        return Value(self.casts[key], dtype)

    def widest(self, inputs: list[Value]) -> tuple[list[Value], str | None]:
        """Return inputs cast to their widest type; unknown types are resolved at run time."""
        types = {value.dtype for value in inputs if value.dtype is not None}
        if all(value.dtype is not None for value in inputs):
            dtype = types.pop() if len(types) == 1 else "float32"
            return [self.cast(value, dtype) for value in inputs], dtype
        if len(inputs) == 1:
            return inputs, None
        cast = Node(
            amp_multicast,
            f"{_output_name(inputs[0].entry)}_amp_multicast",
            {"num_outputs": str(len(inputs))},
            [value.entry for value in inputs],
        )
        return [Value(Entry(cast, i), None) for i in range(len(inputs))], None


def _output_name(entry: Entry) -> str:
    return entry.node.output_names()[entry.index]


def castable(graph: Graph, precision: Precision) -> set[str]:
    """Return the names of variables that only operators in 16 bits take."""
    is_low: dict[str, bool] = {}
    for node in graph.nodes:
        low = node.op is not None and precision.wants(node) == precision.target
        for entry in node.inputs:
            if entry.node.op is None:
                is_low[entry.node.name] = is_low.get(entry.node.name, True) and low
    return {name for name, low in is_low.items() if low}
