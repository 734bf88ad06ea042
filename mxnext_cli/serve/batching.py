"""Combine requests into batches, which a thread runs on one prepared model."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from .limits import Limits
from .monitoring import Metrics

Arrays = dict[str, np.ndarray]
Outputs = list[np.ndarray]
MAX_SHAPES = 64  # of which times are remembered
QUICK = 0.005  # seconds that a lone request may take on the event loop


class QueueFull(Exception):
    """More requests wait than are allowed."""


class Stopping(Exception):
    """Raised while the server is stopping and accepts no requests."""


class ModelExit(Exception):
    """Raised if the model raises an exception that would end a program, such as SystemExit."""


class Job(NamedTuple):
    """One request: its arrays, number of samples, future and arrival time."""

    inputs: Arrays
    rows: int
    future: asyncio.Future[Outputs]
    since: float

    def signature(self) -> tuple:
        """Return the key that requests of one batch share."""
        return tuple((n, a.shape[1:], a.dtype.str) for n, a in sorted(self.inputs.items()))


class RowLimit:
    """The adaptive maximum of samples per batch, to meet the target latency.

    A request waits for the batch before it and for its own, so each may take half of the target.
    The limit is halved when a batch took longer, and grows by one for each that was quick.
    """

    def __init__(self, max_rows: int, target_ms: float | None) -> None:
        self._max, self._target = max_rows, math.inf if target_ms is None else target_ms / 1000
        self.rows = max_rows

    def learn(self, rows: int, seconds: float) -> None:
        """Update the statistics with one run."""
        if seconds > self._target / 2:
            self.rows = max(1, min(self.rows, rows) // 2)
        elif rows >= self.rows:
            self.rows = min(self._max, self.rows + 1)


class Batcher:
    """Collects the requests of an event loop and runs them in batches, in a thread.

    A batch waits for more requests at most `max_delay` seconds, and not at all if no other request
    is on its way: `arriving` says how many are being received. If `runs_inline`, a request that is
    alone and quick runs on the event loop: the way to a thread and back would be its delay.
    """

    def __init__(
        self,
        predict: Callable[[Arrays], Outputs],
        limits: Limits,
        metrics: Metrics,
        arriving: Callable[[], int] = lambda: 1,
        runs_inline: bool = False,
    ) -> None:
        self._predict, self._metrics, self._arriving = predict, metrics, arriving
        self._max_delay, self._max_queue = limits.max_delay / 1000, limits.max_queue
        self._timeout = limits.timeout
        self._limit = RowLimit(limits.max_batch, limits.target_latency_ms)
        self._runs_inline = runs_inline
        self._waiting: deque[Job] = deque()
        self._seconds: dict[tuple, float] = {}  # that the last run of each shape took
        self._worker: asyncio.Task[None] | None = None
        self._more: asyncio.Future[None] | None = None
        self._pool = ThreadPoolExecutor(1, "mx-serve-model")
        self.is_closed = False

    async def run(self, inputs: Arrays) -> Outputs:
        """Return the outputs for a request."""
        if self.is_closed:
            raise Stopping
        if len(self._waiting) >= self._max_queue:
            raise QueueFull
        rows = len(next(iter(inputs.values())))
        is_idle = self._worker is None and self._arriving() == 0
        if self._runs_inline and is_idle and self._seconds.get(_shapes(inputs), QUICK) < QUICK:
            return self._run_timed(inputs, rows)
        loop = asyncio.get_running_loop()
        job = Job(inputs, rows, loop.create_future(), loop.time())
        self._waiting.append(job)
        self._metrics.queue.set(len(self._waiting))
        self._notify()
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        timer = loop.call_later(self._timeout, _expire, job.future)
        try:
            return await job.future
        finally:
            timer.cancel()

    async def close(self, timeout: float = 30.0) -> None:
        """Stop accepting requests, finish the waiting ones, and end the thread."""
        self.is_closed = True
        self._notify()
        if self._worker is not None:
            await asyncio.wait([self._worker], timeout=timeout)
        for job in self._waiting:
            if not job.future.done():
                job.future.set_exception(Stopping())
        self._pool.shutdown(wait=False, cancel_futures=True)

    # -- batches --------------------------------------------------------------------------------

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while batch := await self._next_batch():
                inputs = [job.inputs for job in batch]
                results = await loop.run_in_executor(self._pool, self._run_batch, inputs)
                for job, result in zip(batch, results, strict=True):
                    if job.future.done():  # no request waits any more
                        continue
                    if isinstance(result, Exception):
                        job.future.set_exception(result)
                    else:
                        job.future.set_result(result)
        finally:
            self._worker = None

    async def _next_batch(self) -> list[Job]:
        """Return requests of one batch; none if no request waits."""
        await asyncio.sleep(0)  # those that are ready to be submitted come first
        batch: list[Job] = []
        while True:
            self._take_alike(batch)
            if not batch:
                return []
            is_full = sum(job.rows for job in batch) >= self._limit.rows
            deadline = batch[0].since + self._max_delay
            is_late = asyncio.get_running_loop().time() >= deadline
            if is_full or is_late or self.is_closed or self._arriving() <= 0:
                self._metrics.queue.set(len(self._waiting))
                return batch
            await self._wait_for_more(deadline)

    async def _wait_for_more(self, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        self._more = loop.create_future()
        timer = loop.call_at(deadline, self._notify)
        await self._more
        timer.cancel()

    def _notify(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)

    def _take_alike(self, batch: list[Job]) -> None:
        rows = sum(job.rows for job in batch)
        left: deque[Job] = deque()
        while self._waiting:
            job = self._waiting.popleft()
            if job.future.done():  # the client gave up
                continue
            is_alike = not batch or job.signature() == batch[0].signature()
            if not batch or (is_alike and rows + job.rows <= self._limit.rows):
                batch.append(job)
                rows += job.rows
            else:
                left.append(job)
        self._waiting = left

    def _run_batch(self, requests: Sequence[Arrays]) -> Sequence[Outputs | Exception]:
        """Return the result of each request; a failure affects only its own request."""
        counts = [len(next(iter(inputs.values()))) for inputs in requests]
        if len(requests) > 1:
            joined = {n: np.concatenate([inputs[n] for inputs in requests]) for n in requests[0]}
            try:
                outputs = self._run_timed(joined, sum(counts))
            except Exception:  # which of them is wrong shows when each runs alone
                outputs = []
            if outputs and all(out.ndim and len(out) == sum(counts) for out in outputs):
                parts = [np.split(out, np.cumsum(counts)[:-1]) for out in outputs]
                return [list(part) for part in zip(*parts, strict=True)]
        return [self._run_one(inputs, rows) for inputs, rows in zip(requests, counts, strict=True)]

    def _run_one(self, inputs: Arrays, rows: int) -> Outputs | Exception:
        try:
            return self._run_timed(inputs, rows)
        except Exception as error:
            return error

    def _run_timed(self, inputs: Arrays, rows: int) -> Outputs:
        start = time.perf_counter()
        try:
            outputs = self._predict(inputs)
        except (Exception, asyncio.CancelledError):
            raise
        except BaseException as error:  # what would end a program must not end the server
            raise ModelExit(f"the model raised {type(error).__name__}") from None
        seconds = time.perf_counter() - start
        if len(self._seconds) >= MAX_SHAPES:
            self._seconds.clear()
        self._seconds[_shapes(inputs)] = seconds
        self._limit.learn(rows, seconds)
        self._metrics.model_seconds.observe(seconds)
        self._metrics.batches.observe(rows)
        self._metrics.rows.inc(rows)
        return outputs


def _shapes(inputs: Arrays) -> tuple:
    return tuple((name, array.shape) for name, array in inputs.items())


def _expire(future: asyncio.Future[Outputs]) -> None:
    if not future.done():
        future.set_exception(asyncio.TimeoutError())
