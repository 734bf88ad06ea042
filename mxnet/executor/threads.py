"""Independent pieces of work on a few Python threads that share torch's threads among them.

After every call of a kernel torch's threads wait for the slowest. A loop of hundreds of short
calls takes 0.8 of the time if each thread makes calls of its own; torch releases Python's lock in
them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import torch

__all__ = ["run_on_threads", "threads_at_once"]

Item = TypeVar("Item")
MOST_THREADS = 4  # more of them wait for Python's lock


class _Pool:
    """The threads besides the caller's, started when they are first needed."""

    def __init__(self) -> None:
        self._forget()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._executor: ThreadPoolExecutor | None = None  # threads do not come along into a fork

    @property
    def executor(self) -> ThreadPoolExecutor:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(MOST_THREADS - 1, "mxnext-blocks")
        return self._executor


_pool = _Pool()


def threads_at_once() -> tuple[int, int]:
    """Return how many Python threads run work, and how many of torch's threads each has.

    >>> threads, share = threads_at_once()
    >>> 1 <= threads * share <= torch.get_num_threads()
    True
    """
    every = torch.get_num_threads()
    threads = min(every, MOST_THREADS)
    return threads, every // threads


def run_on_threads(work: Callable[[Iterator[Item]], None], items: Sequence[Item]) -> None:
    """Call `work` on several threads at once; all of them draw from one iterator over the items.

    Gradients are off in `work`. The first error of a thread is raised here.

    >>> done = []
    >>> run_on_threads(lambda numbers: done.extend(n * n for n in numbers), range(100))
    >>> sorted(done) == [n * n for n in range(100)]
    True
    """
    every = torch.get_num_threads()
    threads, share = threads_at_once()
    shared = iter(items)

    def run() -> None:
        torch.set_num_threads(share)  # of this thread
        with torch.no_grad():
            work(shared)

    started = [_pool.executor.submit(run) for _ in range(min(threads, len(items)) - 1)]
    try:
        run()
    finally:
        wait(started)  # a thread that asks torch for the first time takes the number set last
        torch.set_num_threads(every)
    for each in started:
        each.result()
