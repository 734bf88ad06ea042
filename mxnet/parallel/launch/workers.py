"""The processes of a job, started locally, or on other hosts by ssh, mpirun or srun.

Lines of their output are prefixed with the name of the process. mpirun and srun start all workers
by one command.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn, TextIO

from ...error import MXNetError
from ..channel import SECRET

POLL_SECONDS = 0.1
END_SECONDS = 5.0  # seconds a process has to exit after SIGTERM
PASSED_ON = ("PYTHONPATH", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
HOST = re.compile(r"[A-Za-z0-9_][\w.@-]*")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Outcome:
    """Result of an attempt."""

    status: int
    failed: dict[int, str]  # status of each failed rank


class Process:
    """A process on `host` (default: this machine); its output lines are prefixed with `name`.

    `first_line` is written to its standard input. With a `log_dir`, its output is copied there.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        host: str = "",
        first_line: str = "",
        log_dir: str | None = None,
    ) -> None:
        self.name, self.host = name, host or socket.gethostname()
        try:
            self._process = subprocess.Popen(
                list(command),
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise MXNetError(f"Cannot start {command[0]!r}: {error.strerror}.") from None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as stdin:  # type: ignore[union-attr]
            stdin.write(first_line)
        streams = ((self._process.stdout, sys.stdout), (self._process.stderr, sys.stderr))
        self._threads = []
        for (source, target), kind in zip(streams, ("out", "err"), strict=True):
            log = Path(log_dir, f"{name.replace(' ', '-')}.{kind}") if log_dir else None
            thread = threading.Thread(target=self._copy, args=(source, target, log), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _copy(self, source: IO[str], target: TextIO, log: Path | None) -> None:
        with contextlib.ExitStack() as scope:
            file = None
            if log is not None:
                log.parent.mkdir(parents=True, exist_ok=True)
                file = scope.enter_context(log.open("w", encoding="utf-8"))
            for line in source:
                target.write(f"[{self.name}] {line.rstrip()}\n")
                target.flush()
                if file is not None:
                    file.write(line)
                    file.flush()

    @property
    def status(self) -> int | None:
        """The exit status, or None while the process runs."""
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Wait for the exit and the rest of the output."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, seconds))
            for thread in self._threads:
                thread.join(2)
        return self.status

    def ask_to_end(self) -> None:
        """Send SIGTERM."""
        if self.status is None:
            self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        if self.status is None:
            self._process.kill()


def end_all(processes: Sequence[Process], patience: float = 0.0) -> None:
    """End processes: wait, then terminate, then kill."""
    for action, seconds in (
        (lambda _: None, patience),
        (Process.ask_to_end, END_SECONDS),
        (Process.kill, END_SECONDS),
    ):
        for process in processes:
            action(process)
        end = time.monotonic() + seconds
        for process in processes:
            process.wait(end - time.monotonic())


@contextlib.contextmanager
def ending_on_signals() -> Iterator[None]:
    """Raise SystemExit in the main thread on signals that end this process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    previous = {number: signal.signal(number, end) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def run_all(
    starts: Sequence[Callable[[], Process]],
    workers: int,
    report_failure: Callable[[int, str, str], None],
    patience: float = 0.0,
) -> Outcome:
    """Run all processes of an attempt; if one fails, end the others.

    They have `patience` seconds to exit by themselves. `report_failure` publishes to all workers
    which one failed, where and how.
    """
    started: list[Process] = []
    with ending_on_signals():
        try:
            started += [start() for start in starts]
            failed = _wait(started, workers)
            if failed is None:
                return Outcome(0, {})
            status = failed.status or 1
            rank = started.index(failed) if started.index(failed) < workers else -1
            why = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
            if rank >= 0:
                report_failure(rank, failed.host, why)
            end_all(started, patience)
            return Outcome(
                exit_status(status), {rank: why if rank >= 0 else f"{failed.name} {why}"}
            )
        finally:
            end_all(started)


def _wait(processes: Sequence[Process], workers: int) -> Process | None:
    """Wait until all have succeeded or one has failed; return the failed one."""
    while True:
        states = [p.status for p in processes]
        for process, status in zip(processes, states, strict=True):
            if status not in (None, 0):
                process.wait(2)
                return process
        if None not in states[:workers]:
            for process in processes:  # servers exit after the workers
                process.wait(10)
            return None
        time.sleep(POLL_SECONDS)


def exit_status(status: int) -> int:
    """Return the exit status as in shells: 128 plus the number of a signal.

    >>> exit_status(3), exit_status(-9)
    (3, 137)
    """
    return status if status >= 0 else 128 - status


def read_hosts(path: str | None) -> list[str]:
    """Return the hosts of a file, one for each slot: ``name``, ``name:4`` or ``name slots=4``."""
    if path is None:
        raise MXNetError("This launcher needs -H: a file with one host per line.")
    hosts = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        name, _, rest = text.replace(":", " ").partition(" ")
        if not HOST.fullmatch(name):
            raise MXNetError(
                f"Line {number} of {path!r}: {name!r} is not the name of a host. (One that begins "
                "with '-' would be an option of ssh.)"
            )
        slots = rest.replace("slots=", "").strip()
        hosts += [name] * (int(slots) if slots.isdigit() else 1)
    if not hosts:
        raise MXNetError(f"The host file {path!r} names no host.")
    return hosts


def local_environments(
    workers: int, job: Mapping[str, str], environment: Mapping[str, str], port: int
) -> list[dict[str, str]]:
    """Return the variables of every worker on this machine, named like torchrun's."""
    threads = str(max(1, (os.cpu_count() or 1) // workers))
    common = {
        "OMP_NUM_THREADS": threads,
        **environment,
        "MASTER_ADDR": "127.0.0.1",  # for programs that start torch.distributed themselves
        "MASTER_PORT": str(port),
        "LOCAL_WORLD_SIZE": str(workers),
        **job,
    }
    return [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(workers)]


def select_variables(environment: Mapping[str, str], job: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of a remote process: the job's, and some of MXNext's."""
    own = {
        k: v for k, v in environment.items() if k in PASSED_ON or k.startswith(("MXNET_", "DMLC_"))
    }
    return {**own, **job}


def ssh_commands(
    command: Sequence[str], hosts: Sequence[str], workers: int, job: Mapping[str, str], folder: str
) -> list[tuple[str, list[str]]]:
    """Return host and command of every worker, assigned to the hosts round-robin.

    The remote shell reads the job's secret from its standard input: command lines can be seen by
    all users of a machine.
    """
    commands = []
    for rank in range(workers):
        host = hosts[rank % len(hosts)]
        local = sum(1 for r in range(rank) if hosts[r % len(hosts)] == host)
        variables = {**job, "RANK": str(rank), "LOCAL_RANK": str(local)}
        variables.pop(SECRET, None)
        assigned = " ".join(f"{k}={shlex.quote(v)}" for k, v in sorted(variables.items()))
        remote = (
            f"IFS= read -r {SECRET}; export {SECRET}; cd {shlex.quote(folder)} && "
            f"exec env {assigned} {shlex.join(command)}"
        )
        commands.append((host, ["ssh", "-o", "BatchMode=yes", "--", host, remote]))
    return commands


def sync_folder(hosts: Sequence[str], target: str) -> list[list[str]]:
    """Return the commands that copy the current folder to every host."""
    return [
        ["rsync", "-az", "--exclude=.git", "--", "./", f"{host}:{target}/"]
        for host in dict.fromkeys(hosts)
    ]


def mpi_command(
    command: Sequence[str], workers: int, hostfile: str | None, job: Mapping[str, str]
) -> list[str]:
    """Return the command that starts all workers by Open MPI; ranks are MPI's.

    It names the variables to pass on; their values, including the secret, are in its environment.
    """
    hosts = [] if hostfile is None else ["--hostfile", hostfile]
    variables = [part for name in sorted(job) for part in ("-x", name)]
    return ["mpirun", "-n", str(workers), *hosts, *variables, *command]


def slurm_command(command: Sequence[str], workers: int) -> list[str]:
    """Return the command that starts all workers by Slurm; ranks are Slurm's."""
    return ["srun", "-n", str(workers), "--kill-on-bad-exit=1", "--export=ALL", *command]


def run_command(command: Sequence[str], environment: Mapping[str, str]) -> Outcome:
    """Run a command that starts all workers; forward its output and return its status."""
    try:
        status = subprocess.run(command, check=False, env=dict(environment)).returncode
    except FileNotFoundError:
        raise MXNetError(f"{command[0]} is not installed here.") from None
    return Outcome(exit_status(status), {} if status == 0 else {-1: f"status {status}"})
