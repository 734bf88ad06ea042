"""Parses the command line, runs one command and prints its errors as messages."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from . import CommandError, UsageError
from .commands import build_parser, load_runner

__all__ = ["describe_error", "run_command_line"]

FAILED = 1
WRONG_USAGE = 2
PIPE_CLOSED = 141  # 128 + SIGPIPE
MAX_ERROR_LINES = 16
MAX_LINE_WIDTH = 400


def run_command_line(argv: Sequence[str] | None, on_start: Callable[[], object]) -> int:
    """Run ``mx`` and return the exit code; `on_start` is called when the command is loaded."""
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
        return _run(args, on_start)
    with _warnings_as_lines(f"mx {args.mx_command}"):
        return _run(args, on_start)


def _run(args: argparse.Namespace, on_start: Callable[[], object]) -> int:
    try:
        runner = load_runner(args)
        on_start()
        code = runner(args)
        sys.stdout.flush()
        return code or 0
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
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
