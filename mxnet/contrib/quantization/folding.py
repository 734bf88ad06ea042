"""Folds batch normalizations into the convolutions before them, weights included."""

from __future__ import annotations

from collections import Counter

from ... import ndarray
from ...graph import Entry
from ...graph.graph import Graph
from ...graph.interpret import interpret
from ...graph.node import Node
from ...ndarray import NDArray
from ...ops.nn.convolution import CHANNELS_LAST, convolution
from ...ops.nn.normalization import batch_norm

Arrays = dict[str, NDArray]


def fold_batch_norm(
    graph: Graph, arguments: Arrays, auxiliary: Arrays
) -> tuple[list[Entry], Arrays, Arrays]:
    """Return a graph without the normalizations that follow convolutions, and its parameters.

    The convolution keeps its name and its place in the file; it gains a bias.
    """
    uses = Counter((e.node, e.index) for n in graph.nodes for e in n.inputs)
    uses.update((e.node, e.index) for e in graph.heads)
    readers = Counter(e.node for n in graph.nodes for e in n.inputs if e.node.op is None)
    arguments = dict(arguments)

    def apply(node: Node, inputs: list[Entry]) -> list[Entry]:
        made = node.copy(inputs)
        if node.op is batch_norm and _folds(node, uses, readers, {**arguments, **auxiliary}):
            made = _fold(node, inputs, arguments, auxiliary)
        return [Entry(made, i, e.version) for i, e in enumerate([Entry(made)] * node.outputs)]

    heads = interpret(graph, Entry, apply)
    left = Graph(heads)
    names = {n.name for n in left.nodes if n.op is None}
    return (
        heads,
        {k: v for k, v in arguments.items() if k in names},
        {k: v for k, v in auxiliary.items() if k in names},
    )


def _folds(node: Node, uses: Counter, readers: Counter, known: Arrays) -> bool:
    entry = node.inputs[0]
    conv = entry.node
    if conv.op is not convolution or conv.typed["layout"] in CHANNELS_LAST:
        return False
    if node.outputs != 1 or node.typed["axis"] != 1 or uses[entry.node, entry.index] != 1:
        return False
    variables = [e.node for e in (*conv.inputs[1:], *node.inputs[1:])]
    shared = any(readers[v] != 1 for v in (e.node for e in conv.inputs[1:]))
    return not shared and all(v.op is None and v.name in known for v in variables)


def _fold(node: Node, inputs: list[Entry], arguments: Arrays, auxiliary: Arrays) -> Node:
    """Return the convolution that normalizes; its arrays replace the old ones in `arguments`."""
    conv = inputs[0].node
    gamma, beta, mean, var = (
        (arguments if e.node.name in arguments else auxiliary)[e.node.name] for e in node.inputs[1:]
    )
    scale = 1 / ndarray.sqrt(var + node.typed["eps"])
    if not node.typed["fix_gamma"]:
        scale = scale * gamma
    weight_name = conv.inputs[1].node.name
    weight = arguments[weight_name]
    arguments[weight_name] = weight * scale.reshape((-1,) + (1,) * (weight.ndim - 1))
    if conv.typed["no_bias"]:
        bias_entry, bias = Entry(Node(None, f"{conv.name}_bias")), 0
    else:
        bias_entry = conv.inputs[2]
        bias = arguments[bias_entry.node.name]
    arguments[bias_entry.node.name] = (bias - mean) * scale + beta
    attrs = {key: value for key, value in conv.attrs.items() if key != "no_bias"}
    entries = [*conv.inputs[:2], bias_entry]
    # Named after the normalization, whose output this is.
    return Node(convolution, node.name, attrs, entries, extra=dict(conv.extra))
