"""Programs in processes of their own, which need not import the package again.

A server process imports the package once; each program runs in a fork of it (`forkserver` of
`multiprocessing`), so it sees the package as it is after its import, whatever tests did before.
What a program does at import, or with another environment, needs a new interpreter.
"""

from __future__ import annotations

import atexit
import faulthandler
import functools
import multiprocessing
import os
import pathlib
import runpy
import sys
import tempfile
from multiprocessing.context import ForkServerContext
from subprocess import CompletedProcess

import pytest


@functools.cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mxnet"])
    return context


def run_program(*command: str, cwd: pathlib.Path, timeout: float = 240) -> CompletedProcess[str]:
    """Run ``-c CODE``, ``-m MODULE`` or a file with arguments, and wait for its end."""
    with tempfile.TemporaryDirectory() as folder:
        texts = [pathlib.Path(folder, name) for name in ("stdout", "stderr")]
        process = _context().Process(target=_run, args=(command, cwd, *texts))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            pytest.fail(f"{' '.join(command)[:200]} did not end in {timeout:g} s.")
        stdout, stderr = (text.read_text("utf-8", "replace") for text in texts)
    assert process.exitcode is not None
    return CompletedProcess(list(command), process.exitcode, stdout, stderr)


def _run(
    command: tuple[str, ...], cwd: pathlib.Path, stdout: pathlib.Path, stderr: pathlib.Path
) -> None:
    for path, stream in ((stdout, sys.stdout), (stderr, sys.stderr)):
        stream.flush()
        with path.open("wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    faulthandler.enable()
    os.chdir(cwd)
    try:
        _execute(command)
    finally:
        atexit._run_exitfuncs()  # multiprocessing leaves these out
        sys.stdout.flush()


def _execute(command: tuple[str, ...]) -> None:
    kind, *arguments = command
    sys.argv = [kind, *arguments]
    if kind == "-c":
        sys.argv = ["-c", *arguments[1:]]
        exec(compile(arguments[0], "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(pathlib.Path(kind).parent))
        runpy.run_path(kind, run_name="__main__")
