"""The command `mx`: parses the command line without importing torch, then runs one command.

This package is next to `mxnet` rather than in it, because importing `mxnet` imports torch;
``mx --help``, ``mx --version``, wrong arguments and completion answer at once. `commands` declares
the commands; each one's module, which may import `mxnet`, is imported when it is chosen.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from .commands import build_parser, load_runner

__all__ = ["CommandError", "UsageError", "main"]

FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
PIPE_CLOSED = 141  # 128 + SIGPIPE
MAX_ERROR_LINES = 16
MAX_LINE_WIDTH = 400


class CommandError(Exception):
    """A command cannot do what was asked; the message says why and what to do."""


class UsageError(CommandError):
    """The arguments do not fit together or lack something."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``mx`` with the given arguments, or those of the command line; return the exit code.

    0 is success, 1 a failure or a negative answer, 2 wrong usage.
    """
    try:
        parser = build_parser()
        args = parser.parse(argv)
        if args.mx_command is None:
            parser.print_help()
            sys.stdout.flush()
            return WRONG_USAGE
    except BrokenPipeError:  # `mx --help | head`
        _discard_output()
        return PIPE_CLOSED
    if args.mx_command == "run":  # the program's warnings are shown as Python shows them
        return _run(args)
    with _warnings_as_lines(f"mx {args.mx_command}"):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    try:
        code = load_runner(args)(args)
        sys.stdout.flush()
        return code or 0
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if args.traceback:
            traceback.print_exc()
        else:
            sys.stderr.write(f"mx {args.mx_command}: {describe_error(error)}\n")
        return WRONG_USAGE if isinstance(error, UsageError) else FAILED


def _discard_output() -> None:
    """Discard the interpreter's last flush, so that it cannot fail as well."""
    with suppress(OSError, ValueError):  # stdout is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def describe_error(error: Exception) -> str:
    """Return an error in at most a screen of text."""
    expected = _expected_errors()
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        text = str(error) or type(error).__name__
    if not isinstance(error, expected):
        text = f"{type(error).__name__}: {text}\n(mx --traceback ... shows where)"
    lines = [textwrap.shorten(x, MAX_LINE_WIDTH) if len(x) > MAX_LINE_WIDTH else x
             for x in text.splitlines()]  # fmt: skip
    if len(lines) > MAX_ERROR_LINES:
        left_out = len(lines) - MAX_ERROR_LINES
        lines = [*lines[:MAX_ERROR_LINES], f"... {left_out} more lines"]
    return "\n".join(lines)


def _expected_errors() -> tuple[type[BaseException], ...]:
    """Return the errors that explain themselves; `mxnet.error` only if a command loaded it."""
    loaded = sys.modules.get("mxnet.error")
    own = (loaded.MXNetError,) if loaded is not None else ()
    return (CommandError, UsageError, OSError, ImportError, *own)


@contextmanager
def _warnings_as_lines(program: str) -> Iterator[None]:
    """Show warnings as one line each, without the source line that raised them."""
    previous = warnings.showwarning

    def show(message: Warning | str, *_: object, **__: object) -> None:
        sys.stderr.write(f"{program}: warning: {message}\n")

    warnings.showwarning = show  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.showwarning = previous
