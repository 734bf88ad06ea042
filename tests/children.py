"""Children of `os.fork`, which are waited for with a limit."""

from __future__ import annotations

import os
import signal
import time

LIMIT = 120.0  # seconds


def exit_code_of(child: int, limit: float = LIMIT) -> int:
    """Wait for a child to end; return its exit code, or minus the number of its signal."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError(f"A child did not end in {limit:g} s.")
