"""What a server counts, for Prometheus, and its lines about requests and errors, as JSON."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)
METRICS_KIND = "text/plain; version=0.0.4; charset=utf-8"
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where processes of one server write their numbers
MAX_LINE = 4096  # characters
BURST = 50  # lines that may come at once

disable_created_metrics()


class Metrics:
    """What the server counts; all processes of a server together."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()

        def count(name: str, about: str, labels: Sequence[str] = ()) -> Counter:
            return Counter(name, about, labels, registry=registry)

        def observe(name: str, about: str, buckets: Sequence[float]) -> Histogram:
            return Histogram(name, about, buckets=buckets, registry=registry)

        def measure(name: str, about: str, mode: Any = "livesum") -> Gauge:
            return Gauge(name, about, registry=registry, multiprocess_mode=mode)

        self.requests = count("mx_requests", "Requests by status code.", ["code"])
        self.predictions = count("mx_predictions", "Predictions by model.", ["model"])
        self.rows = count("mx_rows", "Samples that were predicted.")
        self.reloads = count("mx_reloads", "Models that were loaded again.")
        self.suppressed = count("mx_log_lines_suppressed", "Lines not written.")
        self.seconds = observe("mx_request_seconds", "Time from request to answer.", SECONDS)
        self.batches = observe("mx_batch_rows", "Samples in each batch.", ROWS)
        self.model_seconds = observe("mx_model_seconds", "Time of the model per batch.", SECONDS)
        self.queue = measure("mx_queue", "Requests that wait for the model.")
        self.active = measure("mx_active_requests", "Requests that are received or answered.")
        self.in_flight = measure("mx_bytes_in_flight", "Bytes that requests hold.")
        self.start = measure("mx_start_time_seconds", "When the server started.", "min")
        self.start.set(time.time())

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(_all_processes() or self._registry)

    def answered(self) -> int:
        """Return how many requests were answered."""
        registry = _all_processes() or self._registry
        samples = [sample for family in registry.collect() for sample in family.samples]
        return int(sum(s.value for s in samples if s.name == "mx_requests_total"))


def _all_processes() -> CollectorRegistry | None:
    """Return the numbers of all processes of a server, if there are several."""
    folder = os.environ.get(SHARED_FOLDER)
    if folder is None:
        return None
    for pid in {int(path.stem.rpartition("_")[2]) for path in Path(folder).glob("gauge_live*.db")}:
        if not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
            mark_process_dead(pid, folder)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, folder)
    return registry


class RateLimit(logging.Filter):
    """Lets at most `rate` lines a second pass, and some more at once; the others are counted."""

    def __init__(self, rate: float, suppressed: Counter) -> None:
        super().__init__()
        self._rate, self._burst = rate, max(BURST, rate)
        self._left, self._since = self._burst, time.monotonic()
        self._suppressed, self._count = suppressed, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._since) * self._rate)
        self._since = now
        if self._left < 1:
            self._count += 1
            self._suppressed.inc()
            return False
        self._left -= 1
        record.suppressed, self._count = self._count, 0
        return True


class JSONLine(logging.Formatter):
    """Formats a record, or the fields that are its message, as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        level, fields = record.levelname.lower(), record.msg
        if not isinstance(fields, dict):
            fields = {"level": level, "message": record.getMessage().strip()}
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            fields = {**fields, "error": f"{type(error).__name__}: {error}"[:500]}
        if count := getattr(record, "suppressed", 0):
            fields = {**fields, "suppressed": count}
        when = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        line = msgspec.json.encode({"time": when, **fields}, enc_hook=str)
        return line.decode()[:MAX_LINE]


def open_log(name: str, target: str, rate: float, suppressed: Counter) -> logging.Logger:
    """Return a logger that writes lines of JSON to a file, ``-`` for stderr."""
    handler = logging.StreamHandler(sys.stderr) if target == "-" else logging.FileHandler(target)
    handler.addFilter(RateLimit(rate, suppressed))
    handler.setFormatter(JSONLine())
    logging.raiseExceptions = False  # a full disk must not fill stderr
    logger = logging.getLogger(f"mxnext.{name}")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    return logger
