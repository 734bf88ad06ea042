"""Tables of layers: `print_summary`, and `print_costs` with multiply-adds, memory and time."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import accelerator
from ..error import MXNetError, ShapeError
from ..graph import Entry, Graph
from ..graph.graph import interpret
from ..graph.node import Node, auxiliary_positions
from ..graph.passes.infer import Inferred, infer_shapes, infer_types
from ..ops.shapes import complete_inputs, is_known, run_on_meta
from ..symbol import Group, Symbol
from ..symbol import Variable as variable

Shape = tuple[int, ...]
# Names of trained inputs of operators.
TRAINED_ROLES = frozenset({"weight", "bias", "gamma", "beta", "parameters"})


class LayerCost(NamedTuple):
    """The cost of an operator in a graph.

    `multiply_adds` includes matrix products and convolutions; None if unknown, for control flow and
    user-defined operators.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    output_shapes: tuple[Shape, ...]
    dtype: str
    parameters: int
    states: int
    multiply_adds: int | None
    activation_bytes: int


def layer_costs(
    symbol: Symbol,
    shapes: Mapping[str, Shape],
    dtypes: Mapping[str, Any] | None = None,
    inputs: Collection[str] | None = None,
) -> list[LayerCost]:
    """Return the cost of each operator, for inputs of these shapes.

    A shared parameter is counted for the first layer only. `inputs` are the data variables, by
    default those with shapes.

    >>> x = mx.sym.FullyConnected(mx.sym.Variable('data'), num_hidden=4)
    >>> cost, = layer_costs(x, {'data': (2, 3)})
    >>> cost.parameters, cost.multiply_adds, cost.activation_bytes
    (16, 24, 32)
    """
    graph = symbol._graph
    known_shapes = infer_shapes(graph, shapes)
    unknown = [n.name for n in graph.nodes if not all(map(is_known, known_shapes.values[n]))]
    if unknown:
        raise ShapeError(
            f"The shapes of {', '.join(unknown[:5])} do not follow from {dict(shapes)}. Pass the "
            "shapes of all inputs."
        )
    known_types = infer_types(graph, dtypes or {}, default=torch.float32)
    counted: set[Node] = set()
    data = frozenset(shapes if inputs is None else inputs)
    return [
        _cost(node, known_shapes, known_types, counted, data)
        for node in graph.nodes
        if node.op is not None
    ]


def print_costs(model: Any, *inputs: Any, shape: Mapping[str, Shape] | None = None) -> None:
    """Print a table of the layers: outputs, parameters, multiply-adds, memory of the results.

    Parameters
    ----------
    model : Symbol or HybridBlock
        The network; a block need not be hybridized.
    inputs : NDArray
        Inputs of a block; only their shapes are used.
    shape : dict of str to tuple
        Shapes of the inputs of a symbol.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(4, in_units=3, prefix="fc_")
    >>> net.hybridize()
    >>> mx.viz.print_costs(net, mx.nd.ones((2, 3)))
    layer   operator        output  parameters  multiply-adds  bytes
    fc_fwd  FullyConnected  2x4             16             24     32
    total                                   16             24     32
    """
    symbol, shapes = _trace(model, inputs, dict(shape or {}))
    rows: list[tuple[str, ...]] = [
        ("layer", "operator", "output", "parameters", "multiply-adds", "bytes")
    ]
    costs = layer_costs(symbol, shapes)
    for c in costs:
        results = " ".join("x".join(map(str, s)) for s in c.output_shapes)
        products = "?" if c.multiply_adds is None else f"{c.multiply_adds:,}"
        counts = (f"{c.parameters:,}", products, f"{c.activation_bytes:,}")
        rows.append((c.name, c.operator, results, *counts))
    sums = [
        sum(c.parameters for c in costs),
        sum(c.multiply_adds or 0 for c in costs),
        sum(c.activation_bytes for c in costs),
    ]
    rows.append(("total", "", "", *(f"{n:,}" for n in sums)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())  # noqa: T201


def _trace(
    model: Any, inputs: Sequence[Any], shapes: dict[str, Shape]
) -> tuple[Symbol, dict[str, Shape]]:
    if isinstance(model, Symbol):
        return model, shapes
    names = ["data"] if len(inputs) == 1 else [f"data{i}" for i in range(len(inputs))]
    output = model(*map(variable, names))
    symbol = Group(list(output)) if isinstance(output, list | tuple) else output
    if not isinstance(symbol, Symbol):
        raise TypeError(f"{type(model).__name__} cannot be traced: it must be a HybridBlock.")
    return symbol, {**dict(zip(names, (x.shape for x in inputs), strict=True)), **shapes}


def _trained_variables(entry: Entry, data: frozenset[str]) -> list[Node]:
    """Return the parameters of an input of a layer: itself, or its concatenated parts.

    Gluon's recurrent layers concatenate their weights in the graph.
    """
    if entry.node.op is None:
        return [entry.node]
    variables = Graph([entry]).variables
    return [] if any(v.name in data for v in variables) else variables


def _cost(
    node: Node, shapes: Inferred, types: Inferred, counted: set[Node], data: frozenset[str]
) -> LayerCost:
    outputs = tuple(tuple(s) for s in shapes.values[node])
    kinds = [t or torch.float32 for t in types.values[node]]
    states = {node.inputs[i].node for i in auxiliary_positions(node)}
    trained = [
        variable
        for e, role in zip(node.inputs, node.input_names, strict=True)
        if role in TRAINED_ROLES
        for variable in _trained_variables(e, data)
    ]
    fresh = [n for n in dict.fromkeys(trained) if n not in counted]
    counted.update(fresh)
    assert node.op is not None
    return LayerCost(
        node.name,
        node.op.name,
        tuple(e.node.name for e in node.inputs if e.node.op is not None or e.node not in trained),
        outputs,
        str(kinds[0]).removeprefix("torch."),
        sum(math.prod(shapes.values[n][0]) for n in fresh),
        sum(math.prod(shapes.values[n][0]) for n in states if n.op is None),
        _multiply_adds(node, shapes, types),
        sum(math.prod(s) * t.itemsize for s, t in zip(outputs, kinds, strict=True)),
    )


def _multiply_adds(node: Node, shapes: Inferred, types: Inferred) -> int | None:
    """Run the operator on meta tensors, and let torch count its multiply-adds."""
    from torch.utils.flop_counter import FlopCounterMode  # imports Triton where it is installed

    if node.op is None or node.subgraphs:
        return None
    ins = [shapes.of(e) for e in node.inputs]
    kinds = [types.of(e) for e in node.inputs]
    try:
        with FlopCounterMode(display=False) as counter:
            run_on_meta(node.op, ins, kinds, node.typed)
    except (MXNetError, RuntimeError, NotImplementedError):
        return None  # the kernel needs values
    return counter.get_total_flops() // 2


def layer_times(
    symbol: Symbol, feed: Mapping[str, Tensor], *, runs: int = 10, warmup: int = 2
) -> dict[str, float]:
    """Return the median seconds of each operator, run separately in inference mode."""
    graph = symbol._graph
    kernels = {n: n.op.instantiate(n.typed, n.subgraphs) for n in graph.nodes if n.op is not None}
    measured: dict[Node, list[float]] = {node: [] for node in kernels}

    def apply(node: Node, inputs: list[Tensor]) -> Sequence[Tensor]:
        call = _prepared_call(node, kernels[node], inputs)
        start = time.perf_counter()
        output = call()
        if inputs:
            accelerator.synchronize(inputs[0].device)
        measured[node].append(time.perf_counter() - start)
        return output if isinstance(output, tuple | list) else (output,)

    with torch.no_grad():
        for _ in range(warmup + runs):
            interpret(graph, lambda node: feed[node.name], apply)
    import statistics  # slow import

    return {node.name: statistics.median(times[warmup:]) for node, times in measured.items()}


def _prepared_call(node: Node, kernel: Callable, inputs: list[Tensor]) -> Callable[[], Any]:
    op = node.op
    assert op is not None
    arguments: list[Tensor | None] = list(inputs)
    if op.variadic is None and len(inputs) < len(op.inputs):
        by_name = dict(zip(node.input_names, inputs, strict=True))
        arguments = [by_name.get(i.name) for i in op.inputs]
    device = inputs[0].device if inputs else torch.device("cpu")
    attrs = {**node.typed, **op.context_for(False, device)}
    return lambda: kernel(*arguments, **attrs)


Shapes = Mapping[str, tuple[int, ...]]

HEADINGS = ("Layer (type)", "Output Shape", "Param #", "Previous Layer")
# Names of trained inputs of operators.
PARAMETERS = frozenset({"weight", "bias", "gamma", "beta", "parameters"})


class Table:
    """Text table with fixed line length and column positions."""

    def __init__(self, length: int, positions: Sequence[float]) -> None:
        self.length = length
        scale = length if positions[-1] <= 1 else 1
        self.positions = [int(scale * p) for p in positions]
        self.lines: list[str] = []

    def row(self, *fields: object) -> None:
        """Add a line; values are truncated to their columns."""
        line = ""
        for field, end in zip(fields, self.positions, strict=True):
            line = (line + str(field))[:end].ljust(end)
        self.lines.append(line)

    def rule(self, character: str = "_") -> None:
        """Add a horizontal line."""
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
        Ends of the columns, as fractions of the line or in characters.

    Notes
    -----
    All trained inputs are counted; MXNet 1.9.1 counts only those of Convolution, FullyConnected,
    BatchNorm and Embedding.

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
    shapes = None if shape is None else _all_shapes(symbol, shape)
    graph = symbol._graph
    shown = _shown_layers(graph)
    layers = set(shown)
    table = Table(line_length, positions)
    table.rule()
    table.row(*HEADINGS)
    table.rule("=")
    total = 0
    for node in shown:
        count = _parameters(node, shapes)
        total += count
        _add_layer(table, node, shapes, count, layers)
        table.rule("=" if node is shown[-1] else "_")
    table.lines.append(f"Total params: {total}")
    table.rule()
    return table.lines


def _all_shapes(symbol: Symbol, shape: Shapes) -> dict[str, tuple[int, ...]]:
    internals = symbol.get_internals()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # raised below
        arg_shapes, out_shapes, _ = internals.infer_shape(**shape)
    if out_shapes is None:
        inputs = ", ".join(f"{n}: {s}" for n, s in shape.items()) or "none"
        raise ValueError(f"Input shape is incomplete (given: {inputs})")
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
    """Return the number of trained parameters of a layer, 0 if shapes are unknown."""
    if node.op is None:
        return 0
    names = node.input_names
    trained = [i for i, n in enumerate(names) if n in PARAMETERS and node.inputs[i].node.op is None]
    if known is None:
        shapes = _shapes_from_attributes(node)
        matches = [shapes[i] for i in trained]
    else:
        matches = [known.get(node.inputs[i].node.name) for i in trained]
    return sum(math.prod(s) for s in matches if s is not None and min(s, default=1) > 0)


def _shapes_from_attributes(node: Node) -> list[tuple[int, ...] | None]:
    shapes: list[tuple[int, ...] | None] = [None] * len(node.inputs)
    try:
        complete_inputs(node.operator, shapes, node.typed)
    except (MXNetError, RuntimeError, TypeError, ValueError, IndexError):
        return [None] * len(node.inputs)  # this operator's rule needs the shape of its data
    return shapes
