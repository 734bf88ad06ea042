"""Import rows of sequences and optional values, which exist at import only.

A sequence is a list of tensors, so its operators leave no trace in the graph. Lengths and positions
must be known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions import F
from ..table import imports
from ..value import OnnxNode, SequenceValue, Value
from .axes import axis_within


def _items(node: OnnxNode, sequence: Any) -> list[Value]:
    if not isinstance(sequence, SequenceValue):
        raise node.unsupported("needs a sequence whose length is known at import.")
    return sequence.items


def _made(node: OnnxNode, items: list[Any]) -> SequenceValue:
    """Return a sequence of values or symbols."""
    name = node.output_names[0]
    found = []
    for i, item in enumerate(items):
        if not isinstance(item, Value):
            item = node.importer.completed(Value(f"{name}_{i}", item))
        found.append(item)
    return SequenceValue(name, found)


def _position(node: OnnxNode, at: Value, count: int) -> int:
    place = int(node.constant(at, "position").item())
    if not -count <= place <= count:
        raise node.unsupported(f"uses position {place} of a sequence of {count}.")
    return place + count if place < 0 else place


@imports("SequenceEmpty")
def sequence_empty(node: OnnxNode) -> Any:
    """A sequence of nothing."""
    return _made(node, [])


@imports("SequenceConstruct")
def sequence_construct(node: OnnxNode, *values: Value) -> Any:
    """A sequence of the inputs."""
    return _made(node, list(values))


@imports("SequenceLength")
def sequence_length(node: OnnxNode, sequence: Any) -> Any:
    """The number of tensors."""
    return np.array(len(_items(node, sequence)), dtype=np.int64)


@imports("SequenceAt")
def sequence_at(node: OnnxNode, sequence: Any, at: Value) -> Any:
    """The tensor at a position."""
    items = _items(node, sequence)
    place = _position(node, at, len(items))
    if place == len(items):
        raise node.unsupported(f"uses position {place} of a sequence of {len(items)}.")
    return items[place]


@imports("SequenceInsert")
def sequence_insert(node: OnnxNode, sequence: Any, value: Value, at: Value | None = None) -> Any:
    """The sequence with one more tensor, by default at its end."""
    items = list(_items(node, sequence))
    items.insert(len(items) if at is None else _position(node, at, len(items)), value)
    return _made(node, items)


@imports("SequenceErase")
def sequence_erase(node: OnnxNode, sequence: Any, at: Value | None = None) -> Any:
    """The sequence without one tensor, by default its last."""
    items = list(_items(node, sequence))
    del items[len(items) - 1 if at is None else _position(node, at, len(items))]
    return _made(node, items)


@imports("ConcatFromSequence")
def concat_from_sequence(node: OnnxNode, sequence: Any) -> Any:
    """All tensors joined along an axis, or stacked along a new one."""
    symbols = [v.symbol for v in _items(node, sequence)]
    axis = node.get("axis")
    if node.get("new_axis", 0):
        return F.stack(*symbols, axis=axis, name=node.name)
    return F.concat(*symbols, dim=axis, name=node.name)


@imports("SplitToSequence")
def split_to_sequence(node: OnnxNode, x: Value, split: Value | None = None) -> Any:
    """Parts of an axis; without sizes each slice is a tensor, without the axis if asked."""
    axis = axis_within(node.get("axis", 0), x.rank)
    size = x.sizes[axis]
    keeps_axis = split is not None or bool(node.get("keepdims", 1))
    if split is None:
        sizes = [1] * size
    else:
        given = node.constant(split, "split")
        step = int(given.item()) if given.ndim == 0 else 0
        sizes = [int(n) for n in given] if given.ndim else [step] * (size // step)
        if given.ndim == 0 and size % step:
            sizes.append(size % step)
    ends = np.cumsum(sizes).tolist()
    parts = [
        F.slice_axis(x.symbol, axis=axis, begin=end - n, end=end)
        for n, end in zip(sizes, ends, strict=True)
    ]
    return _made(node, parts if keeps_axis else [F.squeeze(p, axis=axis) for p in parts])


@imports("SequenceMap")
def sequence_map(node: OnnxNode, sequence: Any, *rest: Any) -> Any:
    """The results of a body for each tensor; further sequences go along."""
    graph, first = node.attrs["body"], _items(node, sequence)
    names = [i.name for i in graph.input]
    rows = []
    for i, item in enumerate(first):
        others = [r.items[i] if isinstance(r, SequenceValue) else r for r in rest]
        rows.append(node.importer.run_body(graph, dict(zip(names, [item, *others], strict=True))))
    return [
        SequenceValue(name, [row[i] for row in rows]) for i, name in enumerate(node.output_names)
    ]


@imports("Optional")
def optional(node: OnnxNode, value: Any = None) -> Any:
    """A value that may be absent."""
    return value if value is None or isinstance(value, SequenceValue) else [value]


@imports("OptionalHasElement")
def optional_has_element(node: OnnxNode, value: Any = None) -> Any:
    """Whether there is a value."""
    return np.array(value is not None)


@imports("OptionalGetElement")
def optional_get_element(node: OnnxNode, value: Any) -> Any:
    """The value, which must be there."""
    if value is None:
        raise node.unsupported("reads a value that is absent.")
    return value
