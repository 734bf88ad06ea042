"""Dense forms of sparse operators, and storage type rules of all operators.

A rule of results is ``rule(attrs, stypes) -> stype`` of the first output. A rule of gradients is
``rule(attrs, index, outer, stypes) -> stype`` of the gradient of the input at `index`, where
`outer` is that of the output's gradient. Results of operators without a rule are dense.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from ..error import MXNetError
from . import registry
from .attributes import DType, Shape
from .declare import Op, op
from .shapes import same
from .tensor.arithmetic import OPERATIONS
from .tensor.indexing import EmbeddingTypes, embedding, embedding_inputs, embedding_shape


@op("cast_storage", "_sparse_cast_storage", shape=same, precision="own")
def cast_storage(data: Tensor, *, stype: Literal["csr", "default", "row_sparse"]) -> Tensor:
    """Convert an array to a storage type; a dense tensor keeps its values.

    Parameters
    ----------
    stype
        The storage type: ``'default'`` (dense), ``'csr'`` or ``'row_sparse'``.

    >>> mx.nd.cast_storage(mx.nd.array([[0, 1]]), stype="csr").stype
    'csr'
    """
    return data.clone()


@op("_sparse_retain", types="T I -> T")
def retain(data: Tensor, indices: Tensor) -> Tensor:
    """Keep the rows at the given indices; all others become zero.

    Parameters
    ----------
    data
        A row_sparse array.
    indices
        Indices of the rows to keep.

    >>> x = mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [0, 2]), shape=(3, 2))
    >>> mx.nd.sparse.retain(x, mx.nd.array([2])).asnumpy()
    array([[0., 0.],
           [0., 0.],
           [3., 4.]], dtype=float32)
    """
    mask = torch.zeros(data.shape[0], dtype=data.dtype, device=data.device)
    mask[indices.long().reshape(-1)] = 1
    return data * mask.reshape(-1, *[1] * (data.ndim - 1))


@retain.infer_outputs
def retain_shape(data: Shape | None, indices: Shape | None) -> Shape | None:
    """The shape is unchanged."""
    return data


@op("_contrib_getnnz", types="T -> int64")
def getnnz(data: Tensor, *, axis: int | None = None) -> Tensor:
    """Count the stored values of a csr matrix, in total or with ``axis=1`` per row.

    Parameters
    ----------
    data
        A csr matrix.
    axis
        None: all values; 1: those of each row.

    >>> x = mx.nd.sparse.csr_matrix(([1, 2, 3], [0, 1, 0], [0, 2, 3]), shape=(2, 2))
    >>> mx.nd.contrib.getnnz(x, axis=1).asnumpy()
    array([2, 1])
    """
    if axis not in (None, 1):
        raise MXNetError(f"getnnz with axis = {axis} is not supported yet: use None or 1.")
    counts = torch.count_nonzero(data, dim=axis)
    return counts.reshape(1) if axis is None else counts


@getnnz.infer_outputs
def getnnz_shape(data: Shape | None, *, axis: int | None) -> Shape | None:
    """One element, or one per row."""
    if data is None:
        return None
    return (1,) if axis is None else data[:1]


@op("_contrib_SparseEmbedding", without_gradient=("data",))
def sparse_embedding(
    data: Tensor,
    weight: Tensor,
    *,
    input_dim: int,
    output_dim: int,
    dtype: DType = torch.float32,
    deterministic: bool = False,
) -> Tensor:
    """Like `Embedding`, with a row_sparse gradient.

    Parameters
    ----------
    data
        The indices.
    weight
        Table of shape ``(input_dim, output_dim)``.
    input_dim
        Number of rows of the weight: the size of the vocabulary.
    output_dim
        Number of columns of the weight: the size of a vector.
    dtype
        Data type of the weight.
    deterministic
        Accepted; the gradient is summed in a fixed order on the CPU anyway.

    >>> weight = mx.nd.array([[1, 2], [3, 4]])
    >>> data = mx.nd.array([1])
    >>> mx.nd.contrib.SparseEmbedding(data, weight, input_dim=2, output_dim=2).asnumpy()
    array([[3., 4.]], dtype=float32)
    """
    return embedding.function(
        data, weight, input_dim=input_dim, output_dim=output_dim, dtype=dtype, sparse_grad=True
    )


sparse_embedding.type_pattern = EmbeddingTypes(None)
sparse_embedding.infer_inputs(embedding_inputs)
sparse_embedding.infer_outputs(embedding_shape)


CSR, ROWS, DENSE = "csr", "row_sparse", "default"
Attrs = Mapping[str, Any]
Stypes = Sequence[str]

# Storage types of results of `dot`, if MXNet has a kernel:
# (lhs, rhs, transpose_a, transpose_b): storage types, the first by default.
DOT_RESULTS: dict[tuple, tuple[str | None, ...]] = {
    (CSR, DENSE, False, False): (DENSE,),
    (CSR, DENSE, True, False): (ROWS, DENSE),
    (CSR, ROWS, False, False): (DENSE,),
    (CSR, ROWS, True, False): (ROWS,),
    (DENSE, CSR, False, False): (CSR, DENSE),
    (DENSE, CSR, False, True): (None, DENSE),
}
# Default storage type of a result computed by dense arrays.
DOT_CONVERTED: dict[tuple, str] = {(DENSE, CSR, False, True): CSR}


# -- rules of results -------------------------------------------------------------------------


def keep(attrs: Attrs, stypes: Stypes) -> str:
    """Return the storage type of the first input."""
    return stypes[0]


def keep_unless_shifted(attrs: Attrs, stypes: Stypes) -> str:
    """Stay sparse only if the added number is 0."""
    return DENSE if attrs["scalar"] else stypes[0]


def keep_if_equal(attrs: Attrs, stypes: Stypes) -> str:
    """Stay sparse if all inputs have the same storage type."""
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
    target, possible = attrs["forward_stype"], DOT_RESULTS.get(case, ())
    chosen = possible[0] if target is None and possible else target
    return chosen if chosen is not None else DOT_CONVERTED.get(case, DENSE)


def keep_if_zero_stays(op: Op) -> Callable:
    """Return a rule: stay sparse if the operator maps 0 to 0 under these attributes."""

    def rule(attrs: Attrs, stypes: Stypes) -> str:
        return DENSE if op.kernel(torch.zeros(1), **attrs).item() else stypes[0]

    return rule


# -- rules of gradients -----------------------------------------------------------------------


def pass_on(attrs: Attrs, index: int, outer: str, stypes: Stypes) -> str:
    """Return the storage type of the output's gradient."""
    return outer


def to_dense(attrs: Attrs, index: int, outer: str, stypes: Stypes) -> str:
    """Return dense, also for zeros."""
    return DENSE


def as_both(attrs: Attrs, index: int, outer: str, stypes: Stypes) -> str:
    """Stay sparse if the input and the output's gradient have the same sparse type."""
    return outer if outer == stypes[0] else DENSE


def as_input(attrs: Attrs, index: int, outer: str, stypes: Stypes) -> str:
    """Return the storage type of the input, for zeros."""
    return stypes[index]


def of_condition(attrs: Attrs, index: int, outer: str, stypes: Stypes) -> str:
    """Return the condition's own type for its zeros, dense for the choices."""
    return stypes[index] if index == 0 else DENSE


def of_dense_factor(attrs: Attrs, index: int, outer: str, stypes: Stypes) -> str:
    """Return row_sparse for the dense factor of a csr matrix that is not transposed."""
    if index != 1 or stypes[0] != CSR or attrs["transpose_a"] or attrs["transpose_b"]:
        return DENSE
    return DENSE if attrs["forward_stype"] == CSR else ROWS


def of_zeros(op: Op) -> Callable:
    """Return a rule: indices, conditions and shapes get zeros like themselves."""
    zeroed = [i for i, p in enumerate(op.inputs) if p.name in op.facts.without_gradient]
    return lambda attrs, index, outer, stypes: stypes[index] if index in zeroed else DENSE


def of_embedding(attrs: Attrs, index: int, outer: str, stypes: Stypes) -> str:
    """Return row_sparse for a weight with ``sparse_grad``."""
    return ROWS if index == 1 and attrs.get("sparse_grad", True) else DENSE


def of_rows(attrs: Attrs, index: int, outer: str, stypes: Stypes) -> str:
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
    "_scatter_elemwise_div": lambda attrs, stypes: ROWS if stypes[0] == ROWS else DENSE,
    "broadcast_mul": keep_first(CSR),
    "broadcast_div": keep_first(CSR),
    "add_n": keep_all(ROWS),
    "dot": of_dot,
    "cast_storage": lambda attrs, stypes: attrs["stype"],
    "take": keep_first(CSR),
    "slice": keep_all(CSR),
    "_contrib_quadratic": keep_all(CSR, lambda attrs: not attrs["c"]),
    "Concat": keep_all(CSR, lambda attrs: attrs["dim"] == 0),
    "_identity_with_attr_like_rhs": lambda attrs, stypes: stypes[1],
    "_square_sum": keep_all(ROWS, lambda attrs: attrs["keepdims"] and attrs["axis"] in (1, (1,))),
}
GRADIENTS: dict[str, Callable[[Attrs, int, str, Stypes], str]] = {
    **dict.fromkeys(
        (
            *("_copy", "_div_scalar", "_mul_scalar", "add_n", "cast_storage", "elemwise_add"),
            *("elemwise_sub", "negative", "_plus_scalar", "_minus_scalar"),
            *("_scatter_plus_scalar", "_scatter_minus_scalar", "_contrib_gradientmultiplier"),
            *("_contrib_round_ste", "_contrib_sign_ste", "_identity_with_attr_like_rhs"),
        ),
        pass_on,
    ),
    **dict.fromkeys(("abs", "relu", "sign", "square"), as_both),
    **dict.fromkeys(
        (
            *("BlockGrad", "ones_like", "zeros_like", "shape_array", "size_array"),
            *("ceil", "fix", "floor", "rint", "round", "trunc", "logical_not"),
            *("argmax", "argmin", "argsort", "topk", "_contrib_index_array"),
            *("_contrib_box_encode", "_contrib_box_decode", "_ravel_multi_index", "_unravel_index"),
        ),
        as_input,
    ),
    "slice_like": to_dense,
    "take": to_dense,
    "where": of_condition,
    "dot": of_dense_factor,
    "Embedding": of_embedding,
    "_contrib_SparseEmbedding": of_embedding,
    "_square_sum": of_rows,
}


def _declare() -> None:
    for record in registry.operators():
        if record.facts.keeps_zeros:
            record.storage_rule = keep
    for operation in OPERATIONS:
        if operation.returns_bool and operation.dunder is not None:
            operation.scalar.storage_rule = keep_if_zero_stays(operation.scalar)
        for form in operation[2:6] if operation.returns_bool else ():
            form.gradient_storage_rule = as_input
    for name, rule in RESULTS.items():
        registry.get(name).storage_rule = rule
    for name, rule in GRADIENTS.items():
        registry.get(name).gradient_storage_rule = rule
    for record in registry.operators():
        if record.facts.without_gradient and record.gradient_storage_rule is None:
            record.gradient_storage_rule = of_zeros(record)


_declare()
