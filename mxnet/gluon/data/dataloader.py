"""`DataLoader`: batches of a data set, made on demand or prefetched by workers."""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.reduction import ForkingPickler  # noqa: F401 (for loaders of users)
from typing import Any

from ...context import cpu_pinned
from ...error import add_note
from ...visualization.notebook import facts_html
from .batchify import default_batchify_fn
from .dataset import batch_reader
from .pool import (  # noqa: F401 (for loaders of users)
    _as_in_context,
    _MultiWorkerIter,
    _worker_fn,
    _worker_initializer,
    pinned,
)
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .workers import Tasks, WorkerProcesses, WorkerThreads

__all__ = ["DataLoader", "default_batchify_fn", "default_mp_batchify_fn"]

default_mp_batchify_fn = default_batchify_fn  # MXNet's version uses shared memory


class DataLoader:
    """Loads a data set in batches.

    Parameters
    ----------
    dataset : Dataset, list or array
        The samples: a data set, a list or an array.
    batch_size : int
        Number of samples in a batch.
    shuffle : bool
        Use a new random order in each epoch; `mx.random.seed` makes it reproducible.
    sampler : Sampler, or another thing that gives indices
        Order of the samples, instead of `shuffle`.
    last_batch : {'keep', 'discard', 'rollover'}
        What to do with an incomplete last batch: return it, drop it, or use its samples in the next
        epoch.
    batch_sampler : Sampler that gives lists of indices
        Sampler of batches, instead of `batch_size`, `shuffle`, `sampler` and `last_batch`.
    batchify_fn : callable
        Function from a list of samples to a batch; by default they are stacked.
    num_workers : int
        Number of workers that prefetch batches; 0 loads them on demand. Workers start with the
        first batch, by the start method of `multiprocessing`, and are kept for later epochs. Each
        batch has its own random stream, so results do not depend on the number of workers.
    pin_memory : bool
        Whether to return arrays in pinned memory, for GPU `pin_device_id`.
    pin_device_id
        Number of the GPU for `pin_memory`.
    prefetch : int
        Number of batches to prefetch; by default two for each worker. It is rounded up to a
        multiple of the number of worker processes.
    thread_pool : bool
        Whether workers are threads, which share the data set and copy nothing. Best if loading
        waits for input, or runs code that releases the GIL.
    timeout : number
        Maximum number of seconds to wait for a batch before an error is raised.
    auto_reload : bool
        Start prefetching the next epoch at the end of the current one.

    Notes
    -----
    Batches from worker processes are on ``cpu(0)``; MXNet's are on ``cpu_shared(0)``.

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
        self._pin_memory = pin_memory
        self._pin_device_id = pin_device_id
        self._thread_pool = thread_pool
        self._timeout = timeout
        self._batch_sampler = _batches(
            dataset, batch_size, shuffle, sampler, last_batch, batch_sampler
        )
        self._num_workers = max(0, num_workers)
        self._prefetch = max(0, 2 * self._num_workers if prefetch is None else int(prefetch))
        self._batchify_fn = default_batchify_fn if batchify_fn is None else batchify_fn
        self._threads: WorkerThreads | None = None
        self._processes: set[WorkerProcesses] = set()
        self._idle: list[WorkerProcesses] = []
        # Runs when the loader is garbage-collected, or at exit.
        weakref.finalize(self, _close_all, self._processes)
        self._ahead: _ByThreads | _ByProcesses | None = None
        self.auto_reload = auto_reload
        if auto_reload:
            self.refresh()

    def __iter__(self) -> Iterator[Any]:
        if self._num_workers == 0:
            return self._made_here()
        return self._made_ahead()

    def _repr_html_(self) -> str:
        kind = "threads" if self._thread_pool else "processes"
        facts = {
            "data set": f"{type(self._dataset).__name__} of {len(self._dataset)} samples",
            "batches": len(self),
            "sampler": type(self._batch_sampler).__name__,
            "workers": f"{self._num_workers} {kind}" if self._num_workers else "none",
            "prefetched batches": self._prefetch,
        }
        return facts_html(type(self).__name__, facts)

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def _made_here(self) -> Iterator[Any]:
        fetch = fetcher(self._dataset, self._batchify_fn)
        for indices in self._batch_sampler:
            yield self._placed(fetch(indices))

    def _made_ahead(self) -> Iterator[Any]:
        ahead, self._ahead = self._ahead, None
        if ahead is None or not ahead.usable:
            ahead = self._begin()
        try:
            for batch in ahead.batches():
                yield self._placed(batch)
        finally:
            ahead.cancel()
        if self.auto_reload:
            self.refresh()

    def refresh(self) -> None:
        """Start prefetching the next epoch, again if it was started already."""
        self.clean()
        if self._num_workers:
            self._ahead = self._begin()

    def clean(self) -> None:
        """Drop the prefetched batches of the next epoch."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.cancel()

    def _begin(self) -> _ByThreads | _ByProcesses:
        tasks = Tasks(self._batch_sampler)
        if self._thread_pool:
            return _ByThreads(self._worker_threads(), tasks, self._prefetch, self._timeout)
        workers = self._worker_processes(tasks)
        self._processes.add(workers)
        return _ByProcesses(workers, self._idle, self._processes)

    def _worker_threads(self) -> WorkerThreads:
        if self._threads is None or not self._threads.usable:
            fetch = fetcher(self._dataset, self._batchify_fn)
            self._threads = WorkerThreads(self._num_workers, fetch)
            weakref.finalize(self, self._threads.close)  # otherwise threads would wait forever
        return self._threads

    def _worker_processes(self, tasks: Tasks) -> WorkerProcesses:
        """Return the workers of an earlier epoch, or new ones while those are busy."""
        with contextlib.suppress(IndexError):
            while True:
                workers = self._idle.pop()
                if workers.usable:
                    return workers
                self._processes.discard(workers)
                workers.close()
        fetch = fetcher(self._dataset, self._batchify_fn)
        options = (self._num_workers, fetch, tasks, self._prefetch, self._timeout)
        return WorkerProcesses(*options, bool(self._pin_memory))

    def _placed(self, batch: Any) -> Any:
        return pinned(batch, cpu_pinned(self._pin_device_id)) if self._pin_memory else batch


class _ByThreads:
    """One epoch in progress: batches prefetched by threads, in order."""

    def __init__(self, workers: WorkerThreads, tasks: Tasks, ahead: int, timeout: float) -> None:
        self._workers = workers
        self._timeout = timeout
        self._tasks = iter(tasks)
        self._asked: deque[int] = deque()
        for _ in range(max(1, ahead)):
            self._ask()

    @property
    def usable(self) -> bool:
        return self._workers.usable

    def _ask(self) -> None:
        for task in self._tasks:
            self._asked.append(self._workers.submit(task.indices))
            return

    def batches(self) -> Iterator[Any]:
        """Yield the batches; each one starts the prefetch of another."""
        while self._asked:
            batch = self._workers.result(self._asked.popleft(), self._timeout)
            self._ask()
            yield batch

    def cancel(self) -> None:
        self._workers.forget(self._asked)
        self._asked.clear()


class _ByProcesses:
    """One epoch in progress, with worker processes of its own until it ends."""

    def __init__(
        self, workers: WorkerProcesses, idle: list[WorkerProcesses], pools: set[WorkerProcesses]
    ) -> None:
        self._workers = workers
        self._idle = idle
        self._known = pools
        self._arrivals = workers.begin()

    @property
    def usable(self) -> bool:
        return self._workers.usable

    def batches(self) -> Iterator[Any]:
        return self._workers.batches(self._arrivals)

    def cancel(self) -> None:
        """Keep the workers for the next epoch, or end them if other workers are idle already."""
        self._workers.forget()
        if self._workers.usable and not self._idle:
            self._idle.append(self._workers)
        else:
            self._known.discard(self._workers)
            self._workers.close()


def _close_all(processes: set[WorkerProcesses]) -> None:
    while processes:
        processes.pop().close()


class _Fetcher:
    """Makes batches sample by sample; unlike a closure, it can be pickled."""

    def __init__(self, dataset: Any, batchify_fn: Callable) -> None:
        self._dataset = dataset
        self._batchify_fn = batchify_fn

    def __call__(self, indices: Sequence[Any]) -> Any:
        samples, index = [], None
        try:
            for index in indices:
                samples.append(self._dataset[index])
        except Exception as error:
            add_note(error, f"In sample {index} of {type(self._dataset).__name__}.")
            raise
        return self._batchify_fn(samples)


class _BatchReader(_Fetcher):
    def __call__(self, indices: Sequence[Any]) -> Any:
        read = batch_reader(self._dataset)
        assert read is not None  # `fetcher` creates this object only if there is one
        return read(indices)


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
    """Return the sampler of batches; raise for options that exclude each other."""
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
