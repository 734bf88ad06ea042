"""Puts the casts of mixed precision into a graph.

Before: ``x -> FullyConnected -> softmax``. After: ``x -> amp_cast(float16) -> FullyConnected ->
amp_cast(float32) -> softmax``. Where it is known that a value has the right type there is no cast.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from ... import dtypes
from ...graph import Entry
from ...graph.graph import Graph
from ...graph.interpret import interpret
from ...graph.node import Node, auxiliary_positions
from ...ops import registry
from ...ops.declare import Op
from ...ops.tensor.passing import amp_cast, amp_multicast


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
    """What is asked for: the 16-bit type, and the operators of each kind by name."""

    target: str
    target_ops: Collection[str]
    full_ops: Collection[str]
    widest_ops: Collection[str]
    conditional: Collection[tuple[str, str, Collection[str]]]
    excluded: Collection[str]

    def wants(self, node: Node) -> str | None:
        """Return the type a node's inputs must have, "widest", or None if any will do."""
        if node.name in self.excluded:
            return "float32"
        names = _names(node.operator)
        for name, attribute, values in self.conditional:
            given = node.typed.get(attribute) if name in names else None
            if given is not None and str(given) in values:
                return "float32"
        kinds = (
            (self.target_ops, self.target),
            (self.full_ops, "float32"),
            (self.widest_ops, "widest"),
        )
        return next((kind for ops, kind in kinds if not names.isdisjoint(ops)), None)


@functools.lru_cache(maxsize=1024)
def _names(op: Op) -> frozenset[str]:
    """Return all names of an operator."""
    found = (name for name in registry.names() if registry.find(name) is op)
    return frozenset((*found, op.name))


@dataclass
class MixedPrecision:
    """One conversion: the precision wanted, and the casts made so far."""

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
        """Give a variable the type it was chosen."""
        target = self.precision.target
        dtype = self.types.get(node.name)
        if dtype is None:
            declared = node.extra.get("__dtype__") == str(dtypes.BY_NAME[target].code)
            return Value(Entry(node), target if declared else None)
        extra = {**node.extra, "__dtype__": str(dtypes.BY_NAME[dtype].code)}
        made = Node(None, node.name, extra=extra)
        made.version = node.version
        return Value(Entry(made), dtype if dtype == target else None)

    def apply(self, node: Node, inputs: list[Value]) -> list[Value]:
        """Apply a node to inputs that are cast as it wants them."""
        wanted = self.precision.wants(node)
        if wanted is None:
            known = {value.dtype for value in inputs if not value.is_variable}
            dtype = known.pop() if len(known) == 1 else None
        elif wanted == "widest":
            inputs, dtype = self.widest(inputs)
        elif wanted == "float32":
            # Variables hold 32 bits, unless they were chosen to be 16.
            keep = [value.is_variable and value.dtype is None for value in inputs]
            inputs = [
                value if kept else self.cast(value, wanted)
                for value, kept in zip(inputs, keep, strict=True)
            ]
            dtype = wanted
        else:
            kept = auxiliary_positions(node)
            inputs = [v if i in kept else self.cast(v, wanted) for i, v in enumerate(inputs)]
            dtype = wanted
        entries = [
            Entry(value.entry.node, value.entry.index, old.version)
            if value.is_variable
            else value.entry
            for value, old in zip(inputs, node.inputs, strict=True)
        ]
        made = node.copy(entries)
        return [Value(Entry(made, i), dtype) for i in range(node.outputs)]

    def cast(self, value: Value, dtype: str) -> Value:
        """Return the value in a type; each cast is made once."""
        if value.dtype == dtype:
            return value
        key = (value.entry.node, value.entry.index, dtype)
        if key not in self.casts:
            name = f"{_output_name(value.entry)}_amp_cast_{dtype}"
            made = Node(amp_cast, name, {"dtype": dtype}, [value.entry])
            self.casts[key] = Entry(made)
        return Value(self.casts[key], dtype)

    def widest(self, inputs: list[Value]) -> tuple[list[Value], str | None]:
        """Return inputs of one type, the widest; where some are unknown, it is found on running."""
        known = {value.dtype for value in inputs}
        if None not in known:
            dtype = known.pop() if len(known) == 1 else "float32"
            return [self.cast(value, dtype) for value in inputs], dtype
        if len(inputs) == 1:
            return inputs, None
        made = Node(
            amp_multicast,
            f"{_output_name(inputs[0].entry)}_amp_multicast",
            {"num_outputs": str(len(inputs))},
            [value.entry for value in inputs],
        )
        return [Value(Entry(made, i), None) for i in range(len(inputs))], None


def _output_name(entry: Entry) -> str:
    return entry.node.output_names()[entry.index]


def castable(graph: Graph, precision: Precision) -> set[str]:
    """Return the names of variables that only operators in 16 bits take."""
    found: dict[str, bool] = {}
    for node in graph.nodes:
        low = node.op is not None and precision.wants(node) == precision.target
        for entry in node.inputs:
            if entry.node.op is None:
                found[entry.node.name] = found.get(entry.node.name, True) and low
    return {name for name, low in found.items() if low}
