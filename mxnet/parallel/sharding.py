"""Arrays sharded over the ranks: each rank owns a part, and receives only its sums.

`ShardedReducer` (a reduce-scatter) and `Gathering` (an all-gather) together send the bytes of an
all-reduce. In between, each owner updates its part.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..torch_private import foreach
from .group import Group
from .reduction import BITS, Bucket, PendingBucket, Reducer

MIN_SPLIT_ELEMENTS = 4096  # smaller arrays have one owner
MAX_IN_FLIGHT = 2  # buckets in transit: each uses twice its size


class Partition:
    """Assignment of rows of arrays to ranks; unless it `splits`, each array has one owner.

    >>> partition = Partition(2, splits=True)
    >>> partition.add({"weight": (101, 100), "bias": (101,)})
    >>> partition["weight"], partition["bias"]
    ([(0, 51), (51, 101)], [(0, 0), (0, 101)])
    """

    def __init__(self, size: int, splits: bool) -> None:
        self.size, self.splits = size, splits
        self._bounds: dict[Any, list[tuple[int, int]]] = {}
        self._loads = [0] * size  # number of elements per rank

    def __contains__(self, key: Any) -> bool:
        return key in self._bounds

    def __getitem__(self, key: Any) -> list[tuple[int, int]]:
        return self._bounds[key]

    def add(self, shapes: Mapping[Any, Sequence[int]]) -> None:
        """Assign arrays, given by their shapes, evenly to the ranks."""
        for key, shape in sorted(shapes.items(), key=lambda item: -math.prod(item[1])):
            rows, row = shape[0], math.prod(shape[1:])
            if self.splits and rows >= self.size and rows * row >= MIN_SPLIT_ELEMENTS:
                bounds = _even_bounds(rows, self.size)
            else:
                owner = self._loads.index(min(self._loads))
                bounds = [(0, rows if rank == owner else 0) for rank in range(self.size)]
            self._bounds[key] = bounds
            for rank, (start, stop) in enumerate(bounds):
                self._loads[rank] += (stop - start) * row


def _even_bounds(rows: int, size: int) -> list[tuple[int, int]]:
    ends = [-(-rows * (rank + 1) // size) for rank in range(size)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _parts(arrays: Sequence[Tensor], bounds: Sequence[Sequence[tuple[int, int]]], rank: int) -> Any:
    own_rows = (rows[rank] for rows in bounds)
    pairs = zip(arrays, own_rows, strict=True)
    return [array[start:stop] for array, (start, stop) in pairs if stop > start]


class PendingShards(PendingBucket):
    """A bucket of which this rank receives its rows from every rank.

    `received` has one row for each rank: the elements of all keys, flags and the signature.
    """

    def __init__(
        self,
        shapes: dict[Any, torch.Size],
        received: Tensor,
        *pending: Any,
    ) -> None:
        super().__init__(*pending)
        self._shapes, self._received = shapes, received
        self._total: Tensor | None = None

    def complete(self) -> Tensor:
        """Wait for all ranks, release the buffer, and return the sums."""
        if self._total is None:
            self.reducer.group.finish(self.work, self.what)
            first, *others = self._received.unbind(0)
            total = first.to(self.bucket.dtype, copy=True)
            for row in others:  # in rank order, so the sum does not depend on the owner
                total.add_(row)
            self._total, self.work = total, None
            self.reducer.give_back(self.buffer)
            self.buffer = self._received = total
        return self._total

    def tail(self, count: int) -> Tensor:
        """Return the sums of the last `count` elements: flags, then the signature."""
        return self.complete()[-count:].cpu()

    def sums(self) -> dict[Any, Tensor]:
        """Return the sums of this rank's rows by key."""
        sizes = [shape.numel() for shape in self._shapes.values()]
        parts = self.complete()[: sum(sizes)].split(sizes)
        pairs = zip(self._shapes.items(), parts, strict=True)
        return {key: part.view(shape) for (key, shape), part in pairs}

    def release(self) -> None:
        """Drop the sums."""
        self._total = self.buffer = self._received = self._received.new_empty(0)


class ShardedReducer(Reducer):
    """Sums tensors over ranks; each rank gets its own parts.

    The partition must contain all summed keys.
    """

    def __init__(self, group: Group, partition: Partition, wire: torch.dtype | None) -> None:
        super().__init__(group, wire)
        self.partition = partition
        self._in_flight: deque[PendingShards] = deque()

    def launch(
        self, bucket: Bucket, parts: list[Tensor], text: str, flags: tuple[float, ...] = ()
    ) -> PendingBucket:
        """Start to send each part of a bucket to its owner; see `Reducer.launch`."""
        dtype, tail = self._tail(bucket, text, flags)
        size, rank = self.group.size, self.group.rank
        bounds = [self.partition[key] for key in bucket.keys]
        messages = [[*_parts(parts, bounds, owner), tail] for owner in range(size)]
        lengths = [sum(part.numel() for part in message) for message in messages]
        own, total = lengths[rank], sum(lengths)
        elements = buffer_size(total - size * len(tail), own - len(tail), size)
        buffer = self.take_buffer(elements, dtype, bucket.device)
        sent, received = buffer[:total], buffer[total : total + size * own]
        torch.cat([p.reshape(-1).to(dtype) for message in messages for p in message], out=sent)
        work = self.group.start_exchange(received, sent, [own] * size, lengths)
        owned = [key for key, rows in zip(bucket.keys, bounds, strict=True) if _has(rows[rank])]
        shapes = {key: part.shape for key, part in zip(owned, messages[rank][:-1], strict=True)}
        rows = received.view(size, own)
        pending = PendingShards(shapes, rows, self, bucket, buffer, tail[-BITS:], work)
        self._in_flight.append(pending)
        if len(self._in_flight) > MAX_IN_FLIGHT:  # all ranks launch buckets in the same order
            self._in_flight.popleft().complete()
        return pending


def buffer_size(total: int, own: int, ranks: int) -> int:
    """Return the elements of a buffer for a bucket, its owned rows from all ranks, and tails."""
    return total + ranks * own + 2 * ranks * (BITS + 1)


def _has(bound: tuple[int, int]) -> bool:
    return bound[1] > bound[0]


class Gathering:
    """Arrays in transit from the owners of their rows to all ranks.

    All arrays have the same type. This rank's rows are sent; `finish` overwrites the others.
    """

    def __init__(
        self,
        reducer: Reducer,
        arrays: Sequence[Tensor],
        bounds: Sequence[Sequence[tuple[int, int]]],
    ) -> None:
        self._reducer, group = reducer, reducer.group
        self._parts = [_parts(arrays, bounds, rank) for rank in range(group.size)]
        lengths = [sum(part.numel() for part in parts) for parts in self._parts]
        own, total = lengths[group.rank], sum(lengths)
        size = buffer_size(total, own, group.size)  # as for the gradients of these arrays
        self._buffer = reducer.take_buffer(size, arrays[0].dtype, arrays[0].device)
        received = self._buffer[:total]
        sent = self._buffer[total : total + own * group.size]
        self._received = received.split(lengths)
        if own:
            rows = torch.cat([part.reshape(-1) for part in self._parts[group.rank]])
            sent.view(group.size, own).copy_(rows)
        self._work = group.start_exchange(received, sent, lengths, [own] * group.size)

    def finish(self, what: str) -> None:
        """Wait for the other ranks' rows, and copy them into the arrays."""
        group = self._reducer.group
        group.finish(self._work, what)
        for rank, (parts, received) in enumerate(zip(self._parts, self._received, strict=True)):
            if rank != group.rank and parts:
                pieces = received.split([part.numel() for part in parts])
                new = [piece.view(part.shape) for piece, part in zip(pieces, parts, strict=True)]
                foreach("copy_")(parts, new)
        self._reducer.give_back(self._buffer)
