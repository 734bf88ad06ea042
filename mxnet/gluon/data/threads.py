"""Worker threads that make batches ahead.

`submit` asks for a batch, `result` waits for it, `forget` drops those that nobody wants any more.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ...util import set_np
from .tasks import Fetch, LoaderTimeout, Switches


class WorkerThreads:
    """Worker threads on one data set. They are daemons: a stuck one does not keep Python alive."""

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
        """Whether the threads are here; a copy of the process has none."""
        return self._owner == os.getpid()

    def submit(self, indices: Any) -> int:
        """Give a batch to whichever thread is free first; return its number."""
        with self._news:
            number, self._next = self._next, self._next + 1
        self._tasks.put((number, indices))
        return number

    def result(self, number: int, timeout: float) -> Any:
        """Return a batch, or raise what went wrong with it."""
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
        """Let go of batches that nobody will ask for."""
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
