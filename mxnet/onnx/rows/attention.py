"""Rows of attention with queries, keys and values head by head in one array."""

from __future__ import annotations

from ..builder import Builder, Call
from ..table import row


def _parts(g: Builder, x: str, heads: int, parts: int) -> list[str]:
    """Return each part as ``(length, batch, heads, size)``."""
    split = g.reshape(x, [0, 0, heads, parts, -1])
    return [g.squeeze(g.slice(split, [i], [i + 1], [3]), 3) for i in range(parts)]


def _scores(g: Builder, call: Call, queries: str, keys: str, size: int) -> str:
    """Return ``Q K^T / sqrt(size)`` as ``(batch * heads, length, length)``."""
    q = g.Transpose(queries, perm=[1, 2, 0, 3])
    k = g.Transpose(keys, perm=[1, 2, 3, 0])
    scaled = g.Mul(q, g.scalar(size**-0.5, call.dtype))
    made = g.MatMul(scaled, k)
    shape = g.Shape(made)
    rest = g.Slice(shape, g.ints(2), g.ints(4), g.ints(0))
    return g.Reshape(made, g.Concat(g.ints(-1), rest, axis=0))


def _attended(g: Builder, call: Call, attention: str, values: str, heads: int, size: int) -> str:
    """Return ``(length, batch, heads * size)``."""
    weights = g.Shape(attention)
    rest = g.Slice(weights, g.ints(1), g.ints(3), g.ints(0))
    split = g.Reshape(attention, g.Concat(g.ints(-1, heads), rest, axis=0))
    made = g.MatMul(split, g.Transpose(values, perm=[1, 2, 0, 3]))
    return g.reshape(g.Transpose(made, perm=[2, 0, 1, 3]), [0, 0, heads * size])


@row("_contrib_interleaved_matmul_selfatt_qk")
def selfatt_qk(g: Builder, call: Call, qkv: str) -> str:
    """Scores of self-attention."""
    heads = call.attrs["heads"]
    queries, keys, _ = _parts(g, qkv, heads, 3)
    return _scores(g, call, queries, keys, call.shape[-1] // (3 * heads))


@row("_contrib_interleaved_matmul_selfatt_valatt")
def selfatt_valatt(g: Builder, call: Call, qkv: str, attention: str) -> str:
    """Values of self-attention."""
    heads = call.attrs["heads"]
    values = _parts(g, qkv, heads, 3)[2]
    return _attended(g, call, attention, values, heads, call.shape[-1] // (3 * heads))


@row("_contrib_interleaved_matmul_encdec_qk")
def encdec_qk(g: Builder, call: Call, queries: str, keys_values: str) -> str:
    """Scores of attention to an encoder."""
    heads = call.attrs["heads"]
    keys = _parts(g, keys_values, heads, 2)[0]
    split = g.reshape(queries, [0, 0, heads, -1])
    return _scores(g, call, split, keys, call.shape[-1] // heads)


@row("_contrib_interleaved_matmul_encdec_valatt")
def encdec_valatt(g: Builder, call: Call, keys_values: str, attention: str) -> str:
    """Values of attention to an encoder."""
    heads = call.attrs["heads"]
    values = _parts(g, keys_values, heads, 2)[1]
    return _attended(g, call, attention, values, heads, call.shape[-1] // (2 * heads))
