"""Runs the ONNX library's C++ code in a process of its own: a bad file may crash it.

Checking and shape inference read untrusted numbers as indices. A child process, where the system
can fork, keeps a crash, an endless loop and a flood of memory away from the caller.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
import warnings
from collections.abc import Callable

from ...error import FormatError

__all__ = ["run_isolated"]

# Seconds for any file, and more for large ones.
TIMEOUT, BYTES_PER_SECOND = 10.0, 5e6
MAX_MEMORY = 8 << 30
ANSWER, FAILURE = b"+", b"-"


def run_isolated(work: Callable[[], bytes], name: str, size: int = 0) -> bytes:
    """Return the bytes that `work` makes in a child process from a file of `size` bytes.

    An exception in it becomes a `FormatError` with its text; so do a crash and a timeout.
    """
    if not hasattr(os, "fork"):
        return _answered(_run(work), name)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child starts no threads
        child = os.fork()
    if child == 0:
        os.close(reader)
        _serve(work, writer)
    os.close(writer)
    try:
        answer = _read_all(reader, TIMEOUT + size / BYTES_PER_SECOND)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return _answered(answer, name)


def _serve(work: Callable[[], bytes], writer: int) -> None:
    """Send the answer and end the child at once, whatever happens."""
    try:
        _limit_memory()
        rest = memoryview(_run(work))
        while rest:
            rest = rest[os.write(writer, rest) :]
    finally:
        os._exit(0)


def _limit_memory() -> None:
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (used + MAX_MEMORY, used + MAX_MEMORY))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _run(work: Callable[[], bytes]) -> bytes:
    try:
        return ANSWER + work()
    except BaseException as error:  # protobuf, checker and memory errors have classes of their own
        text = str(error).strip().split("\n")[0]
        return FAILURE + f"{text or type(error).__name__}".encode("utf-8", "replace")


def _read_all(reader: int, seconds: float) -> bytes:
    parts, deadline = [], time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return FAILURE + f"it takes more than {seconds:.0f} seconds".encode()
        part = os.read(reader, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _answered(answer: bytes, name: str) -> bytes:
    if answer[:1] == ANSWER:
        return answer[1:]
    text = answer[1:].decode("utf-8", "replace") or "it crashes the ONNX library"
    raise FormatError(f"{name} is not a valid ONNX model: {text}")
