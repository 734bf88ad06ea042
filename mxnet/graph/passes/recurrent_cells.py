"""One step of a recurrent cell as a formula, and where a graph has it.

A formula is a tree of operators over names: `X` the step's input, `H` and `C` the states before,
and the weights. Matching it against a node binds the names to entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...ops.declare import Epilogue, Op
from ...ops.nn.dense import fully_connected
from ...ops.nn.recurrent import GATES
from ...ops.tensor.arithmetic import elemwise_add, elemwise_mul, elemwise_sub, rminus_scalar
from ...ops.tensor.joining import slice_channel
from ...ops.tensor.passing import ones_like
from ..node import Entry, Node
from ..typed import TypedGraph

Key = tuple[Node, int]
WEIGHTS = ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")


class Formula(NamedTuple):
    """An operator, which may be one of several, over formulas or names; `output` of its node."""

    accepts: Callable[[Node], bool]
    inputs: tuple[Formula | str, ...]
    output: int = 0


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


def _of(op: Op) -> Callable[[Node], bool]:
    return lambda node: node.op is op


def _activates(kind: str) -> Callable[[Node], bool]:
    wanted = Epilogue(kind)
    return lambda node: node.epilogue == wanted


def _slices(parts: int) -> Callable[[Node], bool]:
    wanted = {"num_outputs": parts, "axis": 1, "squeeze_axis": False}
    return lambda node: node.op is slice_channel and node.typed == wanted


def _adds(lhs: Formula, rhs: Formula) -> Formula:
    return Formula(_of(elemwise_add), (lhs, rhs))


def _multiplies(lhs: Formula | str, rhs: Formula | str) -> Formula:
    return Formula(_of(elemwise_mul), (lhs, rhs))


def _sigmoid(x: Formula) -> Formula:
    return Formula(_activates("sigmoid"), (x,))


def _tanh(x: Formula) -> Formula:
    return Formula(_activates("tanh"), (x,))


def _is_linear(node: Node) -> bool:
    return node.op is fully_connected and node.typed["flatten"] and not node.typed["no_bias"]


_INPUT = Formula(_is_linear, ("X", "i2h_weight", "i2h_bias"))
_HIDDEN = Formula(_is_linear, ("H", "h2h_weight", "h2h_bias"))
_SUM = _adds(_INPUT, _HIDDEN)


def _lstm() -> tuple[Formula, ...]:
    """``c' = f c + i g``;  ``h' = o tanh(c')``."""
    i, f, g, o = (Formula(_slices(4), (_SUM,), gate) for gate in range(4))
    cell = _adds(_multiplies(_sigmoid(f), "C"), _multiplies(_sigmoid(i), _tanh(g)))
    return _multiplies(_sigmoid(o), _tanh(cell)), cell


def _gru(complement: Callable[[Formula], Formula]) -> tuple[Formula, ...]:
    """``h' = (1 - z) tanh(i + r h) + z H``."""
    by_input = [Formula(_slices(3), (_INPUT,), gate) for gate in range(3)]
    by_state = [Formula(_slices(3), (_HIDDEN,), gate) for gate in range(3)]
    reset, update = (_sigmoid(_adds(by_input[k], by_state[k])) for k in range(2))
    new = _tanh(_adds(by_input[2], _multiplies(reset, by_state[2])))
    return (_adds(_multiplies(complement(update), new), _multiplies(update, "H")),)


def _one_minus(x: Formula) -> Formula:
    return Formula(lambda node: node.op is rminus_scalar and node.typed["scalar"] == 1, (x,))


def _ones_minus(x: Formula) -> Formula:
    return Formula(_of(elemwise_sub), (Formula(_of(ones_like), (x,)), x))


CELLS: tuple[tuple[str, tuple[Formula, ...]], ...] = (
    ("lstm", _lstm()),
    ("gru", _gru(_one_minus)),
    ("gru", _gru(_ones_minus)),
    ("rnn_tanh", (_tanh(_SUM),)),
    ("rnn_relu", (Formula(_activates("relu"), (_SUM,)),)),
)


def find_steps(graph: TypedGraph) -> Iterator[CellStep]:
    """Yield the steps of cells whose inner values nothing else reads, in order."""
    if not any(node.op is fully_connected for node in graph.nodes):
        return
    for node in graph.nodes:
        if node.op is None:
            continue
        for mode, formulas in CELLS:
            step = _match_cell(mode, formulas, node)
            if step is not None:
                if _is_closed(graph, step):
                    yield step
                break


def _match_cell(mode: str, formulas: tuple[Formula, ...], root: Node) -> CellStep | None:
    names: dict[str, Entry] = {}
    made: dict[int, Entry] = {}  # what each formula stands for
    if not _match(formulas[0], Entry(root), names, made):
        return None
    weights = tuple(names[name] for name in WEIGHTS)
    states = tuple(names[name] for name in "HC" if name in names)
    outputs = tuple(made[id(formula)].node for formula in formulas)
    inner = frozenset(entry.node for entry in made.values())
    return CellStep(mode, names["X"], states, weights, outputs, inner)


def _match(
    formula: Formula | str, entry: Entry, names: dict[str, Entry], made: dict[int, Entry]
) -> bool:
    if isinstance(formula, str):
        return names.setdefault(formula, entry)[:2] == entry[:2]
    known = made.get(id(formula))
    if known is not None:
        return known[:2] == entry[:2]
    node = entry.node
    if node.op is None or entry.index != formula.output or not formula.accepts(node):
        return False
    if len(node.inputs) != len(formula.inputs):
        return False
    made[id(formula)] = entry
    pairs = zip(formula.inputs, node.inputs, strict=True)
    return all(_match(inner, given, names, made) for inner, given in pairs)


def _is_closed(graph: TypedGraph, step: CellStep) -> bool:
    """Return whether nothing else reads what is computed inside."""
    hidden = step.inner.difference(step.outputs)
    return not any(
        graph.nodes[reader] not in step.inner for node in hidden for reader in graph.readers[node]
    ) and not any((node, i) in graph.shown for node in hidden for i in range(node.outputs))
