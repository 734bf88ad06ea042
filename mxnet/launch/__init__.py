"""Start a program as the workers of a distributed job: ``mx launch -n 4 python train.py``.

``python -m mxnet.launch`` is the same. The launcher serves the rendezvous, so no port has to be
chosen, and the job's bookkeeping survives the loss of any worker.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

from ..error import MXNetError
from . import remote
from .local import Outcome, run_local
from .options import add_arguments, parse_assignments
from .processes import Process
from .scheduler import Scheduler, own_address

__all__ = ["add_arguments", "main", "run"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the launcher with the given arguments, and return the exit status of the job."""
    parser = argparse.ArgumentParser(prog="mx launch", description="Start a distributed job.")
    add_arguments(parser)
    return run(parser.parse_args(argv))


def run(options: argparse.Namespace) -> int:
    """Start the workers, again after failures if that is wanted; return the exit status."""
    command = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not command:
        raise MXNetError("give the program to start, e.g. python train.py")
    if options.num_workers < 1:
        raise MXNetError(f"-n must be at least 1, got {options.num_workers}.")
    hosts = remote.read_hosts(options.hostfile) if options.launcher == "ssh" else []
    scheduler = Scheduler(_root_address(options.launcher, hosts))
    workers = options.num_workers
    for attempt in range(options.max_restarts + 1):
        outcome = _attempt(options, command, scheduler, hosts, workers, attempt)
        if outcome.status == 0 or options.dry_run:
            return 0
        _report(outcome, scheduler, attempt, options.max_restarts)
        if options.min_workers is not None:
            lost = max(1, len(outcome.failed))
            workers = max(options.min_workers, workers - lost)
    return outcome.status


def _root_address(launcher: str, hosts: Sequence[str]) -> str:
    if launcher == "local":
        return own_address()
    if launcher == "ssh":
        return own_address(hosts[0])
    return os.uname().nodename


def _attempt(
    options: argparse.Namespace,
    command: list[str],
    scheduler: Scheduler,
    hosts: list[str],
    workers: int,
    attempt: int,
) -> Outcome:
    shared = parse_assignments(options.env, dict(os.environ))
    job = {**scheduler.environment(workers, options.num_servers, attempt), **shared}
    own = parse_assignments(options.env_server, dict(os.environ))
    servers = []
    if not options.dry_run:
        settings = {**os.environ, **job, **own, "DMLC_ROLE": "server"}
        servers = [Process(f"server {i}", command, settings) for i in range(options.num_servers)]
    job |= parse_assignments(options.env_worker, dict(os.environ))
    try:
        return _run_workers(options, command, scheduler, hosts, workers, attempt, job)
    finally:
        for server in servers:
            server.wait(10)
            server.end()


def _run_workers(
    options: argparse.Namespace,
    command: list[str],
    scheduler: Scheduler,
    hosts: list[str],
    workers: int,
    attempt: int,
    job: dict[str, str],
) -> Outcome:
    if options.launcher == "local":
        return run_local(command, workers, job, options.log_dir)
    job = remote.passed_on(os.environ, job)
    if options.launcher == "ssh":
        return _run_by_ssh(options, command, scheduler, hosts, workers, attempt, job)
    job.pop("WORLD_SIZE")
    if options.launcher == "mpi":
        whole = remote.mpi_command(command, workers, options.hostfile, job)
    else:
        whole = remote.slurm_command(command, workers, job)
    if options.dry_run:
        return _show([whole])
    return remote.run_command(whole)


def _run_by_ssh(
    options: argparse.Namespace,
    command: list[str],
    scheduler: Scheduler,
    hosts: list[str],
    workers: int,
    attempt: int,
    job: dict[str, str],
) -> Outcome:
    folder = options.sync_dst_dir or os.getcwd()  # noqa: PTH109 (as text for the other side)
    copies = remote.sync_folder(hosts, folder) if options.sync_dst_dir else []
    commands = remote.ssh_commands(command, hosts, workers, job, folder)
    if options.dry_run:
        return _show([*copies, *(c for _, c in commands)])
    for copy in copies:
        subprocess.run(copy, check=True)
    return remote.run_ssh(commands, scheduler, attempt)


def _show(commands: list[list[str]]) -> Outcome:
    for command in commands:
        sys.stdout.write(shlex.join(command) + "\n")
    return Outcome(0, {})


def _report(outcome: Outcome, scheduler: Scheduler, attempt: int, restarts: int) -> None:
    """Say which workers failed, and whether the job starts again."""
    lines = [f"rank {rank} {what}" for rank, what in outcome.failed.items() if rank >= 0]
    found = scheduler.failure(attempt)
    lines = [found] if found else lines  # the others failed because of it
    goes_on = f"; restart {attempt + 1} of {restarts}" if attempt < restarts else ""
    text = "; ".join(lines) or f"the job ended with status {outcome.status}"
    sys.stderr.write(f"mx launch: {text}{goes_on}\n")
    sys.stderr.flush()
