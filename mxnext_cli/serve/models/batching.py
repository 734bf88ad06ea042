"""Requests joined into batches, which a thread runs on one prepared model."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from ..metrics import Metrics

Arrays = dict[str, np.ndarray]
Predict = Callable[[Arrays], list[np.ndarray]]
Outcome = list[np.ndarray] | BaseException
MAX_SIGNATURES = 64  # of which times are remembered
TIMES = 8  # runs that are remembered


class QueueFull(Exception):
    """More requests wait than are allowed."""


class Stopping(Exception):
    """The server is being stopped and takes no more requests."""


class WorkerDied(Exception):
    """The worker ended while it ran this request; another one took its place."""


class Job(NamedTuple):
    """One request: its arrays, how many samples, who waits for it, and since when."""

    inputs: Arrays
    rows: int
    future: Any  # of asyncio or of concurrent.futures
    since: float

    def signature(self) -> tuple:
        """Return what requests must share to be joined."""
        return tuple((n, a.shape[1:], a.dtype.str) for n, a in sorted(self.inputs.items()))


Delivery = list[tuple[Job, Outcome]]


def deliver(outcomes: Delivery) -> None:
    """Give results to those who wait for them."""
    for job, outcome in outcomes:
        if job.future.done():  # nobody waits any more
            continue
        if isinstance(outcome, BaseException):
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome)


class RunTimes:
    """How long the model takes for batches of each shape, by the last few runs."""

    def __init__(self) -> None:
        self._seconds: dict[tuple, deque[float]] = {}

    def record(self, inputs: Arrays, seconds: float) -> None:
        """Remember one run."""
        key = self._key(inputs)
        times = self._seconds.get(key)
        if times is None:
            if len(self._seconds) >= MAX_SIGNATURES:
                self._seconds.clear()
            times = self._seconds[key] = deque(maxlen=TIMES)
        times.append(seconds)

    def estimate(self, inputs: Arrays) -> float:
        """Return the time of these shapes; infinity if there are few runs.

        It is the lower quartile: on a busy machine many runs are interrupted.
        """
        times = self._seconds.get(self._key(inputs))
        if times is None or len(times) < 3:
            return float("inf")
        return sorted(times)[len(times) // 4]

    @staticmethod
    def _key(inputs: Arrays) -> tuple:
        return tuple((name, array.shape) for name, array in inputs.items())


class RowLimit:
    """How many samples a batch may have so that requests are answered in time.

    A request waits for the batch before it and for its own, so each may take half of the target.
    The limit is halved when a batch took longer, and grows by one for each that was quick.
    """

    def __init__(self, max_rows: int, target: float | None) -> None:
        self._max, self._target = max_rows, target
        self.rows = max_rows

    def learn(self, rows: int, seconds: float) -> None:
        """Take one run into account."""
        if self._target is None:
            return
        if seconds > self._target / 2:
            self.rows = max(1, min(self.rows, rows) // 2)
        elif rows >= self.rows:
            self.rows = min(self._max, self.rows + 1)


class Batcher:
    """Collects requests and runs them in batches.

    A batch waits for more requests at most `max_delay` seconds, and not at all if no other request
    is on its way: `arriving` says how many are being received. `deliver` gets the results of a
    whole batch at once.
    """

    def __init__(
        self,
        predict: Predict,
        *,
        max_batch: int = 32,
        max_delay: float = 0.002,
        max_queue: int = 256,
        target_latency: float | None = None,
        metrics: Metrics | None = None,
        arriving: Callable[[], int] = lambda: 1,
        deliver: Callable[[Delivery], object] = deliver,
    ) -> None:
        self._predict = predict
        self._max_delay, self._max_queue = max_delay, max_queue
        self._limit = RowLimit(max_batch, target_latency)
        self._metrics = metrics or Metrics()
        self._arriving, self._deliver = arriving, deliver
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._running = 0
        self.times = RunTimes()
        self._thread = self._start_worker()

    @property
    def waiting(self) -> int:
        """How many requests wait for the worker."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether no request waits or runs."""
        return not self._waiting and not self._running

    @property
    def is_alive(self) -> bool:
        """Whether there is a worker."""
        return self._thread.is_alive()

    @property
    def is_closed(self) -> bool:
        """Whether it takes no more requests."""
        return self._is_closed

    def submit(self, inputs: Arrays, future: Any = None) -> Any:
        """Add a request; its future gives the outputs for its samples."""
        rows = len(next(iter(inputs.values())))
        job = Job(inputs, rows, Future() if future is None else future, time.monotonic())
        with self._changed:
            if self._is_closed:
                raise Stopping
            if len(self._waiting) >= self._max_queue:
                raise QueueFull
            self._waiting.append(job)
            self._changed.notify()
        return job.future

    def run_here(self, inputs: Arrays) -> list[np.ndarray]:
        """Run a request at once, in the caller's thread."""
        if self._is_closed:
            raise Stopping
        try:
            return self._predict_timed(inputs, len(next(iter(inputs.values()))))
        except Exception:
            raise
        except BaseException:  # what would end a worker must not end the caller
            raise WorkerDied from None

    def close(self, timeout: float = 30.0) -> None:
        """Take no more requests, finish those that wait, and end the worker."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(timeout)
        with self._changed:
            left: Delivery = [(job, Stopping()) for job in self._waiting]
            self._waiting.clear()
        self._deliver(left)

    # -- the worker ---------------------------------------------------------------------------

    def _start_worker(self) -> threading.Thread:
        thread = threading.Thread(target=self._work, name="mx-serve-worker", daemon=True)
        thread.start()
        return thread

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            try:
                outcomes = self._run(batch)
            except BaseException:  # whatever ends a worker must not end the service
                self._running = 0
                self._metrics.restarts.add()
                self._thread = self._start_worker()
                self._deliver([(job, WorkerDied()) for job in batch])
                return
            self._running = 0
            self._deliver(outcomes)

    def _next_batch(self) -> list[Job] | None:
        """Wait for requests and return those of one batch; None at the end."""
        with self._changed:
            while not self._waiting:
                if self._is_closed:
                    return None
                self._changed.wait()
            batch = [self._waiting.popleft()]
            self._running = 1
            deadline = batch[0].since + self._max_delay
            while True:
                self._take_alike(batch)
                rest = deadline - time.monotonic()
                is_full = sum(job.rows for job in batch) >= self._limit.rows
                if is_full or rest <= 0 or self._is_closed or self._arriving() <= 0:
                    return batch
                self._changed.wait(rest)

    def _take_alike(self, batch: list[Job]) -> None:
        """Move waiting requests of the same shapes into a batch, as many as fit."""
        signature = batch[0].signature()
        rows = sum(job.rows for job in batch)
        left: deque[Job] = deque()
        while self._waiting:
            job = self._waiting.popleft()
            if rows + job.rows <= self._limit.rows and job.signature() == signature:
                batch.append(job)
                rows += job.rows
            else:
                left.append(job)
        self._waiting.extend(left)

    def _run(self, batch: list[Job]) -> Delivery:
        batch = [job for job in batch if not job.future.done()]  # the client gave up
        if len(batch) <= 1:
            return [(job, self._run_one(job)) for job in batch]
        joined = {
            name: np.concatenate([job.inputs[name] for job in batch]) for name in batch[0].inputs
        }
        rows = sum(job.rows for job in batch)
        try:
            outputs = self._predict_timed(joined, rows)
            can_split = all(out.ndim and out.shape[0] == rows for out in outputs)
        except Exception:  # which of them is wrong shows when each runs alone
            outputs, can_split = [], False
        if not can_split:
            return [(job, self._run_one(job)) for job in batch]
        results: Delivery = []
        start = 0
        for job in batch:
            results.append((job, [out[start : start + job.rows] for out in outputs]))
            start += job.rows
        return results

    def _run_one(self, job: Job) -> Outcome:
        try:
            return self._predict_timed(job.inputs, job.rows)
        except Exception as error:
            return error

    def _predict_timed(self, inputs: Arrays, rows: int) -> list[np.ndarray]:
        start = time.perf_counter()
        outputs = self._predict(inputs)
        seconds = time.perf_counter() - start
        self.times.record(inputs, seconds)
        self._limit.learn(rows, seconds)
        self._metrics.model_seconds.observe(seconds)
        self._metrics.batches.observe(rows)
        self._metrics.rows.add(rows)
        return outputs
