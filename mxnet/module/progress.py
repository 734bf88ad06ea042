"""The live line of `fit` on a terminal: how far, how fast, how good, how long still."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

SHOWN_EVERY = 0.1  # seconds between two drawings
CLEAR = "\r\x1b[2K"  # to the start of the line, and empty it


class Progress:
    """One line that is drawn over and over; on anything but a terminal it stays silent.

    Parameters
    ----------
    wanted : bool, or None to show it only on a terminal.
    train_data : the iterator; its batch size and number of samples are used if it has them.
    begin, end : the epochs.
    stream : where to draw, by default stderr.
    """

    def __init__(
        self,
        wanted: bool | None,
        train_data: Any,
        begin: int,
        end: int,
        stream: TextIO | None = None,
    ) -> None:
        self.stream = sys.stderr if stream is None else stream
        if wanted is None:
            wanted = bool(getattr(self.stream, "isatty", lambda: False)())
        self.wanted = wanted and end > begin
        self.begin, self.end = begin, end
        self.batch_size = getattr(train_data, "batch_size", 0) or 0
        self.total = batches_of(train_data) if self.wanted else None
        self.done = self.drawn_at = 0
        self.visible = False

    def start(self, epoch: int, nbatch: int = 0) -> None:
        """Begin an epoch, perhaps in its middle."""
        if not self.wanted:
            return
        if epoch > self.begin and self.done:
            self.total = self.done  # what the epoch before really had
        self.epoch, self.done, self.first = epoch, nbatch, nbatch
        self.started = time.monotonic()

    def step(self, metric: Any) -> None:
        """Count a batch, and draw if the last drawing is old enough."""
        if not self.wanted:
            return
        self.done += 1
        now = time.monotonic()
        if now - self.drawn_at < SHOWN_EVERY:
            return
        self.drawn_at = now
        self.stream.write(CLEAR + self.line(metric, now - self.started))
        self.stream.flush()
        self.visible = True

    def line(self, metric: Any, seconds: float) -> str:
        """Return the text of the line."""
        rate = (self.done - self.first) / max(seconds, 1e-9)
        of = f"/{self.total}" if self.total else ""
        parts = [f"Epoch[{self.epoch}] {self.done}{of}"]
        parts.append(
            f"{rate * self.batch_size:.0f} samples/s"
            if self.batch_size
            else f"{rate:.1f} batches/s"
        )
        parts += [f"{name}={value:.4f}" for name, value in metric.get_name_value()]
        if self.total and rate:
            left = max(0, self.total - self.done) + (self.end - self.epoch - 1) * self.total
            parts.append(f"ETA {clock(left / rate)}")
        return "  ".join(parts)

    def clear(self) -> None:
        """Take the line away, so that something else can be written."""
        if self.visible:
            self.stream.write(CLEAR)
            self.stream.flush()
            self.visible = False


def batches_of(train_data: Any) -> int | None:
    """Return how many batches an epoch has, if the iterator knows."""
    samples, size = getattr(train_data, "num_data", None), getattr(train_data, "batch_size", None)
    if not samples or not size:
        return getattr(train_data, "size", None) if hasattr(train_data, "data_iter") else None
    exact = getattr(train_data, "last_batch_handle", "pad") != "pad"
    return samples // size if exact else -(-samples // size)


def clock(seconds: float) -> str:
    """Return a time span as people read it.

    >>> clock(75), clock(3725)
    ('1:15', '1:02:05')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
