"""Run functions as the workers of a job: processes forked from one that has imported mxnet.

Importing takes longer than a test does, so all workers of all tests share one import. Each is a
process of its own, with torch's connections over loopback, and ends as a program does.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import mxnet as mx

ROOT = Path(__file__).parents[2]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["mxnet", "tests.parallel.workers"])


@dataclass
class Ended:
    """How a process ended."""

    role: str
    status: int
    out: str
    err: str
    seconds: float  # from the start of the job to the end of the process


def _main(function: Callable, arguments: Sequence[Any], variables: dict[str, str], folder: str):
    """Run a function like a program: output to files, with error and exit hooks."""
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(Path(folder) / name, os.O_WRONLY | os.O_CREAT), number)
    os.environ.update(variables)
    _run_as_program(function, arguments)


def _run_as_program(function: Callable, arguments: Sequence[Any]) -> NoReturn:
    """Run a function in this process, with its standard streams and variables, and end."""
    sys.stdout, sys.stderr = (os.fdopen(n, "w", 1, closefd=False) for n in (1, 2))
    status = 0
    try:
        if os.environ.get("DMLC_ROLE", "worker") == "worker":
            function(*arguments)
        else:  # what `import mxnet` turns into
            status = mx.kvstore.kvstore_server.run_role()
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def run_forked(
    function: Callable,
    workers: int,
    *arguments: Any,
    timeout: float = 120,
    ranks: Sequence[int] | None = None,
    not_awaited: Sequence[int] = (),
    **settings: object,
) -> list[Ended]:
    """Run a function on all workers, or on some ranks of a job; return how each ended.

    Ranks that are not awaited are killed when the others have ended.
    """
    job = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(workers),
        **{k: str(v) for k, v in settings.items()},
    }
    members = range(workers) if ranks is None else ranks
    processes = [(str(rank), {**job, "RANK": str(rank)}) for rank in members]
    return _run(processes, function, arguments, timeout, [str(rank) for rank in not_awaited])


def run_forked_roles(
    function: Callable,
    workers: int,
    servers: int,
    *arguments: Any,
    timeout: float = 120,
    **settings: str,
) -> list[Ended]:
    """Run a function in all roles of MXNet's launcher; ranks are assigned by arrival."""
    job = {
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(free_port()),
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_NUM_SERVER": str(servers),
        **settings,
    }
    roles = ["scheduler"] + ["server"] * servers + ["worker"] * workers
    return _run([(r, {**job, "DMLC_ROLE": r}) for r in roles], function, arguments, timeout)


def _run(
    processes: Sequence[tuple[str, dict[str, str]]],
    function: Callable,
    arguments: Sequence[Any],
    timeout: float,
    not_awaited: Sequence[str] = (),
) -> list[Ended]:
    with tempfile.TemporaryDirectory() as folder:
        started = []
        begin = time.monotonic()
        for number, (name, variables) in enumerate(processes):
            output = Path(folder) / str(number)
            output.mkdir()
            target = (function, arguments, variables, str(output))
            process = _context.Process(target=_main, args=target)
            process.start()
            started.append((name, process, output))
        ended = {}
        for number in sorted(range(len(started)), key=lambda n: started[n][0] in not_awaited):
            limit = 0 if started[number][0] in not_awaited else timeout
            ended[number] = _ended(*started[number], begin, limit)
        return [ended[number] for number in range(len(started))]


def _ended(rank: str, process: Any, output: Path, begin: float, timeout: float) -> Ended:
    process.join(max(0.1, begin + timeout - time.monotonic()))
    seconds = time.monotonic() - begin
    if process.is_alive():
        process.kill()
        process.join(10)
    texts = [(output / n).read_text() if (output / n).exists() else "" for n in ("out", "err")]
    return Ended(rank, process.exitcode, *texts, seconds)


def free_port() -> int:
    """Return a port that nothing listens on, and that no outgoing connection gets meanwhile."""
    while True:
        port = secrets.choice(range(20_000, 32_000))  # below those of outgoing connections
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def succeeded(ended: list[Ended]) -> list[Ended]:
    """Return the processes of a job, after checking that all of them succeeded."""
    for process in ended:
        assert process.status == 0, f"{process.role} ended with {process.status}: {process.err}"
    return ended


def launch(arguments):
    """Run the launcher and end with its status."""
    from mxnet.launch import main

    raise SystemExit(main(arguments))


def _open_files() -> set[int]:
    """Return the numbers of the files that this process has open."""

    def is_open(number: int) -> bool:  # not the working directory
        try:
            return bool(os.fstat(number))
        except OSError:
            return False

    return {n for n in (int(path.name) for path in Path("/dev/fd").iterdir()) if is_open(n)}


def launch_forked(options, function, *arguments):
    """Run the launcher with a function as its program; workers are forked, without an import."""

    class Forked(subprocess.Popen):
        """A process that exits before it would exec another program."""

        def __init__(self, command, env, **streams):
            before = _open_files()

            def run():
                for pipe in _open_files() - before:  # one tells the launcher of the beginning
                    os.close(pipe)
                os.environ.clear()
                os.environ.update(env)
                _run_as_program(function, arguments)

            super().__init__(command, preexec_fn=run, **streams)

    subprocess.Popen = Forked
    launch([*options, function.__name__])
