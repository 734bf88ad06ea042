"""Batches from a process or thread pool that the caller created and will close.

MXNet's loader works like this; it exists for user-defined loaders that derive from
`_MultiWorkerIter` and use its protected names. `DataLoader` has its own workers.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ... import accelerator
from ...context import Context, cpu_pinned
from ...ndarray import NDArray
from ...runtime.array import plain, wrap_plain
from ...util import set_np

_worker_dataset: Any = None  # the data set of a worker process


def _worker_initializer(dataset: Any, active_shape: bool, active_array: bool) -> None:
    """Set the data set and the parent's NumPy semantics in a worker process."""
    global _worker_dataset
    _worker_dataset = dataset
    set_np(shape=active_shape, array=active_array)


def _worker_fn(samples: Sequence[Any], batchify_fn: Callable, dataset: Any = None) -> bytes:
    """Return the pickle of a batch, in a process initialized by `_worker_initializer`."""
    text = io.BytesIO()
    batch = batchify_fn([_worker_dataset[index] for index in samples])
    ForkingPickler(text, pickle.HIGHEST_PROTOCOL).dump(batch)
    return text.getvalue()


class _MultiWorkerIter:
    """One epoch of batches prefetched by the workers of a pool.

    `worker_fn` gets the indices of a batch, `batchify_fn` and `dataset`. It returns the batch, or
    its pickle if `dataset` is None (worker processes).
    """

    def __init__(
        self,
        worker_pool: Any,
        batchify_fn: Callable,
        batch_sampler: Any,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        worker_fn: Callable = _worker_fn,
        prefetch: int = 0,
        dataset: Any = None,
        data_loader: Any = None,
        timeout: float = 120,
    ) -> None:
        self._worker_pool = worker_pool
        self._batchify_fn = batchify_fn
        self._batch_sampler = batch_sampler
        self._data_buffer: dict[int, Any] = {}
        self._rcvd_idx = 0
        self._sent_idx = 0
        self._iter = iter(batch_sampler)
        self._worker_fn = worker_fn
        self._pin_memory = pin_memory
        self._pin_device_id = pin_device_id
        self._dataset = dataset
        self._data_loader = data_loader  # the owner of the pool lives as long as its batches
        self._timeout = timeout
        for _ in range(prefetch):
            self._push_next()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        return self

    def _push_next(self) -> None:
        indices = next(self._iter, None)
        if indices is None:
            return
        arguments = (indices, self._batchify_fn, self._dataset)
        self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(
            self._worker_fn, arguments
        )
        self._sent_idx += 1

    def __next__(self) -> Any:
        self._push_next()
        if self._rcvd_idx == self._sent_idx:
            raise StopIteration
        answer = self._data_buffer.pop(self._rcvd_idx).get(self._timeout)
        self._rcvd_idx += 1
        batch = pickle.loads(answer) if self._dataset is None else answer
        return pinned(batch, cpu_pinned(self._pin_device_id)) if self._pin_memory else batch

    def next(self) -> Any:
        return self.__next__()


def pinned(batch: Any, ctx: Context) -> Any:
    """Return a batch with its arrays in pinned memory; without a GPU only their context changes."""
    if isinstance(batch, NDArray):
        return wrap_plain(type(batch), accelerator.pin(plain(batch)), ctx)
    if isinstance(batch, list | tuple):
        return [pinned(part, ctx) for part in batch]
    return batch


def _as_in_context(data: Any, ctx: Context) -> Any:
    """Return data with its arrays on another device; tuples become lists, as in MXNet."""
    if ctx.device_type == "cpu_pinned":
        return pinned(data, ctx)
    if isinstance(data, NDArray):
        return data.as_in_context(ctx)
    if isinstance(data, list | tuple):
        return [_as_in_context(part, ctx) for part in data]
    return data
