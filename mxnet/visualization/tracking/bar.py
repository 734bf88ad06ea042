"""`progress`: tqdm's bar on terminals and in notebooks, plain lines in files and pipes."""

from __future__ import annotations

import functools
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from ..._process import env
from ...error import InvalidValue


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
    """Return a scope that calls `clear` before anything is printed or logged."""

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
            if isinstance(getattr(sys, name), _Yielding):  # otherwise replaced by the program
                setattr(sys, name, stream)


Style = Literal["bar", "lines", "off"]
LINE_SECONDS = 60.0  # seconds between lines in a file


def choose_style(show: bool | None = None, stream: Any = None) -> Style:
    """Return the style of progress on a stream: bar, lines or none.

    `show` takes precedence over ``MXNET_PROGRESS``; the default stream is stderr.
    """
    setting = env.get("MXNET_PROGRESS").strip().lower()
    setting = {"": "auto", "1": "auto", "0": "off"}.get(setting, setting)
    if setting not in ("auto", "bar", "lines", "off"):
        raise InvalidValue(f"MXNET_PROGRESS={setting!r} must be one of auto, bar, lines, off.")
    if show is False or (show is None and setting == "off"):
        return "off"
    if setting in ("bar", "lines"):
        return setting  # type: ignore[return-value]
    stream = sys.stderr if stream is None else stream
    if stream is None:  # a program without a console
        return "off"
    is_terminal = bool(getattr(stream, "isatty", lambda: False)())
    return "bar" if is_terminal or _is_in_notebook() else "lines"


def progress(
    iterable: Iterable | None = None,
    desc: str | None = None,
    total: int | None = None,
    *,
    show: bool | None = None,
    **options: Any,
) -> Any:
    """Return an iterable that shows the progress of iteration.

    It is a `tqdm` object: ``set_postfix(loss=...)`` shows values. On stderr, terminals and
    notebooks show a bar, files and pipes a line per minute.

    Parameters
    ----------
    iterable : iterable, optional
        Iterable, such as a DataLoader or DataIter. Without one, call ``update(n)``.
    desc : str
        Text before the bar.
    total : int, optional
        The number of items, if the iterable has no length.
    show : bool, optional
        False disables the progress, True enables it even if ``MXNET_PROGRESS=off``.
    options
        Arguments of `tqdm`.

    >>> sum(mx.progress([1, 2, 3], show=False))
    6
    """
    stream = options.get("file") or sys.stderr
    style = choose_style(show, stream)
    if total is None and not hasattr(iterable, "__len__"):
        total = batch_count(iterable)
    options = {"desc": desc, "total": total, "disable": style == "off", **options}
    if style == "bar":
        options.setdefault("dynamic_ncols", True)
    kind = _bar_class() if style == "bar" else _line_class()
    return kind(iterable, **options)


def batch_count(data: Any) -> int | None:
    """Return the number of batches of an epoch, or None if unknown.

    >>> batch_count(mx.io.NDArrayIter(mx.nd.ones((5, 1)), batch_size=2))
    3
    """
    samples, size = getattr(data, "num_data", None), getattr(data, "batch_size", None)
    if samples and size:
        is_padded = getattr(data, "last_batch_handle", "pad") == "pad"
        return -(-samples // size) if is_padded else samples // size
    if hasattr(data, "data_iter"):  # a ResizeIter
        return getattr(data, "size", None)
    try:
        return len(data)
    except TypeError:
        return None


def _is_in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return instance is not None and "IPKernelApp" in instance.config


@functools.cache
def _bar_class() -> type:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets, notebooks get a bar of characters
        from tqdm.auto import tqdm

    class Bar(tqdm):
        """A bar without a thread, which would not survive a fork."""

        monitor_interval = 0

    return Bar


@functools.cache
def _line_class() -> type:
    from tqdm.std import tqdm

    class Lines(tqdm):
        """Prints whole lines from time to time, without overwriting any."""

        monitor_interval = 0

        def __init__(self, iterable: Iterable | None = None, **options: Any) -> None:
            options.setdefault("mininterval", LINE_SECONDS)
            options.setdefault("delay", options["mininterval"])
            options.setdefault("miniters", 1)
            options.setdefault("ascii", True)
            options.setdefault("ncols", 0)  # numbers only
            super().__init__(iterable, **options)

        def refresh(self, *args: Any, **kwargs: Any) -> None:
            now = time.time()
            shown_at = getattr(self, "last_print_t", now)  # unset before the start
            if now - shown_at >= self.mininterval:  # not at every set_postfix()
                super().refresh(*args, **kwargs)

        def display(self, msg: str | None = None, pos: int | None = None) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]  # tqdm's stubs lack what it returns
            self.fp.write(f"{str(self) if msg is None else msg}\n")
            self.fp.flush()
            return True

        def clear(self, nolock: bool = False) -> None:
            pass

        def close(self) -> None:
            if not self.disable:
                self.disable = True  # nothing to clear
                getattr(self, "_decr_instances")(self)  # noqa: B009 (not in its stubs)

    return Lines
