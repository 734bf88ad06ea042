"""Attention and rotary positions of today's transformers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ..attributes import DType
from ..declare import op
from ..shapes import Shape


def _split_heads(x: Tensor, heads: int) -> Tensor:
    """Return ``(batch, heads, length, size)`` from ``(batch, length, heads * size)``."""
    if x.ndim == 4:
        return x
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(1, 2)


def _join_heads(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


def _allowed(
    size: tuple[int, int],
    offset: Tensor | int,
    window: tuple[int, int],
    is_causal: bool,
    device: torch.device,
) -> Tensor | None:
    """Return which keys each query sees by position: ``(queries, keys)`` or with a batch."""
    left, right = window
    if is_causal:
        right = 0 if right < 0 else min(right, 0)
    if left < 0 and right < 0:
        return None
    rows = torch.arange(size[0], device=device)[:, None]
    columns = torch.arange(size[1], device=device)
    if isinstance(offset, Tensor):
        rows = rows + offset.reshape(-1, 1, 1, 1)
    distance = rows + (0 if isinstance(offset, Tensor) else offset) - columns
    seen = torch.ones_like(distance, dtype=torch.bool)
    if left >= 0:
        seen &= distance <= left
    if right >= 0:
        seen &= -distance <= right
    return seen


def _bias(mask: Tensor | None, seen: Tensor | None, length: int, dtype: torch.dtype) -> Tensor:
    """Return what is added to scores: the mask, and minus infinity where a key is not seen."""
    bias = torch.zeros((), dtype=dtype)
    if mask is not None:
        missing = length - mask.shape[-1]
        if mask.dtype is torch.bool:
            mask = functional.pad(mask, (0, missing), value=False)
            bias = torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, -torch.inf)
        else:
            bias = functional.pad(mask.to(dtype), (0, missing), value=-torch.inf)
    if seen is not None:
        hidden = torch.zeros_like(seen, dtype=dtype).masked_fill(~seen, -torch.inf)
        bias = bias.to(hidden.device) + hidden
    return bias


def _outputs(attrs: dict) -> int:
    return attrs["num_outputs"]


def _has(kind: str):
    return lambda attrs: kind in attrs["given"].split(",")


@op(
    "_onnx_attention",
    types="T T T M P P I -> T",
    optional={
        "mask": _has("mask"),
        "past_key": _has("past_key"),
        "past_value": _has("past_value"),
        "lengths": _has("lengths"),
    },
    outputs=_outputs,
)
def attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    lengths: Tensor | None = None,
    *,
    given: str = "",
    num_outputs: int = 1,
    q_num_heads: int = 0,
    kv_num_heads: int = 0,
    scale: float | None = None,
    is_causal: bool = False,
    softcap: float = 0.0,
    softmax_dtype: DType | None = None,
    scores_mode: int = 0,
    left_window: int = -1,
    right_window: int = -1,
) -> Tensor | tuple[Tensor, ...]:
    """Scaled dot-product attention with caches, groups of heads, windows and capped scores.

    `given` names the optional inputs. Outputs are the result, the keys and values with their
    past, and the scores: raw, capped, with the mask, or as shares by `scores_mode` 0 to 3.

    Parameters
    ----------
    queries
        Queries: ``(batch, heads, length, size)`` or ``(batch, length, heads * size)``.
    keys
        Keys, in the same form.
    values
        Values, in the same form.
    mask
        Truth values, or numbers that are added to scores.
    past_key
        Keys of earlier steps.
    past_value
        Values of earlier steps.
    lengths
        Number of real elements in each sequence.
    given
        Names of the optional inputs that are given, with commas.
    q_num_heads
        Heads of the queries where they are joined.
    kv_num_heads
        Heads of keys and values where they are joined.
    scale
        Factor of the scores; by default one over the root of the size.
    is_causal
        Whether a query sees only keys before it.
    softcap
        Bound of the scores; 0 is none.
    softmax_dtype
        Type that shares are computed in.
    scores_mode
        Which scores are the fourth output.
    left_window
        How many keys to the left are seen; -1 is all.
    right_window
        How many keys to the right are seen; -1 is all.

    >>> x = mx.nd.ones((1, 1, 2, 4))
    >>> mx.nd._internal._onnx_attention(x, x, x, is_causal=True).shape
    (1, 1, 2, 4)
    """
    q, k, v = (
        _split_heads(x, h)
        for x, h in ((queries, q_num_heads), (keys, kv_num_heads), (values, kv_num_heads))
    )
    if past_key is not None and past_value is not None:
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
    present = (k, v)
    if k.shape[1] != q.shape[1]:
        group = q.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    root = (scale or q.shape[-1] ** -0.5) ** 0.5
    raw = torch.matmul(q * root, (k * root).transpose(-1, -2))
    capped = softcap * torch.tanh(raw / softcap) if softcap else raw
    offset: Tensor | int = 0 if past_key is None else past_key.shape[2]
    if lengths is not None:
        offset = lengths - q.shape[2]
    size = (q.shape[2], k.shape[2])
    seen = _allowed(size, offset, (left_window, right_window), is_causal, q.device)
    if lengths is not None:
        real = torch.arange(size[1], device=q.device) < lengths.reshape(-1, 1, 1, 1)
        seen = real if seen is None else seen & real
    masked = capped + _bias(mask, seen, size[1], q.dtype).to(q.device)
    wide = masked if softmax_dtype is None else masked.to(softmax_dtype)
    # A query that sees nothing has no shares at all.
    shares = torch.softmax(wide, -1).masked_fill(masked.isneginf().all(-1, True), 0).to(q.dtype)
    made = torch.matmul(shares, v)
    made = _join_heads(made) if queries.ndim == 3 else made
    outs = (made, *present, (raw, capped, masked, shares)[scores_mode])
    return made if num_outputs == 1 else outs[:num_outputs]


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    pair = (x[..., 0::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    first, second = pair
    real, imaginary = cos * first - sin * second, sin * first + cos * second
    if interleaved:
        return torch.stack([real, imaginary], -1).flatten(-2)
    return torch.cat([real, imaginary], -1)


@op(
    "_onnx_rotary_embedding",
    types="T T T I -> T",
    optional={"positions": lambda a: a["has_positions"]},
)
def rotary_embedding(
    data: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None = None,
    *,
    num_heads: int = 0,
    rotary_dim: int = 0,
    interleaved: bool = False,
    has_positions: bool = False,
) -> Tensor:
    """Rotate pairs of features by angles that grow with the position.

    Parameters
    ----------
    cos
        Cosines of the angles by position.
    sin
        Sines of the angles by position.
    positions
        Position of each element.
    num_heads
        Number of heads where they are joined.
    rotary_dim
        How many features are rotated; 0 is all.
    interleaved
        Whether pairs are neighbors instead of halves.
    has_positions
        Whether `positions` is given.

    >>> x, turn = mx.nd.ones((1, 1, 1, 2)), mx.nd.ones((1, 1, 1))
    >>> mx.nd._internal._onnx_rotary_embedding(x, turn * 0, turn).asnumpy().ravel()
    array([-1.,  1.], dtype=float32)
    """
    x = _split_heads(data, num_heads)
    width = rotary_dim or x.shape[-1]
    if positions is not None:
        cos, sin = cos[positions.long()], sin[positions.long()]
    cos, sin = (t[..., : width // 2].unsqueeze(1) for t in (cos, sin))
    made = _rotated(x[..., :width], cos, sin, interleaved)
    made = torch.cat([made, x[..., width:]], -1)
    return _join_heads(made) if data.ndim == 3 else made


@rotary_embedding.infer_outputs
def rotary_embedding_shape(data: Shape | None, *_: Shape | None, **__: object) -> Shape | None:
    """Keep the shape of the data."""
    return data
