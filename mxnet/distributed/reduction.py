"""Sums of many tensors over all ranks, in few messages that travel while others are packed.

Tensors are copied side by side into flat buffers, at most a given size each, which are summed
one after the other. The last elements of a buffer are a signature of what is in it: the ranks
see from its sum whether all meant the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .. import env
from .group import Disagreement, Group, ranks_of

BITS = 16  # of a signature, one element for each


@dataclass(frozen=True)
class Bucket:
    """Which tensors of a round travel together."""

    places: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass
class PendingBucket:
    """A buffer on its way."""

    bucket: Bucket
    buffer: Tensor
    expected: Tensor  # the sum of signatures if all ranks agree
    work: Any


class Reducer:
    """Sums lists of tensors over the ranks of a group.

    Parameters
    ----------
    group : Group
    wire : torch.dtype, optional
        The type in which floating-point tensors travel; by default their own.
    """

    def __init__(self, group: Group, wire: torch.dtype | None = None) -> None:
        self.group, self.wire = group, wire
        self.limit = int(env.get("MXNET_KVSTORE_BUCKET_MB") * 2**20)
        self._plans: dict[tuple, list[Bucket]] = {}
        self.rounds = 0

    def start(self, keys: Sequence[Any], tensors: Sequence[Tensor], facts: str = "") -> Reduction:
        """Start to sum tensors; `facts` must be the same text on all ranks.

        The tensors may be overwritten when this returns.
        """
        plan = self.plan(keys, tensors)
        self.rounds += 1
        pending = []
        for number, bucket in enumerate(plan):
            parts = [tensors[i] for i in bucket.places]
            pending.append(self.launch(bucket, parts, keys, f"{self.rounds} {number} {facts}"))
        return Reduction(self, list(keys), list(tensors), pending, facts)

    def plan(self, keys: Sequence[Any], tensors: Sequence[Tensor]) -> list[Bucket]:
        """Return which tensors go together; new lists of keys are agreed on first."""
        found = (*keys, *((t.shape, t.dtype, t.device.type) for t in tensors))
        plan = self._plans.get(found)
        if plan is None:
            described = ", ".join(
                f"{k} {tuple(t.shape)} {str(t.dtype).removeprefix('torch.')}"
                for k, t in zip(keys, tensors, strict=True)
            )
            self.group.agree(described, "a sum of keys")
            plan = self._plans[found] = self._split(tensors)
        return plan

    def _split(self, tensors: Sequence[Tensor]) -> list[Bucket]:
        buckets: list[Bucket] = []
        open_places: dict[Any, list[int]] = {}
        for i, tensor in enumerate(tensors):
            kind = (tensor.dtype, tensor.device)
            places = open_places.setdefault(kind, [])
            places.append(i)
            if sum(tensors[p].numel() * tensor.element_size() for p in places) >= self.limit:
                buckets.append(_bucket(open_places.pop(kind), tensors))
        buckets += [_bucket(places, tensors) for places in open_places.values()]
        return sorted(buckets, key=lambda b: b.places)

    def launch(
        self,
        bucket: Bucket,
        parts: list[Tensor],
        keys: Sequence[Any],
        text: str,
        extra: tuple[float, ...] = (),
    ) -> PendingBucket:
        """Start to sum one bucket; `text` must be the same on all ranks, `extra` is summed too."""
        dtype = parts[0].dtype
        if self.wire is not None and dtype.is_floating_point:
            dtype = self.wire
        names = " ".join(str(keys[i]) for i in bucket.places)
        sign = zlib.crc32(f"{text} {names}".encode())
        bits = [float(sign >> k & 1) for k in range(BITS)]
        tail = torch.tensor([*extra, *bits]).to(parts[0].device, dtype)
        flat = [p.reshape(-1) if p.dtype is dtype else p.reshape(-1).to(dtype) for p in parts]
        buffer = torch.cat([*flat, tail])
        expected = (tail[-BITS:] * self.group.size).cpu()
        return PendingBucket(bucket, buffer, expected, self.group.start_sum(buffer))


def _bucket(places: list[int], tensors: Sequence[Tensor]) -> Bucket:
    return Bucket(tuple(places), tuple(tensors[i].numel() for i in places))


class Reduction:
    """A round of sums on its way."""

    def __init__(
        self,
        reducer: Reducer,
        keys: list[Any],
        tensors: list[Tensor],
        pending: list[PendingBucket],
        facts: str,
    ) -> None:
        self.reducer, self.keys, self.facts = reducer, keys, facts
        self._shapes = [(t.shape, t.dtype) for t in tensors]
        self._sent_buckets = pending

    def sums(self) -> Iterator[tuple[list[Any], list[Tensor]]]:
        """Yield keys and their sums, bucket by bucket as they arrive; each is a view of one."""
        group = self.reducer.group
        for bucket_sent in self._sent_buckets:
            keys = [self.keys[i] for i in bucket_sent.bucket.places]
            group.finish(bucket_sent.work, _sum_of(keys))
            self._check(bucket_sent, keys)
            yield keys, self._views(bucket_sent)

    def _views(self, bucket_sent: PendingBucket) -> list[Tensor]:
        parts = bucket_sent.buffer[: sum(bucket_sent.bucket.sizes)].split(bucket_sent.bucket.sizes)
        shapes = [self._shapes[i] for i in bucket_sent.bucket.places]
        return [
            (p if p.dtype is dtype else p.to(dtype)).view(shape)
            for p, (shape, dtype) in zip(parts, shapes, strict=True)
        ]

    def _check(self, bucket_sent: PendingBucket, keys: list[Any]) -> None:
        if bucket_sent.expected.equal(bucket_sent.buffer[-BITS:].cpu()):
            return
        mine = f"keys {', '.join(map(str, keys))} {self.facts}".strip()
        found = self.reducer.group.gather_bytes(mine.encode(), "a comparison of keys")
        shown = ranks_of([data.decode() for data in found])
        raise Disagreement(
            f"Workers push different things at the same time: {shown}. All workers must push and "
            "pull the same keys in the same order, with the same settings of the optimizer."
        )


def _sum_of(keys: Sequence[Any]) -> str:
    """Return what is summed, as text for errors."""
    if len(keys) > 3:
        return f"the sum of {len(keys)} keys, {keys[0]} to {keys[-1]}"
    return f"the sum of key {', '.join(map(str, keys))}"
