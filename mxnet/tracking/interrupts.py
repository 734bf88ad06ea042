"""Ctrl-C during training: one line that says what is saved and how to continue, no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType


class Position:
    """Where a training is: an epoch, and how many of its batches are done.

    >>> str(Position(3, 80)), str(Position(4))
    ('epoch 3, batch 80', 'epoch 4')
    """

    def __init__(self, epoch: int, batch: int = 0) -> None:
        self.epoch, self.batch = epoch, batch

    def __str__(self) -> str:
        return f"epoch {self.epoch}" + (f", batch {self.batch}" if self.batch else "")


def describe_interrupt(saved: Position | None, path: str | os.PathLike[str] | None) -> str:
    """Return what Ctrl-C left behind.

    >>> describe_interrupt(Position(3, 80), "runs/digits")
    'Interrupted. The same program continues from epoch 3, batch 80 (runs/digits).'
    """
    if path is None:
        return "Interrupted. Nothing was saved; fit(resume='run') keeps what is needed to continue."
    if saved is None:
        return f"Interrupted before the first save to {os.fspath(path)}."
    return f"Interrupted. The same program continues from {saved} ({os.fspath(path)})."


@contextmanager
def explain_interrupt(describe: Callable[[], str]) -> Iterator[None]:
    """Let an interrupt of the block that ends the program print a line instead of a traceback.

    The interrupt itself passes on, so that programs can catch it; uncaught, it ends the process
    with the exit code 130 as ever.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        _print_without_traceback(interrupt, describe())
        raise


def _print_without_traceback(interrupt: BaseException, text: str) -> None:
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if error is interrupt:
            sys.stderr.write(f"\n{text}\n")
        else:
            previous(kind, error, trace)

    sys.excepthook = hook
