"""What a server counts, in Prometheus' text format, summed over its processes.

All numbers are in one block of memory, which the processes of a server share: each writes into
its own row, and whoever is asked adds the rows. So the labels are fixed from the start.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)
CODES = (200, 400, 401, 403, 404, 405, 408, 411, 413, 415, 421, 431, 499, 500, 503, 504)
OTHER = "other"
REFUSED = ("header timeout", "body timeout", "slow reader", "evicted", "malformed")
SLOTS = 256


class Table:
    """Numbers of all processes: a row for each."""

    def __init__(self, values: np.ndarray | None = None, row: int = 0) -> None:
        self._values = np.zeros((1, SLOTS)) if values is None else values
        self._own = self._values[row]
        self._used = 0
        self.lock = threading.Lock()

    def take(self, count: int) -> int:
        """Return the first of so many slots; every process takes the same ones."""
        first = self._used
        self._used += count
        if self._used > SLOTS:
            raise ValueError(f"there are more than {SLOTS} numbers")
        return first

    def add(self, slot: int, amount: float = 1) -> None:
        """Add to a number of this process."""
        with self.lock:
            self._own[slot] += amount

    def put(self, slot: int, value: float) -> None:
        """Change a number of this process."""
        self._own[slot] = value

    def sum(self, first: int, count: int = 1) -> list[float]:
        """Return numbers summed over all processes."""
        return self._values[:, first : first + count].sum(axis=0).tolist()


def escape(label: str) -> str:
    """Return a label's value as the text format writes it."""
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Counter:
    """A number that only grows, for each value of one label."""

    def __init__(
        self, table: Table, name: str, about: str, label: str = "", values: Sequence[str] = ("",)
    ) -> None:
        self._table, self._name, self._about, self._label = table, name, about, label
        values = [*values, OTHER] if label else [""]
        first = table.take(len(values))
        self._slots = {value: first + i for i, value in enumerate(values)}

    def add(self, amount: float = 1, label: str = "") -> None:
        """Add to the number."""
        slot = self._slots.get(label)
        self._table.add(self._slots[OTHER] if slot is None else slot, amount)

    def value(self, label: str = "") -> float:
        """Return the number."""
        return self._table.sum(self._slots[label])[0]

    def total(self) -> float:
        """Return the sum over all labels."""
        return sum(self.value(label) for label in self._slots)

    def lines(self) -> list[str]:
        """Return the lines of the text format."""
        lines = [f"# HELP {self._name} {self._about}", f"# TYPE {self._name} counter"]
        for label in self._slots:
            value = self.value(label)
            if self._label and not value:
                continue
            where = f'{{{self._label}="{escape(label)}"}}' if self._label else ""
            lines.append(f"{self._name}{where} {value:.16g}")
        return lines


class Gauge:
    """A number that is read when it is asked for, or that each process puts."""

    def __init__(
        self, table: Table, name: str, about: str, read: Callable[[], float] | None = None
    ) -> None:
        self._table, self._name, self._about, self._read = table, name, about, read
        self._slot = table.take(1)

    def put(self, value: float) -> None:
        """Change the number of this process."""
        self._table.put(self._slot, value)

    def lines(self) -> list[str]:
        """Return the lines of the text format."""
        value = self._read() if self._read is not None else self._table.sum(self._slot)[0]
        return [
            f"# HELP {self._name} {self._about}",
            f"# TYPE {self._name} gauge",
            f"{self._name} {value:.16g}",
        ]


class Histogram:
    """How often values fell below each of some limits."""

    def __init__(self, table: Table, name: str, about: str, limits: Sequence[float]) -> None:
        self._table, self._name, self._about, self._limits = table, name, about, tuple(limits)
        self._first = table.take(len(self._limits) + 2)
        self._sum = self._first + len(self._limits) + 1

    def observe(self, value: float) -> None:
        """Count one value."""
        with self._table.lock:
            own = self._table._own
            own[self._first + bisect_left(self._limits, value)] += 1
            own[self._sum] += value

    @property
    def count(self) -> int:
        """How many values were counted."""
        return int(sum(self._table.sum(self._first, len(self._limits) + 1)))

    def lines(self) -> list[str]:
        """Return the lines of the text format."""
        lines = [f"# HELP {self._name} {self._about}", f"# TYPE {self._name} histogram"]
        *counts, total = self._table.sum(self._first, len(self._limits) + 2)
        below = 0
        for limit, count in zip((*self._limits, "+Inf"), counts, strict=True):
            below += int(count)
            lines.append(f'{self._name}_bucket{{le="{limit}"}} {below}')
        return [*lines, f"{self._name}_sum {total:.16g}", f"{self._name}_count {below}"]


class Metrics:
    """What the server counts."""

    def __init__(self, table: Table | None = None, models: Sequence[str] = ()) -> None:
        table = table or Table()
        self.requests = Counter(
            table, "mx_requests_total", "Requests by status code.", "code", [str(c) for c in CODES]
        )
        self.predictions = Counter(
            table, "mx_predictions_total", "Predictions by model.", "model", list(models)[:32]
        )
        self.refused = Counter(
            table, "mx_refused_connections_total", "Connections closed, by reason.", "reason",
            REFUSED,
        )  # fmt: skip
        self.rows = Counter(table, "mx_rows_total", "Samples that were predicted.")
        self.restarts = Counter(
            table, "mx_worker_restarts_total", "Workers that died and were replaced."
        )
        self.reloads = Counter(table, "mx_reloads_total", "Models that were loaded again.")
        self.suppressed = Counter(table, "mx_log_lines_suppressed_total", "Lines not written.")
        self.seconds = Histogram(
            table, "mx_request_seconds", "Time from request to answer.", SECONDS
        )
        self.batches = Histogram(table, "mx_batch_rows", "Samples in each batch.", ROWS)
        self.model_seconds = Histogram(
            table, "mx_model_seconds", "Time of the model per batch.", SECONDS
        )
        self.queue = Gauge(table, "mx_queue", "Requests that wait for the model.")
        self.workers = Gauge(table, "mx_workers", "Threads that run models.")
        self.connections = Gauge(table, "mx_connections", "Open connections.")
        self.in_flight = Gauge(table, "mx_bytes_in_flight", "Bytes that requests hold.")
        start = time.time()
        self.start = Gauge(
            table, "mx_start_time_seconds", "When the server started.", lambda: start
        )

    def text(self) -> str:
        """Return everything in the text format."""
        parts = (self.requests, self.predictions, self.refused, self.rows, self.restarts,
                 self.reloads, self.suppressed, self.seconds, self.batches, self.model_seconds,
                 self.queue, self.workers, self.connections, self.in_flight,
                 self.start)  # fmt: skip
        return "\n".join(line for part in parts for line in part.lines()) + "\n"
