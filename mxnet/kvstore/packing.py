"""Sums of 2-bit gradients over workers: four values travel in one byte."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Sequence

import torch
from torch import Tensor

from ..distributed.group import Disagreement, Group, ranks_of
from .compression import TwoBit
from .keys import Key

DIRECT = 4  # so many workers send whole messages to each other
SIGNATURE = 4  # bytes after the values, by which workers see that all mean the same keys


def pack(sent: Tensor) -> Tensor:
    """Return signs as bytes of four values: 0, 1 for plus, 2 for minus.

    >>> pack(torch.tensor([0.5, 0.0, -0.5, 0.5, 0.5])).tolist()
    [97, 1]
    """
    flat = sent.reshape(-1)
    codes = torch.zeros(-(-len(flat) // 4) * 4, dtype=torch.uint8, device=flat.device)
    codes[: len(flat)] = (flat > 0).to(torch.uint8) + 2 * (flat < 0).to(torch.uint8)
    quads = codes.view(-1, 4)
    return quads[:, 0] | quads[:, 1] << 2 | quads[:, 2] << 4 | quads[:, 3] << 6


@functools.cache
def _meanings() -> Tensor:
    """Return the four signs of each byte."""
    codes = torch.arange(256).view(-1, 1) >> torch.tensor([0, 2, 4, 6]) & 3
    return torch.tensor([0, 1, -1, 0], dtype=torch.int8)[codes]


def unpack_sum(rows: Tensor, count: int) -> Tensor:
    """Return the sum of packed rows as whole numbers.

    >>> unpack_sum(torch.tensor([[97, 1], [1, 2]], dtype=torch.uint8), 5).tolist()
    [2, 0, -1, 1, 0]
    """
    meanings = _meanings().to(rows.device)
    total = torch.zeros((rows.shape[1], 4), dtype=torch.int16, device=rows.device)
    for row in rows:
        total += meanings[row.int()]
    return total.view(-1)[:count]


def sum_packed(
    group: Group, compression: TwoBit, keys: Sequence[Key], values: Sequence[Tensor]
) -> list[Tensor]:
    """Compress values, exchange them with all workers, and return the sums."""
    packed = [pack(compression((k, 0), v)) for k, v in zip(keys, values, strict=True)]
    mark = zlib.crc32(repr(list(keys)).encode()).to_bytes(SIGNATURE, "little")
    message = torch.cat([*packed, torch.tensor(list(mark), dtype=torch.uint8).to(packed[0])])
    if mark not in compression.agreed:  # sizes must be equal before anything travels
        group.agree(f"keys {', '.join(map(str, keys))}", "a compressed push")
        compression.agreed.add(mark)
    totals = sum_signs(group, message, f"the compressed sum of {len(keys)} keys")
    _check(group, keys, message, totals)
    sums, start = [], 0
    for part, value in zip(packed, values, strict=True):
        total = totals[4 * start : 4 * start + value.numel()]
        sums.append(total.to(value.dtype).mul_(compression.threshold).view(value.shape))
        start += len(part)
    return sums


def sum_signs(group: Group, message: Tensor, what: str) -> Tensor:
    """Return the sums over workers of packed signs, four for each byte.

    Few workers send their whole message to each other, which is least. With more of them each
    sums its share of all messages, and sends the sums to the others: the bytes do not grow with
    the number of workers then.
    """
    if group.size <= DIRECT:
        return unpack_sum(group.gather(message, what), 4 * len(message))
    share = -(-len(message) // group.size)
    padded = message.new_zeros(share * group.size)
    padded[: len(message)] = message
    rows = group.exchange(padded.view(group.size, share), what)
    sums = unpack_sum(rows, 4 * share)
    narrow = sums.to(torch.int8) if group.size < 128 else sums
    return group.gather(narrow, what).view(-1)[: 4 * len(message)]


def _check(group: Group, keys: Sequence[Key], message: Tensor, totals: Tensor) -> None:
    """Raise unless all workers have sent the same signature, and so the same keys."""
    mine = unpack_sum(message[None, -SIGNATURE:], 4 * SIGNATURE) * group.size
    if not mine.equal(totals[-4 * SIGNATURE :].to(mine.dtype)):
        shown = group.gather_bytes(", ".join(map(str, keys)).encode(), "a comparison of keys")
        raise Disagreement(f"Workers push different keys: {ranks_of([s.decode() for s in shown])}.")
