"""The command `mx`: parses the command line without importing torch, then runs one command.

This package is next to `mxnet` rather than in it, because importing `mxnet` imports torch;
``mx --help``, ``mx --version``, wrong arguments and completion respond immediately. `commands`
declares the commands; each one's module, which may import `mxnet`, is imported when it is chosen.

Little is imported here, so that Ctrl-C ends the command with a line almost from its start.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CommandError", "UsageError", "main"]

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


class CommandError(Exception):
    """Raised if a command fails; the message says why and what to do."""


class UsageError(CommandError):
    """Raised for contradictory or missing arguments."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``mx`` with the given arguments, or those of the command line; return the exit code.

    0 is success, 1 a failure or a negative answer, 2 wrong usage, 130 an interrupt by Ctrl-C.
    """
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    guarded = is_main and handler is signal.default_int_handler

    def start() -> None:
        if guarded and signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, handler)

    if guarded:
        signal.signal(signal.SIGINT, _leave)
    try:
        from .program import run_command_line

        return run_command_line(argv, start)
    except KeyboardInterrupt:
        sys.stderr.write("\nmx: interrupted\n")
        return INTERRUPTED
    finally:
        start()


def _leave(number: int, frame: object) -> None:
    """End the process during an import, where an exception may be lost or fatal."""
    os.write(2, b"\nmx: interrupted\n")
    os._exit(INTERRUPTED)
