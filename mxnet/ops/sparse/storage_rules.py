"""Storage types: which results and gradients of an operator are row_sparse or csr, as in MXNet.

A rule of results is ``rule(attrs, stypes) -> stype`` of the first output. A rule of gradients is
``rule(attrs, place, outer, stypes) -> stype`` of the gradient of the input at `place`, where
`outer` is that of the output's gradient. Operators without a rule make dense arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .. import registry
from ..declare import Op
from ..tensor.math.operations import OPERATIONS

CSR, ROWS, DENSE = "csr", "row_sparse", "default"
Attrs = Mapping[str, Any]
Stypes = Sequence[str]

# What `dot` stores its result as, where MXNet has a kernel of its own:
# (lhs, rhs, transpose_a, transpose_b): storage types, the first by default.
DOT_RESULTS: dict[tuple, tuple[str | None, ...]] = {
    (CSR, DENSE, False, False): (DENSE,),
    (CSR, DENSE, True, False): (ROWS, DENSE),
    (CSR, ROWS, False, False): (DENSE,),
    (CSR, ROWS, True, False): (ROWS,),
    (DENSE, CSR, False, False): (CSR, DENSE),
    (DENSE, CSR, False, True): (None, DENSE),
}
# What a result becomes if it is made through dense arrays and the user does not choose.
DOT_CONVERTED: dict[tuple, str] = {(DENSE, CSR, False, True): CSR}


# -- rules of results -------------------------------------------------------------------------


def keep(attrs: Attrs, stypes: Stypes) -> str:
    """Return the storage type of the first input."""
    return stypes[0]


def keep_unless_shifted(attrs: Attrs, stypes: Stypes) -> str:
    """Stay sparse only if the number that is added is 0."""
    return DENSE if attrs["scalar"] else stypes[0]


def keep_if_equal(attrs: Attrs, stypes: Stypes) -> str:
    """Stay sparse if all inputs have one storage type."""
    return stypes[0] if len(set(stypes)) == 1 else DENSE


def keep_sparse_factor(attrs: Attrs, stypes: Stypes) -> str:
    """Return the storage type of a product: that of its sparse factor."""
    if len(set(stypes)) == 1:
        return stypes[0]
    return next(s for s in stypes if s != DENSE) if DENSE in stypes else DENSE


def keep_all(stype: str, when: Callable[[Attrs], bool] = lambda a: True) -> Callable:
    """Return a rule: inputs that all have a storage type keep it."""
    return lambda attrs, stypes: stype if set(stypes) == {stype} and when(attrs) else DENSE


def keep_first(stype: str) -> Callable:
    """Return a rule: a first input of a storage type keeps it, unless another one is csr."""
    return lambda attrs, stypes: stype if stypes[0] == stype and CSR not in stypes[1:] else DENSE


def of_dot(attrs: Attrs, stypes: Stypes) -> str:
    """Return the storage type of a matrix product."""
    case = (*stypes, attrs["transpose_a"], attrs["transpose_b"])
    wanted, possible = attrs["forward_stype"], DOT_RESULTS.get(case, ())
    chosen = possible[0] if wanted is None and possible else wanted
    return chosen if chosen is not None else DOT_CONVERTED.get(case, DENSE)


def keep_if_zero_stays(op: Op) -> Callable:
    """Return a rule: stay sparse if the operator maps 0 to 0 under these attributes."""

    def rule(attrs: Attrs, stypes: Stypes) -> str:
        return DENSE if op.kernel(torch.zeros(1), **attrs).item() else stypes[0]

    return rule


# -- rules of gradients -----------------------------------------------------------------------


def pass_on(attrs: Attrs, place: int, outer: str, stypes: Stypes) -> str:
    """Return the storage type of the output's gradient."""
    return outer


def as_both(attrs: Attrs, place: int, outer: str, stypes: Stypes) -> str:
    """Stay sparse if the input and the output's gradient are sparse alike."""
    return outer if outer == stypes[0] else DENSE


def as_input(attrs: Attrs, place: int, outer: str, stypes: Stypes) -> str:
    """Return the storage type of the input: zeros like it."""
    return stypes[place]


def of_condition(attrs: Attrs, place: int, outer: str, stypes: Stypes) -> str:
    """Return that of a condition, which gets zeros like itself; choices get dense gradients."""
    return stypes[place] if place == 0 else DENSE


def of_dense_factor(attrs: Attrs, place: int, outer: str, stypes: Stypes) -> str:
    """Return row_sparse for the dense factor of a csr matrix that is not transposed."""
    if place != 1 or stypes[0] != CSR or attrs["transpose_a"] or attrs["transpose_b"]:
        return DENSE
    return ROWS


def of_embedding(attrs: Attrs, place: int, outer: str, stypes: Stypes) -> str:
    """Return row_sparse for a weight with ``sparse_grad``."""
    return ROWS if place == 1 and attrs.get("sparse_grad", True) else DENSE


def of_rows(attrs: Attrs, place: int, outer: str, stypes: Stypes) -> str:
    """Return row_sparse for a row_sparse input."""
    return ROWS if stypes[0] == ROWS else DENSE


# -- declarations -----------------------------------------------------------------------------

RESULTS: dict[str, Callable[[Attrs, Stypes], str]] = {
    **dict.fromkeys(
        (
            *("BlockGrad", "_copy", "_scatter_minus_scalar", "_scatter_plus_scalar"),
            *("_sparse_retain", "clip", "make_loss", "zeros_like"),
        ),
        keep,
    ),
    "_minus_scalar": keep_unless_shifted,
    "_plus_scalar": keep_unless_shifted,
    **dict.fromkeys(
        ("_grad_add", "_hypot", "_maximum", "_minimum", "elemwise_add", "elemwise_sub"),
        keep_if_equal,
    ),
    "elemwise_mul": keep_sparse_factor,
    "_scatter_elemwise_div": keep_first(ROWS),
    "broadcast_mul": keep_first(CSR),
    "broadcast_div": keep_first(CSR),
    "add_n": keep_all(ROWS),
    "dot": of_dot,
    "cast_storage": lambda attrs, stypes: attrs["stype"],
    "take": keep_first(CSR),
    "slice": keep_all(CSR),
    "_contrib_quadratic": keep_all(CSR, lambda attrs: not attrs["c"]),
    "Concat": keep_all(CSR, lambda attrs: attrs["dim"] == 0),
    "_square_sum": keep_all(ROWS, lambda attrs: attrs["keepdims"] and attrs["axis"] in (1, (1,))),
}
GRADIENTS: dict[str, Callable[[Attrs, int, str, Stypes], str]] = {
    **dict.fromkeys(
        (
            *("_copy", "_div_scalar", "_mul_scalar", "add_n", "cast_storage", "elemwise_add"),
            *("elemwise_sub", "negative"),
        ),
        pass_on,
    ),
    **dict.fromkeys(("abs", "relu", "sign", "square"), as_both),
    **dict.fromkeys(("BlockGrad", "ones_like", "zeros_like"), as_input),
    "where": of_condition,
    "dot": of_dense_factor,
    "Embedding": of_embedding,
    "_contrib_SparseEmbedding": of_embedding,
    "_square_sum": of_rows,
}


def _declare() -> None:
    for op in registry.operators():
        if op.facts.keeps_zeros:
            op.storage_rule = keep
    for operation in OPERATIONS:
        if operation.returns_bool and operation.dunder is not None:
            operation.scalar.storage_rule = keep_if_zero_stays(operation.scalar)
    for name, rule in RESULTS.items():
        registry.get(name).storage_rule = rule
    for name, rule in GRADIENTS.items():
        registry.get(name).gradient_storage_rule = rule


_declare()
