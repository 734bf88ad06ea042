"""Graph rewriting by tables of rules: a pattern and its replacement.

A pattern names an operator (or a fact about operators) and patterns of its inputs::

    Rule("fold", Pattern(batch_norm, data=Pattern(convolution, "conv", alone=True)), fold)

`fold` gets the `Match` and returns a node that computes the same outputs, or None if the rule does
not apply. `rewrite` applies a table of rules; `Rebuild` is the underlying traversal, for other
passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..ops.attributes import to_string
from ..ops.declare import Op
from .node import Entry, Node
from .typed_graph import TensorType, TypedGraph

Uses = Counter[tuple[Node, int]]


class Pattern:
    """Pattern of a node.

    A pattern or name that occurs twice within another pattern matches the same entry.

    Parameters
    ----------
    what : the operator, several operators, or a predicate of operators. name : name of the node in
    the match. of : patterns of all inputs in order; a string is the name of an arbitrary entry.
    output : index of the node's output. alone : whether the result must not have other consumers.
    when : a predicate of the node, for example of its attributes. inputs : patterns of inputs by
    name; other inputs are arbitrary.
    """

    def __init__(
        self,
        what: Op | Sequence[Op] | Callable[[Op], bool],
        name: str = "",
        *,
        of: Sequence[Pattern | str] | None = None,
        output: int = 0,
        alone: bool = False,
        when: Callable[[Node], bool] | None = None,
        **inputs: Pattern,
    ) -> None:
        if isinstance(what, Op):
            what = (what,)
        self.accepts = what if callable(what) else frozenset(what).__contains__
        self.name, self.of, self.output = name, of, output
        self.alone, self.when, self.inputs = alone, when, inputs

    def find(self, node: Node, uses: Uses) -> dict[Pattern | str, Entry] | None:
        """Match a node; return the matched nodes and entries, or None."""
        bound: dict[Pattern | str, Entry] = {}
        return bound if self._matches(Entry(node, self.output), uses, bound) else None

    def _matches(self, entry: Entry, uses: Uses, bound: dict[Pattern | str, Entry]) -> bool:
        node, index, _ = entry
        if self in bound:
            return bound[self][:2] == (node, index)
        if node.op is None or index != self.output or not self.accepts(node.op):
            return False
        if self.alone and uses[node, index] != 1:
            return False
        if self.when is not None and not self.when(node):
            return False
        bound[self] = entry
        if self.name:
            bound[self.name] = entry
        pairs = self._pair_inputs(node)
        return pairs is not None and all(_matches(p, e, uses, bound) for p, e in pairs)

    def _pair_inputs(self, node: Node) -> Iterable[tuple[Pattern | str, Entry]] | None:
        """Return pairs of patterns and input entries; None if the inputs differ."""
        if self.of is not None:
            fits = len(self.of) == len(node.inputs)
            return zip(self.of, node.inputs, strict=True) if fits else None
        if not self.inputs:
            return ()
        names = node.input_names
        if not self.inputs.keys() <= set(names):
            return None
        return [(p, node.inputs[names.index(name)]) for name, p in self.inputs.items()]


def _matches(
    pattern: Pattern | str, entry: Entry, uses: Uses, bound: dict[Pattern | str, Entry]
) -> bool:
    if isinstance(pattern, str):
        return bound.setdefault(pattern, entry)[:2] == entry[:2]
    return pattern._matches(entry, uses, bound)


class Match(NamedTuple):
    """A match of a pattern: its last node (`root`), the named nodes and entries, and the graph."""

    root: Node
    entries: Mapping[Pattern | str, Entry]
    graph: TypedGraph
    origin: Callable[[Node], Node]

    def __getitem__(  # pyright: ignore[reportIncompatibleMethodOverride] (indexed by name)
        self, name: str
    ) -> Node:
        return self.entries[name].node

    @property
    def is_output(self) -> bool:
        """Whether the root's result is an output of the graph."""
        node = self.origin(self.root)
        return any((node, i) in self.graph.shown for i in range(node.outputs))

    def shape_of(self, entry: Entry) -> tuple[int, ...] | None:
        """Return the shape of a matched entry, or None if unknown."""
        types = self.graph.types.get(self.origin(entry.node))
        return None if types is None else types[entry.index].shape


Replace = Callable[[Match], Node | Entry | None]


class Rule(NamedTuple):
    """A pattern and its replacement; reports count rules by name."""

    name: str
    pattern: Pattern
    replace: Replace


class Table:
    """A pass that applies rules. Consecutive tables share one traversal (`optimize`).

    A rule sees inputs after all of these tables have been applied to them, and builds single nodes.

    Parameters
    ----------
    name : the name of the pass.
    rules : the rules of the pass.
    around : operators of which a graph must contain at least one; otherwise no rule matches.
    """

    def __init__(self, name: str, *rules: Rule, around: Collection[Op] = ()) -> None:
        self.__name__ = name
        self.rules, self.around = rules, around

    def __call__(self, graph: TypedGraph) -> TypedGraph:
        """Apply the rules to a graph."""
        return apply_tables(graph, [self])


def apply_tables(graph: TypedGraph, tables: Iterable[Table]) -> TypedGraph:
    """Apply the rules of several tables in one traversal."""
    present = {node.op for node in graph.nodes}
    fitting = [t for t in tables if not t.around or not present.isdisjoint(t.around)]
    return rewrite(graph, [rule for table in fitting for rule in table.rules])


def make_node(op: Op, name: str, inputs: Mapping[str, Entry], attrs: Mapping[str, Any]) -> Node:
    """Create a node from typed attributes, without those that equal defaults."""
    texts = {
        key: to_string(value)
        for key, value in attrs.items()
        if key in op.attributes and not (key in op.defaults and op.defaults[key] == value)
    }
    node = Node(op, name, texts)
    node.inputs = [inputs[key] for key in node.signature.input_names(op, 0)]
    return node


def named_inputs(node: Node) -> dict[str, Entry]:
    """Return the present inputs of a node by the operator's names."""
    return dict(zip(node.input_names, node.inputs, strict=True))


class Rebuild:
    """A traversal that builds a new graph from an old one.

    Subclasses visit the nodes, inputs first, keep or replace each, and count rules in `applied`.
    `anchors` maps new nodes to the old nodes at whose positions they run; `types` has known types
    of new nodes.
    """

    def __init__(self, graph: TypedGraph) -> None:
        self.graph = graph
        self.entries: dict[tuple[Node, int], Entry] = {}  # changed ones only
        self.replaced: dict[Node, Node] = {}  # new nodes -> the old nodes they replace
        self.anchors: dict[Node, Node] = {}
        self.types: dict[Node, tuple[TensorType, ...]] = {}
        self.applied: Counter[str] = Counter()

    def mapped(self, entry: Entry) -> Entry:
        """Return the new entry of an old entry."""
        return self.entries.get((entry[0], entry[1]), entry)

    def updated(self, node: Node) -> Node:
        """Return a copy with the new inputs; the node itself if none has changed."""
        find = self.entries.get
        inputs = [find((e[0], e[1]), e) for e in node.inputs]
        return node if inputs == list(node.inputs) else node.copy(inputs)

    def replace(self, old: Node, new: Node) -> None:
        """Replace an old node by a new one, output by output."""
        self.replaced[new] = old
        for i in range(old.outputs):
            self.entries[old, i] = Entry(new, i)

    def keep(self, node: Node) -> None:
        """Keep a node, as a copy if its inputs have changed."""
        copy = self.updated(node)
        if copy is not node:
            self.replace(node, copy)

    def result(self) -> TypedGraph:
        """Return the new graph."""
        return TypedGraph(
            [self.mapped(e) for e in self.graph.heads],
            self.graph.mode,
            self.graph.inputs,
            parent=self.graph,
            replaced=self.replaced,
            anchors=self.anchors,
            types=self.types,
            history=Counter(self.graph.history) + self.applied,
        )


def rewrite(graph: TypedGraph, rules: Sequence[Rule]) -> TypedGraph:
    """Apply rules, inputs first, until none matches; return the new graph.

    Rules are tried on replacements too, so that chains collapse in one traversal. If nothing
    matches, the graph is returned unchanged.
    """
    present = {node.op for node in graph.nodes if node.op is not None}
    candidates = {op: [r for r in rules if r.pattern.accepts(op)] for op in present}
    if not any(candidates.values()):
        return graph
    return _Rewriting(graph, rules, candidates).run()


class _Rewriting(Rebuild):
    """A traversal that applies rules."""

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
            new = self.apply(node, rules)
            if new is None:
                break
            if isinstance(new, Entry):
                self.replace_by_entry(old, node, new)
                return
            self.replace_by_node(old, new, node)
            node = new
            op = node.operator
            if op not in self.candidates:
                self.candidates[op] = [r for r in self.rules if r.pattern.accepts(op)]
            rules = self.candidates[op]

    def apply(self, node: Node, rules: Sequence[Rule]) -> Node | Entry | None:
        for rule in rules:
            entries = rule.pattern.find(node, self.uses)
            if entries is not None:
                new = rule.replace(Match(node, entries, self.graph, self.origin))
                if new is not None:
                    self.applied[rule.name] += 1
                    return new
        return None

    def origin(self, node: Node) -> Node:
        return self.replaced.get(node, node)

    def replace_by_node(self, old: Node, new: Node, current: Node) -> None:
        """Replace an old node, so far represented by `current`, by a new one."""
        if new.source is None:
            new.source = old.source
        if not new.extra:
            new.extra = old.extra
        self.replace(old, new)
        for i in range(old.outputs):
            self.uses[new, i] = self.uses[current, i]

    def replace_by_entry(self, old: Node, node: Node, entry: Entry) -> None:
        """Replace an old node's only output by an existing entry."""
        self.entries[old, 0] = entry
        self.uses[entry.node, entry.index] += self.uses[node, 0] - 1
