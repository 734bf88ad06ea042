"""`Compiled`: a report of an optimized graph, to read, save and view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .._process import env
from ..graph.graph import Graph
from ..graph.node import Node
from ..graph.passes.recompute import live_bytes, training_bytes
from ..graph.passes.simplify import merge_equal_nodes
from ..graph.typed_graph import TRAINING, Inputs, TypedGraph
from ..symbol import Symbol
from .array_kernels import dtype_of
from .backends import BackendProgram
from .program import Program

MIN_WIDTH = 18
UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


class Compiled:
    """The graph that a program runs, compared with the original graph.

    Printing it shows nodes, bytes and multiply-adds before and after, how often each rule was
    applied, and every node that runs with its type.

    Parameters
    ----------
    program
        The program.

    >>> x = mx.sym.Variable('x')
    >>> exe = mx.sym.relu(mx.sym.Dropout(x, name='drop'), name='r').bind(
    ...     mx.cpu(), {'x': mx.nd.ones((2, 3))})
    >>> print(exe.compiled)
    inference: 2 nodes -> 1, results 48 B -> 24 B, 0 multiply-adds
    rules: remove_identity 1
    node               operator           result             multiply-adds
    r                  relu               float32[2x3]                   0
    """

    def __init__(self, program: Program | BackendProgram) -> None:
        self._program = program

    @property
    def before(self) -> TypedGraph:
        """The original graph."""
        return self._program.source

    @property
    def after(self) -> TypedGraph:
        """The graph that runs."""
        return self._program.graph

    @property
    def rules(self) -> dict[str, int]:
        """How often each rule was applied."""
        return dict(self.after.history)

    @property
    def symbol(self) -> Symbol:
        """The graph that runs, as a symbol. It can be saved, loaded, printed and bound."""
        return Symbol(self.after.heads)

    def tojson(self) -> str:
        """Return the graph that runs as JSON text."""
        return self.symbol.tojson()

    def save(self, fname: str | Path) -> None:
        """Write the graph that runs to a file that `mx.sym.load` reads."""
        self.symbol.save(fname)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        before, after, mode = self.before, self.after, self._program.mode
        name = "training" if mode.training else "inference"
        name += ", differentiable" if mode.differentiable and not mode.training else ""
        sizes = [_with_unit(g.result_bytes) for g in (before, after)]
        total = sum(after.multiply_adds(n) for n in after.nodes)
        yield (
            f"{name}: {len(_operations(before))} nodes -> {len(_operations(after))}, results "
            f"{sizes[0]}B -> {sizes[1]}B, {_with_unit(total).strip()} multiply-adds"
        )
        applied = ", ".join(f"{rule} {count}" for rule, count in self.rules.items())
        yield f"rules: {applied or 'none'}"
        rows = [("node", "operator", "result", "multiply-adds")]
        for node in _operations(after):
            results = ", ".join(map(str, after.types[node]))
            rows.append((node.name, node.operator.name, results, str(after.multiply_adds(node))))
        widths = [max(MIN_WIDTH, *(len(row[i]) for row in rows)) for i in range(3)]
        for name, operator, result, work in rows:
            left = (f"{t:{w}}" for t, w in zip((name, operator, result), widths, strict=True))
            yield f"{' '.join(left)} {work:>13}"


def _operations(graph: TypedGraph) -> list[Node]:
    return [n for n in graph.nodes if n.op is not None]


def _with_unit(count: int) -> str:
    """Return a count with its unit, such as ``1.8 G``."""
    for factor, unit in UNITS:
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} "


def memory_report(graph: Graph, feed: Sequence[Any], differentiated: bool) -> str:
    """Return how much memory the results of a graph need, as MXNet plans it.

    Training keeps results for backward. Inference frees them after their last use.
    """
    names = [node.name for node in graph.variables]
    inputs = Inputs(
        {name: tuple(value.shape) for name, value in zip(names, feed, strict=True)},
        {name: dtype_of(value) for name, value in zip(names, feed, strict=True)},
    )
    typed = TypedGraph(graph.heads, TRAINING, inputs)
    if differentiated:
        total = training_bytes(typed, env.get("MXNET_BACKWARD_DO_MIRROR"))
    else:
        total = live_bytes(typed)
    return f"Total {total // 2**20} MB allocated\nTotal 0 TempSpace resource requested\n"


def with_equal_nodes_merged(symbol: Symbol) -> Symbol:
    """Return a symbol with equal nodes merged, unless ``MXNET_ELIMINATE_COMMON_EXPR=0``."""
    if not env.get("MXNET_ELIMINATE_COMMON_EXPR"):
        return symbol
    return type(symbol)(merge_equal_nodes(symbol._graph).heads)
