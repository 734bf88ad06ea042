"""Programs in processes that cannot import mxnet, and need not import torch again.

A new interpreter spends seconds on the imports of `torch.export`. Here one process makes them, and
each program runs in a fork of it (`tests/torch_server.py`): it sees torch as it is after its
import, and no mxnet. `tests/interop/test_convert.py` runs converted files in new interpreters.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mxnet.interop.comparison import isolated

SERVER = Path(__file__).with_name("torch_server.py")


@functools.cache
def _server() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", str(SERVER)]  # names of this folder hide those of others
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, 0, stdin=pipe, stdout=pipe, start_new_session=True)
    atexit.register(_stop, process)
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the server and the program that it may run."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    with process:  # closes its pipes and waits for its exit
        pass


def run(
    command: list[str], *, timeout: float, cwd: Path | None = None, check: bool = False, **_: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command of Python, as `subprocess.run` does with captured text."""
    assert command[0] == sys.executable
    with tempfile.TemporaryDirectory() as folder:
        texts = [Path(folder, name) for name in ("stdout", "stderr")]
        request = [command[1:], str(cwd or Path.cwd()), *map(str, texts)]
        code = _ask(json.dumps(request), timeout, command)
        stdout, stderr = (text.read_text("utf-8", "replace") for text in texts)
    done = subprocess.CompletedProcess(command, code, stdout, stderr)
    if check and code:
        pytest.fail(f"exit code {code}: {stdout}\n{stderr}")
    return done


def _ask(request: str, timeout: float, command: list[str]) -> int:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(request.encode() + b"\n")
    if not select.select([server.stdout], [], [], timeout)[0]:
        _stop(server)
        _server.cache_clear()
        raise subprocess.TimeoutExpired(command, timeout)
    return int(server.stdout.readline())


@pytest.fixture
def forked_conversions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have conversions run the files that they check in forks."""
    names = SimpleNamespace(run=run, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr(isolated, "subprocess", names)
    yield
