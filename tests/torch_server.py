"""Imports torch and its exporter once, and runs programs in forks of itself that lack mxnet.

A program of its own, started by `tests/without_mxnet.py`. Each line of its input is a list in JSON:
what follows `python` in a command, a folder, and the files for what the program prints; each line
of its output is the exit code of a program.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from pathlib import Path


def prepare() -> None:
    """Import what programs of `torch.export` need; none of it computes or starts threads."""
    sys.modules["mxnet"] = None  # an import would fail
    import torch._dynamo
    import torch._export.serde.serialize
    import torch._inductor  # noqa: F401


def execute(arguments: list[str]) -> None:
    """Run ``-c CODE`` or a file as a new interpreter does."""
    if arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        sys.path.insert(0, "")
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
        runpy.run_path(arguments[0], run_name="__main__")


def run(arguments: list[str], folder: str, stdout: str, stderr: str) -> None:
    """Run a program in this process, a fork, and end it."""
    for path, number in ((stdout, 1), (stderr, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(folder)
    code = 1
    try:
        execute(arguments)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    prepare()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(*json.loads(line))
        status = os.waitpid(child, 0)[1]
        print(os.waitstatus_to_exitcode(status), flush=True)
