"""What a server counts, for Prometheus, and its logs."""

from __future__ import annotations

import functools
import logging
import os
import sys
from pathlib import Path

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

disable_created_metrics()


class Metrics:
    """What the server counts; all processes of a server together."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        count = functools.partial(Counter, registry=self._registry)
        observe = functools.partial(Histogram, registry=self._registry)
        measure = functools.partial(Gauge, registry=self._registry, multiprocess_mode="livesum")
        self.requests = count("mx_requests", "Requests by status code.", ["code"])
        self.predictions = count("mx_predictions", "Predictions by model.", ["model"])
        self.rows = count("mx_rows", "Samples that were predicted.")
        self.reloads = count("mx_reloads", "Models that were loaded again.")
        self.seconds = observe(
            "mx_request_seconds", "Time from request to answer.", buckets=SECONDS
        )
        self.batches = observe("mx_batch_rows", "Samples in each batch.", buckets=ROWS)
        self.model_seconds = observe("mx_model_seconds", "Time of a batch.", buckets=SECONDS)
        self.queue = measure("mx_queue", "Requests that wait for the model.")
        self.active = measure("mx_active_requests", "Requests that are received or answered.")
        self.in_flight = measure("mx_bytes_in_flight", "Bytes that requests hold.")

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._collect())

    def answered(self) -> int:
        """Return how many requests were answered."""
        samples = [sample for family in self._collect().collect() for sample in family.samples]
        return int(sum(s.value for s in samples if s.name == "mx_requests_total"))

    def _collect(self) -> CollectorRegistry:
        """Return the numbers of all processes of the server."""
        folder = os.environ.get(SHARED_FOLDER)
        if folder is None:
            return self._registry
        for path in Path(folder).glob("gauge_live*.db"):
            pid = int(path.stem.rpartition("_")[2])
            if not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
                mark_process_dead(pid, folder)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, folder)
        return registry


def open_log(name: str, target: str, form: str) -> logging.Logger:
    """Return a logger that writes lines of a form to a file, ``-`` for stderr."""
    handler = logging.StreamHandler(sys.stderr) if target == "-" else logging.FileHandler(target)
    handler.setFormatter(logging.Formatter(form))
    logging.raiseExceptions = False  # a full disk must not fill stderr
    logger = logging.getLogger(f"mxnext.{name}")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    return logger
