"""Several processes that accept connections of one address, and the one that watches them.

Each is a Python of its own: it gets its options through a pipe, whose end tells it that its parent
is gone, and shares the listening socket and the memory of the metrics by their descriptors.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from types import FrameType
from typing import IO, Any

import numpy as np

from .. import CommandError
from .metrics import SLOTS, Metrics, Table

READY = "ready"
START_SECONDS = 300.0  # to load and warm up a model
RESTART_SECONDS = 1.0  # between two starts of a process


class Worker:
    """One process that serves."""

    def __init__(self, options: dict[str, Any], row: int, descriptors: tuple[int, int]) -> None:
        self.row = row
        self.started = time.monotonic()
        message = json.dumps({"options": options, "row": row, "descriptors": descriptors})
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=descriptors,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(message + "\n")
        self.process.stdin.flush()

    def wait_until_ready(self) -> bool:
        """Wait until the process accepts connections; False if it ended."""
        assert self.process.stdout is not None
        timer = threading.Timer(START_SECONDS, self.process.kill)
        timer.start()
        try:
            return self.process.stdout.readline().strip() == READY
        finally:
            timer.cancel()


def supervise(args: argparse.Namespace, listening: socket.socket, names: list[str]) -> int:
    """Start the processes, replace those that die, and end them all."""
    if os.name != "posix":
        raise CommandError("--workers: several processes share an address on Linux and macOS only")
    from . import announce

    options = {k: v for k, v in vars(args).items() if k not in ("runner", "mx_command")}
    with tempfile.TemporaryFile() as file:
        file.truncate(args.workers * SLOTS * 8)
        descriptors = (listening.fileno(), file.fileno())
        stopping = threading.Event()
        workers: dict[int, Worker] = {}

        def forward(number: int, _: FrameType | None) -> None:
            if number != signal.SIGHUP:
                stopping.set()
            for worker in list(workers.values()):
                if worker.process.poll() is None:
                    worker.process.send_signal(
                        signal.SIGHUP if number == signal.SIGHUP else signal.SIGTERM
                    )

        handled = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        previous = {number: signal.signal(number, forward) for number in handled}
        try:
            for row in range(args.workers):
                workers[row] = Worker(options, row, descriptors)
            if not all(worker.wait_until_ready() for worker in workers.values()):
                if stopping.is_set():
                    return 0
                raise CommandError("a worker process did not start")
            announce(args, listening, names)
            _watch(workers, stopping, options, descriptors)
            _end(workers, args.timeout)
        finally:
            for worker in workers.values():
                if worker.process.poll() is None:
                    worker.process.kill()
                worker.process.wait()
            for number, handler in previous.items():
                signal.signal(number, handler)
        count = Metrics(Table(_map(file, args.workers), 0), names).requests.total()
        print(f"stopped; answered {int(count)} requests")
    return 0


def _watch(
    workers: dict[int, Worker],
    stopping: threading.Event,
    options: dict[str, Any],
    descriptors: tuple[int, int],
) -> None:
    """Start processes again that ended, until it is time to stop."""
    while not stopping.wait(0.2):
        for row, worker in list(workers.items()):
            code = worker.process.poll()
            if code is None or time.monotonic() - worker.started < RESTART_SECONDS:
                continue
            sys.stderr.write(f"mx serve: worker {row} ended with {code}; another one starts\n")
            workers[row] = Worker(options, row, descriptors)


def _end(workers: dict[int, Worker], timeout: float) -> None:
    end = time.monotonic() + timeout + 5
    for worker in workers.values():
        if worker.process.poll() is None:
            worker.process.send_signal(signal.SIGTERM)
    for worker in workers.values():
        try:
            worker.process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.process.kill()


def _map(file: IO[bytes], rows: int) -> np.ndarray:
    memory = mmap.mmap(file.fileno(), rows * SLOTS * 8)
    return np.frombuffer(memory, np.float64).reshape(rows, SLOTS)


def _exit_with_parent() -> None:
    """End when the pipe from the parent is closed."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Serve in a process that `supervise` started."""
    from . import allowed_hosts, model_options, read_limits
    from .http.guard import Guard
    from .models.repository import find_sources
    from .server import build_server, short_pauses

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    message = json.loads(sys.stdin.readline())
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    args = argparse.Namespace(**message["options"])
    listening_fd, table_fd = message["descriptors"]
    names = [source.name for source in find_sources(args.model)]
    with os.fdopen(table_fd, "r+b") as file:
        table = Table(_map(file, args.workers), message["row"])
    metrics = Metrics(table, names)
    guard = Guard(allowed_hosts(args), args.token)
    with short_pauses():
        server = build_server(args, read_limits(args), guard, metrics, model_options(args, names))
        listening = socket.socket(fileno=listening_fd)
        signal.signal(signal.SIGTERM, lambda *_: None)
        print(READY, flush=True)
        server.run(sockets=[listening])
    return 0


if __name__ == "__main__":
    sys.exit(main())
