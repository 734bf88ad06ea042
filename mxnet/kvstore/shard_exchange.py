"""`ShardExchange`: hands the states that a worker keeps to any other worker that asks for them.

Programs save on rank 0 alone (``if store.rank == 0: trainer.save_states(...)``), while the other
workers go on to their next step, or to their end. So states are not gathered by a collective: a
thread of each worker answers requests through the job's key-value service. The states cannot
change meanwhile, because a step needs all workers and one of them waits for the answers.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from typing import Any

from .. import env
from ..distributed.group import Group
from ..distributed.heartbeat import OWN_WORK, WorkerFailed, describe_failure
from ..distributed.rendezvous import open_store
from ..error import MXNetError

POLL = 0.1  # seconds
PATIENCE = 2.0  # seconds in a collective after which a worker that has ended is missed
REQUEST = "a request for optimizer states"  # what a worker does that saves
CHUNK = 4 * 2**20  # bytes of one entry of the key-value service

_exchanges: list[weakref.ref[ShardExchange]] = []  # of this process, the same on all workers


class ShardExchange:
    """Collects the states of all workers, and answers others that do.

    Parameters
    ----------
    group : Group
    updater : ShardedUpdater
        Its ``own_states`` are handed out until all workers have called `release`.
    """

    def __init__(self, group: Group, updater: Any) -> None:
        if not _exchanges:
            atexit.register(_finish, group)
        _exchanges.append(weakref.ref(self))
        self._group, self._name = group, f"states/{len(_exchanges)}"
        self._updater: Any = updater  # kept while any worker may ask for its states
        self._is_released = False
        self._store = open_store(group.job, False, group.timeout)  # the thread's own connection
        self._answered = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="mxnet-states", daemon=True)
        self._thread.start()

    # -- asking -------------------------------------------------------------------------------

    def collect(self, own: bytes) -> list[bytes]:
        """Return the states of all workers by rank; `own` are this worker's."""
        group, store = self._group, self._group.store
        number = store.add(f"{self._name}/requests", 1)
        store.set(f"{self._name}/{number}", str(group.rank))
        group.monitor.enter(REQUEST)
        found = []
        for rank in range(group.size):
            answer = f"{self._name}/{number}/{rank}"
            found.append(own if rank == group.rank else self._read(store, answer))
        group.monitor.leave()
        return found

    def _read(self, store: Any, answer: str) -> bytes:
        end = time.monotonic() + env.get("MXNET_KVSTORE_TIMEOUT")
        while not store.check([answer]):
            self._check_failure(REQUEST)
            if time.monotonic() > end:
                raise MXNetError(f"No worker answered the request for optimizer states {answer}.")
            time.sleep(POLL / 2)
        names = [f"{answer}/{i}" for i in range(int(store.get(answer)))]
        data = b"".join(store.get(name) for name in names)
        for name in names:
            store.delete_key(name)
        return data

    def _check_failure(self, what: str) -> None:
        monitor = self._group.monitor
        if monitor.failure is not None:
            monitor.has_failed = True
            raise WorkerFailed(describe_failure(monitor.failure, self._group.rank, what, 0.0))

    # -- answering ----------------------------------------------------------------------------

    def release(self) -> None:
        """Take note that this worker's store is gone."""
        self._is_released = True

    def _serve(self) -> None:
        is_counted, name = False, f"{self._name}/released"
        with contextlib.suppress(RuntimeError):  # the service is gone: so is the job
            while not self._stop.wait(POLL):
                self._answer()
                if self._is_released and not is_counted:
                    is_counted = self._store.add(name, 1) > 0
                if is_counted and self._store.add(name, 0) >= self._group.size:
                    break
        self._updater = None

    def _answer(self) -> None:
        for number in range(self._answered + 1, self._store.add(f"{self._name}/requests", 0) + 1):
            name = f"{self._name}/{number}"
            if int(self._store.get(name)) != self._group.rank:
                data = self._updater.own_states()
                chunks = [data[i : i + CHUNK] for i in range(0, len(data), CHUNK)]
                for i, chunk in enumerate(chunks):
                    self._store.set(f"{name}/{self._group.rank}/{i}", chunk)
                self._store.set(f"{name}/{self._group.rank}", str(len(chunks)))
            self._answered = number

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(5)


def _finish(group: Group) -> None:
    """At the end of the program, answer until all workers are at theirs: one may still save."""
    if not group.monitor.has_failed and not group.is_closed:
        with contextlib.suppress(RuntimeError):
            group.store.add("states/ended", 1)
            while group.store.add("states/ended", 0) < group.size and group.monitor.failure is None:
                _check_needed(group)
                time.sleep(POLL)
    for reference in _exchanges:
        exchange = reference()
        if exchange is not None:
            exchange.stop()


def _check_needed(group: Group) -> None:
    """Report this worker, which has ended, if another one waits for it in a collective."""
    for rank in range(group.size):
        beat = group.monitor.beat_of(rank)
        is_waiting = beat["doing"] != REQUEST and not beat["doing"].startswith(OWN_WORK)
        if rank != group.rank and is_waiting and beat["for"] > PATIENCE:
            why = "ended its program while others still needed it"
            group.monitor.report_failure(group.rank, group.monitor.host, os.getpid(), why)
