"""From a graph to ONNX nodes: the one walk, with rows as the meaning of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ..error import MXNetError
from ..graph import Entry, Graph, Node, interpret
from .builder import Builder, Call, Row, Shape, UnsupportedExport, operator_of, rows, why_refused
from .inference import Facts, infer_facts

__all__ = ["Translator", "ignored_variables", "row_of"]


def row_of(node: Node, opset: int) -> Row:
    """Return the row of a node's operator; without one the error says what to do."""
    name = operator_of(node).name
    found = rows().get(name)
    if found is None:
        raise UnsupportedExport(
            f"ONNX export: operator {name} (node {node.name!r}) {why_refused(name)}"
        )
    if opset < found.since:
        raise UnsupportedExport(
            f"ONNX export: operator {name} (node {node.name!r}) needs "
            f"opset_version={found.since} or newer, the model is written for {opset}."
        )
    return found


def ignored_variables(graph: Graph) -> set[Node]:
    """Return the inputs that only rows ignore, such as labels of output layers."""
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
    """Exports one graph and the bodies inside it.

    Parameters
    ----------
    params : dict of str to Tensor
        The values of parameters, for rows that need them as numbers.
    default : torch.dtype
        The type of variables about which nothing is known.
    """

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
                made = row.emit(g, call, *inputs)
            except MXNetError:
                raise
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise call.unsupported(f"could not be written: {error!r}") from error
            outputs = [made] if isinstance(made, str) else list(made)
            return _named(g, node, outputs, start)

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
        self, graph: Graph, g: Builder, names: Sequence[str], known: Sequence[tuple]
    ) -> tuple[list[str], list[torch.dtype]]:
        """Export the body of a loop or branch; `known` are the shapes and dtypes of its inputs."""
        variables = graph.variables
        shapes: dict[str, Shape] = {v.name: k[0] for v, k in zip(variables, known, strict=True)}
        types = {v.name: k[1] for v, k in zip(variables, known, strict=True)}
        facts = infer_facts(graph, shapes, None, types, self.default)
        scope = g.scope
        made = self.run(graph, facts, g, dict(zip(variables, names, strict=True)))
        g.scope = scope
        return made, [facts.dtypes[e.node][e.index] for e in graph.heads]

    def constant(self, entry: Entry) -> np.ndarray | None:
        """Return the value of an entry that follows from parameters alone, else None."""
        value = self._value(entry.node)
        return None if value is None else value[entry.index].numpy()

    def _value(self, node: Node) -> Sequence[torch.Tensor] | None:
        order = Graph([Entry(node)]).nodes
        for each in order:
            if each not in self._constants:
                self._constants[each] = self._computed(each)
        return self._constants[node]

    def _computed(self, node: Node) -> Sequence[torch.Tensor] | None:
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
            made = op.kernel(*values, **node.typed, **extra)
        return made if isinstance(made, tuple | list) else (made,)


def _named(g: Builder, node: Node, outputs: list[str], start: int) -> list[str]:
    """Rename what a row made after its node: ``fc1``, or ``split0`` and ``split1``."""
    made = {name for n in g.nodes[start:] for name in n.output}
    renamed = {}
    for i, name in enumerate(outputs):
        if name in made and name not in renamed:
            renamed[name] = g.unique(node.name if len(outputs) == 1 else f"{node.name}{i}")
    if renamed:
        for each in g.nodes[start:]:
            for side in (each.input, each.output):
                for at, name in enumerate(side):
                    if name in renamed:
                        side[at] = renamed[name]
    return [renamed.get(n, n) for n in outputs]
