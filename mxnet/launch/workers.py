"""The processes of a job: on this machine by torchrun's elastic agent, on others by ssh or at once.

Lines of their output come with the name of the process in front. mpirun and srun start all workers
by one command.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO, cast

from ..error import MXNetError

POLL_SECONDS = 0.1
PASSED_ON = ("PYTHONPATH", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")


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

    def __enter__(self) -> TextIO:
        return cast(TextIO, self)

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
    failures = error.failures  # type: ignore[attr-defined] (the type is imported lazily)
    first = min(failures.values(), key=lambda failure: failure.timestamp)
    failed = {
        rank: _describe_status(f.exitcode)
        for rank, f in sorted(failures.items())
        if f is first or f.exitcode != -signal.SIGTERM  # the agent ended those
    }
    return Outcome(exit_status(first.exitcode), failed)


def _describe_status(status: int) -> str:
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"


class Process:
    """A started process.

    Parameters
    ----------
    name : str
        Precedes each line of its output.
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
        time.sleep(POLL_SECONDS)


def exit_status(status: int) -> int:
    """Return a status as shells report it: 128 plus the number of a signal.

    >>> exit_status(3), exit_status(-9)
    (3, 137)
    """
    return status if status >= 0 else 128 - status


def read_hosts(path: str | None) -> list[str]:
    """Return the hosts of a file, one for each slot: ``name``, ``name:4`` or ``name slots=4``."""
    if path is None:
        raise MXNetError("This launcher needs -H: a file with one host a line.")
    hosts = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text:
            name, _, rest = text.replace(":", " ").partition(" ")
            slots = rest.replace("slots=", "").strip()
            hosts += [name] * (int(slots) if slots.isdigit() else 1)
    if not hosts:
        raise MXNetError(f"The host file {path!r} names no host.")
    return hosts


def select_variables(environment: Mapping[str, str], job: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a remote process gets: those of the job, and some of ours."""
    own = {
        k: v for k, v in environment.items() if k in PASSED_ON or k.startswith(("MXNET_", "DMLC_"))
    }
    return {**own, **job}


def ssh_commands(
    command: Sequence[str], hosts: Sequence[str], workers: int, job: Mapping[str, str], folder: str
) -> list[tuple[str, list[str]]]:
    """Return host and command of every worker; they go to the hosts in turn."""
    commands = []
    for rank in range(workers):
        host = hosts[rank % len(hosts)]
        local = sum(1 for r in range(rank) if hosts[r % len(hosts)] == host)
        variables = {**job, "RANK": str(rank), "LOCAL_RANK": str(local)}
        assigned = " ".join(f"{k}={shlex.quote(v)}" for k, v in sorted(variables.items()))
        remote = f"cd {shlex.quote(folder)} && exec env {assigned} {shlex.join(command)}"
        commands.append((host, ["ssh", "-o", "StrictHostKeyChecking=no", host, remote]))
    return commands


def run_ssh(
    commands: Sequence[tuple[str, list[str]]], report_failure: Callable[[int, str, str], None]
) -> Outcome:
    """Run the workers by ssh; when one fails `report_failure` gives all others an error."""
    started = [
        Process(f"rank {rank}", command, os.environ) for rank, (_, command) in enumerate(commands)
    ]
    failed = wait_for_all(started)
    if failed is None:
        return Outcome(0, {})
    rank, status = started.index(failed), failed.status or 1
    why = f"ended with status {exit_status(status)}"
    report_failure(rank, commands[rank][0], why)
    for process in started:
        process.wait(10)
        process.end()
    return Outcome(exit_status(status), {rank: why})


def sync_folder(hosts: Sequence[str], target: str) -> list[list[str]]:
    """Return the commands that copy the current folder to every host."""
    return [
        ["rsync", "-az", "--exclude=.git", "./", f"{host}:{target}/"]
        for host in dict.fromkeys(hosts)
    ]


def mpi_command(
    command: Sequence[str], workers: int, hostfile: str | None, job: Mapping[str, str]
) -> list[str]:
    """Return the command that starts all workers by Open MPI; ranks are MPI's."""
    hosts = [] if hostfile is None else ["--hostfile", hostfile]
    variables = [part for k, v in sorted(job.items()) for part in ("-x", f"{k}={v}")]
    return ["mpirun", "-n", str(workers), *hosts, *variables, *command]


def slurm_command(command: Sequence[str], workers: int, job: Mapping[str, str]) -> list[str]:
    """Return the command that starts all workers by Slurm; ranks are Slurm's."""
    variables = ",".join(f"{k}={v}" for k, v in sorted(job.items()))
    return ["srun", "-n", str(workers), "--kill-on-bad-exit=1", f"--export=ALL,{variables}",
            *command]  # fmt: skip


def run_command(command: Sequence[str]) -> Outcome:
    """Run one command that starts all workers, and pass on its output and status."""
    try:
        status = subprocess.run(command, check=False).returncode
    except FileNotFoundError:
        raise MXNetError(f"{command[0]} is not installed here.") from None
    return Outcome(exit_status(status), {} if status == 0 else {-1: f"status {status}"})
