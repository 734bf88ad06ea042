"""A process that measures programs, one for each side of a comparison."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
from collections.abc import Mapping

HERE = pathlib.Path(__file__).parent


class Failed(Exception):
    """A program could not be measured."""


class Ended(Failed):
    """The process of a side is gone, or did not answer in time."""


class Side:
    """Runs ``measure.py`` with some python in some folder, in a session of its own.

    `settings` are variables of its environment. A measurement that takes longer than the limit ends
    the side, with all processes that its program has started.
    """

    limit = 600.0  # seconds

    def __init__(
        self, python: str, home: pathlib.Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self.python, self.home = python, home
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self._process = subprocess.Popen(
            [python, "-W", "ignore", str(HERE / "measure.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=home,
            env={**kept, **(settings or {}), "PYTHONPATH": str(home)},
            start_new_session=True,
        )

    def measure(
        self,
        name: str,
        program: tuple[str, str],
        number: int,
        evaluates: bool = False,
        last: bool = False,
    ) -> float:
        """Return the seconds of one statement, or the value of one that is an expression.

        What the set-up made is kept for the next measurement of this name until the `last`.
        """
        self.send(name, program, number, evaluates, last)
        return self.receive()

    def send(
        self,
        name: str,
        program: tuple[str, str],
        number: int,
        evaluates: bool = False,
        last: bool = False,
    ) -> None:
        """Ask for a measurement; `receive` waits for it."""
        request = {
            "name": name,
            "setup": program[0],
            "statement": program[1],
            "number": number,
            "evaluates": evaluates,
            "last": last,
        }
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise Ended("process ended") from error

    def receive(self) -> float:
        """Return what was measured."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], self.limit)[0]:
            self._kill()
            raise Ended(f"no answer within {self.limit:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise Ended("process ended")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["seconds"]

    def close(self) -> None:
        """End the process, which removes its files, and whatever its programs have started."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._process.stdin.close()
            self._process.wait(10)
        self._kill()

    def _kill(self) -> None:
        """End the session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
