"""A crew of worker processes that make batches ahead.

A crew is asked by `submit`, answers by `result`, and lets go of what nobody wants by `forget`.
Each worker process has connections of its own, without locks that a dying one could keep; the
parent waits for answers and for deaths alike, so it never waits for a worker that is gone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import numpy as np
import torch

from ...error import MXNetError
from ...shape_mode import is_np_shape
from ...util import is_np_array, set_np
from . import parcel

Fetch = Callable[[Sequence[Any]], Any]  # from indices to a batch
PARENT_CHECK = 5.0  # seconds between two looks whether the parent still lives
LISTEN = 0.2  # seconds after which another thread may use the crew too
FAREWELL = 1.0  # seconds for a worker to end by itself


class WorkerDied(MXNetError):
    """A worker process ended before its batch was done."""


class LoaderTimeout(MXNetError, multiprocessing.TimeoutError, TimeoutError):
    """A batch took longer than the loader's `timeout`."""


class WorkerTraceback(Exception):
    """Where in a worker an error arose."""

    def __str__(self) -> str:
        return f"\n\nIn a worker of the DataLoader:\n{self.args[0]}"


class Task(NamedTuple):
    """What a worker is asked: the samples of a batch, and the seed of its random streams."""

    number: int
    indices: Any
    seed: int


class Failure(NamedTuple):
    """What a worker answers when there is no batch: the error and where it arose."""

    error: bytes | None  # a pickle, if the error has one
    summary: str
    trace: str

    def throw(self) -> None:
        """Raise the worker's error here, with its traceback as the cause."""
        error: Exception = MXNetError(self.summary)
        if self.error is not None:
            # What could be pickled there need not be importable here.
            with contextlib.suppress(Exception):
                error = pickle.loads(self.error)
        raise error from WorkerTraceback(self.trace)


class Switches(NamedTuple):
    """The meanings of shapes and arrays that workers take over from the thread that asks."""

    shape: bool
    array: bool

    @staticmethod
    def here() -> Switches:
        """Return those in force in this thread."""
        return Switches(is_np_shape(), is_np_array())


class _Worker:
    """The parent's side of one worker process."""

    def __init__(self, ctx: Any, number: int, fetch: Fetch, switches: Switches) -> None:
        theirs, self.tasks = ctx.Pipe(duplex=False)
        self.answers, answering = ctx.Pipe(duplex=True)  # a socket: it can carry shared memory
        self.waiting: set[int] = set()
        method = ctx.get_start_method()
        # A forked worker has copies of the parent's ends; it must close them to see them end.
        forked = (self.tasks, self.answers) if method == "fork" else ()
        self.process = ctx.Process(
            target=_work,
            args=(theirs, answering, forked, fetch, switches),
            name=f"DataLoader-worker-{number}",
            daemon=True,
        )
        try:
            self.process.start()
        except Exception as error:
            self.close()
            if method != "fork" and isinstance(
                error, pickle.PicklingError | AttributeError | TypeError
            ):
                raise MXNetError(
                    "The data set or batchify_fn cannot be sent to a worker process that is "
                    f"started by {method!r}: {error}. Use functions and classes that stand at the "
                    "top level of a module, or thread_pool=True, or num_workers=0."
                ) from error
            raise
        finally:
            theirs.close()  # the worker has them now; only so its death ends them
            answering.close()

    def close(self) -> None:
        self.tasks.close()
        self.answers.close()


class ProcessCrew:
    """Worker processes, each with a copy of the data set."""

    def __init__(self, count: int, fetch: Fetch) -> None:
        if multiprocessing.current_process().daemon:
            raise MXNetError(
                "A worker process cannot have workers of its own: for a DataLoader inside a data "
                "set use num_workers=0 or thread_pool=True."
            )
        self._ctx = multiprocessing.get_context()
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._answers: dict[int, tuple[bytes, list[Any]] | Failure] = {}
        self._unwanted: set[int] = set()
        self._next = 0
        self._workers: list[_Worker] = []
        switches = Switches.here()
        try:
            for number in range(count):
                self._workers.append(_Worker(self._ctx, number, fetch, switches))
        except BaseException:
            self.close()
            raise

    @property
    def usable(self) -> bool:
        """Whether it is this process's crew and nobody is missing."""
        return bool(self._workers) and self._owner == os.getpid()

    def submit(self, indices: Any, seed: int) -> int:
        """Give a batch to the worker with the least to do; return its number."""
        with self._lock:
            self._open()
            number, self._next = self._next, self._next + 1
            worker = min(self._workers, key=lambda w: len(w.waiting))
            try:
                worker.tasks.send(Task(number, indices, seed))
            except OSError as error:
                self._mourn(error)
            worker.waiting.add(number)
            return number

    def result(self, number: int, timeout: float) -> Any:
        """Return a batch, or raise what went wrong with it."""
        deadline = time.monotonic() + timeout
        while True:
            with self._lock:
                if number in self._answers:
                    break
                self._open()
                self._listen(min(LISTEN, max(0.0, deadline - time.monotonic())))
                late = number not in self._answers and time.monotonic() >= deadline
            if late:
                self.close()
                raise LoaderTimeout(
                    f"A worker of the DataLoader needed more than {timeout} seconds for a batch. "
                    "Look into the data set's __getitem__ and transforms, lower num_workers if "
                    "memory runs short, or raise the DataLoader's timeout."
                )
        answer = self._answers.pop(number)
        if isinstance(answer, Failure):
            answer.throw()
        text, memory = answer
        return pickle.loads(text, buffers=memory)

    def forget(self, numbers: Sequence[int]) -> None:
        """Let go of batches that nobody will ask for; workers skip those not yet begun."""
        if not self.usable:
            return
        with self._lock:
            for number in numbers:
                self._answers.pop(number, None)
            for worker in self._workers:
                unwanted = worker.waiting.intersection(numbers)
                self._unwanted |= unwanted
                try:
                    if unwanted:
                        worker.tasks.send(unwanted)
                except OSError:  # it died; the next epoch gets new ones
                    self.close()
                    return

    def close(self) -> None:
        """End all workers; those that are busy are not waited for long."""
        workers, self._workers = self._workers, []
        if self._owner != os.getpid():  # a copy of the parent: its workers are not ours
            return
        for worker in workers:
            with contextlib.suppress(OSError):
                worker.tasks.send(None)
        end = time.monotonic() + FAREWELL
        for stop in (None, "terminate", "kill"):
            alive = [w.process for w in workers if w.process.is_alive()]
            for process in alive:
                if stop:
                    getattr(process, stop)()
            for process in alive:
                process.join(max(0.0, end - time.monotonic()) if stop is None else FAREWELL)
        for worker in workers:
            worker.close()
            if not worker.process.is_alive():
                worker.process.close()
        self._answers.clear()

    def _open(self) -> None:
        if not self._workers:
            raise MXNetError("The workers of this DataLoader have ended; iterate over it anew.")

    def _listen(self, seconds: float) -> None:
        """Take in what has arrived, or find out who died."""
        by_connection = {w.answers: w for w in self._workers}
        deaths = [w.process.sentinel for w in self._workers]
        ready = wait([*by_connection, *deaths], seconds)
        spoke = [by_connection[c] for c in ready if c in by_connection]
        try:
            for worker in spoke:
                number, *answer = parcel.receive(worker.answers)
                self._take_in(worker, number, *answer)
        except (EOFError, OSError) as error:
            self._mourn(error)
        if ready and not spoke:
            self._mourn(None)

    def _take_in(self, worker: _Worker, head: tuple, text: bytes, memory: list[Any]) -> None:
        number, failed = head
        worker.waiting.discard(number)
        if number in self._unwanted:
            self._unwanted.discard(number)
        elif failed:
            self._answers[number] = pickle.loads(text)
        else:
            self._answers[number] = (text, memory)

    def _mourn(self, error: Exception | None) -> None:
        """Raise for the workers that ended; the others end too."""
        by_sentinel = {w.process.sentinel: w.process for w in self._workers}
        for sentinel in wait(list(by_sentinel), FAREWELL):
            by_sentinel[sentinel].join(FAREWELL)  # the exit code comes a moment later
        ended = [_exit_text(w.process) for w in self._workers if not w.process.is_alive()]
        self.close()
        if not ended:
            raise MXNetError(
                f"The connection to a worker process of the DataLoader broke: {error!r}"
            ) from error
        raise WorkerDied(
            f"A worker process of the DataLoader ended unexpectedly: {', '.join(ended)}. "
            "A signal SIGKILL often means that memory ran out: use fewer workers or smaller "
            "batches. With num_workers=0 an error shows where it arises."
        ) from error


def _exit_text(process: Any) -> str:
    code = process.exitcode
    if code is not None and code < 0:
        try:
            return f"{process.name} (pid {process.pid}) by signal {signal.Signals(-code).name}"
        except ValueError:
            pass
    return f"{process.name} (pid {process.pid}) with exit code {code}"


# -- inside a worker ---------------------------------------------------------------------------


def _work(
    tasks: Connection,
    answers: Connection,
    copies: tuple[Connection, ...],
    fetch: Fetch,
    switches: Switches,
) -> None:
    """Answer tasks until told to stop, or until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for connection in copies:
        connection.close()
    torch.set_num_threads(1)  # workers share the cores; a forked OpenMP could also hang
    set_np(*switches)
    todo: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
    unwanted: set[int] = set()
    threading.Thread(target=_take_orders, args=(tasks, todo, unwanted), daemon=True).start()
    while (task := todo.get()) is not None:
        head, text, memory = _answer(task, fetch, unwanted)
        try:
            parcel.send(answers, head, text, memory)
        except OSError:  # the parent has closed
            return
        except MemoryError as error:
            parcel.send(answers, (task.number, True), pickle.dumps(_failure(error)), [])


def _take_orders(tasks: Connection, todo: queue.SimpleQueue, unwanted: set[int]) -> None:
    """Read orders as they come, so that the parent never waits to be heard."""
    starter = os.getppid()  # the parent, or the server that forks for it
    while True:
        try:
            while not tasks.poll(PARENT_CHECK):
                # Another process may hold a copy of the parent's end; then no end is seen.
                if os.getppid() != starter:
                    os._exit(1)
            order = tasks.recv()
        except (EOFError, OSError):  # the parent is gone; nobody wants what this process does
            os._exit(1)
        if isinstance(order, set):
            unwanted.update(order)
            continue
        todo.put(order)
        if order is None:
            return


def _answer(task: Task, fetch: Fetch, unwanted: set[int]) -> tuple[tuple, bytes, list]:
    if task.number in unwanted:
        unwanted.discard(task.number)
        return (task.number, False), pickle.dumps(None), []
    try:
        _seed(task.seed)
        return (task.number, False), *parcel.pack(fetch(task.indices))
    except BaseException as error:
        return (task.number, True), pickle.dumps(_failure(error)), []


def _seed(seed: int) -> None:
    """Let each batch have streams of its own, whichever worker makes it."""
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 (what transforms of users draw from)


def _failure(error: BaseException) -> Failure:
    trace = "".join(traceback.format_exception(error))
    summary = f"{type(error).__name__}: {error}"
    pickled = None
    with contextlib.suppress(Exception):
        text = pickle.dumps(error)
        if isinstance(error, Exception) and type(pickle.loads(text)) is type(error):
            pickled = text
    return Failure(pickled, summary, trace)
