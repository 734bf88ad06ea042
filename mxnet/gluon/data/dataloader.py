"""`DataLoader`: batches of a data set, made here or ahead of time by workers."""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ...context import Context, cpu_pinned
from ...ndarray import NDArray
from ...ndarray.storage import plain, wrap_plain
from ...random import host_rng
from .batchify import default_batchify_fn
from .dataset import batch_reader
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .threads import ThreadCrew
from .workers import ProcessCrew

__all__ = ["DataLoader", "default_batchify_fn", "default_mp_batchify_fn"]

default_mp_batchify_fn = default_batchify_fn  # how batches travel is the loader's affair


class DataLoader:
    """Goes through a data set in batches.

    Parameters
    ----------
    dataset : Dataset, list or array
    batch_size : int
    shuffle : bool
        Take the samples in a new random order each time; `mx.random.seed` makes it repeat.
    sampler : Sampler, or another thing that gives indices
        The order of samples, instead of `shuffle`.
    last_batch : {'keep', 'discard', 'rollover'}
        What becomes of a last batch that is not full: it comes as it is, not at all, or its
        samples begin the next epoch.
    batch_sampler : Sampler that gives lists of indices
        Instead of `batch_size`, `shuffle`, `sampler` and `last_batch`.
    batchify_fn : callable
        Makes a batch of a list of samples; by default they are stacked.
    num_workers : int
        How many workers make batches ahead; with 0 they are made when asked for. Workers start
        with the first batch, by the start method of `multiprocessing`, and stay for later epochs.
        Transforms draw their random numbers from a stream that belongs to the batch, so results
        do not depend on the number of processes.
    pin_memory : bool
        Give arrays in memory that GPU `pin_device_id` can read directly.
    prefetch : int
        How many batches are made ahead; by default two for each worker.
    thread_pool : bool
        Workers are threads: nothing need be copied, and one data set serves all. Best where
        samples are mostly waited for, or made by code that releases Python's lock.
    timeout : number
        After so many seconds of waiting for one batch the loader gives up with an error.
    auto_reload : bool
        Begin to make the first batches of the next epoch at the end of this one.

    Notes
    -----
    Batches from worker processes are on ``cpu(0)``, where MXNet calls it ``cpu_shared(0)``.

    >>> data = mx.gluon.data.ArrayDataset(nd.array([[1], [2], [3]]), [4, 5, 6])
    >>> for x, y in mx.gluon.data.DataLoader(data, batch_size=2):
    ...     print(x.shape, y.asnumpy())
    (2, 1) [4 5]
    (1, 1) [6]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        shuffle: bool = False,
        sampler: Any = None,
        last_batch: str | None = None,
        batch_sampler: Any = None,
        batchify_fn: Callable[[Sequence[Any]], Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        auto_reload: bool = False,
    ) -> None:
        if timeout <= 0:
            raise AssertionError(f"timeout must be positive, given {timeout}")
        self._dataset = dataset
        self._pin_context = cpu_pinned(pin_device_id) if pin_memory else None
        self._thread_pool = thread_pool
        self._timeout = timeout
        self._batch_sampler = _batches(
            dataset, batch_size, shuffle, sampler, last_batch, batch_sampler
        )
        self._num_workers = max(0, num_workers)
        self._prefetch = max(0, 2 * self._num_workers if prefetch is None else int(prefetch))
        self._batchify_fn = default_batchify_fn if batchify_fn is None else batchify_fn
        self._crew: ProcessCrew | ThreadCrew | None = None
        self._ahead: _Ahead | None = None
        self.auto_reload = auto_reload
        if auto_reload:
            self.refresh()

    def __iter__(self) -> Iterator[Any]:
        if self._num_workers == 0:
            return self._made_here()
        return self._made_ahead()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def _made_here(self) -> Iterator[Any]:
        fetch = fetcher(self._dataset, self._batchify_fn)
        for indices in self._batch_sampler:
            yield self._placed(fetch(indices))

    def _made_ahead(self) -> Iterator[Any]:
        ahead, self._ahead = self._ahead, None
        if ahead is None or not ahead.crew.usable:
            ahead = _Ahead(self)
        try:
            while ahead:
                yield self._placed(ahead.take())
        finally:
            ahead.cancel()
        if self.auto_reload:
            self.refresh()

    def refresh(self) -> None:
        """Begin to make the first batches of the next epoch, anew if that was begun already."""
        self.clean()
        if self._num_workers:
            self._ahead = _Ahead(self)

    def clean(self) -> None:
        """Let go of batches that were made ahead for the next epoch."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.cancel()

    def _workers(self) -> ProcessCrew | ThreadCrew:
        if self._crew is None or not self._crew.usable:
            kind = ThreadCrew if self._thread_pool else ProcessCrew
            self._crew = kind(self._num_workers, fetcher(self._dataset, self._batchify_fn))
            # Runs when the loader is gone, and before Python ends.
            weakref.finalize(self, _close_own, self._crew, os.getpid())
        return self._crew

    def _placed(self, batch: Any) -> Any:
        return batch if self._pin_context is None else _pinned(batch, self._pin_context)


class _Ahead:
    """One epoch under way: batches that workers have been asked for, in order."""

    def __init__(self, loader: DataLoader) -> None:
        self.crew = loader._workers()
        self._timeout = loader._timeout
        self._orders = iter(loader._batch_sampler)
        self._seeds: Any = None
        self._asked: deque[int] = deque()
        for _ in range(max(1, loader._prefetch)):
            self._ask()

    def _ask(self) -> None:
        for indices in self._orders:
            # After the sampler's own draw: one seed gives one order with and without workers.
            self._seeds = self._seeds or host_rng()
            seed = int(self._seeds.integers(2**63))
            self._asked.append(self.crew.submit(indices, seed))
            return

    def __bool__(self) -> bool:
        return bool(self._asked)

    def take(self) -> Any:
        """Return the next batch, and have one more made."""
        batch = self.crew.result(self._asked.popleft(), self._timeout)
        self._ask()
        return batch

    def cancel(self) -> None:
        """Let go of all that was asked for."""
        self.crew.forget(self._asked)
        self._asked.clear()


class _Fetcher:
    """Makes batches sample by sample; as an object, it can go to another process."""

    def __init__(self, dataset: Any, batchify_fn: Callable) -> None:
        self._dataset = dataset
        self._batchify_fn = batchify_fn

    def __call__(self, indices: Sequence[Any]) -> Any:
        return self._batchify_fn([self._dataset[i] for i in indices])


class _BatchReader(_Fetcher):
    """Makes batches at once out of arrays."""

    def __call__(self, indices: Sequence[Any]) -> Any:
        return batch_reader(self._dataset)(indices)


def fetcher(dataset: Any, batchify_fn: Callable) -> Callable[[Sequence[Any]], Any]:
    """Return the fastest function from indices to batches."""
    at_once = batchify_fn is default_batchify_fn and batch_reader(dataset) is not None
    return (_BatchReader if at_once else _Fetcher)(dataset, batchify_fn)


def _batches(
    dataset: Any,
    batch_size: int | None,
    shuffle: bool,
    sampler: Any,
    last_batch: str | None,
    batch_sampler: Any,
) -> Any:
    """Return what gives lists of indices, after a look whether the wishes agree."""
    if batch_sampler is not None:
        if batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise ValueError(
                "batch_size, shuffle, sampler and last_batch must not be specified if "
                "batch_sampler is specified."
            )
        return batch_sampler
    if batch_size is None:
        raise ValueError("batch_size must be specified unless batch_sampler is specified")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, but got {batch_size}")
    if sampler is None:
        sampler = (RandomSampler if shuffle else SequentialSampler)(len(dataset))
    elif shuffle:
        raise ValueError("shuffle must not be specified if sampler is specified")
    return BatchSampler(sampler, batch_size, last_batch or "keep")


def _pinned(batch: Any, ctx: Context) -> Any:
    if isinstance(batch, NDArray):
        tensor = plain(batch)
        if torch.cuda.is_available():
            tensor = tensor.pin_memory()
        return wrap_plain(type(batch), tensor, ctx)
    if isinstance(batch, list | tuple):
        return [_pinned(part, ctx) for part in batch]
    return batch


def _close_own(crew: ProcessCrew | ThreadCrew, owner: int) -> None:
    if owner == os.getpid():
        crew.close()
