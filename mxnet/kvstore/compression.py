"""Two-bit gradient compression, and sums of compressed gradients over workers.

A compressed gradient is -1, 0 or 1 times the threshold; the rounding error is added to the next
one. Two workers send each other all signs, five per byte: 1/20 of the bytes of a float32 sum. More
workers split the signs into one share each: each share is sent to its owner, which adds the signs
and sends the sums back. Both messages are Huffman-coded, because most gradients are below the
threshold and most sums are small.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._process.caches import store
from ..error import MXNetError, did_you_mean
from ..parallel.group import Disagreement, Group, ranks_of
from .base import Key

HALF_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
MAX_AGREED = 4096  # lists of keys
CHECKSUM_BYTES = 4  # header of a message, to verify that all workers send the same keys


class TwoBit:
    """Compresses to two bits per value, and adds the rounding error to the source's next gradient.

    Values of magnitude `threshold` or more are sent as the threshold, with their sign.

    >>> twobit = TwoBit(0.5)
    >>> twobit("w", torch.tensor([0.3, -0.7])), twobit("w", torch.tensor([0.3, -0.1]))
    (tensor([ 0.0000, -0.5000]), tensor([0.5000, 0.0000]))
    """

    def __init__(self, threshold: float = 0.5) -> None:
        if not threshold > 0:
            raise MXNetError(f"threshold must be greater than 0, got {threshold}")
        self.threshold = threshold
        self.residuals: dict[Any, Tensor] = {}
        # Key lists that all workers have compressed before, by checksum.
        self.agreed: dict[bytes, None] = {}

    def __call__(self, source: Any, grad: Tensor) -> Tensor:
        """Return the compressed gradient; `source` identifies its residual."""
        residual = self.residuals.get(source)
        if residual is None or residual.shape != grad.shape or residual.device != grad.device:
            residual = self.residuals[source] = torch.zeros_like(grad)
        residual.add_(grad)
        sent = residual.sign().mul_(self.threshold)
        sent.masked_fill_(residual.abs() < self.threshold, 0.0)
        residual.sub_(sent)
        return sent


def make_compression(params: Mapping[str, Any]) -> TwoBit:
    """Create a compression from its parameters, ``{'type': '2bit', 'threshold': 0.5}``."""
    if not isinstance(params, Mapping):
        raise MXNetError(
            f"unexpected type for compression_params: {type(params).__name__}, not dict"
        )
    unknown = [k for k in params if k not in ("type", "threshold")]
    if unknown:
        hint = did_you_mean(str(unknown[0]), ("type", "threshold"))
        raise MXNetError(f"Gradient compression has no parameter {unknown[0]!r}. {hint}".rstrip())
    if "type" not in params:
        raise MXNetError("Required parameter type of gradient compression is not presented: '2bit'")
    if params["type"] != "2bit":
        raise MXNetError(
            f"Unknown type for gradient compression {params['type']}: there is '2bit', and for "
            "distributed stores 'fp16' and 'bf16'."
        )
    try:
        return TwoBit(float(params.get("threshold", 0.5)))
    except (TypeError, ValueError):
        raise MXNetError(f"threshold must be a number, got {params['threshold']!r}") from None


def pack(digits: Tensor, base: int, count: int) -> Tensor:
    """Pack integers below `base` into bytes, `count` per byte.

    Byte i has the i-th number of each of `count` equal parts of the input, so that all arithmetic
    is on contiguous memory.

    >>> pack(torch.tensor([0, 1, 2, 2, 1, 0], dtype=torch.uint8), 3, 5).tolist()
    [15, 7]
    """
    length = -(-len(digits) // count)
    padded = torch.zeros(length * count, dtype=torch.uint8)
    padded[: len(digits)] = digits
    parts = padded.view(count, length)
    packed = parts[-1].clone()
    for part in parts[:-1].flip(0):
        packed.mul_(base).add_(part)
    return packed


@functools.lru_cache(maxsize=64)
def _digits(base: int, count: int) -> np.ndarray:
    """Return the numbers in each byte, as a table of `count` rows."""
    powers = np.array([[base**i] for i in range(count)])
    return (np.arange(256) // powers % base).astype(np.uint8)


def unpack(packed: Tensor, base: int, count: int, length: int) -> Tensor:
    """Return the first `length` numbers packed by `pack`.

    >>> unpack(torch.tensor([15, 7], dtype=torch.uint8), 3, 5, 6).tolist()
    [0, 1, 2, 2, 1, 0]
    """
    digits = np.take(_digits(base, count), packed.numpy(), axis=1)
    return torch.from_numpy(digits.reshape(-1)[:length])


def sum_packed(
    group: Group, compression: TwoBit, keys: Sequence[Key], values: Sequence[Tensor]
) -> list[Tensor]:
    """Compress values, sum them over all workers, and return the sums."""
    parts = [compression((k, 0), v) for k, v in zip(keys, values, strict=True)]
    signs = torch.cat([p.reshape(-1).sign().to(torch.int8) for p in parts]).cpu()
    checksum = zlib.crc32(repr(list(keys)).encode()).to_bytes(CHECKSUM_BYTES, "little")
    if checksum not in compression.agreed:  # sizes must be equal before anything is sent
        group.agree(f"keys {', '.join(map(str, keys))}", "a compressed push")
        store(compression.agreed, checksum, None, MAX_AGREED)  # the same on all workers
    totals = sum_signs(group, signs, checksum, keys)
    sums = totals.to(values[0].device).split([v.numel() for v in values])
    return [
        total.to(v.dtype).mul_(compression.threshold).view(v.shape)
        for total, v in zip(sums, values, strict=True)
    ]


def sum_signs(group: Group, signs: Tensor, checksum: bytes, keys: Sequence[Key]) -> Tensor:
    """Return the sums of -1, 0 and 1 over all workers, as small integers."""
    what = f"the compressed sum of {len(keys)} keys"
    head = torch.frombuffer(bytearray(checksum), dtype=torch.uint8)
    if group.size <= 2:
        messages = group.gather(torch.cat([head, _pack_signs(signs)]), what)
        _check(group, messages, keys)
        return _unpack_signs(messages[:, CHECKSUM_BYTES:], len(signs)).sum(0)
    length = -(-len(signs) // group.size)
    padded = signs.new_zeros(length * group.size)
    padded[: len(signs)] = signs
    shares = padded.view(group.size, length)
    messages = [torch.cat([head, encode(_pack_signs(share))]) for share in shares]
    received = group.exchange_ragged(messages, what)
    _check(group, received, keys)
    rows = _unpack_signs([decode(message[CHECKSUM_BYTES:]) for message in received], length)
    # Each worker has its own signs, so it receives only the sums of the others'.
    others = rows.sum(0, dtype=torch.int16) - rows
    coded = [encode(_pack_sums(row, group.size - 1)) for row in others]
    sums = [
        _unpack_sums(decode(message), group.size - 1, length)
        for message in group.exchange_ragged(coded, what)
    ]
    return (torch.stack(sums) + shares).view(-1)[: len(signs)]


def _pack_signs(signs: Tensor) -> Tensor:
    return pack((signs + 1).to(torch.uint8), 3, 5)


def _unpack_signs(messages: Sequence[Tensor] | Tensor, length: int) -> Tensor:
    return torch.stack([unpack(m, 3, 5, length) for m in messages]).to(torch.int8) - 1


def _pack_sums(sums: Tensor, limit: int) -> Tensor:
    """Pack numbers from -limit to limit into bytes."""
    if limit > 127:
        return sums.contiguous().view(torch.uint8)
    return pack((sums + limit).to(torch.uint8), 2 * limit + 1, _per_byte(2 * limit + 1))


def _unpack_sums(message: Tensor, limit: int, length: int) -> Tensor:
    if limit > 127:
        return message.view(torch.int16)
    base = 2 * limit + 1
    return unpack(message, base, _per_byte(base), length).to(torch.int16) - limit


def _per_byte(base: int) -> int:
    """Return how many numbers below `base` fit into a byte.

    >>> _per_byte(3), _per_byte(5), _per_byte(16), _per_byte(17)
    (5, 3, 2, 1)
    """
    return next(count for count in (5, 4, 3, 2, 1) if base**count <= 256)


def _check(group: Group, messages: Sequence[Tensor] | Tensor, keys: Sequence[Key]) -> None:
    """Raise unless all workers have sent the same checksum of keys."""
    own = messages[group.rank][:CHECKSUM_BYTES]
    if not all(own.equal(message[:CHECKSUM_BYTES]) for message in messages):
        texts = group.gather_text(", ".join(map(str, keys)), "a comparison of keys")
        raise Disagreement(f"Workers push different keys: {ranks_of(texts)}.")


def encode(message: Tensor) -> Tensor:
    """Return bytes in the Huffman code of their frequencies (raw deflate, without matches)."""
    coder = zlib.compressobj(1, zlib.DEFLATED, -15, 9, zlib.Z_HUFFMAN_ONLY)
    coded = coder.compress(message.numpy().data) + coder.flush()
    return torch.frombuffer(bytearray(coded), dtype=torch.uint8)


def decode(coded: Tensor) -> Tensor:
    """Decode the bytes of `encode`."""
    return torch.frombuffer(bytearray(zlib.decompress(coded.numpy().data, -15)), dtype=torch.uint8)
