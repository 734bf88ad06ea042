"""Ctrl-C: a line instead of a traceback, and no interrupt during an import.

An interrupt of ``import mxnet`` is raised after the import. Raised immediately it would leave
partly initialized modules, or end the process inside torch's C++ initialization.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

__all__ = ["explain_interrupt", "postpone_interrupt"]


@contextmanager
def explain_interrupt(describe: Callable[[], str]) -> Iterator[None]:
    """Print one line instead of a traceback if an interrupt in the block ends the program.

    The interrupt propagates, so that programs can catch it; uncaught, it ends the process
    with exit code 130 as before. Its attribute `explanation` has the line, for programs that show
    errors themselves.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        vars(interrupt).setdefault("explanation", describe())
        _print_without_traceback(interrupt)
        raise


def _print_without_traceback(interrupt: BaseException) -> None:
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if error is interrupt:
            sys.stderr.write(f"\n{vars(interrupt)['explanation']}\n")
        else:
            previous(kind, error, trace)

    sys.excepthook = hook


@contextmanager
def postpone_interrupt() -> Iterator[None]:
    """Raise the first Ctrl-C inside the block at its end; a second one immediately.

    Programs that handle Ctrl-C themselves, and threads other than the main one, are not affected.

    >>> with postpone_interrupt():
    ...     from xml.dom import minidom  # whole, whenever Ctrl-C comes
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    is_interrupted = False

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is remember:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if is_interrupted:
        raise KeyboardInterrupt
