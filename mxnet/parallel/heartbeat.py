"""`HeartbeatMonitor`: heartbeats of all ranks, to report a failed rank to all others.

Each rank has a thread that writes a heartbeat to the job's key-value service every second, and
reads only that of the next rank, so the cost does not grow with the number of workers. The first
rank that detects a failure publishes it, which ends all ranks.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

from .._process import env
from ..error import MXNetError
from .channel import escape
from .store import JobStore

GRACE_SECONDS = 5.0  # seconds in which a rank may exit by itself after a failure
OWN_WORK = "its own work"  # state of a rank outside of collectives
LINGER_SECONDS = 30.0  # seconds that the rank of the rendezvous waits at exit
NO_BEAT = {"n": None, "host": "unknown host", "pid": 0, "round": -1, "doing": "nothing", "for": 0.0}


class WorkerFailed(MXNetError):
    """Raised if another worker failed or is missing; the job cannot continue.

    >>> issubclass(mx.distributed.WorkerFailed, mx.base.MXNetError)
    True
    """


def silence_limit() -> float:
    """Return the seconds of silence after which a process is considered lost."""
    name = "MXNET_KVSTORE_HEARTBEAT"
    return env.get(name) if name in os.environ else env.get("PS_HEARTBEAT_TIMEOUT") or env.get(name)


class HeartbeatMonitor:
    """Sends the heartbeat of this rank, and monitors the next one.

    A rank that is silent for `heartbeat` seconds is lost. The monitor has its own connection to the
    store. The process that serves the rendezvous leaves last.
    """

    def __init__(
        self,
        store: JobStore,
        rank: int,
        size: int,
        heartbeat: float,
        serves: bool,
        rendezvous: str = "the process that serves the rendezvous",
    ) -> None:
        self.store, self.rank, self.size, self.heartbeat = store, rank, size, heartbeat
        self.serves, self.rendezvous = serves, rendezvous
        # Do not wait for answers over a broken link.
        store.set_timeout(datetime.timedelta(seconds=heartbeat))
        self.interval = min(1.0, heartbeat / 4)
        self.failure: dict[str, Any] | None = None
        self.has_failed = False  # the main thread has raised or is raising
        self.has_unfinished = False  # a collective was abandoned: torch may still wait in it
        self.doing: tuple[int, str, float] = (0, "setup", time.monotonic())
        self.host = socket.gethostname()
        self._next = (rank + 1) % size
        self._seen: tuple[int | None, float] = (None, time.monotonic())
        # Ranks that had left before a connection broke.
        self._left: tuple[int, str, int] | None = None
        self._beats = 0
        self._stop = threading.Event()
        self._main = threading.main_thread().ident
        self._thread = threading.Thread(target=self._run, name="mxnet-monitor", daemon=True)

    # -- this rank ----------------------------------------------------------------------------

    def start(self) -> None:
        """Start sending heartbeats and reporting errors."""
        self._beat()
        self._thread.start()
        self._previous_hook = sys.excepthook
        sys.excepthook = self._on_uncaught
        atexit.register(self.stop)

    def enter(self, what: str) -> None:
        """Record the current collective of the main thread."""
        self.doing = (self.doing[0] + 1, what, time.monotonic())

    def leave(self) -> None:
        """Mark the main thread as running user code."""
        count, what, _ = self.doing
        self.doing = (count, f"{OWN_WORK} after {what}", time.monotonic())

    def stop(self) -> None:
        """Announce that this rank is done; the rank that serves the rendezvous leaves last."""
        atexit.unregister(self.stop)
        if self._stop.is_set():
            return
        self._stop.set()
        if sys.excepthook == self._on_uncaught:
            sys.excepthook = self._previous_hook
        # Wait for its last request: a thread that returns from torch after Python's exit would
        # abort the process.
        self._thread.join(self.interval + self.heartbeat)
        with contextlib.suppress(RuntimeError):
            self.store.set(f"left/{self.rank}", "finished")
            if self.serves:
                self._linger()

    def _linger(self) -> None:
        """Wait for the others to leave, also after a failure, so that all can read the error."""
        start = time.monotonic()
        while True:
            failure = read_failure(self.store)
            lost = None if failure is None else failure["rank"]
            others = [f"left/{r}" for r in range(self.size) if r != lost]
            limit = LINGER_SECONDS if failure is None else 2 * GRACE_SECONDS
            if self.store.check(others) or time.monotonic() - start > limit:
                return
            time.sleep(0.05)

    def _on_uncaught(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        """Publish an uncaught error to the other ranks, then show it as usual."""
        if not isinstance(error, WorkerFailed):
            why = f"raised {kind.__name__}: {str(error)[:300]}"
            with contextlib.suppress(RuntimeError):
                self.report_failure(self.rank, self.host, os.getpid(), why)
        self.has_failed = True
        self._previous_hook(kind, error, trace)

    # -- the others ---------------------------------------------------------------------------

    def report_failure(self, rank: int | None, host: str, pid: int, why: str) -> dict[str, Any]:
        """Publish a failure, unless there is one already; return the first."""
        own = {"rank": rank, "host": host, "pid": pid, "why": why}
        counted = self.store.compare_set("failure", "", json.dumps(own))
        self.failure = parse_failure(counted) or own
        return self.failure

    def suspect(self) -> None:
        """Report a broken connection to all ranks; silent ranks are then considered lost sooner."""
        with contextlib.suppress(RuntimeError):
            self.store.set("suspect", "1")

    def beat_of(self, rank: int) -> dict[str, Any]:
        """Return the last heartbeat of a rank."""
        key = f"beat/{rank}"
        beat = parse_record(self.store.get(key)) if self.store.check([key]) else None
        return {**NO_BEAT, **(beat or {})}

    def wait_for_failure(self, seconds: float) -> dict[str, Any] | None:
        """Return the failure, after waiting for one."""
        end = time.monotonic() + seconds
        while self.failure is None and time.monotonic() < end:
            time.sleep(0.05)
        return self.failure

    def describe(self, what: str, seconds: float, failure: dict[str, Any] | None = None) -> str:
        """Return the error message: the failed rank, where and how, and this rank's operation."""
        cause = describe_cause(failure or self.failure or {})
        return f"{cause}. Rank {self.rank} on {self.host} was in {what} for {seconds:.1f} s."

    # -- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        heard = time.monotonic()
        while not self._stop.wait(self.interval):
            try:
                self._beat()
                self._look()
                heard = time.monotonic()
            except Exception:  # connection errors must not end this thread
                silent = time.monotonic() - heard
                if silent > self.heartbeat and self.failure is None:
                    why = (
                        f"has lost {self.rendezvous}: it was killed, crashed or is frozen, or the "
                        f"network is cut. It has not answered for {silent:.1f} s"
                    )
                    self.failure = {"rank": None, "host": "", "pid": 0, "why": why}
            if self.failure is not None:
                self._exit_after_grace()
                return

    def _beat(self) -> None:
        count, what, since = self.doing
        self._beats += 1
        beat = {
            "n": self._beats,
            "host": self.host,
            "pid": os.getpid(),
            "round": count,
            "doing": what,
            "for": round(time.monotonic() - since, 1),
            "at": _line_of(self._main),
        }
        self.store.set(f"beat/{self.rank}", json.dumps(beat))
        self.failure = self.failure or read_failure(self.store)

    def _look(self) -> None:
        """Read the next rank's heartbeat; report a failure after the limit of silence."""
        if self.failure is not None:
            return
        is_suspected = self.store.check(["suspect"])
        if is_suspected and self._left is not None:
            why = "ended its program while others still needed it"
            self.report_failure(*self._left, why)
        if self._next == self.rank or self.failure is not None:
            return
        beat = self.beat_of(self._next)
        if self.store.check([f"left/{self._next}"]):
            self._left = (self._next, beat["host"], beat["pid"])
            self._next, self._seen = (self._next + 1) % self.size, (None, time.monotonic())
            return
        now = time.monotonic()
        if beat.get("n") != self._seen[0]:
            self._seen = (beat.get("n"), now)
            return
        silent = now - self._seen[1]
        if silent > (3 * self.interval if is_suspected else self.heartbeat):
            why = (
                f"was killed, crashed or is frozen, or its network is cut: it has been silent for "
                f"{silent:.1f} s, and was last in {beat['doing']}{describe_line(beat)}"
            )
            self.report_failure(self._next, beat["host"], beat["pid"], why)

    def _exit_after_grace(self) -> None:
        """End the process if the main thread does not notice the failure in time."""
        end = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < end and not self.has_failed:
            if self._stop.wait(0.1):
                return
        if self.has_failed:
            return
        _, what, since = self.doing
        message = self.describe(what, time.monotonic() - since)
        end_process(f"mxnet.parallel.WorkerFailed: {message}\n")


def end_process(last_words: str = "") -> NoReturn:
    """End this process immediately with status 1, even if its output pipe is closed."""
    for stream, text in ((sys.stdout, ""), (sys.stderr, last_words)):
        with contextlib.suppress(OSError, ValueError):  # the launcher may be gone
            stream.write(text)
            stream.flush()
    os._exit(1)


def parse_record(data: bytes) -> dict[str, Any] | None:
    """Parse a record of the key-value service and sanitize its strings; None if damaged.

    >>> parse_record(b'{"host": "a"}'), parse_record(b"]")
    ({'host': 'a'}, None)
    """
    try:
        record = json.loads(data)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    return {k: escape(v) if isinstance(v, str) else v for k, v in record.items()}


def parse_failure(data: bytes) -> dict[str, Any] | None:
    """Return the failed rank and the reason; None if the record is damaged."""
    record = parse_record(data)
    if record is None or not {"rank", "host", "pid", "why"} <= record.keys():
        return None
    return record


def read_failure(store: Any) -> dict[str, Any] | None:
    """Return the failure that ends the job, or None."""
    return parse_failure(store.get("failure")) if store.check(["failure"]) else None


def describe_cause(failure: dict[str, Any]) -> str:
    """Describe the failed rank, where and how it failed.

    >>> describe_cause({"rank": 1, "host": "node7", "pid": 4711, "why": "was killed"})
    'Rank 1 on node7 (pid 4711) was killed'
    """
    if failure.get("rank") is None:
        return f"The job {failure.get('why')}"
    process = f" (pid {failure['pid']})" if failure["pid"] else ""
    return f"Rank {failure['rank']} on {failure['host']}{process} {failure['why']}"


def describe_line(beat: dict[str, Any]) -> str:
    """Describe the line of the program in a heartbeat."""
    return f" (at {beat['at']})" if beat.get("at") else ""


def _line_of(thread: int | None) -> str:
    """Return the current line of a thread outside of this package."""
    frame = sys._current_frames().get(thread or 0)
    package = str(Path(__file__).parent.parent)
    while frame is not None and frame.f_code.co_filename.startswith((package, "<frozen")):
        frame = frame.f_back
    if frame is None:
        return ""
    code = frame.f_code
    return f"{Path(code.co_filename).name}:{frame.f_lineno} in {code.co_name}"
