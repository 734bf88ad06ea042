"""Operators about storage types as they act on dense tensors; `mx.nd.sparse` has the rest."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from ...error import MXNetError
from ..attributes import DType, Shape
from ..declare import op
from ..shapes import same
from ..tensor.selection.indexing import EmbeddingTypes, embedding, embedding_inputs, embedding_shape


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
    """Keep the rows of the given numbers; all others become zero.

    Parameters
    ----------
    data
        A row_sparse array.
    indices
        Numbers of the rows to keep.

    >>> x = mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [0, 2]), shape=(3, 2))
    >>> mx.nd.sparse.retain(x, mx.nd.array([2])).asnumpy()
    array([[0., 0.],
           [0., 0.],
           [3., 4.]], dtype=float32)
    """
    kept = torch.zeros(data.shape[0], dtype=data.dtype, device=data.device)
    kept[indices.long().reshape(-1)] = 1
    return data * kept.reshape(-1, *[1] * (data.ndim - 1))


@retain.infer_outputs
def retain_shape(data: Shape | None, indices: Shape | None) -> Shape | None:
    """The shape stays."""
    return data


@op("_contrib_getnnz", types="T -> int64")
def getnnz(data: Tensor, *, axis: int | None = None) -> Tensor:
    """Count the stored values of a csr matrix: of all of it, or with ``axis=1`` of each row.

    Parameters
    ----------
    data
        A csr matrix.
    axis
        None counts all values, 1 those of each row.

    >>> x = mx.nd.sparse.csr_matrix(([1, 2, 3], [0, 1, 0], [0, 2, 3]), shape=(2, 2))
    >>> mx.nd.contrib.getnnz(x, axis=1).asnumpy()
    array([2, 1])
    """
    if axis not in (None, 1):
        raise MXNetError(f"getnnz with axis = {axis} is not supported yet: give None or 1.")
    counts = torch.count_nonzero(data, dim=axis)
    return counts.reshape(1) if axis is None else counts


@getnnz.infer_outputs
def getnnz_shape(data: Shape | None, *, axis: int | None) -> Shape | None:
    """One number, or one for each row."""
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
    sparse_grad: bool = False,
) -> Tensor:
    """Look up rows as `Embedding` does; the gradient is row_sparse.

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
    sparse_grad
        Accepted for compatibility; the gradient is row_sparse anyway.

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
