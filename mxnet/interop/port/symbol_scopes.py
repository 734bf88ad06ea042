"""The nesting of a symbol's nodes, by the prefixes of their names and by data flow.

Nodes with a common prefix become a scope if data enters and leaves the group only once. Otherwise,
data flow decides: parallel nodes between two points that all data passes are branches or a residual
unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...graph import Entry, Graph, Node
from ...ops.nn.activation import activation, leaky_relu
from ...ops.tensor.arithmetic import (
    add_n,
    broadcast_add,
    broadcast_mul,
    elemwise_add,
    elemwise_mul,
)
from ...ops.tensor.elementwise import relu
from ...ops.tensor.joining import concat
from .scopes import Scope, boundary

MAX_INPUTS, MAX_OUTPUTS = 4, 2
MIN_NODES = 2
MIN_JOINS = 2  # minimum for a named scope to be searched for structure
RESIDUAL = "ResidualUnit"
JOINS = (elemwise_add, broadcast_add, add_n)
ACTIVATIONS = (activation, leaky_relu, relu)
# Words of names that describe the operator, and not a part of the network.
JOIN_WORDS = re.compile(r"^(ch|concat|chconcat|plus|elemwise|broadcast|add|n|_?plus)?\d*$")

Items = list[Any]  # nodes and scopes


def scope_of_graph(graph: Graph, title: str, parameters: set[str]) -> Scope:
    """Return the scopes of a graph."""
    nodes = [n for n in graph.nodes if n.op is not None]
    return _Nesting(nodes, graph.heads, parameters).root(title)


def nest_symbol_blocks(scope: Scope, graph: Graph, parameters: set[str]) -> None:
    """Nest the nodes of each `SymbolBlock` as those of a symbol."""
    for item in scope.items:
        if isinstance(item, Scope):
            nest_symbol_blocks(item, graph, parameters)
    if scope.is_symbol:
        heads = boundary(scope, graph)[1]
        nested = _Nesting(list(scope.nodes()), heads, parameters).root(scope.title)
        scope.items, scope.names = nested.items, nested.names


class _Nesting:
    def __init__(self, nodes: list[Node], heads: Sequence[Entry], parameters: set[str]) -> None:
        self.parameters = parameters
        self.nodes = nodes
        self.order = {n: i for i, n in enumerate(self.nodes)}
        self.paths: dict[Node, tuple[str, ...]] = {}
        for node in self.nodes:
            self.paths[node] = self._path(node)
        self.heads = {(e.node, e.index) for e in heads}

    def root(self, title: str) -> Scope:
        items = self._nest(self.nodes, 0, is_root=True)
        scope = Scope("", "unit", title, items=items)
        self._name_members(scope)
        return scope

    def _name_members(self, scope: Scope) -> None:
        """Name the members of a scope by the names of their nodes relative to the scope."""
        nodes = list(scope.nodes())
        paths = [self.paths[n] for n in nodes]
        common = 0
        while all(len(p) > common + 1 and p[common] == paths[0][common] for p in paths):
            common += 1
        direct = [item for item in scope.items if isinstance(item, Node)]
        names = {n: "_".join(self.paths[n][common:]) for n in direct}
        scope.names = _renumber(names) if scope.title == RESIDUAL else names
        for item in scope.items:
            if isinstance(item, Scope):
                self._name_members(item)
                item.name = _strip_words(item.name, paths[0][:common])

    def _path(self, node: Node) -> tuple[str, ...]:
        """Return the words of a node's name.

        Automatically named nodes use the path of their inputs.
        """
        name = re.sub(r"_fwd$", "", node.name)
        words = tuple(w for w in name.split("_") if w)
        operator = node.operator.name.lower().lstrip("_")
        base = re.sub(r"\d+$", "", name).strip("_").lower()
        automatic = base in (operator, *(a.lower().strip("_") for a in node.operator.aliases))
        if automatic and re.search(r"\d$", name) and _follows(node):
            inputs = [e.node for e in node.inputs if e.node in self.paths and e.node.inputs]
            latest = max(inputs, key=lambda n: self.order[n], default=None)
            if latest is not None:
                return (*self.paths[latest][:-1], words[-1] if words else operator)
        return _join_numbers(words) or (operator,)

    # -- by names ---------------------------------------------------------------------------

    def _nest(self, nodes: Sequence[Node], depth: int, is_root: bool = False) -> Items:
        groups: dict[str, list[Node]] = {}
        for node in nodes:
            path = self.paths[node]
            key = path[depth] if len(path) > depth + 1 else f"\0{self.order[node]}"
            groups.setdefault(key, []).append(node)
        if len(groups) == 1 and len(nodes) > 1:
            return self._nest(nodes, depth + 1, is_root)
        items: Items = []
        for key, group in groups.items():
            items += self._group(key, group, depth, len(nodes))
        items = self._sort(items)
        joins = [i for i in items if isinstance(i, Node) and (i.op in JOINS or i.op is concat)]
        return self._by_flow(items) if is_root or len(joins) >= MIN_JOINS else items

    def _group(self, key: str, group: list[Node], depth: int, total: int) -> Items:
        if key.startswith("\0"):
            return list(group)
        if len(group) >= MIN_NODES and len(group) < total and self._is_closed(group):
            items = self._nest(group, depth + 1)
            if len(items) == 1:
                return items
            title = re.sub(r"\d+$", "", key) or key
            return [Scope(key, "sequence", title.capitalize(), self._identity(group), items)]
        deeper: dict[str, list[Node]] = {}
        for node in group:
            path = self.paths[node]
            inner = path[depth + 1] if len(path) > depth + 2 else f"\0{self.order[node]}"
            deeper.setdefault(inner, []).append(node)
        items: Items = []
        for inner, part in deeper.items():
            scopes = self._group(inner, part, depth + 1, total)
            for scope in scopes:
                if isinstance(scope, Scope) and scope.name == inner:
                    scope.name = re.sub(r"_?t\d+$", "", f"{key}_{inner}") or key
                    if len(scope.title) == 1:
                        scope.title = f"{key.upper() if len(key) < 5 else key.capitalize()}Cell"
            items += scopes
        return items

    def _identity(self, group: list[Node]) -> Any:
        """Return the identity of a group. Groups with the same parameters are one module."""
        names = sorted(
            {
                e.node.name
                for n in group
                for e in n.inputs
                if e.node.op is None and e.node.name in self.parameters
            }
        )
        return ("parameters", *names) if names else None

    def _is_closed(self, group: Sequence[Node]) -> bool:
        """Return whether data enters and leaves a group only once, and does not reenter it."""
        inside = set(group)
        layers = [n for n in group if any(e.node.name in self.parameters for e in n.inputs)]
        if len(layers) < MIN_NODES:
            return False
        inputs = {
            (e.node, e.index)
            for n in group
            for e in n.inputs
            if e.node not in inside and e.node.name not in self.parameters
        }
        outputs = {
            (e.node, e.index)
            for n in self.nodes
            if n not in inside
            for e in n.inputs
            if e.node in inside
        } | {h for h in self.heads if h[0] in inside}
        limit = MAX_OUTPUTS if self._is_shared(group) else 1
        if len(inputs) > MAX_INPUTS or not 1 <= len(outputs) <= limit:
            return False
        first, last = (f(self.order[n] for n in group) for f in (min, max))
        left: set[Node] = set()
        for node in self.nodes[first : last + 1]:
            reads = {e.node for e in node.inputs}
            if node in inside:
                if reads & left:
                    return False
            elif reads & (inside | left):
                left.add(node)
        return True

    def _is_shared(self, group: Sequence[Node]) -> bool:
        """Return whether other nodes read the group's parameters, such as unrolled cells."""
        inside = set(group)
        names = set(self._identity(list(group)) or ())
        return any(e.node.name in names for n in self.nodes if n not in inside for e in n.inputs)

    # -- order ------------------------------------------------------------------------------

    def _sort(self, items: Items) -> Items:
        """Sort items topologically."""
        owner: dict[Node, int] = {}
        for i, item in enumerate(items):
            for node in _nodes(item):
                owner[node] = i
        needs = [
            {owner[e.node] for n in _nodes(item) for e in n.inputs if e.node in owner} - {i}
            for i, item in enumerate(items)
        ]
        first = [min(self.order[n] for n in _nodes(item)) for item in items]
        result: list[int] = []
        waiting = sorted(range(len(items)), key=lambda i: first[i])
        done: set[int] = set()
        while waiting:
            ready = next(i for i in waiting if needs[i] <= done)
            waiting.remove(ready)
            done.add(ready)
            result.append(ready)
        return [items[i] for i in result]

    # -- by flow ----------------------------------------------------------------------------

    def _by_flow(self, items: Items) -> Items:
        """Group items between points that all data passes into branches and residual units."""
        parts = self._cut(items)
        if len(parts) == 1:
            return items
        result: Items = []
        for part in parts:
            if len(part) == 1:
                if result and _absorbs(result[-1], part[0]):
                    result[-1].items.append(part[0])
                else:
                    result += part
                continue
            result += self._region(part)
        return result

    def _cut(self, items: Items) -> list[Items]:
        """Split the items at every point where exactly one value is live."""
        inside = {n for item in items for n in _nodes(item)}
        last: dict[tuple[Node, int], int] = {}
        for i, item in enumerate(items):
            own = set(_nodes(item))
            for node in own:
                for entry in node.inputs:
                    if entry.node in own or entry.node.name in self.parameters:
                        continue
                    last[entry.node, entry.index] = i
        for node in self.nodes:
            if node not in inside:
                for entry in node.inputs:
                    if entry.node in inside:
                        last[entry.node, entry.index] = len(items)
        last |= {h: len(items) for h in self.heads if h[0] in inside}
        parts: list[Items] = [[]]
        alive: set[tuple[Node, int]] = {
            key for key in last if key[0] not in inside and last[key] >= 0
        }
        for i, item in enumerate(items):
            parts[-1].append(item)
            own = set(_nodes(item))
            alive |= {key for key in last if key[0] in own}
            alive = {key for key in alive if last[key] > i}
            if len(alive) == 1 and next(iter(alive))[0] in own:
                parts.append([])
        return [part for part in parts if part]

    def _region(self, part: Items) -> Items:
        """Return one scope for parallel nodes, if they end in a sum or a concatenation."""
        join = part[-1]
        if not isinstance(join, Node) or len(part) < 3:
            return part
        if join.op is concat:
            items = self._branches(part, join)
            return [Scope(_name_of_join(join), "concat", "", None, items)]
        if join.op in JOINS:
            group = [n for item in part for n in _nodes(item)]
            identity = self._identity(group)
            name = _name_of_join(join)
            items = self._wrap_shortcut(part, join)
            return [Scope(name or "unit", "unit", RESIDUAL, identity, items)]
        return part

    def _wrap_shortcut(self, part: Items, join: Node) -> Items:
        """Group the layers of a shortcut beside the main branch, if there are several."""
        inside = {n: item for item in part[:-1] for n in _nodes(item)}
        above = [self._above(inside[e.node], inside) for e in join.inputs if e.node in inside]
        if len(above) != 2 or any(item in above[0] for item in above[1]):
            return list(part)
        shortcut = [item for item in part if item in min(above, key=len)]
        if len(shortcut) < 2 or len(shortcut) == len(max(above, key=len)):
            return list(part)
        rest = [item for item in part if item not in shortcut]
        return self._sort([*rest, Scope("downsample", "sequence", items=shortcut)])

    def _branches(self, part: Items, join: Node) -> Items:
        """Return branches in which forks are nested scopes."""
        items: Items = []
        rest = part[:-1]
        inside = {n: item for item in rest for n in _nodes(item)}
        for entry in join.inputs:
            if entry.node not in inside:
                continue
            branch = self._above(inside[entry.node], inside)
            branch = [item for item in rest if item in branch and item not in items]
            items += self._by_flow(branch) if len(branch) > 1 else branch
        left = [
            item for item in rest if not any(set(_nodes(item)) <= set(_nodes(i)) for i in items)
        ]
        return [*self._sort([*items, *left]), join]

    def _above(self, item: Any, inside: dict[Node, Any]) -> Items:
        result: Items = []
        stack = [item]
        while stack:
            current = stack.pop()
            if current in result:
                continue
            result.append(current)
            for node in _nodes(current):
                for entry in node.inputs:
                    if entry.node in inside and inside[entry.node] is not current:
                        stack.append(inside[entry.node])
        return result


def _follows(node: Node) -> bool:
    """Return whether an unnamed node (sum, product, activation) joins the scope of its inputs."""
    op = node.operator
    return (
        op in ACTIVATIONS
        or op in JOINS
        or op.facts.pointwise
        or op in (elemwise_mul, broadcast_mul)
    )


def _join_numbers(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words with numbers joined to the word before: ``conv_1`` is not inside ``conv``."""
    joined: list[str] = []
    for word in words:
        if word.isdigit() and joined:
            joined[-1] += f"_{word}"
        else:
            joined.append(word)
    return tuple(joined)


def _renumber(names: dict[Node, str]) -> dict[Node, str]:
    """Renumber names within a unit: ``conv7, conv8`` become ``conv1, conv2``."""
    bases = {node: re.sub(r"\d+$", "", name) for node, name in names.items()}
    counts: dict[str, int] = {}
    result = {}
    for node, base in bases.items():
        counts[base] = counts.get(base, 0) + 1
        result[node] = f"{base}{counts[base]}"
    return {n: r if counts[bases[n]] > 1 else bases[n] or r for n, r in result.items()}


def _strip_words(name: str, words: tuple[str, ...]) -> str:
    prefix = "_".join(words)
    return name.removeprefix(prefix).lstrip("_") or name if prefix else name


def _nodes(item: Any) -> list[Node]:
    return list(item.nodes()) if isinstance(item, Scope) else [item]


def _absorbs(scope: Any, item: Any) -> bool:
    """Return whether an item is the activation after a residual sum."""
    return (
        isinstance(scope, Scope)
        and scope.title == RESIDUAL
        and isinstance(item, Node)
        and item.op in ACTIVATIONS
        and len(item.inputs) == 1
        and isinstance(scope.items[-1], Node)
        and scope.items[-1].op in JOINS
    )


def _name_of_join(join: Node) -> str:
    words = [w for w in join.name.split("_") if w and not JOIN_WORDS.match(w)]
    return "_".join(words)


__all__ = ["Entry", "scope_of_graph"]
