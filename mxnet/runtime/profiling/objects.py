"""Marks that users put into the trace: tasks, frames, events, counters, markers, scopes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch.profiler import record_function

from ...error import MXNetError
from .control import recording
from .session import now

MARKER_SCOPES = {"global": "g", "process": "p", "thread": "t", "task": "t", "marker": "t"}


class Domain:
    """A group of marks, shown as their category in the trace.

    Parameters
    ----------
    name
        The name that the trace shows.

    >>> str(Domain("loading"))
    'loading'
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        """Return a task of this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """Return a frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: int | None = None) -> Counter:
        """Return a counter of this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """Return a marker of this domain."""
        return Marker(self, name)


class _Span:
    """A mark with a duration, from `start` to `stop`."""

    def __init__(self, name: str, category: str) -> None:
        self.name, self._category = name, category
        self._started: float | None = None

    def start(self) -> None:
        """Start the event."""
        self._started = now()

    def stop(self) -> None:
        """Stop the event. Do nothing if it was not started."""
        begun, self._started = self._started, None
        if begun is not None:
            recording.mark(ph="X", name=self.name, cat=self._category, ts=begun, dur=now() - begun)

    def __str__(self) -> str:
        return self.name

    def __enter__(self) -> _Span:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class Task(_Span):
    """A unit of work. All runs of a task are one row of the statistics.

    Parameters
    ----------
    domain
        The group that it belongs to.
    name
        The name that the trace shows.

    >>> with Task(Domain("loading"), "read"):
    ...     pass
    """

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(name, str(domain))


class Frame(_Span):
    """One of many iterations, such as a frame of a video. Shown separately from tasks.

    Parameters
    ----------
    domain
        The group that it belongs to.
    name
        The name that the trace shows.

    >>> with Frame(Domain("loading"), "batch"):
    ...     pass
    """

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(name, f"{domain},frame")


class Event(_Span):
    """A time span without a domain.

    Parameters
    ----------
    name
        The name that the trace shows.

    >>> with Event("reading"):
    ...     pass
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, "event")


class Counter:
    """A number that changes; the trace shows it as a curve.

    Parameters
    ----------
    domain
        The group that it belongs to.
    name
        The name that the trace shows.
    value
        The first value.

    >>> counter = Domain("loading").new_counter("images", 3)
    >>> counter += 2
    >>> counter.decrement()
    >>> counter.value
    4
    """

    def __init__(self, domain: Domain, name: str, value: int | None = None) -> None:
        self.name, self._category = name, str(domain)
        self.value = 0
        self._lock = threading.Lock()
        if value is not None:
            self.set_value(value)

    def set_value(self, value: int) -> None:
        """Set the value."""
        with self._lock:
            self.value = value
            self._tell()

    def increment(self, delta: int = 1) -> None:
        """Add to the value."""
        with self._lock:
            self.value += delta
            self._tell()

    def decrement(self, delta: int = 1) -> None:
        """Subtract from the value."""
        self.increment(-delta)

    def _tell(self) -> None:
        recording.mark(ph="C", name=self.name, cat=self._category, args={self.name: self.value})

    def __iadd__(self, delta: int) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: int) -> Counter:
        self.decrement(delta)
        return self

    def __str__(self) -> str:
        return self.name


class Marker:
    """A point in time.

    Parameters
    ----------
    domain
        The group that it belongs to.
    name
        The name that the trace shows.

    >>> Marker(Domain("loading"), "done").mark()
    """

    def __init__(self, domain: Domain, name: str) -> None:
        self.name, self.domain = name, domain

    def mark(self, scope: str = "process") -> None:
        """Add a mark at the current time.

        Parameters
        ----------
        scope : {'global', 'process', 'thread', 'task', 'marker'}
            Extent of the line in the trace.
        """
        if scope not in MARKER_SCOPES:
            raise MXNetError(
                f"Invalid Input: {scope!r}, valid values are: {', '.join(MARKER_SCOPES)}"
            )
        category = f"{self.domain},instant_marker"
        recording.mark(ph="i", name=self.name, cat=category, s=MARKER_SCOPES[scope])


class _Names(threading.local):
    """The scopes entered by ``with`` in this thread, as one prefix."""

    prefix = ""


_names = _Names()


@contextmanager
def scope(name: str = "<unk>:", append_mode: bool = True) -> Iterator[None]:
    """Show the code inside the ``with`` statement as one named span of the trace.

    Parameters
    ----------
    name : str
        The name that the trace shows.
    append_mode
        Whether to append the name to those of the enclosing scopes.

    >>> with mx.profiler.scope("encoder:"):
    ...     y = mx.nd.ones(2) + 1
    """
    name = name if name.endswith(":") else f"{name}:"
    before = _names.prefix
    _names.prefix = full = before + name if append_mode else name
    try:
        with record_function(full.rstrip(":")):
            yield
    finally:
        _names.prefix = before
