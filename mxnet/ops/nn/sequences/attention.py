"""Attention of transformers on interleaved projections.

These are ``(length, batch, heads * parts * size)``, queries, keys and values head by head.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ....error import ShapeError
from ...declare import op
from ...shapes import UNKNOWN, Shape
from ...tensor.memory import in_row_order


def heads_of(name: str, projected: Tensor, heads: int, parts: int) -> Tensor:
    """Return ``(length, batch * heads, parts, size)``.

    Take parts by `unbind`: its gradient writes all parts at once, that of an index fills an array
    of zeros for each.
    """
    length, batch, width = projected.shape
    if heads <= 0 or width % (heads * parts):
        raise ShapeError(
            f"Shape inconsistent in {name}: the last axis of {list(projected.shape)} must be a "
            f"multiple of heads * {parts} = {heads * parts}."
        )
    return projected.reshape(length, batch * heads, parts, width // (heads * parts))


def _scores(queries: Tensor, keys: Tensor) -> Tensor:
    scaled = queries.transpose(0, 1) * (queries.shape[-1] ** -0.5)
    return torch.bmm(scaled, keys.permute(1, 2, 0))


def _attended(attention: Tensor, values: Tensor, heads: int) -> Tensor:
    out = torch.bmm(attention, values.transpose(0, 1)).transpose(0, 1)
    length, _, size = out.shape
    return out.reshape(length, -1, heads * size)


@op("_contrib_interleaved_matmul_selfatt_qk", precision="widest")
def interleaved_matmul_selfatt_qk(queries_keys_values: Tensor, *, heads: int) -> Tensor:
    """Scaled scores ``Q K^T / sqrt(size)`` of each head, as ``(batch * heads, length, length)``.

    >>> x = mx.nd.ones((2, 1, 3 * 4))
    >>> mx.nd.contrib.interleaved_matmul_selfatt_qk(x, heads=1).asnumpy()
    array([[[2., 2.],
            [2., 2.]]], dtype=float32)
    """
    name = "_contrib_interleaved_matmul_selfatt_qk"
    qkv = heads_of(name, queries_keys_values, heads, 3)
    queries, keys, _ = qkv.unbind(2)
    return _scores(queries, keys)


@in_row_order
@op("_contrib_interleaved_matmul_selfatt_valatt", precision="widest")
def interleaved_matmul_selfatt_valatt(
    queries_keys_values: Tensor, attention: Tensor, *, heads: int
) -> Tensor:
    """Values weighted by attention, heads side by side again: ``(length, batch, heads * size)``.

    >>> x, weights = mx.nd.ones((2, 1, 3)), mx.nd.array([[[0.5, 0.5], [1, 0]]])
    >>> mx.nd.contrib.interleaved_matmul_selfatt_valatt(x, weights, heads=1).asnumpy().ravel()
    array([1., 1.], dtype=float32)
    """
    name = "_contrib_interleaved_matmul_selfatt_valatt"
    qkv = heads_of(name, queries_keys_values, heads, 3)
    return _attended(attention, qkv.unbind(2)[2], heads)


@op("_contrib_interleaved_matmul_encdec_qk", precision="widest")
def interleaved_matmul_encdec_qk(queries: Tensor, keys_values: Tensor, *, heads: int) -> Tensor:
    """Scaled scores of the decoder's queries against the encoder's keys.

    Parameters
    ----------
    queries
        Projections of the decoder, of shape ``(length, batch, heads * size)``.

    >>> q, kv = mx.nd.ones((1, 1, 4)), mx.nd.ones((2, 1, 8))
    >>> mx.nd.contrib.interleaved_matmul_encdec_qk(q, kv, heads=1).asnumpy()
    array([[[2., 2.]]], dtype=float32)
    """
    name = "_contrib_interleaved_matmul_encdec_qk"
    q, kv = heads_of(name, queries, heads, 1), heads_of(name, keys_values, heads, 2)
    return _scores(q.squeeze(2), kv.unbind(2)[0])


@in_row_order
@op("_contrib_interleaved_matmul_encdec_valatt", precision="widest")
def interleaved_matmul_encdec_valatt(
    keys_values: Tensor, attention: Tensor, *, heads: int
) -> Tensor:
    """Encoder values weighted by the decoder's attention.

    >>> kv, weights = mx.nd.ones((2, 1, 2)), mx.nd.array([[[0.25, 0.5]]])
    >>> mx.nd.contrib.interleaved_matmul_encdec_valatt(kv, weights, heads=1).asnumpy()
    array([[[0.75]]], dtype=float32)
    """
    name = "_contrib_interleaved_matmul_encdec_valatt"
    kv = heads_of(name, keys_values, heads, 2)
    return _attended(attention, kv.unbind(2)[1], heads)


def _times(size: int, factor: int) -> int:
    return UNKNOWN if size == UNKNOWN else size * factor


def _divided(size: int, parts: int) -> int:
    return UNKNOWN if size == UNKNOWN else size // parts


@interleaved_matmul_selfatt_qk.infer_outputs
def selfatt_qk_shape(qkv: Shape | None, *, heads: int) -> Shape | None:
    """A square for each head."""
    return None if qkv is None else (_times(qkv[1], heads), qkv[0], qkv[0])


@interleaved_matmul_selfatt_valatt.infer_outputs
def selfatt_valatt_shape(qkv: Shape | None, attention: Shape | None, *, heads: int) -> Shape | None:
    """A third of the projections."""
    return None if qkv is None else (qkv[0], qkv[1], _divided(qkv[2], 3))


@interleaved_matmul_encdec_qk.infer_outputs
def encdec_qk_shape(queries: Shape | None, kv: Shape | None, *, heads: int) -> Shape | None:
    """Queries by keys for each head."""
    if queries is None or kv is None:
        return None
    return (_times(queries[1], heads), queries[0], kv[0])


@interleaved_matmul_encdec_valatt.infer_outputs
def encdec_valatt_shape(kv: Shape | None, attention: Shape | None, *, heads: int) -> Shape | None:
    """As many places as queries, half of the projections."""
    if kv is None or attention is None:
        return None
    return (attention[1], kv[1], _divided(kv[2], 2))
