"""Rewriting graphs by tables of rules: a pattern, and what replaces it.

A pattern names an operator (or a fact about operators) and patterns of its inputs::

    Rule("fold", Pattern(batch_norm, data=Pattern(convolution, "conv", alone=True)), fold)

`fold` gets the `Match` and returns the node that computes the same outputs, or None where the
rule does not apply after all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..ops.attributes import to_string
from ..ops.declare import Op
from .node import Entry, Node
from .rebuild import Rebuild
from .typed import TypedGraph

Uses = Counter[tuple[Node, int]]


class Pattern:
    """A node to look for.

    Parameters
    ----------
    what : the operator, several of them, or a question about an operator.
    name : how the match gives the node to the replacement.
    alone : whether nothing but the pattern may read the node's result.
    when : a question about the node, such as one about its attributes.
    inputs : patterns of inputs by their names; inputs that are not named may be anything.
    """

    def __init__(
        self,
        what: Op | Sequence[Op] | Callable[[Op], bool],
        name: str = "",
        *,
        alone: bool = False,
        when: Callable[[Node], bool] | None = None,
        **inputs: Pattern,
    ) -> None:
        if isinstance(what, Op):
            what = (what,)
        self.accepts = what if callable(what) else frozenset(what).__contains__
        self.name, self.alone, self.when, self.inputs = name, alone, when, inputs

    def match(self, node: Node, uses: Uses, found: dict[str, Node]) -> bool:
        """Return whether a node fits, and put the named nodes into `found`."""
        if node.op is None or not self.accepts(node.op):
            return False
        if self.when is not None and not self.when(node):
            return False
        if self.inputs:
            names = node.input_names
            for name, pattern in self.inputs.items():
                if name not in names:
                    return False
                entry = node.inputs[names.index(name)]
                if pattern.alone and uses[entry[0], entry[1]] != 1:
                    return False
                if entry[1] != 0 or not pattern.match(entry[0], uses, found):
                    return False
        if self.name:
            found[self.name] = node
        return True


class Match(NamedTuple):
    """Where a pattern was found: its last node (`root`), its named nodes, and the graph."""

    root: Node
    named: Mapping[str, Node]
    graph: TypedGraph
    origin: Callable[[Node], Node]

    def __getitem__(  # pyright: ignore[reportIncompatibleMethodOverride] (nobody counts fields)
        self, name: str
    ) -> Node:
        return self.named[name]

    @property
    def is_output(self) -> bool:
        """Whether users see the result of the root."""
        node = self.origin(self.root)
        return any((node, i) in self.graph.shown for i in range(node.outputs))

    def shape_of(self, entry: Entry) -> tuple[int, ...] | None:
        """Return the shape of an entry that the pattern reads, if it is known."""
        types = self.graph.types.get(self.origin(entry.node))
        return None if types is None else types[entry.index].shape


Replace = Callable[[Match], Node | Entry | None]


class Rule(NamedTuple):
    """A pattern and its replacement; reports count rules by name."""

    name: str
    pattern: Pattern
    replace: Replace


def make_node(op: Op, name: str, inputs: Mapping[str, Entry], attrs: Mapping[str, Any]) -> Node:
    """Return a node from typed attributes; those that are defaults are left out."""
    given = {
        key: to_string(value)
        for key, value in attrs.items()
        if key in op.attributes and not (key in op.defaults and op.defaults[key] == value)
    }
    node = Node(op, name, given)
    node.inputs = [inputs[key] for key in op.names_of_inputs(node.typed)]
    return node


def named_inputs(node: Node) -> dict[str, Entry]:
    """Return the inputs of a node that are present, by the operator's names for them."""
    return dict(zip(node.input_names, node.inputs, strict=True))


def rewrite(graph: TypedGraph, rules: Sequence[Rule]) -> TypedGraph:
    """Apply rules wherever they fit, inputs first, until none fits; return the new graph.

    A replacement is offered to the rules again, so that chains collapse in one walk. A graph in
    which nothing fits is returned as it is.
    """
    present = {node.op for node in graph.nodes if node.op is not None}
    candidates = {op: [r for r in rules if r.pattern.accepts(op)] for op in present}
    if not any(candidates.values()):
        return graph
    return _Rewriting(graph, rules, candidates).run()


class _Rewriting(Rebuild):
    """One walk that applies rules."""

    def __init__(
        self, graph: TypedGraph, rules: Sequence[Rule], candidates: dict[Op, list[Rule]]
    ) -> None:
        super().__init__(graph)
        self.rules, self.candidates = rules, candidates
        self.uses: Uses = graph.uses.copy()

    def run(self) -> TypedGraph:
        for node in self.graph.nodes:
            if node.op is not None:
                self.visit(node)
        return self.result() if self.applied else self.graph

    def visit(self, old: Node) -> None:
        node = self.updated(old) if self.entries else old
        if node is not old:
            self.replace_by_node(old, node, old)
        rules = self.candidates.get(node.operator, ())
        while rules:
            made = self.apply(node, rules)
            if made is None:
                break
            if isinstance(made, Entry):
                self.replace_by_entry(old, node, made)
                return
            self.replace_by_node(old, made, node)
            node = made
            op = node.operator
            if op not in self.candidates:
                self.candidates[op] = [r for r in self.rules if r.pattern.accepts(op)]
            rules = self.candidates[op]

    def apply(self, node: Node, rules: Sequence[Rule]) -> Node | Entry | None:
        for rule in rules:
            found: dict[str, Node] = {}
            if rule.pattern.match(node, self.uses, found):
                made = rule.replace(Match(node, found, self.graph, self.origin))
                if made is not None:
                    self.applied[rule.name] += 1
                    return made
        return None

    def origin(self, node: Node) -> Node:
        return self.replaced.get(node, node)

    def replace_by_node(self, old: Node, new: Node, current: Node) -> None:
        """Let a new node stand for an old one, for which `current` stood until now."""
        if new.source is None:
            new.source = old.source
        if not new.extra:
            new.extra = old.extra
        self.replace(old, new)
        for i in range(old.outputs):
            self.uses[new, i] = self.uses[current, i]

    def replace_by_entry(self, old: Node, node: Node, entry: Entry) -> None:
        """Let an entry that is there already stand for an old node's only output."""
        self.entries[old, 0] = entry
        self.uses[entry.node, entry.index] += self.uses[node, 0] - 1
