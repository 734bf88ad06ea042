"""Attention in one call, without materializing the score matrices."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from ..declare import op
from ..nn.sequence import heads_of, interleaved_matmul_selfatt_qk, interleaved_matmul_selfatt_valatt
from ..shapes import Shape


@op("_fused_self_attention")
def fused_self_attention(queries_keys_values: Tensor, *, heads: int) -> Tensor:
    """Self-attention on interleaved projections ``(length, batch, width)``.

    >>> mx.nd._internal._fused_self_attention(mx.nd.ones((2, 1, 3 * 4)), heads=1).shape
    (2, 1, 4)
    """
    length, batch, width = queries_keys_values.shape
    parts = heads_of(interleaved_matmul_selfatt_qk.name, queries_keys_values, heads, 3)
    # (length, batch * heads, 3, size) -> 3 of (batch, heads, length, size)
    q, k, v = parts.view(length, batch, heads, 3, -1).permute(3, 1, 2, 0, 4)
    out = F.scaled_dot_product_attention(q, k, v)
    return out.permute(2, 0, 1, 3).reshape(length, batch, width // 3)


@fused_self_attention.infer_outputs
def self_attention_shape(qkv: Shape | None, *, heads: int) -> Shape | None:
    """The values' third of the projections."""
    rule = interleaved_matmul_selfatt_valatt.output_rule
    assert rule is not None
    return rule(qkv, None, heads=heads)


@op("_fused_attention")
def fused_attention(queries: Tensor, keys: Tensor, values: Tensor, *, scale: float = 1.0) -> Tensor:
    """Return ``softmax(scale Q K^T) V`` of each batch of matrices.

    Parameters
    ----------
    scale
        Factor of the scores.

    >>> q, kv = mx.nd.ones((1, 2, 4)), mx.nd.ones((1, 3, 4))
    >>> mx.nd._internal._fused_attention(q, kv, kv, scale=0.5).shape
    (1, 2, 4)
    """
    q, k, v = queries.unsqueeze(0), keys.unsqueeze(0), values.unsqueeze(0)
    return F.scaled_dot_product_attention(q, k, v, scale=scale).squeeze(0)


@fused_attention.infer_outputs
def attention_shape(
    queries: Shape | None, keys: Shape | None, values: Shape | None, **_: object
) -> Shape | None:
    """The rows of the queries, the columns of the values."""
    if queries is None or values is None:
        return None
    return (*queries[:-1], values[-1])
