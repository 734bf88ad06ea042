"""Storage types of a graph: which results and gradients are row_sparse or csr, as MXNet infers.

The rules are on the operator records (`ops/sparse.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...error import MXNetError
from ...graph.graph import Graph
from ...graph.node import Node
from ...ops.sparse import CSR, DENSE, ROWS, cast_storage

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
        sparse = any(s != DENSE for s in stypes) or node.op is cast_storage
        found = rule(node.typed, stypes) if sparse and rule is not None else DENSE
        values[node] = [found, *[DENSE] * (node.outputs - 1)]
    return values


def is_sparse(values: Values) -> bool:
    """Return whether anything is not dense."""
    return any(s != DENSE for stypes in values.values() for s in stypes)


def checked_stypes(given: Mapping[str, str] | None) -> dict[str, str]:
    """Return storage types by name, or say which ones there are."""
    for name, stype in (given or {}).items():
        if stype not in (DENSE, ROWS, CSR):
            raise MXNetError(
                f"stype_dict: {stype!r} of {name!r} is none of {DENSE}, {ROWS}, {CSR}."
            )
    return dict(given or {})


def infer_gradient_storage(graph: Graph, values: Values) -> dict[Node, str]:
    """Return the storage types of the variables' gradients; outputs' are those of the outputs."""
    found: dict[tuple[Node, int], list[str]] = {}
    for head in graph.heads:
        found.setdefault((head.node, head.index), []).append(values[head.node][head.index])
    for node in reversed(graph.nodes):
        if node.op is None:
            continue
        outer = _together(found.get((node, 0), ()))
        stypes = [values[e.node][e.index] for e in node.inputs]
        for place, entry in enumerate(node.inputs):
            rule = node.op.gradient_storage_rule
            stype = DENSE if rule is None else rule(node.typed, place, outer, stypes)
            found.setdefault((entry.node, entry.index), []).append(stype)
    return {n: _together(found.get((n, 0), ())) for n in graph.variables}


def _together(parts: Sequence[str]) -> str:
    """Return the storage type of a sum: only row_sparse arrays keep theirs."""
    if len(parts) == 1:
        return parts[0]
    return ROWS if parts and set(parts) == {ROWS} else DENSE
