"""Sums of many tensors over all ranks, in few messages that travel while others are packed.

Tensors are copied side by side into flat buffers, at most a given size each, which are summed
one after the other. The last elements of a buffer are a signature of what is in it: the ranks
see from its sum whether all meant the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import env
from ..caches import store
from .group import Disagreement, Group, ranks_of

BITS = 16  # of a signature, one element for each
MAX_PLANS = 1024  # of lists of keys
MAX_FREE_SIZES = 64  # of buffers that are kept


class Bucket:
    """Tensors of a round that travel together.

    Parameters
    ----------
    places : list of int
        Which of the round's tensors.
    keys, tensors : list
        All keys and tensors of the round.
    """

    def __init__(self, places: Sequence[int], keys: Sequence[Any], tensors: Sequence[Tensor]):
        self.places = list(places)
        self.keys = [keys[i] for i in places]
        self.shapes = [tensors[i].shape for i in places]
        self.sizes = [tensors[i].numel() for i in places]
        self.dtype, self.device = tensors[places[0]].dtype, tensors[places[0]].device
        self.names = " ".join(map(str, self.keys))


class PendingBucket:
    """A bucket on its way; `sums` may be read once its work is done."""

    def __init__(
        self, reducer: Reducer, bucket: Bucket, buffer: Tensor, signature: Tensor, work: Any
    ) -> None:
        self.reducer, self.bucket, self.buffer = reducer, bucket, buffer
        self.signature, self.work = signature, work

    @property
    def what(self) -> str:
        """What is summed, as text for errors."""
        keys = self.bucket.keys
        if len(keys) > 3:
            return f"the sum of {len(keys)} keys, {keys[0]} to {keys[-1]}"
        return f"the sum of key {', '.join(map(str, keys))}"

    def release(self) -> None:
        """Let a later round use the buffer: the sums are not needed any more."""
        self.reducer.give_back(self.buffer)

    def tail(self, count: int) -> Tensor:
        """Return the sums of the last `count` elements: flags, then the signature."""
        return self.buffer[-count:].cpu()

    def sums(self) -> dict[Any, Tensor]:
        """Return the sum of each key; they are valid until `release`."""
        bucket = self.bucket
        parts = self.buffer[: sum(bucket.sizes)].split(bucket.sizes)
        return {
            key: part.to(bucket.dtype).view(shape)
            for key, part, shape in zip(bucket.keys, parts, bucket.shapes, strict=True)
        }


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
        self.rounds = 0
        self._plans: dict[tuple, list[Bucket]] = {}
        self._free: dict[tuple, list[Tensor]] = {}  # buffers of earlier rounds

    def start(self, keys: Sequence[Any], tensors: Sequence[Tensor], facts: str = "") -> Reduction:
        """Start to sum tensors; `facts` must be the same text on all ranks.

        The tensors may be overwritten when this returns.
        """
        self.rounds += 1
        pending = [
            self.launch(bucket, [tensors[i] for i in bucket.places], f"{self.rounds} {n} {facts}")
            for n, bucket in enumerate(self.plan(keys, tensors))
        ]
        return Reduction(self, pending, facts)

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
            places = _split(tensors, self.limit)
            # All ranks drop the same plans: they make them in the same order.
            plan = store(self._plans, found, [Bucket(p, keys, tensors) for p in places], MAX_PLANS)
        return plan

    def launch(
        self, bucket: Bucket, parts: list[Tensor], text: str, flags: tuple[float, ...] = ()
    ) -> PendingBucket:
        """Start to sum one bucket; `text` must be the same on all ranks, flags are summed too."""
        dtype, tail = self._tail(bucket, text, flags)
        buffer = self.take_buffer(sum(bucket.sizes) + len(tail), dtype, bucket.device)
        torch.cat([p.reshape(-1).to(dtype) for p in (*parts, tail)], out=buffer)
        work = self.group.start_sum(buffer)
        return PendingBucket(self, bucket, buffer, tail[-BITS:], work)

    def _tail(
        self, bucket: Bucket, text: str, flags: tuple[float, ...]
    ) -> tuple[torch.dtype, Tensor]:
        """Return the type in which a bucket travels, and its last elements."""
        is_cast = self.wire is not None and bucket.dtype.is_floating_point
        dtype = self.wire if is_cast else bucket.dtype
        code = zlib.crc32(f"{text} {bucket.names}".encode())
        bits = [float(code >> k & 1) for k in range(BITS)]
        return dtype, torch.tensor([*flags, *bits], dtype=dtype, device=bucket.device)

    # Fresh memory of some megabytes costs more than filling it: buffers are kept.

    def take_buffer(self, size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return a flat tensor with any content."""
        free = self._free.get((size, dtype, device))
        return free.pop() if free else torch.empty(size, dtype=dtype, device=device)

    def give_back(self, buffer: Tensor) -> None:
        """Let a later round use a buffer."""
        key = (len(buffer), buffer.dtype, buffer.device)
        free = self._free.get(key)
        if free is None:
            free = store(self._free, key, [], MAX_FREE_SIZES)
        free.append(buffer)


def _split(tensors: Sequence[Tensor], limit: int) -> list[list[int]]:
    """Return which tensors of a list go together: of one type, and about `limit` bytes."""
    full: list[list[int]] = []
    filling: dict[Any, tuple[list[int], int]] = {}
    for i, tensor in enumerate(tensors):
        kind = (tensor.dtype, tensor.device)
        places, size = filling.pop(kind, ([], 0))
        places, size = [*places, i], size + tensor.numel() * tensor.element_size()
        if size >= limit:
            full.append(places)
        else:
            filling[kind] = places, size
    return sorted([*full, *(places for places, _ in filling.values())])


class Reduction:
    """A round of sums on its way."""

    def __init__(self, reducer: Reducer, pending: list[PendingBucket], facts: str) -> None:
        self.reducer, self.facts = reducer, facts
        self._pending = pending

    def buckets(self) -> Iterator[PendingBucket]:
        """Yield each bucket as its sums arrive."""
        for bucket in self._pending:
            self.reducer.group.finish(bucket.work, bucket.what)
            self._check(bucket)
            yield bucket
            bucket.release()

    def _check(self, pending: PendingBucket) -> None:
        group = self.reducer.group
        if pending.tail(BITS).float().equal(pending.signature.float().cpu() * group.size):
            return
        mine = f"keys {', '.join(map(str, pending.bucket.keys))} {self.facts}".strip()
        found = group.gather_bytes(mine.encode(), "a comparison of keys")
        shown = ranks_of([data.decode() for data in found])
        raise Disagreement(
            f"Workers push different things at the same time: {shown}. All workers must push and "
            "pull the same keys in the same order, with the same settings of the optimizer."
        )
