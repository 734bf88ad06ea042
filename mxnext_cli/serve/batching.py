"""Requests joined into batches, which worker threads run on one prepared model, and metrics.

Counters, gauges and histograms are written in Prometheus' text format.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np

Arrays = dict[str, np.ndarray]
Predict = Callable[[Arrays], list[np.ndarray]]
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)


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
    future: Future[list[np.ndarray]]
    since: float

    def signature(self) -> tuple:
        """Return what requests must share to be joined."""
        return tuple((n, a.shape[1:], a.dtype.str) for n, a in sorted(self.inputs.items()))


class Batcher:
    """Collects requests and runs them in batches.

    A batch waits for more requests at most `max_delay` seconds, and not at all if no other request
    is on its way: `arriving` says how many are being received.
    """

    def __init__(
        self,
        predict: Predict,
        *,
        max_batch: int = 32,
        max_delay: float = 0.002,
        max_queue: int = 256,
        workers: int = 1,
        metrics: Metrics | None = None,
        arriving: Callable[[], int] = lambda: 1,
    ) -> None:
        self._predict = predict
        self._max_batch, self._max_delay, self._max_queue = max_batch, max_delay, max_queue
        self._metrics = metrics or Metrics()
        self._arriving = arriving
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._threads: set[threading.Thread] = set()
        for _ in range(workers):
            self._start_worker()

    @property
    def waiting(self) -> int:
        """How many requests wait for a worker."""
        return len(self._waiting)

    @property
    def workers(self) -> int:
        """How many workers are alive."""
        return sum(thread.is_alive() for thread in self._threads)

    def submit(self, inputs: Arrays) -> Future[list[np.ndarray]]:
        """Add a request; its future gives the outputs for its samples."""
        rows = len(next(iter(inputs.values())))
        job = Job(inputs, rows, Future(), time.monotonic())
        with self._changed:
            if self._is_closed:
                raise Stopping
            if len(self._waiting) >= self._max_queue:
                raise QueueFull
            self._waiting.append(job)
            self._changed.notify_all()
        return job.future

    def close(self, timeout: float = 30.0) -> None:
        """Take no more requests, finish those that wait, and end the workers."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        deadline = time.monotonic() + timeout
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))
        with self._changed:
            while self._waiting:
                self._waiting.popleft().future.set_exception(Stopping())

    # -- workers ------------------------------------------------------------------------------

    def _start_worker(self) -> None:
        thread = threading.Thread(target=self._work, name="mx-serve-worker", daemon=True)
        self._threads.add(thread)
        thread.start()

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            try:
                self._run(batch)
            except BaseException:  # whatever ends a worker must not end the service
                try:  # who hears of it finds the next worker at its place
                    self._metrics.restarts.add()
                    self._threads.discard(threading.current_thread())
                    self._start_worker()
                finally:
                    for job in batch:
                        if not job.future.done():
                            job.future.set_exception(WorkerDied())
                return

    def _next_batch(self) -> list[Job] | None:
        """Wait for requests and return those of one batch; None at the end."""
        with self._changed:
            while not self._waiting:
                if self._is_closed:
                    return None
                self._changed.wait()
            batch = [self._waiting.popleft()]
            deadline = batch[0].since + self._max_delay
            while True:
                self._take_alike(batch)
                rest = deadline - time.monotonic()
                is_full = sum(job.rows for job in batch) >= self._max_batch
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
            if rows + job.rows <= self._max_batch and job.signature() == signature:
                batch.append(job)
                rows += job.rows
            else:
                left.append(job)
        self._waiting.extend(left)

    def _run(self, batch: list[Job]) -> None:
        batch = [job for job in batch if job.future.set_running_or_notify_cancel()]
        if not batch:
            return
        if len(batch) == 1:
            self._run_one(batch[0])
            return
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
            for job in batch:
                self._run_one(job)
            return
        start = 0
        for job in batch:
            job.future.set_result([out[start : start + job.rows] for out in outputs])
            start += job.rows

    def _run_one(self, job: Job) -> None:
        try:
            job.future.set_result(self._predict_timed(job.inputs, job.rows))
        except Exception as error:
            job.future.set_exception(error)

    def _predict_timed(self, inputs: Arrays, rows: int) -> list[np.ndarray]:
        start = time.perf_counter()
        outputs = self._predict(inputs)
        self._metrics.model_seconds.observe(time.perf_counter() - start)
        self._metrics.batches.observe(rows)
        self._metrics.rows.add(rows)
        return outputs


class Counter:
    """A number that only grows, for each value of one label."""

    def __init__(self, name: str, about: str, label: str = "") -> None:
        self._name, self._about, self._label = name, about, label
        self._values: dict[str, float] = {} if label else {"": 0}
        self._lock = threading.Lock()

    def add(self, amount: float = 1, label: str = "") -> None:
        """Add to the number."""
        with self._lock:
            self._values[label] = self._values.get(label, 0) + amount

    def value(self, label: str = "") -> float:
        """Return the number."""
        return self._values.get(label, 0)

    def lines(self) -> list[str]:
        """Return the lines of the text format."""
        shown = [f"# HELP {self._name} {self._about}", f"# TYPE {self._name} counter"]
        for label, value in sorted(self._values.items()):
            where = f'{{{self._label}="{label}"}}' if self._label else ""
            shown.append(f"{self._name}{where} {value:g}")
        return shown


class Gauge:
    """A number that is read when it is asked for."""

    def __init__(self, name: str, about: str, read: Callable[[], float]) -> None:
        self._name, self._about, self._read = name, about, read

    def lines(self) -> list[str]:
        """Return the lines of the text format."""
        return [
            f"# HELP {self._name} {self._about}",
            f"# TYPE {self._name} gauge",
            f"{self._name} {self._read():g}",
        ]


class Histogram:
    """How often values fell below each of some limits."""

    def __init__(self, name: str, about: str, limits: Sequence[float]) -> None:
        self._name, self._about, self._limits = name, about, tuple(limits)
        self._counts = [0] * (len(self._limits) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, value: float) -> None:
        """Count one value."""
        with self._lock:
            self._counts[bisect_left(self._limits, value)] += 1
            self._sum += value

    @property
    def count(self) -> int:
        """How many values were counted."""
        return sum(self._counts)

    def lines(self) -> list[str]:
        """Return the lines of the text format."""
        shown = [f"# HELP {self._name} {self._about}", f"# TYPE {self._name} histogram"]
        with self._lock:
            counts, total = list(self._counts), self._sum
        below = 0
        for limit, count in zip((*self._limits, "+Inf"), counts, strict=True):
            below += count
            shown.append(f'{self._name}_bucket{{le="{limit}"}} {below}')
        return [*shown, f"{self._name}_sum {total:g}", f"{self._name}_count {below}"]


class Metrics:
    """What the server counts."""

    def __init__(self) -> None:
        self.requests = Counter("mx_requests_total", "Requests by status code.", "code")
        self.rows = Counter("mx_rows_total", "Samples that were predicted.")
        self.restarts = Counter("mx_worker_restarts_total", "Workers that died and were replaced.")
        self.seconds = Histogram("mx_request_seconds", "Time from request to answer.", SECONDS)
        self.batches = Histogram("mx_batch_rows", "Samples in each batch.", ROWS)
        self.model_seconds = Histogram("mx_model_seconds", "Time of the model per batch.", SECONDS)
        self.gauges: list[Gauge] = []

    def text(self) -> str:
        """Return everything in the text format."""
        parts = (self.requests, self.rows, self.restarts, self.seconds, self.batches,
                 self.model_seconds, *self.gauges)  # fmt: skip
        return "\n".join(line for part in parts for line in part.lines()) + "\n"
