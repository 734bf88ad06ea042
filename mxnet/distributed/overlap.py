"""Sums that start during backward: gradients leave as soon as they are ready.

Gradients are put into buckets from the last parameter to the first, the order in which backward
makes them. A full bucket leaves at once; the last one leaves with the step, and carries a mark if
on any worker a gradient was changed after it had left. Then all workers sum everything again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..imperative.handle import plain
from ..imperative.history import graph_tensor
from ..ndarray import NDArray
from ..ops.fused.unchanged import Unchanged
from .reduction import BITS, PendingBucket, Reducer, Reduction


class OverlappedSums:
    """Watches the gradients of some weights, and sends them in buckets.

    Parameters
    ----------
    reducer : Reducer
    keys : list
        Of the weights, in order.
    weights : list of NDArray
        They have gradients that backward overwrites.
    """

    def __init__(self, reducer: Reducer, keys: Sequence[Any], weights: Sequence[NDArray]) -> None:
        self.reducer = reducer
        self.keys = list(reversed(keys))
        self._weights = list(reversed(weights))
        self._buckets = reducer.plan(self.keys, [plain(w) for w in self._weights])
        self._bucket_of = {i: b for b, bucket in enumerate(self._buckets) for i in bucket.places}
        self._records = [w._grad for w in self._weights]
        for place, record in enumerate(self._records):
            record.watcher = _Watcher(self, place)
        self._reset()

    @property
    def is_useful(self) -> bool:
        """Whether there is more than the bucket that leaves with the step."""
        return len(self._buckets) > 1

    def close(self) -> None:
        """Stop watching."""
        for record in self._records:
            record.watcher = None

    def _reset(self) -> None:
        self._missing = [set(bucket.places) for bucket in self._buckets]
        self._sent_buckets: list[PendingBucket] = []
        self._received: dict[int, Tensor] = {}  # found by the backward that runs now
        self._sent: dict[int, Unchanged | None] = {}  # gradients as they left, in their arrays

    def _gradient(self, place: int) -> Tensor:
        return plain(self._weights[place]._grad.array)

    def receive(self, place: int, gradient: Tensor) -> None:
        """Take a gradient; send the buckets that are full, always in the same order."""
        self._received[place] = gradient
        self._missing[self._bucket_of[place]].discard(place)
        last = len(self._buckets) - 1
        while len(self._sent_buckets) < last and not self._missing[len(self._sent_buckets)]:
            self._send()

    def note_written(self, place: int) -> None:
        """Take note that a gradient stands in its array; what left must not change there."""
        self._received.pop(place, None)
        if place in self._sent:
            self._sent[place] = Unchanged([self._gradient(place)])

    def _send(self, flags: tuple[float, ...] = (), facts: str = "") -> None:
        number = len(self._sent_buckets)
        bucket = self._buckets[number]
        parts = [self._received.get(i, self._gradient(i)) for i in bucket.places]
        for i in bucket.places:
            is_written = i not in self._received
            self._sent[i] = Unchanged([self._gradient(i)]) if is_written else None
        text = f"early {self.reducer.rounds} {number} {facts}"
        self._sent_buckets.append(self.reducer.launch(bucket, parts, text, flags))

    def _is_changed(self) -> bool:
        """Return whether a gradient is not the one that left."""
        return not all(
            sent is not None and sent.holds_for([self._gradient(i)])
            for i, sent in self._sent.items()
        )

    def watches(self, keys: Sequence[Any], weights: Sequence[NDArray]) -> bool:
        """Return whether these are the weights, with the gradients, that are watched."""
        return list(reversed(keys)) == self.keys and all(
            new._grad is record
            for new, record in zip(reversed(weights), self._records, strict=True)
        )

    def finish(self, facts: str, is_valid: bool = True) -> Reduction | None:
        """Send what is left; return the sums, or None if all workers must sum again.

        Parameters
        ----------
        facts : str
            Must be the same on all workers.
        is_valid : bool
            Whether this worker can use the sums.
        """
        changed = not is_valid or self._is_changed()
        while len(self._sent_buckets) < len(self._buckets) - 1:
            self._send()
        self._send((float(changed),), facts)
        pending = self._sent_buckets
        self._reset()
        self.reducer.rounds += 1
        self.reducer.group.finish(pending[-1].work, "the last sum of a step")
        if pending[-1].tail(BITS + 1)[0].item() == 0:
            return Reduction(self.reducer, pending, facts)
        for bucket in pending[:-1]:
            self.reducer.group.finish(bucket.work, "sums of gradients that were changed later")
        return None


class _Watcher:
    """Watches the gradient of one weight."""

    def __init__(self, sums: OverlappedSums, place: int) -> None:
        self._sums, self._place = sums, place

    def receive(self, gradient: Tensor) -> None:
        self._sums.receive(self._place, gradient)

    def note_written(self) -> None:
        self._sums.note_written(self._place)


def can_send_early(weights: Sequence[NDArray]) -> bool:
    """Return whether weights have dense gradients that each backward overwrites."""
    return all(
        w.stype == "default"
        and graph_tensor(w) is not None
        and w._grad is not None
        and w._grad.req == "write"
        and not w._grad.sparse
        and plain(w).dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16)
        for w in weights
    )
