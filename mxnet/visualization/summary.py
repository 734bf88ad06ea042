"""`print_summary`: one row for each layer, with its output shape and number of parameters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

from ..error import MXNetError
from ..graph import Graph
from ..graph.node import Node
from ..ops.shapes import complete_inputs
from ..symbol import Symbol

Shapes = Mapping[str, tuple[int, ...]]

HEADINGS = ("Layer (type)", "Output Shape", "Param #", "Previous Layer")
# Operators call the inputs that are trained by these names.
PARAMETERS = frozenset({"weight", "bias", "gamma", "beta", "parameters"})


class Table:
    """Lines of a fixed length with columns that end at fixed positions."""

    def __init__(self, length: int, positions: Sequence[float]) -> None:
        self.length = length
        if positions[-1] <= 1:
            positions = [int(length * p) for p in positions]
        self.positions = positions
        self.lines: list[str] = []

    def row(self, *fields: object) -> None:
        """Add a line; what does not fit into its column is cut."""
        line = ""
        for field, end in zip(fields, self.positions, strict=True):
            line = (line + str(field))[:end].ljust(end)
        self.lines.append(line)

    def rule(self, character: str = "_") -> None:
        """Add a line across."""
        self.lines.append(character * self.length)


def print_summary(
    symbol: Symbol,
    shape: Shapes | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
    """Print a table of the layers of a network.

    Parameters
    ----------
    symbol : Symbol
        The network.
    shape : dict of str to tuple, optional
        The shapes of the inputs; with them the table shows output shapes and all parameters.
    line_length : int
        Number of characters in a line.
    positions
        Where the columns end, as parts of the line or as numbers of characters.

    Notes
    -----
    Counts all trained inputs of every operator; MXNet 1.9.1 knew those of Convolution,
    FullyConnected, BatchNorm and Embedding, and showed 0 for the others.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> mx.viz.print_summary(net, shape={"data": (1, 3)}, line_length=60)  # doctest: +ELLIPSIS
    ____...
    Total params: 8
    ____...
    """
    if not isinstance(symbol, Symbol):
        raise TypeError("symbol must be Symbol")
    print("\n".join(summary_lines(symbol, shape, line_length, positions)))  # noqa: T201


def summary_lines(
    symbol: Symbol, shape: Shapes | None, line_length: int, positions: Sequence[float]
) -> list[str]:
    """Return the lines that `print_summary` prints."""
    known = None if shape is None else _all_shapes(symbol, shape)
    graph = symbol._graph
    shown = _shown_layers(graph)
    table = Table(line_length, positions)
    table.rule()
    table.row(*HEADINGS)
    table.rule("=")
    total = 0
    for node in shown:
        count = _parameters(node, known)
        total += count
        _add_layer(table, node, known, count, set(shown))
        table.rule("=" if node is shown[-1] else "_")
    table.lines.append(f"Total params: {total}")
    table.rule()
    return table.lines


def _all_shapes(symbol: Symbol, shape: Shapes) -> dict[str, tuple[int, ...]]:
    """Return the shape of every result and input of the graph by its name."""
    internals = symbol.get_internals()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the error below says it
        arg_shapes, out_shapes, _ = internals.infer_shape(**shape)
    if out_shapes is None:
        given = ", ".join(f"{n}: {s}" for n, s in shape.items()) or "none"
        raise ValueError(f"Input shape is incomplete (given: {given})")
    named = dict(zip(internals.list_outputs(), out_shapes, strict=True))
    named.update(zip(internals.list_arguments(), arg_shapes, strict=True))
    return named


def _shown_layers(graph: Graph) -> list[Node]:
    """Return the operators, the first input, and the head if it is an input."""
    heads = {graph.heads[0].node}
    return [n for i, n in enumerate(graph.nodes) if n.op is not None or (i == 0 or n in heads)]


def _add_layer(
    table: Table, node: Node, known: Shapes | None, count: int, shown: set[Node]
) -> None:
    kind = "null" if node.op is None else node.op.name
    previous = [e.node.name for e in node.inputs if e.node in shown]
    first = previous[0] if previous else ""
    table.row(f"{node.name}({kind})", _output_shape(node, known), count, first)
    for name in previous[1:]:
        table.row("", "", "", name)


def _output_shape(node: Node, known: Shapes | None) -> str:
    if known is None:
        return ""
    key = node.name if node.op is None else f"{node.name}_output"
    return "x".join(str(n) for n in known.get(key, ())[1:])


def _parameters(node: Node, known: Shapes | None) -> int:
    """Return how many numbers of a layer are trained, as far as shapes or attributes say."""
    if node.op is None:
        return 0
    names = node.input_names
    trained = [i for i, n in enumerate(names) if n in PARAMETERS and node.inputs[i].node.op is None]
    if known is None:
        shapes = _shapes_from_attributes(node)
        found = [shapes[i] for i in trained]
    else:
        found = [known.get(node.inputs[i].node.name) for i in trained]
    return sum(math.prod(s) for s in found if s is not None and min(s, default=1) > 0)


def _shapes_from_attributes(node: Node) -> list[tuple[int, ...] | None]:
    shapes: list[tuple[int, ...] | None] = [None] * len(node.inputs)
    try:
        complete_inputs(node.operator, shapes, node.typed)
    except (MXNetError, RuntimeError, TypeError, ValueError, IndexError):
        return [None] * len(node.inputs)  # this operator's rule needs the shape of its data
    return shapes
