"""Steps of a sequence, and the array that holds all of them.

    stack(slice_0(x), slice_1(x), ..)                   =>      x
    stack(concat(slice_0(x), slice_0(y)), ..)           =>      concat(x, y)

Stacked and bidirectional cells hand sequences from one to the next step by step. Where all steps
are there, and in order, no step needs to be taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...ops.tensor.arithmetic import elemwise_add
from ...ops.tensor.joining import concat, slice_channel, stack
from ...ops.tensor.shape_changing import expand_dims, swap_axis
from ...ops.tensor.slicing import reverse
from ..node import Entry, Node
from ..patterns import make_node


class Steps(NamedTuple):
    """An array, and the axis along which it holds steps."""

    entry: Entry
    axis: int

    def along(self, axis: int, name: str) -> Entry:
        """Return the array with the steps along an axis."""
        if self.axis == axis:
            return self.entry
        attrs = {"dim1": self.axis, "dim2": axis}
        return Entry(make_node(swap_axis, name, {"data": self.entry}, attrs))


class Sequences:
    """Finds arrays that hold the steps of sequences, and makes them of such arrays."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[Node, int], ...], Steps] = {}

    def find(self, steps: Sequence[Entry]) -> Steps | None:
        """Return the array that holds these steps in this order, if there is one.

        What is done to every step is done to the whole array.
        """
        key = tuple((entry[0], entry[1]) for entry in steps)
        known = self._known.get(key)
        if known is None and key[::-1] in self._known:
            known = _reversed(self._known[key[::-1]])
        if known is None:
            known = _find_sliced(steps) or self._lift(steps)
        if known is not None:
            self._known[key] = known
        return known

    def _lift(self, steps: Sequence[Entry]) -> Steps | None:
        """Do to all steps at once what nodes do to each."""
        nodes = [entry.node for entry in steps]
        if not _are_alike(nodes):
            return None
        first, inputs = nodes[0], []
        for entries in zip(*(node.inputs for node in nodes), strict=True):
            found = self.find(entries)
            if found is None:
                return None
            inputs.append(found.along(0, f"{first.name}_steps"))
        made = first.copy(inputs)
        if first.op is concat:
            attrs = {**first.attrs, "dim": str(first.typed["dim"] + 1)}
            made = Node(concat, first.name, attrs, inputs, source=first.source)
        return Steps(Entry(made), 0)


def joined_steps(node: Node) -> tuple[list[Entry], int] | None:
    """Return the steps that a node puts one after another, and along which axis."""
    if node.op is stack:
        return list(node.inputs), node.typed["axis"]
    if node.op is not concat:
        return None
    axis = node.typed["dim"]
    makers = [entry.node for entry in node.inputs]
    if all(m.op is expand_dims and m.typed["axis"] == axis for m in makers):
        return [m.inputs[0] for m in makers], axis
    return None


def _find_sliced(steps: Sequence[Entry]) -> Steps | None:
    slices = steps[0].node
    if slices.op is not slice_channel or not slices.typed["squeeze_axis"]:
        return None
    if any(entry.node is not slices for entry in steps):
        return None
    order = [entry.index for entry in steps]
    whole = Steps(slices.inputs[0], slices.typed["axis"])
    if order == list(range(slices.outputs)):
        return whole
    return _reversed(whole) if order[::-1] == list(range(slices.outputs)) else None


def _reversed(whole: Steps) -> Steps:
    inputs, attrs = {"data": whole.entry}, {"axis": (whole.axis,)}
    turned = make_node(reverse, f"{whole.entry.node.name}_reversed", inputs, attrs)
    return Steps(Entry(turned), whole.axis)


def _are_alike(nodes: Sequence[Node]) -> bool:
    """Return whether nodes do one thing to steps, which can be done to all at once."""
    first = nodes[0]
    if first.op is None or first.outputs != 1:
        return False
    if first.op is concat:
        fits = first.typed["dim"] > 0
    else:
        facts, inputs = first.op.facts, len(first.inputs)
        is_unary = facts.pointwise and not facts.random and inputs == 1
        fits = first.op is elemwise_add or is_unary
    return fits and all(
        node.op is first.op and len(node.inputs) == len(first.inputs) and node.typed == first.typed
        for node in nodes
    )
