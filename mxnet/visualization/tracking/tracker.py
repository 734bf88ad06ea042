"""`History`, the metrics of each epoch, and `Tracker`, which shows and records them."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from ...error import FormatError
from ...parallel.group import current_group
from .bar import batch_count, choose_style, progress, yielding_to_output
from .loggers import check_loggers


class History(Mapping[str, list[float]]):
    """The metrics of a training by name, one value for each epoch.

    Names start with ``train_`` or ``val_``. Missing values are NaN.

    >>> history = mx.tracking.History()
    >>> history.add(0, 2.0, {"train_loss": 0.5})
    >>> history.add(1, 2.0, {"train_loss": 0.25, "val_loss": 0.5})
    >>> history["val_loss"], history.last
    ([nan, 0.5], {'train_loss': 0.25, 'val_loss': 0.5})
    """

    def __init__(self) -> None:
        self.epoch: list[int] = []
        self.time: list[float] = []
        self._metrics: dict[str, list[float]] = {}

    def add(self, epoch: int, seconds: float, metrics: Mapping[str, Any]) -> None:
        """Add an epoch: its number, time and metrics."""
        self.epoch.append(int(epoch))
        self.time.append(float(seconds))
        for name in metrics:
            self._metrics.setdefault(name, [math.nan] * (len(self.epoch) - 1))
        for name, values in self._metrics.items():
            values.append(float(metrics.get(name, math.nan)))

    def __getitem__(self, name: str) -> list[float]:
        try:
            return self._metrics[name]
        except KeyError:
            names = ", ".join(self._metrics) or "none yet"
            raise KeyError(f"No metric {name!r} was recorded; there are: {names}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    @property
    def last(self) -> dict[str, float]:
        """The metrics of the last epoch."""
        return {name: values[-1] for name, values in self._metrics.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per epoch, for loggers."""
        return [
            {"epoch": epoch, "time": seconds, **{n: v[i] for n, v in self._metrics.items()}}
            for i, (epoch, seconds) in enumerate(zip(self.epoch, self.time, strict=True))
        ]

    def summary(self) -> str:
        """Return the training in one line: epochs, time and last metrics.

        >>> history = mx.tracking.History()
        >>> history.add(0, 75.0, {"train_loss": 0.5})
        >>> history.summary()
        'Trained 1 epoch in 1:15: train_loss=0.5000'
        """
        count = len(self.epoch)
        text = f"Trained {count} epoch{'' if count == 1 else 's'}"
        text += f" in {format_duration(sum(self.time))}"
        values = ", ".join(f"{name}={value:.4f}" for name, value in self.last.items())
        return f"{text}: {values}" if values else text

    def state_dict(self) -> dict[str, Any]:
        """Return the content for a checkpoint."""
        metrics = {name: list(values) for name, values in self._metrics.items()}
        return {"epoch": list(self.epoch), "time": list(self.time), "metrics": metrics}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the content of a checkpoint, which must be numbers."""
        if not isinstance(state, Mapping):
            raise FormatError(f"The history of a checkpoint is a {type(state).__name__}, no dict.")
        epoch, seconds = _read_numbers(state, "epoch", int), _read_numbers(state, "time", float)
        stored = state.get("metrics")
        if not isinstance(stored, Mapping) or not all(isinstance(name, str) for name in stored):
            raise FormatError("The history of a checkpoint has no metrics by name.")
        metrics = {name: _read_numbers(stored, name, float) for name in stored}
        if not all(math.isfinite(value) for value in seconds):
            raise FormatError("The history of a checkpoint has a time that is not a finite number.")
        lengths = {len(values) for values in (epoch, seconds, *metrics.values())}
        if len(lengths) > 1:
            raise FormatError(
                "The history of a checkpoint has different numbers of epochs: "
                f"{', '.join(map(str, sorted(lengths)))}."
            )
        self.epoch, self.time, self._metrics = epoch, seconds, metrics

    def __repr__(self) -> str:
        return f"<History: {self.summary()}>"

    def _repr_html_(self) -> str:
        names = ["epoch", "time", *self._metrics]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_shorten(row[name]))}</td>" for name in names) + "</tr>"
            for row in self.rows()
        )
        return f"<table><tr>{head}</tr>{body}</table>"


def _read_numbers(state: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    """Return a list of plain numbers of a checkpoint; anything else is an error."""
    values = state.get(name)
    if not isinstance(values, list | tuple):
        raise FormatError(f"The history of a checkpoint has no list {name[:80]!r}.")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, kind)):
            raise FormatError(
                f"The history of a checkpoint has a {type(value).__name__} in {name[:80]!r}, where "
                "numbers are."
            )
        if isinstance(value, int) and value.bit_length() > 64:
            raise FormatError(
                f"The history of a checkpoint has a number too large in {name[:80]!r}."
            )
    return [kind(value) for value in values]


def _shorten(value: float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def format_duration(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds; below ten seconds with a decimal.

    >>> format_duration(2.25), format_duration(75), format_duration(3725)
    ('2.2 s', '1:15', '1:02:05')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


DRAW_SECONDS = 0.2  # seconds between updates of the metrics
BAR_FORMAT = (
    "{desc}: {percentage:3.0f}%|{bar:10}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
)
BAR_WIDTH = 58  # columns of a bar and its numbers, before the metrics


def count_columns(stream: Any) -> int | None:
    """Return the width of the terminal behind a stream, or None if it is not one."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return None


def describe_memory() -> str:
    """Return the memory of this process, such as ``1.2 GB``, or '' if unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return f"{pages * os.sysconf('SC_PAGE_SIZE') / 1e9:.1f} GB"
    except (OSError, ValueError, IndexError):
        return ""  # not Linux


def pair_splits(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return metrics ordered so that training and validation of each are adjacent.

    >>> list(pair_splits({"train_accuracy": 0.9, "train_loss": 0.2, "val_accuracy": 0.8}))
    ['train_accuracy', 'val_accuracy', 'train_loss']
    """
    kinds = list(dict.fromkeys(name.partition("_")[2] for name in metrics))
    return dict(sorted(metrics.items(), key=lambda item: kinds.index(item[0].partition("_")[2])))


class Tracker:
    """Shows a bar for each epoch, keeps the history and feeds the loggers.

    Use it as ``with Tracker(...) as tracker``. For every epoch call `start_epoch`, `step` after
    every batch, and `end_epoch`.

    Parameters
    ----------
    data
        The training data; its number of batches and batch size are used if known.
    show : bool, optional
        Whether to show progress; see `mx.progress`.
    loggers : Logger or list
        A logger, or a list of loggers.
    logger : logging.Logger
        Logger of `fit`. If it is silent, bars stay on the screen and a final line is printed to
        stderr.
    num_epoch : int, optional
        The epoch before which training ends, to estimate the remaining time.

    >>> tracker = mx.tracking.Tracker([1, 2, 3], show=False)
    >>> tracker.history.epoch
    []
    """

    def __init__(
        self,
        data: Any,
        show: bool | None = None,
        loggers: Any = None,
        logger: Any = logging,
        num_epoch: int | None = None,
    ) -> None:
        group = current_group()
        is_leader = group is None or group.rank == 0  # in a distributed job only one worker reports
        self.history = History()
        self._loggers = check_loggers(loggers) if is_leader else []
        self._style = choose_style(show) if is_leader else "off"
        self._is_shown_elsewhere = any(each.shows_metrics for each in self._loggers)
        self._logger = logger
        self._is_silent = not _logs_info(logger)
        self._data = data
        self._batch_size = getattr(data, "batch_size", None) or 0
        self._stream = sys.stderr
        self._total: int | None = None
        self._num_epoch = num_epoch
        self._epoch = 0
        self._bar: Any = None
        self._is_visible = False
        self._next_draw = 0.0
        self._exit = contextlib.ExitStack()

    # -- the whole training -------------------------------------------------------------------

    def __enter__(self) -> Tracker:
        if self._style == "bar":
            self._exit.enter_context(yielding_to_output(self._clear, self._logger))
        for each in self._loggers:
            self._exit.callback(each.end)
            each.begin(self.history)
        return self

    def __exit__(self, kind: type | None, error: Any, trace: Any) -> None:
        self._close_bar()
        self._exit.close()
        if kind is None and self._is_silent and self._style != "off" and self.history.epoch:
            sys.stderr.write(f"{self.history.summary()}\n")

    def announce(self, text: str) -> None:
        """Write a line to the output of this training."""
        if not self._is_silent:
            self._logger.info(text)
        elif self._style != "off":
            sys.stderr.write(f"{text}\n")

    # -- an epoch -----------------------------------------------------------------------------

    def start_epoch(self, epoch: int, done: int = 0) -> None:
        """Begin an epoch, possibly after some of its batches."""
        self._started = time.monotonic()
        self._first = self._count = done
        self._epoch = epoch
        if self._style == "off":
            return
        total = self._total or batch_count(self._data)
        if self._bar is None:
            self._bar = self._make_bar(total, done)
        else:  # one bar for all epochs
            self._bar.reset(total)
            self._bar.update(done)
            self._bar.set_description(f"Epoch[{epoch}]")
        self._is_visible = True
        self._next_draw = self._started + self._bar.mininterval

    def _make_bar(self, total: int | None, done: int) -> Any:
        return progress(
            desc=f"Epoch[{self._epoch}]",
            total=total,
            initial=done,
            show=True,
            unit=" batches",
            leave=self._is_silent and not self._is_shown_elsewhere,
            file=self._stream,
            **({"bar_format": BAR_FORMAT} if self._style == "bar" else {}),
        )

    def step(self, metrics: Iterable[Any]) -> None:
        """Count a batch, and update the display if the last update is old enough."""
        self._count += 1
        if self._bar is None:
            return
        now = time.monotonic()
        if now < self._next_draw:
            return
        self._draw(metrics)
        self._next_draw = now + max(DRAW_SECONDS, self._bar.mininterval)

    def end_epoch(self, epoch: int, metrics: Mapping[str, Any]) -> None:
        """Record an epoch."""
        self._total = self._count  # the actual number of batches
        self.history.add(epoch, time.monotonic() - self._started, metrics)
        if self._bar is not None and self._is_silent and self._style == "bar":
            last = pair_splits(self.history.last)
            self._show([f"{name}={value:.4f}" for name, value in last.items()])
        if not self._is_shown_elsewhere:
            self._close_bar()
        row = self.history.rows()[-1]
        for each in self._loggers:
            each.log(row)

    def finish_batches(self, metrics: Iterable[Any]) -> None:
        """Show the final metrics of an epoch; its bar stays until the end of validation."""
        if self._bar is None:
            return
        if self._style == "bar" and self._is_silent:
            self._draw(metrics)
        elif not self._is_shown_elsewhere:
            self._close_bar()

    # -- drawing ------------------------------------------------------------------------------

    def _draw(self, metrics: Iterable[Any]) -> None:
        """Show the metrics and, if there is space, validation, speed, remaining time and memory."""
        parts = [f"{n}={v:.4f}" for metric in metrics for n, v in metric.get_global_name_value()]
        if self.history.epoch:
            last = self.history.last.items()
            parts += [f"last {name}={value:.4f}" for name, value in last if name[:4] == "val_"]
        seconds = max(time.monotonic() - self._started, 1e-9)
        if self._batch_size:
            rate = (self._count - self._first) * self._batch_size / seconds
            parts.append(f"{rate:.0f} samples/s")
        parts += [text for text in (self._describe_rest(seconds), describe_memory()) if text]
        self._show(parts)

    def _show(self, parts: list[str]) -> None:
        columns = count_columns(self._stream)
        if self._style == "bar" and columns is not None:
            room = columns - BAR_WIDTH
            parts = [part for i, part in enumerate(parts) if len(", ".join(parts[: i + 1])) <= room]
        self._bar.set_postfix_str(", ".join(parts), refresh=False)
        if not self._bar.update(self._count - self._bar.n) and self._style == "bar":
            self._bar.refresh()
        self._is_visible = True

    def _describe_rest(self, seconds: float) -> str:
        """Return the remaining time of all epochs, if there are several."""
        done = self._count - self._first
        total = self._total or batch_count(self._data)
        if not (done and total and self._num_epoch and self._num_epoch - self._epoch > 1):
            return ""
        batches = (self._num_epoch - self._epoch - 1) * total + total - self._count
        return f"all epochs in {format_duration(seconds / done * batches)}"

    def _clear(self) -> None:
        if self._is_visible and self._bar is not None:
            self._bar.clear()
            self._stream.flush()
            self._is_visible = False

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar, self._is_visible = None, False


def _logs_info(logger: Any) -> bool:
    asked = logging.getLogger() if logger is logging else logger
    is_enabled = getattr(asked, "isEnabledFor", None)
    return is_enabled is None or is_enabled(logging.INFO)
