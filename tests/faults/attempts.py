"""What all fault tests share: their size, and children that are watched."""

from __future__ import annotations

import json
import os
import pathlib

from tests.programs import run_program

ROOT = pathlib.Path(__file__).parents[2]
SCALE = float(os.environ.get("MXNEXT_FAULTS", "1"))


def attempts(count: int) -> int:
    """Return how many attempts to make where CI makes `count`."""
    return max(1, int(count * SCALE))


def run_child(module: str, *args: object, seconds: float = 120) -> dict:
    """Run a module of fault tests; return the JSON object on the last line that it printed.

    A crash, a hang and an uncaught error all fail here.
    """
    command = ("-m", f"tests.faults.{module}", *map(str, args))
    done = run_program(*command, cwd=ROOT, timeout=seconds * max(1.0, SCALE))
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-3000:]}"
    return json.loads(done.stdout.splitlines()[-1])
