"""The nesting of a model's nodes, by the calls of its blocks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal

from ...gluon import Block, SymbolBlock, nn
from ...gluon.contrib.nn import Concurrent, HybridConcurrent
from ...graph import Entry, Graph, Node
from ...symbol import Symbol
from ..source import group_outputs

Kind = Literal["sequence", "concat", "inline", "unit"]


@dataclass
class Scope:
    """Nodes that belong together, in the order in which they run.

    `name` is the attribute that the module gets in its parent. An inline scope is written into its
    parent. Scopes of one `identity` are the same module, called again.
    """

    name: str
    kind: Kind
    title: str = ""
    identity: Any = None
    items: list[Any] = field(default_factory=list)  # nodes and scopes
    doc: str = ""
    is_symbol: bool = False  # a block that holds a symbol
    input_names: dict[tuple[Node, int], str] = field(default_factory=dict)
    names: dict[Node, str] = field(default_factory=dict)  # of members, by the nodes they come from

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes, inner ones included."""
        for item in self.items:
            if isinstance(item, Scope):
                yield from item.nodes()
            else:
                yield item


class BlockTracer:
    """Records which block calls create which nodes while a block is run on symbols."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.root = Scope("", "unit")
        self.stack = [self.root]
        self.prefixes = [""]
        self.paths: list[tuple[str, ...]] = [()]
        self.spans: dict[int, tuple[int, int]] = {}  # serials of the nodes of a scope, by id

    def run(self, *inputs: Any) -> tuple[Any, Scope]:
        """Return the outputs and the scope of the block's call."""
        with ExitStack() as handles:
            for path, block in _paths_of_blocks(self.block):
                before = block.register_forward_pre_hook(_enter(self, path))
                handles.enter_context(before)
                handles.enter_context(block.register_forward_hook(_leave(self)))
            output = self.block(*inputs)
        scope = self.root.items[0]
        self._distribute(scope, output)
        return output, scope

    def enter(self, path: tuple[str, ...], block: Block, inputs: tuple) -> None:
        """Open the scope of a call."""
        outer = self.paths[-1]
        scope = scope_of_block(_relative(path, outer), block, inputs)
        self.paths.append(path)
        if scope.kind == "concat":
            scope.title = _title_of_prefix(block, self.prefixes[-1])
        self.prefixes.append(block.prefix)
        self.stack[-1].items.append(scope)
        self.stack.append(scope)
        self.spans[id(scope)] = (_serial(), -1)

    def leave(self) -> None:
        """Close the scope of the innermost call."""
        scope = self.stack.pop()
        self.prefixes.pop()
        self.paths.pop()
        self.spans[id(scope)] = (self.spans[id(scope)][0], _serial())

    def _distribute(self, root: Scope, output: Any) -> None:
        """Put each node into the innermost scope that was open when it was created."""
        for node in sorted(group_outputs(output)._graph.nodes, key=lambda n: n.serial):
            if node.op is None:
                continue
            scope = root
            while True:
                inner = [s for s in scope.items if isinstance(s, Scope) and self._has(s, node)]
                if not inner:
                    break
                scope = inner[0]
            scope.items.append(node)
        self._sort(root)

    def _has(self, scope: Scope, node: Node) -> bool:
        start, end = self.spans[id(scope)]
        return start <= node.serial < end

    def _sort(self, scope: Scope) -> None:
        def position(item: Any) -> int:
            return self.spans[id(item)][0] if isinstance(item, Scope) else item.serial

        scope.items.sort(key=position)
        for item in scope.items:
            if isinstance(item, Scope):
                self._sort(item)


def _enter(tracer: BlockTracer, path: tuple[str, ...]) -> Any:
    return lambda block, inputs: tracer.enter(path, block, inputs)


def _relative(path: tuple[str, ...], outer: tuple[str, ...]) -> str:
    """Return the name of a block relative to the block that calls it, such as ``convs.0``."""
    names = path[len(outer) :] if path[: len(outer)] == outer else path[-1:]
    if len(names) > 1 and names[-1].isdigit():
        return f"{'_'.join(names[:-1])}.{names[-1]}"
    return "_".join(names)


def _leave(tracer: BlockTracer) -> Any:
    return lambda block, inputs, output: tracer.leave()


def _serial() -> int:
    return Node(None, "").serial


def _paths_of_blocks(root: Block) -> list[tuple[tuple[str, ...], Block]]:
    """Return a block and all its descendants, each once, with their attribute paths."""
    result: dict[int, tuple[tuple[str, ...], Block]] = {}

    def visit(path: tuple[str, ...], block: Block) -> None:
        if id(block) in result:
            return
        result[id(block)] = (path, block)
        for key, child in block._children.items():
            visit((*path, key), child)

    visit((), root)
    return list(result.values())


def scope_of_block(name: str, block: Block, inputs: tuple = ()) -> Scope:
    """Return an empty scope for a block's call."""
    cls = type(block)
    is_symbol = isinstance(block, SymbolBlock)
    is_library = cls.__module__.startswith("mxnet.gluon.") and "model_zoo" not in cls.__module__
    kind: Kind = "unit"
    if isinstance(block, Concurrent | HybridConcurrent):
        kind = "concat"
    elif isinstance(block, nn.Sequential | nn.HybridSequential):
        kind = "sequence"
    elif is_library and not is_symbol:
        kind = "inline"
    title = cls.__name__
    if kind in ("sequence", "concat") and is_library:
        title = ""
    doc = "" if is_library else first_line(cls)
    return Scope(
        name,
        kind,
        title,
        id(block),
        doc=doc,
        input_names=_argument_names(block, inputs),
        is_symbol=is_symbol,
    )


def _title_of_prefix(block: Block, parent: str) -> str:
    """Return the title in a block's own prefix: ``A`` for ``A1_``."""
    own = block.prefix.removeprefix(parent).rstrip("_").rstrip("0123456789")
    return "" if own.lower().endswith("concurrent") else own


MAX_DOC = 70  # characters


def first_line(cls: type) -> str:
    """Return the first line of a class's own docstring, if it is a short plain sentence."""
    own = cls.__dict__.get("__doc__")
    text = own if isinstance(own, str) else (cls.__doc__ or "") if own is not None else ""
    doc = inspect.cleandoc(text).split("\n\n")[0]
    line = " ".join(doc.split())
    is_plain = "`" not in line and '"' not in line and "\\" not in line and line.isascii()
    return line if line.endswith(".") and len(line) <= MAX_DOC and is_plain else ""


def _argument_names(block: Block, inputs: tuple) -> dict[tuple[Node, int], str]:
    """Map graph entries to the names of the corresponding arguments of the block's forward."""
    function = getattr(block, "hybrid_forward", None)
    skipped = 1
    if (
        function is None
        or getattr(type(block), "hybrid_forward", None) is nn.HybridBlock.hybrid_forward
    ):
        function, skipped = block.forward, 0
    names = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ][skipped:]
    pairs = [(n, i) for n, i in zip(names, inputs, strict=False) if isinstance(i, Symbol)]
    heads = [(name, symbol._graph.heads) for name, symbol in pairs]
    entries: dict[tuple[Node, int], str] = {}
    for name, group in heads:
        if len(group) == 1:
            entries.setdefault((group[0].node, group[0].index), name)
    return entries


def boundary(scope: Scope, graph: Graph) -> tuple[list[Entry], list[Entry]]:
    """Return the entries that a scope reads from outside, and those that others read from it."""
    inside = set(scope.nodes())
    reads: dict[tuple[Node, int], Entry] = {}
    for node in scope.nodes():
        for entry in node.inputs:
            if entry.node not in inside:
                reads.setdefault((entry.node, entry.index), entry)
    gives: dict[tuple[Node, int], Entry] = {}
    for node in graph.nodes:
        if node not in inside:
            for entry in node.inputs:
                if entry.node in inside:
                    gives.setdefault((entry.node, entry.index), entry)
    for entry in graph.heads:
        if entry.node in inside:
            gives.setdefault((entry.node, entry.index), entry)
    return list(reads.values()), list(gives.values())
