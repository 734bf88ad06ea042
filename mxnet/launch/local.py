"""Workers on this machine, started and watched by torchrun's elastic agent."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import tempfile
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended."""

    status: int
    failed: dict[int, str]  # what became of each rank that failed


def run_local(
    command: Sequence[str], workers: int, environment: Mapping[str, str], log_dir: str | None
) -> Outcome:
    """Run a command as all workers; when one fails the others are ended."""
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    os.environ.update(environment)
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    with tempfile.TemporaryDirectory(prefix="mx-launch-") as folder:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=workers,
            run_id=uuid.uuid4().hex,
            rdzv_backend="c10d",
            rdzv_endpoint="127.0.0.1:0",
            rdzv_configs={"is_host": True},
            max_restarts=0,
            monitor_interval=0.1,
            start_method="spawn",
            local_addr="127.0.0.1",
            log_line_prefix_template="[rank ${rank}] ",
            logs_specs=DefaultLogsSpecs(log_dir=log_dir or folder, tee=Std.ALL),
        )
        try:
            with ExitStack() as scope:
                scope.enter_context(redirect_stdout(scope.enter_context(WholeLines(sys.stdout))))
                scope.enter_context(redirect_stderr(scope.enter_context(WholeLines(sys.stderr))))
                elastic_launch(config, command[0])(*command[1:])
        except ChildFailedError as error:
            return _outcome(error)
        except SignalException as error:  # Ctrl-C or kill: the agent has ended the workers
            raise SystemExit(128 + int(error.sigval)) from None
    return Outcome(0, {})


class WholeLines:
    r"""Passes lines of workers on when they are complete.

    Torch's agent puts the rank before whatever it reads, even if a worker has written only a part
    of its line so far.

    >>> with WholeLines(sys.stdout) as out:
    ...     _ = [out.write(text) for text in ("[rank 0] step", "[rank 1] ok\n", "[rank 0]  1\n")]
    [rank 1] ok
    [rank 0] step 1
    """

    PREFIX = re.compile(r"\[rank \d+\] ")

    def __init__(self, target: TextIO) -> None:
        self._target, self._parts, self._lock = target, {}, threading.Lock()

    def __enter__(self) -> WholeLines:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for prefix, part in self._parts.items():  # a worker that ended within a line
                self._target.write(f"{prefix}{part}\n")
            self._parts.clear()

    def write(self, text: str) -> int:
        """Write a part of a line, or a whole one."""
        match = self.PREFIX.match(text)
        prefix = match[0] if match else ""
        with self._lock:
            line = self._parts.pop(prefix, "") + text[len(prefix) :]
            if line.endswith("\n") or not prefix:
                self._target.write(prefix + line)
            else:
                self._parts[prefix] = line
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._target, name)


def _outcome(error: object) -> Outcome:
    from .processes import exit_status

    failures = error.failures  # type: ignore[attr-defined] (the type is imported lazily)
    first = min(failures.values(), key=lambda failure: failure.timestamp)
    failed = {
        rank: _described(f.exitcode)
        for rank, f in sorted(failures.items())
        if f is first or f.exitcode != -signal.SIGTERM  # the agent ended those
    }
    return Outcome(exit_status(first.exitcode), failed)


def _described(status: int) -> str:
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
