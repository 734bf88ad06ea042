"""Storage types of a graph: which results and gradients are row_sparse or csr, as MXNet infers.

Results follow what the sparse kernels make (`ndarray/sparse`); all other operators make dense
arrays. Gradients are sparse where MXNet has a sparse backward operator, and dense elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ..error import MXNetError
from ..graph.graph import Graph
from ..graph.node import Node
from ..ndarray.sparse.products import CONVERTED, RESULTS

CSR, ROWS, DENSE = "csr", "row_sparse", "default"
NAMES = {"0": DENSE, "1": ROWS, "2": CSR}  # as variables store them
Values = dict[Node, list[str]]


# -- results --------------------------------------------------------------------------------------

KEEP = frozenset(
    [
        *("abs", "sign", "square", "relu", "sqrt", "cbrt", "expm1", "log1p", "negative", "sin"),
        *("tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh", "degrees", "radians"),
        *("floor", "ceil", "trunc", "fix", "rint", "round", "_contrib_round_ste", "clip"),
        *("_contrib_sign_ste", "_mul_scalar", "_div_scalar", "_scatter_plus_scalar", "zeros_like"),
        *("_scatter_minus_scalar", "_copy", "BlockGrad", "make_loss", "_sparse_retain"),
    ]
)
COMPARE = frozenset(
    f"_{sign}_scalar"
    for sign in ("equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal")
)


def _sum(node: Node, stypes: Sequence[str]) -> str:
    return stypes[0] if len(set(stypes)) == 1 else DENSE


def _product(node: Node, stypes: Sequence[str]) -> str:
    if len(set(stypes)) == 1:
        return stypes[0]
    return next(s for s in stypes if s != DENSE) if DENSE in stypes else DENSE


def _dot(node: Node, stypes: Sequence[str]) -> str:
    attrs = node.typed
    case = (*stypes, attrs["transpose_a"], attrs["transpose_b"])
    wanted, possible = attrs["forward_stype"], RESULTS.get(case, ())
    chosen = possible[0] if wanted is None and possible else wanted
    return chosen if chosen is not None else CONVERTED.get(case, DENSE)


def _all(stype: str, when: Callable[[Mapping[str, Any]], bool] = lambda a: True) -> Callable:
    """Return a rule: what is all of a storage type stays so."""
    return lambda node, stypes: stype if set(stypes) == {stype} and when(node.typed) else DENSE


def _first(stype: str) -> Callable:
    return lambda node, stypes: stype if stypes[0] == stype and CSR not in stypes[1:] else DENSE


RULES: dict[str, Callable[[Node, Sequence[str]], str]] = {
    **dict.fromkeys(KEEP, lambda node, stypes: stypes[0]),
    "_plus_scalar": lambda node, stypes: DENSE if node.typed["scalar"] else stypes[0],
    "_minus_scalar": lambda node, stypes: DENSE if node.typed["scalar"] else stypes[0],
    "elemwise_add": _sum,
    "elemwise_sub": _sum,
    "elemwise_mul": _product,
    "_scatter_elemwise_div": _first(ROWS),
    "broadcast_mul": _first(CSR),
    "broadcast_div": _first(CSR),
    "add_n": _all(ROWS),
    "dot": _dot,
    "cast_storage": lambda node, stypes: node.typed["stype"],
    "take": _first(CSR),
    "slice": _all(CSR),
    "Concat": _all(CSR, lambda attrs: attrs["dim"] == 0),
    "_square_sum": _all(ROWS, lambda attrs: attrs["keepdims"] and attrs["axis"] in (1, (1,))),
}


def _compared(node: Node, stypes: Sequence[str]) -> str:
    zero = node.op.kernel(torch.zeros(1), **node.typed)
    return DENSE if zero.item() else stypes[0]


RULES.update(dict.fromkeys(COMPARE, _compared))


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
        rule = RULES.get(node.op.name)
        sparse = any(s != DENSE for s in stypes) or node.op.name == "cast_storage"
        found = rule(node, stypes) if sparse and rule is not None else DENSE
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


# -- gradients ------------------------------------------------------------------------------------

PASS_ON = frozenset(
    [
        *("elemwise_add", "elemwise_sub", "add_n", "_copy", "_mul_scalar", "_div_scalar"),
        *("negative", "cast_storage"),
    ]
)
AS_BOTH = frozenset(["square", "abs", "sign", "relu"])  # sparse if input and gradient are
AS_INPUT = frozenset(["BlockGrad", "zeros_like", "ones_like"])  # zeros like the input


def _gradient_of_input(node: Node, place: int, outer: str, stypes: Sequence[str]) -> str:
    name = node.op.name
    if name in PASS_ON:
        return outer
    if name in AS_BOTH:
        return outer if outer == stypes[0] else DENSE
    if name in AS_INPUT or (name == "where" and place == 0):
        return stypes[place]
    if name == "dot" and place == 1 and stypes[0] == CSR:
        return DENSE if node.typed["transpose_a"] or node.typed["transpose_b"] else ROWS
    if name == "Embedding" and place == 1 and node.typed["sparse_grad"]:
        return ROWS
    if name == "_contrib_SparseEmbedding" and place == 1:
        return ROWS
    return ROWS if name == "_square_sum" and stypes[0] == ROWS else DENSE


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
            stype = _gradient_of_input(node, place, outer, stypes)
            found.setdefault((entry.node, entry.index), []).append(stype)
    return {n: _together(found.get((n, 0), ())) for n in graph.variables}


def _together(parts: Sequence[str]) -> str:
    """Return the storage type of a sum: only row_sparse arrays keep theirs."""
    if len(parts) == 1:
        return parts[0]
    return ROWS if parts and set(parts) == {ROWS} else DENSE
