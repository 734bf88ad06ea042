"""Run unrolled recurrent cells as one call.

    cell(x_0, h), cell(x_1, h_0), ..      =>      slices of _rnn_steps(stack(x_0, x_1, ..), h)

All steps of one cell (LSTM, GRU or RNN, of `mx.rnn` or of `gluon.rnn`) have the same weights and
hand their states on. The kernel for whole sequences takes less than half the time of the steps.
Stacked and bidirectional cells become several calls, between which sequences stay whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from ...ops.attributes import to_string
from ...ops.fused.recurrent import rnn_steps
from ...ops.tensor.joining import slice_channel, stack
from ..node import Entry, Node, auxiliary_positions
from ..patterns import make_node
from ..rebuild import Rebuild
from ..typed import TypedGraph
from .recurrent_cells import WEIGHTS, CellStep, Key, find_steps
from .whole_sequences import Sequences, Steps, joined_steps

LEAST_STEPS = 3
Chain = list[CellStep]


def fuse_recurrent(graph: TypedGraph) -> TypedGraph:
    """Replace chains of steps of one cell by calls for whole sequences."""
    chains = [c for c in _find_chains(graph) if len(c) >= LEAST_STEPS and _pays(graph, c)]
    if not chains:
        return graph
    fused = _fuse(graph, chains)
    if fused is None:  # some of them cannot, such as a cell that reads its last output
        kept: list[Chain] = []
        for chain in chains:
            if _fuse(graph, [*kept, chain]) is not None:
                kept.append(chain)
        fused = _fuse(graph, kept) if kept else None
    return graph if fused is None else fused


def _find_chains(graph: TypedGraph) -> list[Chain]:
    """Return steps that go on with the states of the one before, by the same weights."""
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
    """Return whether a step follows on another, and alone reads its cell state."""
    if step.mode != last.mode or [w[:2] for w in step.weights] != [w[:2] for w in last.weights]:
        return False
    inside = last.inner | step.inner
    return all(
        (node, 0) not in graph.shown
        and all(graph.nodes[reader] in inside for reader in graph.readers[node])
        for node in last.outputs[1:]
    )


def _pays(graph: TypedGraph, chain: Chain) -> bool:
    dtype = graph.type_of(chain[0].data).dtype
    return dtype in (None, torch.float32, torch.float64)


def _fuse(graph: TypedGraph, chains: Sequence[Chain]) -> TypedGraph | None:
    """Return the graph with chains as single nodes; None where their order forbids it."""
    fused = _Fusing(graph, chains).run()
    if fused is None or list(_ordered(fused)) != list(_ordered(graph)):
        return None
    return fused


def _ordered(graph: TypedGraph) -> Iterator[Node]:
    """Yield the nodes that must keep their order: they draw random numbers or change states."""
    for node in graph.nodes:
        if node.op is not None and (node.op.facts.random or auxiliary_positions(node)):
            yield graph.origin(node)


class _Fusing(Rebuild):
    """Rebuilds the graph from its heads, with chains as nodes."""

    def __init__(self, graph: TypedGraph, chains: Sequence[Chain]) -> None:
        super().__init__(graph)
        self.chains = chains
        self.chain_of: dict[Node, Chain] = {}
        for chain in chains:
            self.chain_of.update((step.outputs[0], chain) for step in chain)
            self.chain_of.update((node, chain) for node in chain[-1].outputs)
        self.sequences = Sequences()
        self.made: dict[Node, int] = {}  # the calls, and how many steps they run

    def run(self) -> TypedGraph | None:
        if not self._visit_all():
            return None
        self.applied["fuse_recurrent"] = len(self.chains)
        return self.result()

    def _visit_all(self) -> bool:
        """Make everything below the heads, inputs first; return False at a cycle."""
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
        made = self.updated(node)
        if made is node:
            return
        whole = self._whole(made)
        if whole is not None:
            self.entries[node, 0] = whole
        else:
            self.replace(node, made)

    def _whole(self, node: Node) -> Entry | None:
        """Return the array that a node makes of all outputs of a chain."""
        joined = joined_steps(node)
        if joined is None:
            return None
        steps, axis = joined
        found = self.sequences.find(steps)
        if found is None or not self._has_length(found.entry, len(steps)):
            return None
        return found.along(axis, node.name)

    def _has_length(self, entry: Entry, steps: int) -> bool:
        """Return whether an array has so many steps whatever shapes are given."""
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
        found = self.sequences.find(steps)
        if found is None:
            attrs = {"num_args": to_string(count), "axis": "0"}
            found = Steps(Entry(Node(stack, f"{root.name}_inputs", attrs, steps)), 0)
        inputs = {name: self.mapped(e) for name, e in zip(WEIGHTS, first.weights, strict=True)}
        states = zip(("state", "state_cell"), first.states, strict=False)
        inputs.update((name, self.mapped(entry)) for name, entry in states)
        inputs["data"] = found.entry
        attrs = {"mode": first.mode, "state_size": first.state_size}
        attrs |= {"num_steps": count, "axis": found.axis}
        call = make_node(rnn_steps, f"{root.name}_steps", inputs, attrs)
        call.source, call.extra = root.source, root.extra
        self.made[call] = count
        attrs = {"num_outputs": count, "axis": 0, "squeeze_axis": True}
        outputs = make_node(slice_channel, f"{root.name}_outputs", {"data": Entry(call)}, attrs)
        for i, step in enumerate(chain):
            self.entries[step.outputs[0], 0] = Entry(outputs, i)
        for i, node in enumerate(last.outputs[1:], 2):
            self.entries[node, 0] = Entry(call, i)
