"""Sequences of several lengths, and attention over heads that lie side by side."""

import torch
from torch import Tensor


def sequence_mask(
    x: Tensor, lengths: Tensor, value: float = 0.0, dim: int = 0
) -> Tensor:
    """Replace what lies behind the end of each sequence along axis 0 or 1."""
    steps = torch.arange(x.shape[dim], device=x.device)
    lengths = lengths.long()
    inside = steps[:, None] < lengths if dim == 0 else steps < lengths[:, None]
    inside = inside.reshape(*inside.shape, *[1] * (x.ndim - 2))
    return torch.where(inside, x, value)


def masked_softmax(x: Tensor, lengths: Tensor, dim: int = -1) -> Tensor:
    """Return the softmax of the first `lengths` numbers along an axis, and 0 behind."""
    steps = torch.arange(x.shape[dim], device=x.device)
    inside = (steps < lengths[..., None]).movedim(-1, dim)
    x = x.masked_fill(~inside, torch.finfo(x.dtype).min)
    return x.softmax(dim).masked_fill(~inside, 0.0)


def attention_scores(qkv: Tensor, heads: int) -> Tensor:
    """Return scores of interleaved queries and keys: (length, batch, 3 * size)."""
    length, batch, width = qkv.shape
    q, k, _ = qkv.reshape(length, batch * heads, 3, width // heads // 3).unbind(2)
    q = q.transpose(0, 1) / q.shape[-1] ** 0.5
    return q @ k.permute(1, 2, 0)


def attend(qkv: Tensor, weights: Tensor, heads: int) -> Tensor:
    """Return interleaved values weighted by attention: (length, batch, size)."""
    length, batch, width = qkv.shape
    values = qkv.reshape(length, batch * heads, 3, width // heads // 3)[:, :, 2]
    output = weights @ values.transpose(0, 1)
    return output.transpose(0, 1).reshape(weights.shape[1], batch, width // 3)
