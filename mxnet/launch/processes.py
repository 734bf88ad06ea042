"""Processes whose output is merged line by line, each line with the name of its process."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, TextIO

POLL = 0.1


class Process:
    """A started process.

    Parameters
    ----------
    name : str
        Stands before each line of its output.
    command : list of str
    environment : dict
    """

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            list(command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        streams = ((self._process.stdout, sys.stdout), (self._process.stderr, sys.stderr))
        self._threads = [
            threading.Thread(target=self._copy, args=pair, daemon=True) for pair in streams
        ]
        for thread in self._threads:
            thread.start()

    def _copy(self, source: IO[str], target: TextIO) -> None:
        for line in source:
            target.write(f"[{self.name}] {line.rstrip()}\n")
            target.flush()

    @property
    def status(self) -> int | None:
        """The exit status, or None while the process runs."""
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Wait for the end, and for the last of the output."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            for thread in self._threads:
                thread.join(2)
        return self.status

    def end(self) -> None:
        """Ask the process to end, then make it."""
        if self.status is None:
            self._process.terminate()
            if self.wait(5) is None:
                self._process.kill()
        self.wait(2)


def wait_for_all(processes: Sequence[Process]) -> Process | None:
    """Wait until all processes have ended well, or one has not; return that one."""
    while True:
        states = [p.status for p in processes]
        for process, status in zip(processes, states, strict=True):
            if status not in (None, 0):
                return process
        if None not in states:
            for process in processes:
                process.wait(2)
            return None
        time.sleep(POLL)


def exit_status(status: int) -> int:
    """Return a status as shells report it: 128 plus the number of a signal.

    >>> exit_status(3), exit_status(-9)
    (3, 137)
    """
    return status if status >= 0 else 128 - status
