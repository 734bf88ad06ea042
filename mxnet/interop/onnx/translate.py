"""Translation of a graph to ONNX nodes: shape inference, then a traversal with export rules.

Shapes are inferred with numbers, twice if sizes are dynamic: sizes that differ are dynamic (-1).
This also works for operators without rules for unknown sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from ...base import is_np_shape
from ...error import MXNetError, ShapeError
from ...graph import Entry, Graph, Node, interpret
from ...graph.passes.infer import infer_shapes, infer_types
from .builder import (
    UNKNOWN,
    Builder,
    Call,
    Row,
    Shape,
    UnsupportedExport,
    operator_of,
    rows,
    why_refused,
)

__all__ = ["Facts", "Translator", "ignored_variables", "infer_facts", "probe_sizes", "row_of"]

# Probes for unknown sizes, of axis 0 and of the others. The second run uses larger ones; for the
# others the increments are multiples of usual strides.
BATCH, SIZE, MULTIPLE = 4, 64, 32


class Facts(NamedTuple):
    """Shapes and dtypes of the outputs of each node."""

    shapes: dict[Node, list[Shape]]
    dtypes: dict[Node, list[torch.dtype]]


def probe_sizes(
    shape: Sequence[int | str | None], example: Sequence[int | str | None] | None, add: int
) -> Shape:
    """Replace dynamic sizes of a shape by those of the example, plus `add`."""
    sizes = []
    for axis, size in enumerate(shape):
        if isinstance(size, int) and (size > 0 or (size == 0 and is_np_shape())):
            sizes.append(size)
            continue
        size_given = None if example is None else example[axis]
        if isinstance(size_given, int) and size_given > 0:
            sizes.append(size_given + (add if axis == 0 else MULTIPLE * add))
        else:
            sizes.append(BATCH + add if axis == 0 else SIZE + MULTIPLE * add)
    return tuple(sizes)


def infer_facts(
    graph: Graph,
    shapes: Mapping[str, Shape],
    other_shapes: Mapping[str, Shape] | None,
    types: Mapping[str, torch.dtype],
    default: torch.dtype,
) -> Facts:
    """Infer everything; `other_shapes` differ from `shapes` where sizes are dynamic."""
    exact = is_np_shape()
    first = infer_shapes(graph, shapes, zero_is_unknown=not exact)
    open_nodes = _after_values(graph)
    shapes_found = {
        node: [_complete(node, s, node in open_nodes) for s in values]
        for node, values in first.values.items()
    }
    if other_shapes is not None:
        second = infer_shapes(graph, other_shapes, zero_is_unknown=not exact)
        shapes_found = {
            node: [_merge(a, b) for a, b in zip(values, second.values[node], strict=True)]
            for node, values in shapes_found.items()
        }
    inferred = infer_types(graph, types, default)
    return Facts(shapes_found, {n: [t or default for t in v] for n, v in inferred.values.items()})


def _after_values(graph: Graph) -> set[Node]:
    """Return the nodes whose shapes may depend on values: operators, loops, their consumers."""
    nodes: set[Node] = set()
    for node in graph.nodes:
        is_open = node.op is not None and (node.op.value_dependent or bool(node.subgraphs))
        if is_open or any(e.node in nodes for e in node.inputs):
            nodes.add(node)
    return nodes


def _complete(node: Node, shape: Any, is_open: bool) -> Shape:
    if shape is None or UNKNOWN in shape:
        if is_open and shape is not None:
            return tuple(shape)
        if node.op is not None and node.op.value_dependent:
            return ()
        raise ShapeError(
            f"ONNX export: the shape of {node.name!r} cannot be inferred (found {shape}). Pass the "
            "shape of every input in in_shapes."
        )
    return tuple(shape)


def _merge(first: Shape, second: Any) -> Shape:
    if second is None or len(first) != len(second):
        raise MXNetError("ONNX export: the rank of an array depends on the dynamic sizes.")
    return tuple(a if a == b else UNKNOWN for a, b in zip(first, second, strict=True))


def row_of(node: Node, opset: int) -> Row:
    """Return the row of a node's operator; raise with advice if there is none."""
    name = operator_of(node).name
    row = rows().get(name)
    if row is None:
        raise UnsupportedExport(
            f"ONNX export: operator {name} (node {node.name!r}) {why_refused(name)}"
        )
    if opset < row.since:
        raise UnsupportedExport(
            f"ONNX export: operator {name} (node {node.name!r}) needs "
            f"opset_version={row.since} or newer, the model is written for {opset}."
        )
    return row


def ignored_variables(graph: Graph) -> set[Node]:
    """Return the inputs that are ignored by all rows, such as labels of output layers."""
    used, ignored = set(), set()
    for node in graph.nodes:
        if node.op is None:
            continue
        row = rows().get(node.op.name)
        skipped = row.ignores if row else ()
        for name, entry in zip(node.input_names, node.inputs, strict=False):
            (ignored if name in skipped else used).add(entry.node)
    used.update(e.node for e in graph.heads)
    return {n for n in ignored - used if n.op is None}


class Translator:
    """Exports one graph and the bodies inside it; variables of unknown type have type `default`."""

    def __init__(self, params: Mapping[str, torch.Tensor], default: torch.dtype) -> None:
        self.params = params
        self.default = default
        self._constants: dict[Node, Any] = {}

    def run(self, graph: Graph, facts: Facts, g: Builder, feed: Mapping[Node, str]) -> list[str]:
        """Add the nodes of a graph to a builder and return the names of its heads."""

        def apply(node: Node, inputs: list[str]) -> Sequence[str]:
            row = row_of(node, g.opset)
            g.scope = node.name
            start = len(g.nodes)
            call = self._call(node, facts)
            try:
                outputs = row.emit(g, call, *inputs)
            except MXNetError:
                raise
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise call.unsupported(f"could not be written: {error!r}") from error
            outputs = [outputs] if isinstance(outputs, str) else list(outputs)
            names = row.name_outputs(call, len(outputs))
            return _rename_outputs(g, names, outputs, start)

        return interpret(graph, lambda node: feed[node], apply)

    def _call(self, node: Node, facts: Facts) -> Call:
        entries = node.inputs
        return Call(
            node,
            node.typed,
            [facts.shapes[e.node][e.index] for e in entries],
            [facts.dtypes[e.node][e.index] for e in entries],
            facts.shapes[node],
            facts.dtypes[node],
            lambda i: self.constant(entries[i]),
            self._export_body,
        )

    def _export_body(
        self, graph: Graph, g: Builder, names: Sequence[str], facts_given: Sequence[tuple]
    ) -> tuple[list[str], list[torch.dtype]]:
        """Export the body of a loop or branch; `known` are the shapes and dtypes of its inputs."""
        variables = graph.variables
        shapes: dict[str, Shape] = {
            v.name: k[0] for v, k in zip(variables, facts_given, strict=True)
        }
        types = {v.name: k[1] for v, k in zip(variables, facts_given, strict=True)}
        facts = infer_facts(graph, shapes, None, types, self.default)
        scope = g.scope
        outputs = self.run(graph, facts, g, dict(zip(variables, names, strict=True)))
        g.scope = scope
        return outputs, [facts.dtypes[e.node][e.index] for e in graph.heads]

    def constant(self, entry: Entry) -> np.ndarray | None:
        """Return the value of an entry that depends only on parameters, else None."""
        value = self._value(entry.node)
        return None if value is None else value[entry.index].numpy()

    def _value(self, node: Node) -> Sequence[torch.Tensor] | None:
        order = Graph([Entry(node)]).nodes
        for each in order:
            if each not in self._constants:
                self._constants[each] = self._compute(each)
        return self._constants[node]

    def _compute(self, node: Node) -> Sequence[torch.Tensor] | None:
        if node.op is None:
            value = self.params.get(node.name)
            return None if value is None else (value,)
        inputs = [self._constants[e.node] for e in node.inputs]
        if not inputs or any(i is None for i in inputs) or node.subgraphs:
            return None
        op = node.op
        extra = op.context_for(False, torch.device("cpu"))
        values = [i[e.index] for i, e in zip(inputs, node.inputs, strict=True)]
        with torch.no_grad():
            outputs = op.kernel(*values, **node.typed, **extra)
        return outputs if isinstance(outputs, tuple | list) else (outputs,)


def _rename_outputs(
    g: Builder, node_outputs: Sequence[str], outputs: list[str], start: int
) -> list[str]:
    names = {name for n in g.nodes[start:] for name in n.output}
    renamed = {}
    for name, new_name in zip(outputs, node_outputs, strict=True):
        if name in names and name not in renamed:
            renamed[name] = g.unique(new_name)
    if renamed:
        for each in g.nodes[start:]:
            for side in (each.input, each.output):
                for at, name in enumerate(side):
                    if name in renamed:
                        side[at] = renamed[name]
    return [renamed.get(n, n) for n in outputs]
