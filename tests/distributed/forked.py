"""Run functions as the workers of a job: processes forked from one that has imported mxnet.

Importing takes longer than a story does, so all workers of all tests share one import. Each is a
process of its own, with torch's connections over loopback, and ends as a program does.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.distributed.jobs import Ended, free_port

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["mxnet", "tests.distributed.forked"])


def _main(story: Callable, arguments: Sequence[Any], variables: dict[str, str], folder: str):
    """Run a story as a program would run: output to files, hooks for errors and for the end."""
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(Path(folder) / name, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1) for n in (1, 2))
    os.environ.update(variables)
    status = 0
    try:
        story(*arguments)
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
    story: Callable,
    workers: int,
    *arguments: Any,
    timeout: float = 120,
    ranks: Sequence[int] | None = None,
    not_awaited: Sequence[int] = (),
    **settings: object,
) -> list[Ended]:
    """Run a story on all workers, or on some ranks of a job; return how each ended.

    Ranks that are not awaited are killed when the others have ended.
    """
    job = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(workers),
        **{k: str(v) for k, v in settings.items()},
    }
    with tempfile.TemporaryDirectory() as folder:
        started = []
        begin = time.monotonic()
        for rank in range(workers) if ranks is None else ranks:
            place = Path(folder) / str(rank)
            place.mkdir()
            target = (story, arguments, {**job, "RANK": str(rank)}, str(place))
            process = _context.Process(target=_main, args=target)
            process.start()
            started.append((str(rank), process, place))
        order = sorted(started, key=lambda one: int(one[0]) in not_awaited)
        ended = [_ended(*one, begin, 0 if int(one[0]) in not_awaited else timeout) for one in order]
        return sorted(ended, key=lambda e: int(e.role))


def _ended(rank: str, process: Any, place: Path, begin: float, timeout: float) -> Ended:
    process.join(max(0.1, begin + timeout - time.monotonic()))
    seconds = time.monotonic() - begin
    if process.is_alive():
        process.kill()
        process.join(10)
    texts = [(place / n).read_text() if (place / n).exists() else "" for n in ("out", "err")]
    return Ended(rank, process.exitcode, *texts, seconds)
