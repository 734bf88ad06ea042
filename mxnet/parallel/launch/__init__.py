"""Start a program as the workers of a distributed job: ``mx launch -n 4 python train.py``.

``python -m mxnet.launch`` is the same. The launcher serves the rendezvous, so that no port has to
be chosen and the state of the job survives the loss of any worker. `workers` starts the processes;
`mxnet.distributed` reads their environment variables.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from mxnext_cli.commands import Parser
from mxnext_cli.commands import launch as add_arguments

from ...error import MXNetError
from ..channel import SECRET
from ..heartbeat import describe_cause, read_failure
from ..rendezvous import find_own_address
from ..store import JobStore, StoreServer
from . import workers
from .workers import Outcome, Process

__all__ = ["main", "run"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the launcher with the given arguments, and return the exit status of the job."""
    parser = Parser(prog="mx launch", description="Start a distributed job.")
    add_arguments(parser)
    return run(parser.parse_args(argv))


def run(options: argparse.Namespace) -> int:
    """Run the workers, with up to `max_restarts` restarts after failures; return the status."""
    if options.program[:1] == ["--"]:
        del options.program[0]
    if not options.program:
        raise MXNetError("the program to start is missing, e.g. python train.py")
    if options.num_workers < 1:
        raise MXNetError(f"-n must be at least 1, got {options.num_workers}.")
    hosts = workers.read_hosts(options.hostfile) if options.launcher == "ssh" else []
    scheduler = Scheduler(_root_address(options.launcher, hosts))
    size, attempt = options.num_workers, 0
    while True:
        outcome = _Attempt(options, scheduler, hosts, size, attempt).run()
        if outcome.status == 0 or options.dry_run:
            return 0
        _report(outcome, scheduler, attempt, options.max_restarts)
        if attempt >= options.max_restarts:
            return outcome.status
        attempt += 1
        if options.min_workers is not None:
            size = max(options.min_workers, size - max(1, len(outcome.failed)))


def _root_address(launcher: str, hosts: Sequence[str]) -> str:
    if launcher == "local":
        return "127.0.0.1"
    return find_own_address(hosts[0]) if launcher == "ssh" else os.uname().nodename


class _Attempt:
    """One attempt to run all workers and servers of a job, numbered from 0.

    For ssh, `hosts` has one entry per slot.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        scheduler: Scheduler,
        hosts: Sequence[str],
        size: int,
        number: int,
    ) -> None:
        self._options, self._scheduler, self._hosts = options, scheduler, hosts
        self._size, self._number = size, number
        self._job = {
            **scheduler.environment(size, options.num_servers, number),
            **parse_assignments(options.env, os.environ),
        }
        if options.join_timeout is not None:
            self._job["MXNET_KVSTORE_CONNECT_TIMEOUT"] = str(options.join_timeout)

    def run(self) -> Outcome:
        options = self._options
        own = parse_assignments(options.env_server, os.environ)
        settings = {**os.environ, **self._job, **own, "DMLC_ROLE": "server"}
        self._job |= parse_assignments(options.env_worker, os.environ)
        servers = [
            partial(Process, f"server {i}", options.program, settings, log_dir=self._log_dir())
            for i in range(options.num_servers)
        ]
        if options.launcher == "local":
            return self._run_all(self._local_workers(), servers, patience=0.0)
        job = workers.select_variables(os.environ, self._job)
        if options.launcher == "ssh":
            return self._run_by_ssh(job, servers)
        job.pop("WORLD_SIZE")
        if options.launcher == "mpi":
            command = workers.mpi_command(options.program, self._size, options.hostfile, job)
        else:
            command = workers.slurm_command(options.program, self._size)
        if options.dry_run:
            return _show([command])
        started = [start() for start in servers]
        try:
            return workers.run_command(command, {**os.environ, **job})
        finally:
            workers.end_all(started, patience=10)

    def _log_dir(self) -> str | None:
        folder = self._options.log_dir
        return None if folder is None else str(Path(folder, f"attempt-{self._number}"))

    def _local_workers(self) -> list[Callable[[], Process]]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environments = workers.local_environments(self._size, self._job, os.environ, port)
        program, folder = self._options.program, self._log_dir()
        return [
            partial(Process, f"rank {rank}", program, environment, log_dir=folder)
            for rank, environment in enumerate(environments)
        ]

    def _run_all(
        self,
        starts: Sequence[Callable[[], Process]],
        servers: Sequence[Callable[[], Process]],
        patience: float,
    ) -> Outcome:
        def report(rank: int, host: str, why: str) -> None:
            self._scheduler.report_failure(self._number, rank, host, why)

        return workers.run_all([*starts, *servers], len(starts), report, patience)

    def _run_by_ssh(
        self, job: Mapping[str, str], servers: Sequence[Callable[[], Process]]
    ) -> Outcome:
        options = self._options
        folder = options.sync_dst_dir or os.getcwd()  # noqa: PTH109 (as text for the other side)
        copies = workers.sync_folder(self._hosts, folder) if options.sync_dst_dir else []
        commands = workers.ssh_commands(options.program, self._hosts, self._size, job, folder)
        if options.dry_run:
            return _show([*copies, *(command for _, command in commands)])
        for copy in copies:
            subprocess.run(copy, check=True)
        secret, logs = f"{job[SECRET]}\n", self._log_dir()
        starts = [
            partial(Process, f"rank {rank}", command, os.environ, host, secret, logs)
            for rank, (host, command) in enumerate(commands)
        ]
        return self._run_all(starts, servers, patience=10.0)


def _show(commands: Sequence[Sequence[str]]) -> Outcome:
    for command in commands:
        sys.stdout.write(shlex.join(command) + "\n")
    return Outcome(0, {})


def _report(outcome: Outcome, scheduler: Scheduler, attempt: int, restarts: int) -> None:
    lines = [f"rank {rank} {what}" if rank >= 0 else what for rank, what in outcome.failed.items()]
    failure = scheduler.failure(attempt)
    lines = [failure] if failure else lines  # the others failed as a consequence
    next_step = f"; restart {attempt + 1} of {restarts}" if attempt < restarts else ""
    text = "; ".join(lines) or f"the job ended with status {outcome.status}"
    sys.stderr.write(f"mx launch: {text}{next_step}\n")
    sys.stderr.flush()


class Scheduler:
    """Server of the rendezvous' key-value store; workers connect to `host`."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._secret = os.environ.get(SECRET) or secrets.token_hex(32)
        self._server = StoreServer(host, 0, self._secret.encode())

    def environment(self, workers: int, servers: int, attempt: int) -> dict[str, str]:
        """Return the variables that describe the job."""
        return {
            "DMLC_PS_ROOT_URI": self.host,
            "DMLC_PS_ROOT_PORT": str(self._server.port),
            "DMLC_NUM_WORKER": str(workers),
            "DMLC_NUM_SERVER": str(servers),
            "DMLC_ROLE": "worker",
            "MXNET_LAUNCH_ATTEMPT": str(attempt),
            SECRET: self._secret,
            "WORLD_SIZE": str(workers),
            "PYTHONUNBUFFERED": "1",
        }

    def _job(self, attempt: int) -> JobStore:
        prefix, secret = f"mxnet/{attempt}/", self._secret.encode()
        return JobStore(self.host, self._server.port, 10, secret, prefix)

    def failure(self, attempt: int) -> str:
        """Return the failure reported by the workers, or ''."""
        with contextlib.closing(self._job(attempt)) as store:
            failure = read_failure(store)
        return "" if failure is None else describe_cause(failure)

    def report_failure(self, attempt: int, rank: int, host: str, why: str) -> None:
        """Publish to all workers that one has failed."""
        text = json.dumps({"rank": rank, "host": host, "pid": 0, "why": why})
        with contextlib.suppress(RuntimeError), contextlib.closing(self._job(attempt)) as store:
            store.compare_set("failure", "", text)


def parse_assignments(texts: list[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Parse variables of the form NAME=VALUE, NAME:VALUE, or NAME.

    >>> parse_assignments(["A=1", "HOME", "B:2"], {"HOME": "/root"})
    {'A': '1', 'HOME': '/root', 'B': '2'}
    """
    variables = {}
    for text in texts:
        cut = min((i for i in (text.find("="), text.find(":")) if i > 0), default=-1)
        if cut > 0:
            variables[text[:cut]] = text[cut + 1 :]
        elif text in environment:
            variables[text] = environment[text]
    return variables
