"""Sums of many tensors over all ranks in few messages, sent while others are packed.

Tensors are copied into flat buffers of limited size, which are summed one after the other. The last
elements of a buffer are a signature of its content; its sum shows whether all ranks have sent the
same keys.

`OverlappedSums` starts sums during backward. It collects gradients in buckets from the last
parameter to the first, the order of backward. A full bucket is sent immediately; the last one is
sent with the step, with a flag if a gradient was changed after it was sent. In that case all
workers sum everything again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from .._process import env
from .._process.caches import store
from ..ndarray import NDArray
from ..ops.fused.prepared_values import Unchanged
from ..runtime.array import plain
from ..runtime.gradients import watch
from ..runtime.recording import graph_tensor
from .group import Disagreement, Group, ranks_of

BITS = 16  # bytes of a signature, one element each
MAX_PLANS = 1024  # maximum number of cached key lists
MAX_FREE_SIZES = 64  # maximum number of cached buffers


class Bucket:
    """Tensors that are sent together: `indices` into all keys and tensors of a round."""

    def __init__(self, indices: Sequence[int], keys: Sequence[Any], tensors: Sequence[Tensor]):
        self.indices = list(indices)
        self.keys = [keys[i] for i in indices]
        self.shapes = [tensors[i].shape for i in indices]
        self.sizes = [tensors[i].numel() for i in indices]
        self.dtype, self.device = tensors[indices[0]].dtype, tensors[indices[0]].device
        self.names = " ".join(map(str, self.keys))


class PendingBucket:
    """A bucket in transit; `sums` may be read once its work is done."""

    def __init__(
        self, reducer: Reducer, bucket: Bucket, buffer: Tensor, signature: Tensor, work: Any
    ) -> None:
        self.reducer, self.bucket, self.buffer = reducer, bucket, buffer
        self.signature, self.work = signature, work

    @property
    def what(self) -> str:
        """Description of the sums for errors."""
        keys = self.bucket.keys
        if len(keys) > 3:
            return f"the sum of {len(keys)} keys, {keys[0]} to {keys[-1]}"
        return f"the sum of key {', '.join(map(str, keys))}"

    def release(self) -> None:
        """Release the buffer for later rounds; the sums become invalid."""
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

    Floating-point tensors are sent with the data type `wire`, by default their own.
    """

    def __init__(self, group: Group, wire: torch.dtype | None = None) -> None:
        self.group, self.wire = group, wire
        self.limit = int(env.get("MXNET_KVSTORE_BUCKET_MB") * 2**20)
        self.rounds = 0
        self._plans: dict[tuple, list[Bucket]] = {}
        self._free: dict[tuple, list[Tensor]] = {}  # cached buffers

    def start(self, keys: Sequence[Any], tensors: Sequence[Tensor], facts: str = "") -> Reduction:
        """Start to sum tensors; `facts` must be the same text on all ranks.

        The tensors may be overwritten when this returns.
        """
        self.rounds += 1
        pending = [
            self.launch(bucket, [tensors[i] for i in bucket.indices], f"{self.rounds} {n} {facts}")
            for n, bucket in enumerate(self.plan(keys, tensors))
        ]
        return Reduction(self, pending, facts)

    def sums(self, keys: Sequence[Any], tensors: Sequence[Tensor]) -> Iterator[tuple[Any, Tensor]]:
        """Sum tensors; yield each key with its sum, which is valid until the next iteration."""
        for bucket in self.start(keys, tensors).buckets():
            yield from bucket.sums().items()

    def plan(self, keys: Sequence[Any], tensors: Sequence[Tensor]) -> list[Bucket]:
        """Return the buckets of tensors; ranks first verify new key lists."""
        signature = (*keys, *((t.shape, t.dtype, t.device.type) for t in tensors))
        plan = self._plans.get(signature)
        if plan is None:
            described = ", ".join(
                f"{k} {tuple(t.shape)} {str(t.dtype).removeprefix('torch.')}"
                for k, t in zip(keys, tensors, strict=True)
            )
            self.group.agree(described, "a sum of keys")
            plan = [Bucket(indices, keys, tensors) for indices in _split(tensors, self.limit)]
            store(self._plans, signature, plan, MAX_PLANS)  # all ranks drop the same plans
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
        dtype = bucket.dtype
        if self.wire is not None and dtype.is_floating_point:
            dtype = self.wire
        code = zlib.crc32(f"{text} {bucket.names}".encode())
        bits = [float(code >> k & 1) for k in range(BITS)]
        return dtype, torch.tensor([*flags, *bits], dtype=dtype, device=bucket.device)

    # Buffers are cached: allocating megabytes costs more than filling them.

    def take_buffer(self, size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return an uninitialized flat tensor."""
        free = self._free.get((size, dtype, device))
        return free.pop() if free else torch.empty(size, dtype=dtype, device=device)

    def give_back(self, buffer: Tensor) -> None:
        """Reuse a buffer in a later round."""
        key = (len(buffer), buffer.dtype, buffer.device)
        free = self._free.get(key)
        if free is None:
            free = store(self._free, key, [], MAX_FREE_SIZES)
        free.append(buffer)


def _split(tensors: Sequence[Tensor], limit: int) -> list[list[int]]:
    """Split a list of tensors into buckets of one type and about `limit` bytes."""
    full: list[list[int]] = []
    filling: dict[Any, tuple[list[int], int]] = {}
    for i, tensor in enumerate(tensors):
        kind = (tensor.dtype, tensor.device)
        indices, size = filling.pop(kind, ([], 0))
        indices, size = [*indices, i], size + tensor.numel() * tensor.element_size()
        if size >= limit:
            full.append(indices)
        else:
            filling[kind] = indices, size
    return sorted([*full, *(indices for indices, _ in filling.values())])


class Reduction:
    """A round of sums in transit."""

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
        own = f"keys {', '.join(map(str, pending.bucket.keys))} {self.facts}".strip()
        texts = group.gather_text(own, "a comparison of keys")
        raise Disagreement(
            f"Workers push different keys at the same time: {ranks_of(texts)}. All workers must "
            "push and pull the same keys in the same order, with the same settings of the "
            "optimizer."
        )


class OverlappedSums:
    """Watches the gradients of weights, and sends them in buckets.

    The gradients must have ``grad_req="write"``.
    """

    def __init__(self, reducer: Reducer, keys: Sequence[Any], weights: Sequence[NDArray]) -> None:
        self.reducer = reducer
        self.keys = list(reversed(keys))
        self._weights = list(reversed(weights))
        self._buckets = reducer.plan(self.keys, [plain(w) for w in self._weights])
        self._bucket_of = {i: b for b, bucket in enumerate(self._buckets) for i in bucket.indices}
        self._records = [watch(w, _Watcher(self, i)) for i, w in enumerate(self._weights)]
        self._reset()

    @property
    def is_useful(self) -> bool:
        """Whether there are buckets besides the last one, which is sent with the step."""
        return len(self._buckets) > 1

    def close(self) -> None:
        """Stop watching."""
        for record in self._records:
            record.watcher = None

    def _reset(self) -> None:
        self._missing = [set(bucket.indices) for bucket in self._buckets]
        self._sent_buckets: list[PendingBucket] = []
        self._received: dict[int, Tensor] = {}  # received in the current backward pass
        self._sent: dict[int, Unchanged | None] = {}  # versions of sent gradients

    def _gradient(self, index: int) -> Tensor:
        return plain(self._weights[index]._grad.array)

    def receive(self, index: int, gradient: Tensor) -> None:
        """Add a gradient; send full buckets in a fixed order."""
        self._received[index] = gradient
        self._missing[self._bucket_of[index]].discard(index)
        last = len(self._buckets) - 1
        while len(self._sent_buckets) < last and not self._missing[len(self._sent_buckets)]:
            self._send()

    def note_written(self, index: int) -> None:
        """Mark a gradient as complete; a gradient that was already sent must not change."""
        self._received.pop(index, None)
        if index in self._sent:
            self._sent[index] = Unchanged([self._gradient(index)])

    def _send(self, flags: tuple[float, ...] = (), facts: str = "") -> None:
        number = len(self._sent_buckets)
        bucket = self._buckets[number]
        parts = [self._received.get(i, self._gradient(i)) for i in bucket.indices]
        for i in bucket.indices:
            is_written = i not in self._received
            self._sent[i] = Unchanged([self._gradient(i)]) if is_written else None
        text = f"early {self.reducer.rounds} {number} {facts}"
        self._sent_buckets.append(self.reducer.launch(bucket, parts, text, flags))

    def _is_changed(self) -> bool:
        return not all(
            sent is not None and sent.holds_for([self._gradient(i)])
            for i, sent in self._sent.items()
        )

    def watches(self, keys: Sequence[Any], weights: Sequence[NDArray]) -> bool:
        """Return whether these weights and gradients are watched."""
        return list(reversed(keys)) == self.keys and all(
            new._grad is record
            for new, record in zip(reversed(weights), self._records, strict=True)
        )

    def finish(self, facts: str, is_valid: bool = True) -> Reduction | None:
        """Send the rest; return the sums, or None if all workers must sum again.

        `facts` must be the same on all workers; `is_valid` is whether this worker can use the sums.
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
    def __init__(self, sums: OverlappedSums, index: int) -> None:
        self._sums, self._index = sums, index

    def receive(self, gradient: Tensor) -> None:
        self._sums.receive(self._index, gradient)

    def note_written(self) -> None:
        self._sums.note_written(self._index)


def can_send_early(weights: Sequence[NDArray]) -> bool:
    """Return whether weights have dense gradients that each backward overwrites."""
    return all(
        w.stype == "default"
        and graph_tensor(w) is not None
        and w._grad is not None
        and w._grad.req == "write"
        and not w._grad.is_sparse
        and plain(w).dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16)
        for w in weights
    )
