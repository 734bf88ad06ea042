"""Storage types in a graph: which values and gradients are dense, row_sparse or csr.

They follow from rules on the operator records (`ops/sparse.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...error import MXNetError
from ...ops.sparse import CSR, DENSE, ROWS
from ...ops.sparse import cast_storage as op_cast_storage
from ..graph import Graph
from ..node import Node

NAMES = {"0": DENSE, "1": ROWS, "2": CSR}  # as variables store them
Values = dict[Node, list[str]]


def stored_stype(node: Node) -> str:
    """Return the storage type that a variable was declared with."""
    return NAMES.get(node.extra.get("__storage_type__", "0"), DENSE)


def infer_storage(graph: Graph, known: Mapping[str, str] | None = None) -> Values:
    """Return the storage types of all nodes' outputs; `known` are those of variables by name."""
    known = known or {}
    values: Values = {}
    for node in graph.nodes:
        if node.op is None:
            values[node] = [known.get(node.name) or stored_stype(node)]
            continue
        stypes = [values[e.node][e.index] for e in node.inputs]
        rule = node.op.storage_rule
        sparse = any(s != DENSE for s in stypes) or node.op is op_cast_storage
        stype = rule(node.typed, stypes) if sparse and rule is not None else DENSE
        values[node] = [stype, *[DENSE] * (node.outputs - 1)]
    return values


def makes_sparse(graph: Graph) -> bool:
    """Return whether dense values become sparse in a graph."""
    return any(n.op is op_cast_storage and n.typed["stype"] != DENSE for n in graph.nodes)


def is_sparse(values: Values) -> bool:
    """Return whether any value is sparse."""
    return any(s != DENSE for stypes in values.values() for s in stypes)


def check_stypes(stypes: Mapping[str, str] | None) -> dict[str, str]:
    """Validate storage types. Raise an error that lists the valid values."""
    for name, stype in (stypes or {}).items():
        if stype not in (DENSE, ROWS, CSR):
            raise MXNetError(
                f"stype_dict: {stype!r} of {name!r} must be one of {DENSE}, {ROWS}, {CSR}."
            )
    return dict(stypes or {})


def infer_gradient_storage(graph: Graph, values: Values) -> dict[Node, str]:
    """Return the storage types of the variables' gradients; outputs' are those of the outputs."""
    parts: dict[tuple[Node, int], list[str]] = {}
    for head in graph.heads:
        parts.setdefault((head.node, head.index), []).append(values[head.node][head.index])
    for node in reversed(graph.nodes):
        if node.op is None:
            continue
        outer = _sum_stypes(parts.get((node, 0), ()))
        stypes = [values[e.node][e.index] for e in node.inputs]
        for position, entry in enumerate(node.inputs):
            rule = node.op.gradient_storage_rule
            stype = DENSE if rule is None else rule(node.typed, position, outer, stypes)
            parts.setdefault((entry.node, entry.index), []).append(stype)
    return {n: _sum_stypes(parts.get((n, 0), ())) for n in graph.variables}


def _sum_stypes(parts: Sequence[str]) -> str:
    """Return the storage type of a sum: only row_sparse arrays keep theirs."""
    if len(parts) == 1:
        return parts[0]
    return ROWS if parts and set(parts) == {ROWS} else DENSE
