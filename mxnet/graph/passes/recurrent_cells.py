"""One step of a recurrent cell as a pattern, and where a graph has it.

The pattern is a formula over names: `X` the step's input, `H` and `C` the states before, and the
weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...ops.declare import Epilogue
from ...ops.nn.dense import fully_connected
from ...ops.nn.sequences.recurrent import GATES
from ...ops.tensor.math.arithmetic import (
    elemwise_add,
    elemwise_mul,
    elemwise_sub,
    rminus_scalar,
)
from ...ops.tensor.passing import ones_like
from ...ops.tensor.shaping.joining import slice_channel
from ..node import Entry, Node
from ..rewrite import Pattern
from ..typed import TypedGraph

Key = tuple[Node, int]
WEIGHTS = ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")


class CellStep(NamedTuple):
    """One step of a cell that was found in a graph."""

    mode: str
    data: Entry
    states: tuple[Entry, ...]
    weights: tuple[Entry, ...]
    outputs: tuple[Node, ...]  # the new states, each the only output of its node
    inner: frozenset[Node]

    @property
    def keys(self) -> tuple[Key, ...]:
        """The new states."""
        return tuple((node, 0) for node in self.outputs)

    @property
    def state_size(self) -> int:
        """The number of features of a state."""
        gates = next(n for n in self.inner if n.op is fully_connected)
        return gates.typed["num_hidden"] // GATES[self.mode]


def _slices(x: Pattern, parts: int) -> list[Pattern]:
    """Return the parts of equal width that a sum of gates is divided into."""
    required = {"num_outputs": parts, "axis": 1, "squeeze_axis": False}
    return [
        Pattern(slice_channel, of=(x,), output=i, when=lambda node: node.typed == required)
        for i in range(parts)
    ]


def _adds(lhs: Pattern, rhs: Pattern) -> Pattern:
    return Pattern(elemwise_add, of=(lhs, rhs))


def _multiplies(lhs: Pattern | str, rhs: Pattern | str) -> Pattern:
    return Pattern(elemwise_mul, of=(lhs, rhs))


def _activates(x: Pattern, kind: str) -> Pattern:
    required = Epilogue(kind)
    return Pattern(
        lambda op: op.epilogue_rule is not None,
        of=(x,),
        when=lambda node: node.epilogue == required,
    )


def _sigmoid(x: Pattern) -> Pattern:
    return _activates(x, "sigmoid")


def _tanh(x: Pattern) -> Pattern:
    return _activates(x, "tanh")


def _is_linear(node: Node) -> bool:
    return node.typed["flatten"] and not node.typed["no_bias"]


_INPUT = Pattern(fully_connected, of=("X", "i2h_weight", "i2h_bias"), when=_is_linear)
_HIDDEN = Pattern(fully_connected, of=("H", "h2h_weight", "h2h_bias"), when=_is_linear)
_SUM = _adds(_INPUT, _HIDDEN)


def _lstm() -> tuple[Pattern, ...]:
    """``c' = f c + i g``;  ``h' = o tanh(c')``."""
    i, f, g, o = _slices(_SUM, 4)
    cell = _adds(_multiplies(_sigmoid(f), "C"), _multiplies(_sigmoid(i), _tanh(g)))
    return _multiplies(_sigmoid(o), _tanh(cell)), cell


def _gru(complement: Callable[[Pattern], Pattern]) -> tuple[Pattern, ...]:
    """``h' = (1 - z) tanh(i + r h) + z H``."""
    by_input, by_state = _slices(_INPUT, 3), _slices(_HIDDEN, 3)
    reset, update = (_sigmoid(_adds(by_input[k], by_state[k])) for k in range(2))
    new = _tanh(_adds(by_input[2], _multiplies(reset, by_state[2])))
    return (_adds(_multiplies(complement(update), new), _multiplies(update, "H")),)


def _one_minus(x: Pattern) -> Pattern:
    return Pattern(rminus_scalar, of=(x,), when=lambda node: node.typed["scalar"] == 1)


def _ones_minus(x: Pattern) -> Pattern:
    return Pattern(elemwise_sub, of=(Pattern(ones_like, of=(x,)), x))


# The kind of a cell, and its new states.
CELLS: tuple[tuple[str, tuple[Pattern, ...]], ...] = (
    ("lstm", _lstm()),
    ("gru", _gru(_one_minus)),
    ("gru", _gru(_ones_minus)),
    ("rnn_tanh", (_tanh(_SUM),)),
    ("rnn_relu", (_activates(_SUM, "relu"),)),
)


def find_steps(graph: TypedGraph) -> Iterator[CellStep]:
    """Yield the steps of cells whose inner values nothing else reads, in order."""
    if not any(node.op is fully_connected for node in graph.nodes):
        return
    for node in graph.nodes:
        if node.op is None:
            continue
        for mode, states in CELLS:
            entries = states[0].find(node, graph.uses)
            if entries is not None:
                step = _cell_step(mode, states, entries)
                if _is_closed(graph, step):
                    yield step
                break


def _cell_step(
    mode: str, states: tuple[Pattern, ...], entries: dict[Pattern | str, Entry]
) -> CellStep:
    return CellStep(
        mode,
        entries["X"],
        tuple(entries[name] for name in "HC" if name in entries),
        tuple(entries[name] for name in WEIGHTS),
        tuple(entries[pattern].node for pattern in states),
        frozenset(e.node for pattern, e in entries.items() if isinstance(pattern, Pattern)),
    )


def _is_closed(graph: TypedGraph, step: CellStep) -> bool:
    """Return whether nothing else reads what is computed inside."""
    hidden = step.inner.difference(step.outputs)
    return not any(
        graph.nodes[reader] not in step.inner for node in hidden for reader in graph.readers[node]
    ) and not any((node, i) in graph.shown for node in hidden for i in range(node.outputs))
