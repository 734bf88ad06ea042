"""Sums that start during backward: gradients leave as soon as they are ready.

Gradients are put into buckets from the last parameter to the first, the order in which backward
makes them. A full bucket leaves at once; the last one leaves with the step, and carries a mark if
on any worker a gradient was changed after it had left. Then all workers sum everything again.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..imperative.handle import plain
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
        self._leaves: list[Any] = [w._tracked for w in self._weights]
        self._handles = [
            leaf.register_post_accumulate_grad_hook(functools.partial(self._ready, i))
            for i, leaf in enumerate(self._leaves)
        ]
        self._reset()

    @property
    def is_useful(self) -> bool:
        """Whether there is more than the bucket that leaves with the step."""
        return len(self._buckets) > 1

    def close(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _reset(self) -> None:
        self._missing = [set(bucket.places) for bucket in self._buckets]
        self._sent_buckets: list[PendingBucket] = []
        self._sent: dict[int, Unchanged] = {}  # gradients as they left

    def _gradient(self, place: int) -> Tensor:
        return plain(self._weights[place]._grad.array)

    def _ready(self, place: int, _: Tensor) -> None:
        """Take note of a gradient; send the buckets that are full, always in the same order."""
        self._missing[self._bucket_of[place]].discard(place)
        last = len(self._buckets) - 1
        while len(self._sent_buckets) < last and not self._missing[len(self._sent_buckets)]:
            self._send()

    def _send(self, flags: tuple[float, ...] = (), facts: str = "") -> None:
        number = len(self._sent_buckets)
        bucket = self._buckets[number]
        parts = [self._gradient(i) for i in bucket.places]
        self._sent.update((i, Unchanged([t])) for i, t in zip(bucket.places, parts, strict=True))
        text = f"early {self.reducer.rounds} {number} {facts}"
        self._sent_buckets.append(self.reducer.launch(bucket, parts, text, flags))

    def _is_changed(self) -> bool:
        """Return whether a gradient is not the one that left."""
        return not all(sent.holds_for([self._gradient(i)]) for i, sent in self._sent.items())

    def watches(self, keys: Sequence[Any], weights: Sequence[NDArray]) -> bool:
        """Return whether these are the weights, with the gradients, that are watched."""
        return list(reversed(keys)) == self.keys and all(
            new._tracked is leaf for new, leaf in zip(reversed(weights), self._leaves, strict=True)
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


def can_send_early(weights: Sequence[NDArray]) -> bool:
    """Return whether weights have dense gradients that each backward overwrites."""
    return all(
        w.stype == "default"
        and w._tracked is not None
        and w._grad is not None
        and w._grad.req == "write"
        and not w._grad.sparse
        and plain(w).dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16)
        for w in weights
    )
