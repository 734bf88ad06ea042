"""Keeps a bar and other output on one terminal apart: text that is written takes the bar away."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["yielding_to_output"]


class _Yielding:
    """A stream that calls a function before something is written to it."""

    def __init__(self, stream: Any, before: Callable[[], None]) -> None:
        self._stream, self._before = stream, before

    def write(self, text: str) -> int:
        self._before()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def yielding_to_output(clear: Callable[[], None], logger: Any) -> Iterator[None]:
    """Call `clear` before anything is printed or logged in the block."""

    def clear_first(record: logging.LogRecord) -> bool:
        clear()
        return True

    root = logging.getLogger()
    loggers = {root, root if logger is logging else logger}
    handlers = {handler for each in loggers for handler in getattr(each, "handlers", ())}
    streams = {n: getattr(sys, n) for n in ("stdout", "stderr") if getattr(sys, n) is not None}
    for name, stream in streams.items():
        setattr(sys, name, _Yielding(stream, clear))
    for handler in handlers:
        handler.addFilter(clear_first)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(clear_first)
        for name, stream in streams.items():
            if isinstance(getattr(sys, name), _Yielding):  # else the program set another one
                setattr(sys, name, stream)
