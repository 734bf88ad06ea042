"""Combine requests into batches, which a thread runs on one prepared model."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from .limits import Limits, Refused
from .monitoring import Metrics

Arrays = dict[str, np.ndarray]
Outputs = list[np.ndarray]
Signature = tuple[tuple[str, tuple[int, ...]], ...]  # what requests of one batch share
MAX_SHAPES = 64  # of which times are remembered
QUICK = 0.005  # seconds that a lone request may take on the event loop
STOPPING = "the server is stopping"


class Job(NamedTuple):
    """One request: its arrays, number of samples, signature, future and arrival time."""

    inputs: Arrays
    rows: int
    signature: Signature
    future: asyncio.Future[Outputs]
    since: float


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
        self._predict, self._limits, self._metrics = predict, limits, metrics
        self._arriving, self._runs_inline = arriving, runs_inline
        self._limit = RowLimit(limits.max_batch, limits.target_latency_ms)
        self._waiting: list[Job] = []
        self._seconds: dict[tuple[int, Signature], float] = {}  # duration of the last run
        self._worker: asyncio.Task[None] | None = None
        self._more = asyncio.Event()
        self._pool = ThreadPoolExecutor(1, "mx-serve-model")
        self.is_closed = False

    async def run(self, inputs: Arrays) -> Outputs:
        """Return the outputs for a request."""
        if self.is_closed:
            raise Refused(503, STOPPING, connection="close")
        if len(self._waiting) >= self._limits.max_queue:
            message = f"{len(self._waiting)} requests wait already; try again later"
            raise Refused(503, message, retry_after="1")
        rows = len(next(iter(inputs.values())))
        signature = tuple((name, inputs[name].shape[1:]) for name in sorted(inputs))
        is_idle = self._worker is None and self._arriving() == 0
        if self._runs_inline and is_idle and self._seconds.get((rows, signature), QUICK) < QUICK:
            return self._run(inputs, rows, signature)
        loop = asyncio.get_running_loop()
        job = Job(inputs, rows, signature, loop.create_future(), loop.time())
        self._waiting.append(job)
        self._metrics.queue.set(len(self._waiting))
        self._more.set()
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        try:
            return await asyncio.wait_for(job.future, self._limits.timeout)
        except asyncio.TimeoutError:
            raise Refused(504, f"no answer within {self._limits.timeout:g} s") from None

    async def close(self, timeout: float = 30.0) -> None:
        """Stop accepting requests, finish the waiting ones, and end the thread."""
        self.is_closed = True
        self._more.set()
        if self._worker is not None:
            await asyncio.wait([self._worker], timeout=timeout)
        self._pool.shutdown(wait=False, cancel_futures=True)

    # -- batches --------------------------------------------------------------------------------

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while batch := await self._next_batch():
                results = await loop.run_in_executor(self._pool, self._run_batch, batch)
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
        await asyncio.sleep(0)  # let requests that are ready be submitted first
        batch: list[Job] = []
        while True:
            self._more.clear()
            self._take_alike(batch)
            if not batch:
                return []
            is_full = sum(job.rows for job in batch) >= self._limit.rows
            rest = (
                batch[0].since + self._limits.max_delay / 1000 - asyncio.get_running_loop().time()
            )
            if is_full or rest <= 0 or self.is_closed or self._arriving() <= 0:
                self._metrics.queue.set(len(self._waiting))
                return batch
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._more.wait(), rest)

    def _take_alike(self, batch: list[Job]) -> None:
        rows, others = sum(job.rows for job in batch), []
        for job in self._waiting:
            is_alike = not batch or job.signature == batch[0].signature
            if job.future.done():  # the client gave up
                continue
            if not batch or (is_alike and rows + job.rows <= self._limit.rows):
                batch.append(job)
                rows += job.rows
            else:
                others.append(job)
        self._waiting = others

    def _run_batch(self, jobs: list[Job]) -> list[Outputs | Exception]:
        """Return the result of each request; a failure affects only its own request."""
        if len(jobs) == 1:
            try:
                return [self._run(*jobs[0][:3])]
            except Exception as error:
                return [error]
        ends = np.cumsum([job.rows for job in jobs]).tolist()
        joined = {n: np.concatenate([job.inputs[n] for job in jobs]) for n in jobs[0].inputs}
        with contextlib.suppress(Exception):  # each then runs alone, and fails alone
            outputs = self._run(joined, ends[-1], jobs[0].signature)
            if all(out.ndim and len(out) == ends[-1] for out in outputs):
                parts = [np.split(out, ends[:-1]) for out in outputs]
                return [list(part) for part in zip(*parts, strict=True)]
        return [self._run_batch([job])[0] for job in jobs]

    def _run(self, inputs: Arrays, rows: int, signature: Signature) -> Outputs:
        start = time.perf_counter()
        try:
            outputs = self._predict(inputs)
        except (Exception, asyncio.CancelledError):
            raise
        except BaseException as error:  # what would end a program must not end the server
            raise Refused(500, f"the model raised {type(error).__name__}") from None
        seconds = time.perf_counter() - start
        if len(self._seconds) >= MAX_SHAPES:
            self._seconds.clear()
        self._seconds[rows, signature] = seconds
        self._limit.learn(rows, seconds)
        self._metrics.model_seconds.observe(seconds)
        self._metrics.batches.observe(rows)
        self._metrics.rows.inc(rows)
        return outputs
