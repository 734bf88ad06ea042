"""Recurrent layers and unrolled cells.

    RNN(x, concat(reshape(w1, -1), ..), states)   =>   _rnn_unpacked(x, states, w1, ..)
    FC(slice_0(x), w, b), FC(slice_1(x), w, b)    =>   slices of _project_steps(x, w, b)
    cell(x_0, h), cell(x_1, h_0), ..              =>   slices of _rnn_steps(stack(x_0, ..), h)
    stack(slice_0(x), slice_1(x), ..)             =>   x

`unpack_rnn`: Gluon's layers concatenate all weights to one vector for `RNN`, which splits it again,
on every call. `batch_projections`: an unrolled cell multiplies each step of its input by the same
weight; one product of the whole sequence takes a fraction of the time. `fuse_recurrent`: all steps
of a cell (LSTM, GRU or RNN, of `mx.rnn` or `gluon.rnn`) have the same weights and pass on their
states; the kernel for whole sequences takes less than half the time. Stacked and bidirectional
cells become several calls on whole sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch

from ...ops.attributes import to_string
from ...ops.declare import Epilogue
from ...ops.fused.dense import project_steps
from ...ops.fused.recurrent import rnn_steps, rnn_unpacked
from ...ops.nn.dense import fully_connected
from ...ops.nn.recurrent import GATES, rnn
from ...ops.tensor.arithmetic import elemwise_add, elemwise_mul, elemwise_sub, rminus_scalar
from ...ops.tensor.identity import ones_like
from ...ops.tensor.joining import concat, rnn_param_concat, slice_channel, stack
from ...ops.tensor.shape_changing import expand_dims, reshape, swap_axis
from ...ops.tensor.slicing import reverse
from ..node import Entry, Node, auxiliary_positions
from ..rewrite import Match, Pattern, Rebuild, Rule, make_node, named_inputs, rewrite
from ..typed_graph import TypedGraph

# -- packed weights ---------------------------------------------------------------------------


def _is_vector(entry: Entry) -> bool:
    return entry.node.op is reshape and entry.node.typed["shape"] == (-1,)


def _joins_vectors(node: Node) -> bool:
    return node.typed["dim"] == 0 and all(map(_is_vector, node.inputs))


def _unpack(match: Match) -> Node:
    node = match.root
    data, _, *states = node.inputs
    weights = [flat.node.inputs[0] for flat in match["packed"].inputs]
    inputs = [data, *states, *weights]
    counts = {"num_states": to_string(len(states)), "num_args": to_string(len(inputs))}
    return Node(rnn_unpacked, node.name, {**node.attrs, **counts}, inputs, source=node.source)


PACKED = Pattern((concat, rnn_param_concat), "packed", alone=True, when=_joins_vectors)
UNPACK = [Rule("unpack_rnn", Pattern(rnn, parameters=PACKED), _unpack)]


def unpack_rnn(graph: TypedGraph) -> TypedGraph:
    """Pass weights to recurrent operators without packing them."""
    return rewrite(graph, UNPACK)


MIN_STEPS = 3


# -- projections ------------------------------------------------------------------------------


def batch_projections(graph: TypedGraph) -> TypedGraph:
    """Move fully connected layers with equal weights before the slicing of their data."""
    hoisted = _find(graph)
    if not hoisted:
        return graph

    def take_slice(match: Match) -> Entry | None:
        data = match.root.inputs[0]
        slices = hoisted.get(match.origin(data.node))
        return None if slices is None else Entry(slices, data.index)

    return rewrite(graph, [Rule("batch_projection", Pattern(fully_connected), take_slice)])


def _find(graph: TypedGraph) -> dict[Node, Node]:
    """Return the slicing nodes to replace, each with a node that slices projections."""
    consumers: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for entry in node.inputs:
            if entry.node.op is slice_channel:
                consumers.setdefault(entry.node, []).append(node)
    return {
        node: _hoist(node, nodes[0])
        for node, nodes in consumers.items()
        if len(nodes) == node.outputs >= MIN_STEPS and _can_hoist(graph, node, nodes)
    }


def _can_hoist(graph: TypedGraph, node: Node, consumers: list[Node]) -> bool:
    if not node.typed["squeeze_axis"] or any((node, i) in graph.shown for i in range(node.outputs)):
        return False
    first = consumers[0]
    return all(
        consumer.op is fully_connected
        and consumer.inputs[0].node is node
        and consumer.typed["flatten"]
        and consumer.typed == first.typed
        and [e[:2] for e in consumer.inputs[1:]] == [e[:2] for e in first.inputs[1:]]
        and all(e.node.op is None for e in consumer.inputs[1:])
        for consumer in consumers
    )


def _hoist(slices: Node, consumer: Node) -> Node:
    inputs = {**named_inputs(consumer), "data": slices.inputs[0]}
    attrs = {**consumer.typed, "axis": slices.typed["axis"]}
    projection = make_node(project_steps, f"{consumer.name}_steps", inputs, attrs)
    again = {**slices.typed, "axis": 0}
    return make_node(slice_channel, slices.name, {"data": Entry(projection)}, again)


Key = tuple[Node, int]
WEIGHTS = ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")


# -- cells ------------------------------------------------------------------------------------


class CellStep(NamedTuple):
    """A step of a cell found in a graph."""

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
    """Return patterns for the equal slices of the summed gate projections."""
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


# Types of cells, and patterns of their new states.
CELLS: tuple[tuple[str, tuple[Pattern, ...]], ...] = (
    ("lstm", _lstm()),
    ("gru", _gru(_one_minus)),
    ("gru", _gru(_ones_minus)),
    ("rnn_tanh", (_tanh(_SUM),)),
    ("rnn_relu", (_activates(_SUM, "relu"),)),
)


def find_steps(graph: TypedGraph) -> Iterator[CellStep]:
    """Yield the steps of cells whose inner values have no other consumers, in order."""
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
    """Return whether inner values have no consumers outside."""
    hidden = step.inner.difference(step.outputs)
    return not any(
        graph.nodes[consumer] not in step.inner
        for node in hidden
        for consumer in graph.consumers[node]
    ) and not any((node, i) in graph.shown for node in hidden for i in range(node.outputs))


# -- whole sequences --------------------------------------------------------------------------


class Steps(NamedTuple):
    """An array, and its axis of steps."""

    entry: Entry
    axis: int

    def along(self, axis: int, name: str) -> Entry:
        """Return the array with the steps along an axis."""
        if self.axis == axis:
            return self.entry
        attrs = {"dim1": self.axis, "dim2": axis}
        return Entry(make_node(swap_axis, name, {"data": self.entry}, attrs))


class Sequences:
    """Finds arrays of whole sequences from their steps."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[Node, int], ...], Steps] = {}

    def find(self, steps: Sequence[Entry]) -> Steps | None:
        """Return the array of these steps in this order, or None.

        Operators applied to every step are applied to the whole array.
        """
        key = tuple((entry[0], entry[1]) for entry in steps)
        whole = self._known.get(key)
        if whole is None and key[::-1] in self._known:
            whole = _reverse(self._known[key[::-1]])
        if whole is None:
            whole = _find_sliced(steps) or self._lift(steps)
        if whole is not None:
            self._known[key] = whole
        return whole

    def _lift(self, steps: Sequence[Entry]) -> Steps | None:
        """Apply the nodes' common operation to all steps together."""
        nodes = [entry.node for entry in steps]
        if not _are_alike(nodes):
            return None
        first, inputs = nodes[0], []
        for entries in zip(*(node.inputs for node in nodes), strict=True):
            whole = self.find(entries)
            if whole is None:
                return None
            inputs.append(whole.along(0, f"{first.name}_steps"))
        lifted = first.copy(inputs)
        if first.op is concat:
            attrs = {**first.attrs, "dim": str(first.typed["dim"] + 1)}
            lifted = Node(concat, first.name, attrs, inputs, source=first.source)
        return Steps(Entry(lifted), 0)


def find_joined_steps(node: Node) -> tuple[list[Entry], int] | None:
    """Return the steps that a node stacks or concatenates, and the axis."""
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
    return _reverse(whole) if order[::-1] == list(range(slices.outputs)) else None


def _reverse(whole: Steps) -> Steps:
    inputs, attrs = {"data": whole.entry}, {"axis": (whole.axis,)}
    turned = make_node(reverse, f"{whole.entry.node.name}_reversed", inputs, attrs)
    return Steps(Entry(turned), whole.axis)


def _are_alike(nodes: Sequence[Node]) -> bool:
    """Return whether nodes apply the same operation to steps, which can be batched."""
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


Chain = list[CellStep]


# -- chains of steps --------------------------------------------------------------------------


def fuse_recurrent(graph: TypedGraph) -> TypedGraph:
    """Replace chains of steps of a cell by calls for whole sequences."""
    chains = [c for c in _find_chains(graph) if len(c) >= MIN_STEPS and _is_profitable(graph, c)]
    if not chains:
        return graph
    fused = _fuse(graph, chains)
    if fused is None:  # fails for some, such as a cell that reads its last output
        possible: list[Chain] = []
        for chain in chains:
            if _fuse(graph, [*possible, chain]) is not None:
                possible.append(chain)
        fused = _fuse(graph, possible) if possible else None
    return graph if fused is None else fused


def _find_chains(graph: TypedGraph) -> list[Chain]:
    """Return chains of steps that continue with the previous states and the same weights."""
    chains: dict[tuple[Key, ...], Chain] = {}  # by the states that the next step reads
    for step in find_steps(graph):
        before = chains.get(tuple(s[:2] for s in step.states))
        if before is not None and _continues(graph, before[-1], step):
            del chains[before[-1].keys]
            chain = [*before, step]
        else:
            chain = [step]
        chains[step.keys] = chain
    return list(chains.values())


def _continues(graph: TypedGraph, last: CellStep, step: CellStep) -> bool:
    """Return whether a step follows another one and is the only consumer of its cell state."""
    if step.mode != last.mode or [w[:2] for w in step.weights] != [w[:2] for w in last.weights]:
        return False
    inside = last.inner | step.inner
    return all(
        (node, 0) not in graph.shown
        and all(graph.nodes[consumer] in inside for consumer in graph.consumers[node])
        for node in last.outputs[1:]
    )


def _is_profitable(graph: TypedGraph, chain: Chain) -> bool:
    dtype = graph.type_of(chain[0].data).dtype
    return dtype in (None, torch.float32, torch.float64)


def _fuse(graph: TypedGraph, chains: Sequence[Chain]) -> TypedGraph | None:
    """Return the graph with chains as single nodes; None if their order does not allow it."""
    fused = _Fusing(graph, chains).run()
    if fused is None or list(_list_ordered(fused)) != list(_list_ordered(graph)):
        return None
    return fused


def _list_ordered(graph: TypedGraph) -> Iterator[Node]:
    """Yield the nodes that must keep their order: random draws and changes of states."""
    for node in graph.nodes:
        if node.op is not None and (node.op.facts.random or auxiliary_positions(node)):
            yield graph.origin(node)


class _Fusing(Rebuild):
    """Rebuilds the graph from its heads with chains as nodes."""

    def __init__(self, graph: TypedGraph, chains: Sequence[Chain]) -> None:
        super().__init__(graph)
        self.chains = chains
        self.chain_of: dict[Node, Chain] = {}
        for chain in chains:
            self.chain_of.update((step.outputs[0], chain) for step in chain)
            self.chain_of.update((node, chain) for node in chain[-1].outputs)
        self.sequences = Sequences()
        self.made: dict[Node, int] = {}  # the calls and their numbers of steps

    def run(self) -> TypedGraph | None:
        if not self._visit_all():
            return None
        self.applied["fuse_recurrent"] = len(self.chains)
        return self.result()

    def _visit_all(self) -> bool:
        """Rebuild everything the heads depend on, inputs first; return False for a cycle."""
        done: set[Node] = set()
        started: set[Node] = set()
        pending = [head.node for head in reversed(self.graph.heads)]
        while pending:
            node = self._representative(pending[-1])
            if node in done:
                pending.pop()
            elif node in started:
                pending.pop()
                self._make(node)
                done.add(node)
            else:
                started.add(node)
                missing = [self._representative(e.node) for e in self._sources(node)]
                if any(n in started and n not in done for n in missing):
                    return False
                pending.extend(n for n in reversed(missing) if n not in done)
        return True

    def _representative(self, node: Node) -> Node:
        chain = self.chain_of.get(node)
        return node if chain is None else chain[-1].outputs[0]

    def _sources(self, node: Node) -> Sequence[Entry]:
        chain = self.chain_of.get(node)
        if chain is None:
            return node.inputs
        return [*(step.data for step in chain), *chain[0].states, *chain[0].weights]

    def _make(self, node: Node) -> None:
        chain = self.chain_of.get(node)
        if chain is not None:
            self._make_chain(chain)
            return
        copy = self.updated(node)
        if copy is node:
            return
        whole = self._whole(copy)
        if whole is not None:
            self.entries[node, 0] = whole
        else:
            self.replace(node, copy)

    def _whole(self, node: Node) -> Entry | None:
        """Return the array if a node stacks all outputs of a chain."""
        joined = find_joined_steps(node)
        if joined is None:
            return None
        steps, axis = joined
        whole = self.sequences.find(steps)
        if whole is None or not self._has_length(whole.entry, len(steps)):
            return None
        return whole.along(axis, node.name)

    def _has_length(self, entry: Entry, steps: int) -> bool:
        """Return whether an array has this number of steps for all input shapes."""
        nodes = [entry.node]
        while nodes:
            node = nodes.pop()
            if self.made.get(node) == steps:
                return True
            if node not in self.replaced and node not in self.graph.position:
                nodes.extend(e.node for e in node.inputs)
        return False

    def _make_chain(self, chain: Chain) -> None:
        first, last = chain[0], chain[-1]
        root, count = first.outputs[0], len(chain)
        steps = [self.mapped(step.data) for step in chain]
        whole = self.sequences.find(steps)
        if whole is None:
            attrs = {"num_args": to_string(count), "axis": "0"}
            whole = Steps(Entry(Node(stack, f"{root.name}_inputs", attrs, steps)), 0)
        inputs = {name: self.mapped(e) for name, e in zip(WEIGHTS, first.weights, strict=True)}
        states = zip(("state", "state_cell"), first.states, strict=False)
        inputs.update((name, self.mapped(entry)) for name, entry in states)
        inputs["data"] = whole.entry
        attrs = {"mode": first.mode, "state_size": first.state_size}
        attrs |= {"num_steps": count, "axis": whole.axis}
        call = make_node(rnn_steps, f"{root.name}_steps", inputs, attrs)
        call.source, call.extra = root.source, root.extra
        self.made[call] = count
        attrs = {"num_outputs": count, "axis": 0, "squeeze_axis": True}
        outputs = make_node(slice_channel, f"{root.name}_outputs", {"data": Entry(call)}, attrs)
        for i, step in enumerate(chain):
            self.entries[step.outputs[0], 0] = Entry(outputs, i)
        for i, node in enumerate(last.outputs[1:], 2):
            self.entries[node, 0] = Entry(call, i)
