"""Run a program as the workers of a job on this machine, each a process of its own."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).parents[2]
LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK")


@dataclass
class Ended:
    """How a process ended."""

    role: str
    status: int
    out: str
    err: str
    seconds: float  # from the start of the job to the end of the process


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def base_environment(**settings: object) -> dict[str, str]:
    """Return the environment of a process that belongs to no job yet."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DMLC_")}
    for name in LAUNCHER_VARIABLES:
        kept.pop(name, None)
    given = {k: str(v) for k, v in settings.items()}
    return {**kept, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **given}


def command_of(program: str | pathlib.Path, *arguments: str) -> list[str]:
    """Return the command that runs a file, or a program given as text."""
    if isinstance(program, pathlib.Path):
        return [sys.executable, str(program), *arguments]
    return [sys.executable, "-c", textwrap.dedent(program), *arguments]


def wait_all(started: list[tuple[str, subprocess.Popen]], timeout: float) -> list[Ended]:
    """Wait for processes; those that are left after the limit are killed, and count as -9."""
    begin = time.monotonic()
    ended: dict[int, float] = {}
    while len(ended) < len(started) and time.monotonic() - begin < timeout:
        for i, (_, process) in enumerate(started):
            if i not in ended and process.poll() is not None:
                ended[i] = time.monotonic() - begin
        time.sleep(0.05)
    answers = []
    for i, (role, process) in enumerate(started):
        process.kill()
        out, err = (stream.read() for stream in (process.stdout, process.stderr))
        process.stdout.close()
        process.stderr.close()
        answers.append(Ended(role, process.wait(), out, err, ended.get(i, timeout)))
    return answers


def start(command: list[str], settings: dict[str, str], folder: object = None) -> subprocess.Popen:
    """Start one process; its output goes to files, so that no pipe fills up."""
    import tempfile

    out, err = (tempfile.TemporaryFile("w+") for _ in range(2))  # noqa: SIM115 (closed later)
    process = subprocess.Popen(command, env=settings, stdout=out, stderr=err, cwd=folder)
    process.stdout, process.stderr = _Rewound(out), _Rewound(err)
    return process


class _Rewound:
    """A file that is read from its beginning."""

    def __init__(self, file):
        self._file = file

    def read(self):
        self._file.seek(0)
        return self._file.read()

    def close(self):
        self._file.close()


def run_workers(program, workers, *arguments, timeout=240, **settings) -> list[Ended]:
    """Run a program as all workers of a job, in torchrun's environment; return how each ended."""
    job = base_environment(
        MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port(), WORLD_SIZE=workers, **settings
    )
    command = command_of(program, *arguments)
    started = [(str(r), start(command, {**job, "RANK": str(r)})) for r in range(workers)]
    return wait_all(started, timeout)


def run_roles(program, workers, servers, *arguments, timeout=240, **settings) -> list[Ended]:
    """Run a program in all roles of MXNet's launcher; ranks are given by arrival."""
    job = base_environment(
        DMLC_PS_ROOT_URI="127.0.0.1",
        DMLC_PS_ROOT_PORT=free_port(),
        DMLC_NUM_WORKER=workers,
        DMLC_NUM_SERVER=servers,
        **settings,
    )
    command = command_of(program, *arguments)
    roles = ["scheduler"] + ["server"] * servers + ["worker"] * workers
    started = [(role, start(command, {**job, "DMLC_ROLE": role})) for role in roles]
    return wait_all(started, timeout)


def succeeded(ended: list[Ended]) -> list[Ended]:
    """Return the processes of a job, after checking that all of them ended well."""
    for process in ended:
        assert process.status == 0, f"{process.role} ended with {process.status}: {process.err}"
    return ended
