"""Counters, gauges and histograms in Prometheus' text format."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)


class Counter:
    """A number that only grows, for each value of one label."""

    def __init__(self, name: str, about: str, label: str = "") -> None:
        self._name, self._about, self._label = name, about, label
        self._values: dict[str, float] = {} if label else {"": 0}
        self._lock = threading.Lock()

    def add(self, amount: float = 1, label: str = "") -> None:
        """Add to the number."""
        with self._lock:
            self._values[label] = self._values.get(label, 0) + amount

    def value(self, label: str = "") -> float:
        """Return the number."""
        return self._values.get(label, 0)

    def lines(self) -> list[str]:
        """Return the lines of the text format."""
        shown = [f"# HELP {self._name} {self._about}", f"# TYPE {self._name} counter"]
        for label, value in sorted(self._values.items()):
            where = f'{{{self._label}="{label}"}}' if self._label else ""
            shown.append(f"{self._name}{where} {value:g}")
        return shown


class Gauge:
    """A number that is read when it is asked for."""

    def __init__(self, name: str, about: str, read: Callable[[], float]) -> None:
        self._name, self._about, self._read = name, about, read

    def lines(self) -> list[str]:
        """Return the lines of the text format."""
        return [
            f"# HELP {self._name} {self._about}",
            f"# TYPE {self._name} gauge",
            f"{self._name} {self._read():g}",
        ]


class Histogram:
    """How often values fell below each of some limits."""

    def __init__(self, name: str, about: str, limits: Sequence[float]) -> None:
        self._name, self._about, self._limits = name, about, tuple(limits)
        self._counts = [0] * (len(self._limits) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, value: float) -> None:
        """Count one value."""
        with self._lock:
            self._counts[bisect_left(self._limits, value)] += 1
            self._sum += value

    @property
    def count(self) -> int:
        """How many values were counted."""
        return sum(self._counts)

    def lines(self) -> list[str]:
        """Return the lines of the text format."""
        shown = [f"# HELP {self._name} {self._about}", f"# TYPE {self._name} histogram"]
        with self._lock:
            counts, total = list(self._counts), self._sum
        below = 0
        for limit, count in zip((*self._limits, "+Inf"), counts, strict=True):
            below += count
            shown.append(f'{self._name}_bucket{{le="{limit}"}} {below}')
        return [*shown, f"{self._name}_sum {total:g}", f"{self._name}_count {below}"]


class Metrics:
    """What the server counts."""

    def __init__(self) -> None:
        self.requests = Counter("mx_requests_total", "Requests by status code.", "code")
        self.rows = Counter("mx_rows_total", "Samples that were predicted.")
        self.restarts = Counter("mx_worker_restarts_total", "Workers that died and were replaced.")
        self.seconds = Histogram("mx_request_seconds", "Time from request to answer.", SECONDS)
        self.batches = Histogram("mx_batch_rows", "Samples in each batch.", ROWS)
        self.model_seconds = Histogram("mx_model_seconds", "Time of the model per batch.", SECONDS)
        self.gauges: list[Gauge] = []

    def text(self) -> str:
        """Return everything in the text format."""
        parts = (self.requests, self.rows, self.restarts, self.seconds, self.batches,
                 self.model_seconds, *self.gauges)  # fmt: skip
        return "\n".join(line for part in parts for line in part.lines()) + "\n"
