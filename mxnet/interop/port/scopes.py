"""How the nodes of a model nest: by the calls of its blocks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal

from ... import symbol as sym
from ...gluon import Block, nn
from ...gluon.contrib.nn import Concurrent, HybridConcurrent
from ...graph import Entry, Graph, Node
from ...symbol import Symbol

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
    input_names: tuple[str, ...] = ()
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
        self.spans: dict[int, tuple[int, int]] = {}  # serials of the nodes of a scope, by id

    def run(self, *inputs: Any) -> tuple[Any, Scope]:
        """Return the outputs and the scope of the block's call."""
        with ExitStack() as handles:
            for name, block in _named_blocks(self.block):
                before = block.register_forward_pre_hook(_enter(self, name))
                handles.enter_context(before)
                handles.enter_context(block.register_forward_hook(_leave(self)))
            output = self.block(*inputs)
        scope = self.root.items[0]
        self._distribute(scope, output)
        return output, scope

    def enter(self, name: str, block: Block, inputs: tuple) -> None:
        """Open the scope of a call."""
        scope = scope_of_block(name, block, inputs)
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
        self.spans[id(scope)] = (self.spans[id(scope)][0], _serial())

    def _distribute(self, root: Scope, output: Any) -> None:
        """Put each node into the innermost scope that was open when it was created."""
        symbol = output if isinstance(output, Symbol) else sym.Group(_flat(output))
        for node in sorted(symbol._graph.nodes, key=lambda n: n.serial):
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


def _enter(tracer: BlockTracer, name: str) -> Any:
    return lambda block, inputs: tracer.enter(name, block, inputs)


def _leave(tracer: BlockTracer) -> Any:
    return lambda block, inputs, output: tracer.leave()


def _serial() -> int:
    return Node(None, "").serial


def _flat(output: Any) -> list[Symbol]:
    if isinstance(output, Symbol):
        return [output]
    return [s for part in output for s in _flat(part)]


def _named_blocks(root: Block) -> list[tuple[str, Block]]:
    """Return a block and all below it, each once, with their attribute names."""
    result: dict[int, tuple[str, Block]] = {}

    def visit(name: str, block: Block) -> None:
        if id(block) in result:
            return
        result[id(block)] = (name, block)
        for key, child in block._children.items():
            visit(key, child)

    visit("", root)
    return list(result.values())


def scope_of_block(name: str, block: Block, inputs: tuple = ()) -> Scope:
    """Return the empty scope of a block's call."""
    cls = type(block)
    is_library = cls.__module__.startswith("mxnet.gluon.") and "model_zoo" not in cls.__module__
    kind: Kind = "unit"
    if isinstance(block, Concurrent | HybridConcurrent):
        kind = "concat"
    elif isinstance(block, nn.Sequential | nn.HybridSequential):
        kind = "sequence"
    elif is_library:
        kind = "inline"
    title = cls.__name__
    if kind in ("sequence", "concat") and is_library:
        title = ""
    doc = "" if is_library else first_line(cls)
    return Scope(name, kind, title, id(block), doc=doc, input_names=_argument_names(block, inputs))


def _title_of_prefix(block: Block, parent: str) -> str:
    """Return what a block's own prefix names: ``A1_`` is one of several ``A``."""
    own = block.prefix.removeprefix(parent).rstrip("_").rstrip("0123456789")
    return own if own.lower() != "hybridconcurrent" else ""


MAX_DOC = 70  # characters


def first_line(cls: type) -> str:
    """Return the first line of a class's own docstring, if it is a sentence that fits."""
    own = cls.__dict__.get("__doc__")
    text = own if isinstance(own, str) else (cls.__doc__ or "") if own is not None else ""
    doc = inspect.cleandoc(text).split("\n\n")[0]
    line = " ".join(doc.split())
    is_plain = "`" not in line and '"' not in line and "\\" not in line and line.isascii()
    return line if line.endswith(".") and len(line) <= MAX_DOC and is_plain else ""


def _argument_names(block: Block, inputs: tuple) -> tuple[str, ...]:
    """Return the names of the arguments in the block's own code."""
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
    if len(names) < len(inputs) or not all(isinstance(i, Symbol) and len(i) == 1 for i in inputs):
        return ()
    return tuple(names[: len(inputs)])


def boundary(scope: Scope, graph: Graph) -> tuple[list[Entry], list[Entry]]:
    """Return the entries that a scope reads from outside, and those that it gives to others."""
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
