"""Workers on other machines: by ssh one process each, or by mpirun and srun all at once."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..error import MXNetError
from .local import Outcome
from .processes import Process, exit_status, wait_for_all
from .scheduler import Scheduler

PASSED_ON = ("PYTHONPATH", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")


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


def passed_on(environment: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a remote process gets."""
    kept = {
        k: v for k, v in environment.items() if k in PASSED_ON or k.startswith(("MXNET_", "DMLC_"))
    }
    return {**kept, **wanted}


def ssh_commands(
    command: Sequence[str], hosts: Sequence[str], workers: int, job: Mapping[str, str], folder: str
) -> list[tuple[str, list[str]]]:
    """Return host and command of every worker; they go to the hosts in turn."""
    found = []
    for rank in range(workers):
        host = hosts[rank % len(hosts)]
        local = sum(1 for r in range(rank) if hosts[r % len(hosts)] == host)
        variables = {**job, "RANK": str(rank), "LOCAL_RANK": str(local)}
        assigned = " ".join(f"{k}={shlex.quote(v)}" for k, v in sorted(variables.items()))
        remote = f"cd {shlex.quote(folder)} && exec env {assigned} {shlex.join(command)}"
        found.append((host, ["ssh", "-o", "StrictHostKeyChecking=no", host, remote]))
    return found


def run_ssh(
    commands: Sequence[tuple[str, list[str]]], scheduler: Scheduler, attempt: int
) -> Outcome:
    """Run the workers by ssh; when one fails all others get an error."""
    started = [
        Process(f"rank {rank}", command, os.environ) for rank, (_, command) in enumerate(commands)
    ]
    failed = wait_for_all(started)
    if failed is None:
        return Outcome(0, {})
    rank, status = started.index(failed), failed.status or 1
    why = f"ended with status {exit_status(status)}"
    scheduler.report_failure(attempt, rank, commands[rank][0], why)
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
