"""Workers that prefetch batches: threads or processes.

`WorkerProcesses` is a `torch.utils.data.DataLoader` whose items are whole batches; its processes
are kept for later epochs.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import multiprocessing
import multiprocessing.pool  # MXNet imports it, and old programs use it without an import
import multiprocessing.util
import os
import pickle
import queue
import random
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.random
import torch
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Dataset as TorchDataset

from ... import accelerator
from ...base import is_np_shape
from ...error import MXNetError
from ...formats.image_codec import limit_threads, resting_threads
from ...random import host_rng
from ...torch_private import find_worker_parts
from ...util import is_np_array, set_np
from . import batchify
from .transfer import Packed, Sendable, SharedPieces, pack, remove_leftovers, unpack

Fetch = Callable[[Sequence[Any]], Any]  # from indices to a batch


class WorkerDied(MXNetError):
    """A worker process ended before its batch was done."""


class LoaderTimeout(MXNetError, multiprocessing.TimeoutError, TimeoutError):
    """A batch took longer than the loader's `timeout`."""


class WorkerTraceback(Exception):
    """The traceback of an error in a worker."""

    def __str__(self) -> str:
        return f"\n\nIn a worker of the DataLoader:\n{self.args[0]}"


class Task(NamedTuple):
    """The indices of a batch, and the seed of its random streams."""

    indices: Any
    seed: int


class Tasks:
    """The batches of a sampler, each with a seed; every iteration is an epoch."""

    def __init__(self, batch_sampler: Any) -> None:
        self._batch_sampler = batch_sampler

    def __iter__(self) -> Iterator[Task]:
        seeds = None
        for indices in self._batch_sampler:
            # Drawn after the sampler's order, so the order does not depend on workers.
            seeds = seeds or host_rng()
            yield Task(indices, int(seeds.integers(2**63)))


class Switches(NamedTuple):
    """The shape and array semantics that workers inherit from the requesting thread."""

    shape: bool
    array: bool

    @staticmethod
    def here() -> Switches:
        """Return the semantics of this thread."""
        return Switches(is_np_shape(), is_np_array())


class Failure(NamedTuple):
    """An error in a worker, sent in place of a batch: the exception and its traceback.

    Torch's own wrapper would create a new exception from the text; this one keeps its attributes.
    """

    error: bytes | None  # pickle of the error, or None
    summary: str
    trace: str

    @staticmethod
    def of(error: BaseException) -> Failure:
        """Return the picklable form of an error."""
        pickled = None
        with contextlib.suppress(Exception):
            text = pickle.dumps(error)
            if isinstance(error, Exception) and type(pickle.loads(text)) is type(error):
                pickled = text
        trace = "".join(traceback.format_exception(error))
        return Failure(pickled, f"{type(error).__name__}: {error}", trace)

    def throw(self) -> NoReturn:
        """Raise the worker's error here, with its traceback as the cause."""
        error: Exception = MXNetError(self.summary)
        if self.error is not None:
            # The class of the error may not be importable in this process.
            with contextlib.suppress(Exception):
                error = pickle.loads(self.error)
        try:
            raise error from WorkerTraceback(self.trace)
        finally:
            del error  # break the reference cycle with this frame, which would keep the workers


class WorkerThreads:
    """Worker threads on one data set. They are daemons, so a stuck one cannot block the exit."""

    def __init__(self, count: int, fetch: Fetch) -> None:
        self._fetch = fetch
        self._owner = os.getpid()
        self._tasks: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        self._answers: dict[int, tuple[bool, Any]] = {}
        self._unwanted: set[int] = set()
        self._news = threading.Condition()
        self._next = 0
        switches = Switches.here()
        for number in range(count):
            threading.Thread(
                target=_work_in_thread,
                args=(self._tasks, self._fetch, self._put, self._unwanted, switches),
                name=f"DataLoader-thread-{number}",
                daemon=True,
            ).start()
        self._count = count

    @property
    def usable(self) -> bool:
        """Whether the threads exist in this process; a forked child has none."""
        return self._owner == os.getpid()

    def submit(self, indices: Any) -> int:
        """Queue a batch for the next free thread; return its number."""
        with self._news:
            number, self._next = self._next, self._next + 1
        self._tasks.put((number, indices))
        return number

    def result(self, number: int, timeout: float) -> Any:
        """Return a batch, or raise its error."""
        with self._news:
            if not self._news.wait_for(lambda: number in self._answers, timeout):
                self._unwanted.add(number)
                raise LoaderTimeout(
                    f"A thread of the DataLoader needed more than {timeout} seconds for a batch. "
                    "Look into the data set's __getitem__ and transforms, or raise the "
                    "DataLoader's timeout."
                )
            failed, answer = self._answers.pop(number)
        if failed:
            raise answer
        return answer

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop batches that will not be requested."""
        with self._news:
            for number in numbers:
                if self._answers.pop(number, None) is None:
                    self._unwanted.add(number)

    def close(self) -> None:
        """Ask all threads to stop after their current item."""
        for _ in range(self._count):
            self._tasks.put(None)

    def _put(self, number: int, failed: bool, answer: Any) -> None:
        with self._news:
            if number in self._unwanted:
                self._unwanted.discard(number)
                return
            self._answers[number] = (failed, answer)
            self._news.notify_all()


def _work_in_thread(
    tasks: queue.SimpleQueue, fetch: Fetch, put: Callable, unwanted: set[int], switches: Switches
) -> None:
    set_np(*switches)
    while (task := tasks.get()) is not None:
        number, indices = task
        if number in unwanted:
            put(number, False, None)
            continue
        try:
            put(number, False, fetch(indices))
        except BaseException as error:
            put(number, True, error)


LOOK = 0.2  # seconds between checks that all workers are alive
FAREWELL = 1.0  # seconds a terminated worker has to exit
END_CHECK = 10.0  # seconds to wait for the exit of a worker to show
PARENT_CHECK = 2.0  # seconds between a worker's checks that its parent is alive

_END = object()
_TORCH: Any = find_worker_parts()


class WorkerProcesses(TorchLoader):
    """Worker processes, each with a copy of the data set; they are kept for later epochs."""

    dataset: _Batches
    _iterator: _Arrivals | None  # torch keeps the iterator of `_get_iterator`

    def __init__(
        self, count: int, fetch: Fetch, tasks: Tasks, ahead: int, timeout: float, pin: bool
    ) -> None:
        if multiprocessing.current_process().daemon:
            raise MXNetError(
                "A worker process cannot have workers of its own: for a DataLoader inside a data "
                "set use num_workers=0 or thread_pool=True."
            )
        self.owner = os.getpid()
        # Workers inherit this folder for their sockets; one of their own would outlive them.
        multiprocessing.util.get_temp_dir()
        self._epoch = multiprocessing.get_context().RawValue("Q")
        super().__init__(
            _Batches(Sendable(fetch), self._epoch),
            batch_size=None,  # the sampler's items are whole batches
            sampler=_Numbered(tasks, self._epoch),
            collate_fn=_as_it_is,
            num_workers=count,
            prefetch_factor=max(1, -(-ahead // count)),
            persistent_workers=True,
            timeout=timeout,
            pin_memory=pin and accelerator.can_pin(),
            worker_init_fn=functools.partial(_begin, Switches.here()),
            multiprocessing_context=_context(),
            generator=torch.Generator(),  # torch must not draw its seed from the user's stream
        )

    def _get_iterator(self) -> _Arrivals:
        return _Arrivals(self)

    @property
    def usable(self) -> bool:
        """Whether this process started the workers and all of them are alive."""
        if self.owner != os.getpid() or self._iterator is None:
            return False
        return all(worker.is_alive() for worker in self._iterator._workers)

    def begin(self) -> Iterator[Packed | Failure]:
        """Request the first batches of an epoch; return the iterator over the results."""
        with self._explained(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Got pickle error")  # reported below
            return iter(self)

    def batches(self, arrivals: Iterator[Packed | Failure]) -> Iterator[Any]:
        """Iterate over the batches of an epoch."""
        while True:
            with self._explained():
                answer: Any = next(arrivals, _END)
            if answer is _END:
                return
            if isinstance(answer, Failure):
                answer.throw()
            yield unpack(answer)

    def forget(self) -> None:
        """Make workers skip requested batches that they have not started."""
        if self.owner == os.getpid():  # shared with forked copies of the parent
            self._epoch.value += 1

    def close(self) -> None:
        """End all workers, without waiting for busy ones."""
        arrivals, self._iterator = self._iterator, None
        if arrivals is not None:
            arrivals._shutdown_workers()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Convert torch's errors about workers to MXNet's, and end workers after a failure."""
        try:
            yield
        except (RuntimeError, EOFError, ConnectionError) as error:
            workers: Any = [] if self._iterator is None else self._iterator._workers
            if not isinstance(error, RuntimeError):  # a worker died while its result was received
                _wait_for_an_end(workers)
            ended = [_end_of(n, w) for n, w in enumerate(workers) if not w.is_alive()]
            late = str(error).startswith("DataLoader timed out")
            if ended or late:
                self.close()
            if ended:
                raise WorkerDied(
                    f"A worker process of the DataLoader ended unexpectedly: {', '.join(ended)}. "
                    "SIGKILL often means that memory ran out, SIGBUS that shared memory did: use "
                    "fewer workers or smaller batches. With num_workers=0 an error shows where it "
                    "arises."
                ) from error
            if late:
                raise LoaderTimeout(
                    f"A worker of the DataLoader needed more than {self.timeout} seconds for a "
                    "batch. Look into the data set's __getitem__ and transforms, lower "
                    "num_workers if memory runs short, or raise the DataLoader's timeout."
                ) from error
            raise
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            method = multiprocessing.get_start_method()
            if method != "fork" and not _can_be_sent(self.dataset._fetch):
                raise MXNetError(
                    "The data set or batchify_fn cannot be sent to a worker process that is "
                    f"started by {method!r}: {error}. Open files, locks and connections in "
                    "__getitem__ rather than in the constructor, or use thread_pool=True or "
                    "num_workers=0."
                ) from error
            raise


class _Arrivals(_TORCH.iterator):
    """Torch's iterator that detects the death of a worker immediately.

    Torch checks for dead workers only after `timeout`, or raises from a signal handler anywhere in
    the program. Here the signal is handled only while waiting for a batch.
    """

    def __init__(self, loader: WorkerProcesses) -> None:
        self._owner = loader.owner
        with resting_threads():
            super().__init__(loader)
        self._heed_signals(False)

    def _heed_signals(self, wish: bool) -> None:
        if wish and not self._worker_pids_set:
            _TORCH.watch(id(self), tuple(w.pid for w in self._workers))
        elif self._worker_pids_set and not wish:
            _TORCH.forget(id(self))
        self._worker_pids_set = wish

    def _try_get_data(self, timeout: float = LOOK) -> tuple[bool, Any]:
        deadline = time.monotonic() + timeout
        try:
            self._heed_signals(True)
            while True:
                left = max(0.0, deadline - time.monotonic())
                success, data = super()._try_get_data(min(LOOK, left))
                if success or left <= LOOK:
                    return success, data
        finally:
            self._heed_signals(False)

    def _shutdown_workers(self) -> None:
        if self._owner != os.getpid():  # a forked copy of the parent does not own the workers
            return
        if not self._shutdown:
            _end(self._workers)
        super()._shutdown_workers()
        remove_leftovers(worker.pid for worker in self._workers if not worker.is_alive())


class _Flag:
    """An event without a lock, which a killed process could hold forever."""

    def __init__(self) -> None:
        self._value = multiprocessing.get_context().RawValue("b")

    def is_set(self) -> bool:
        return bool(self._value.value)

    def set(self) -> None:
        self._value.value = 1


def _context() -> Any:
    """Return the multiprocessing context, with events that a killed process cannot block."""
    context: Any = copy.copy(multiprocessing.get_context(multiprocessing.get_start_method()))
    context.Event = _Flag
    return context


class _Numbered:
    def __init__(self, tasks: Tasks, epoch: Any) -> None:
        self._tasks = tasks
        self._epoch = epoch

    def __iter__(self) -> Iterator[tuple[int, Task]]:
        for task in self._tasks:
            yield self._epoch.value, task


def _end(workers: list[Any]) -> None:
    """Terminate processes; kill those that do not exit in time."""
    for stop in ("terminate", "kill"):
        for worker in workers:
            getattr(worker, stop)()
        end = time.monotonic() + FAREWELL
        # Torch's `join` would wait for a pipe that other forked processes inherited.
        while any(w.is_alive() for w in workers) and time.monotonic() < end:
            time.sleep(0.001)


def _wait_for_an_end(workers: Sequence[Any]) -> None:
    """Wait a few seconds for the exit of a worker to be noticed."""
    # A dying process closes its pipes before the system reports its exit, so neither the pipes nor
    # the sentinel show it.
    end = time.monotonic() + END_CHECK
    while workers and all(w.is_alive() for w in workers) and time.monotonic() < end:
        time.sleep(0.001)


def _end_of(number: int, process: Any) -> str:
    code = process.exitcode
    how = f"with exit code {code}"
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            how = f"by signal {signal.Signals(-code).name}"
    return f"worker {number} (pid {process.pid}) {how}"


def _can_be_sent(thing: Any) -> bool:
    try:
        ForkingPickler.dumps(thing)
    except Exception:
        return False
    return True


# -- inside a worker ---------------------------------------------------------------------------

_pieces = SharedPieces()


class _Batches(TorchDataset):
    """A data set of packed batches or failures; items of a cancelled epoch are empty."""

    def __init__(self, fetch: Fetch, epoch: Any) -> None:
        self._fetch = fetch
        self._epoch = epoch

    def __getitem__(self, numbered: tuple[int, Task]) -> Packed | Failure | None:
        number, task = numbered
        if number != self._epoch.value:
            return None
        try:
            _seed(task.seed)
            with batchify.allocating(_pieces.empty):
                batch = self._fetch(task.indices)
            return pack(batch, _pieces)
        except BaseException as error:
            return Failure.of(error)


def _as_it_is(answer: Any) -> Any:
    return answer


def _begin(switches: Switches, number: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_end_with_parent, daemon=True).start()
    set_np(*switches)
    limit_threads(1)  # torch does so itself


def _end_with_parent() -> None:
    """End even a busy worker when the parent is gone; torch checks only between batches."""
    parent, starter = multiprocessing.parent_process(), os.getppid()
    assert parent is not None  # this runs only in workers
    # Other processes may inherit the parent's end of a pipe, and a fork server may be the parent.
    while os.getppid() == starter and parent.is_alive():
        parent.join(PARENT_CHECK)
    os._exit(1)


def _seed(seed: int) -> None:
    """Seed the random streams of a batch independently of the worker that makes it."""
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 (user-defined transforms draw from it)
