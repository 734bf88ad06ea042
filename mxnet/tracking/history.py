"""`History`: the metrics of each epoch, as `fit` returns them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

__all__ = ["History", "format_duration"]


class History(Mapping[str, list[float]]):
    """The metrics of a training by name, one value for each epoch.

    Names begin with ``train_`` or ``val_``. An epoch without a metric, such as one without
    validation, has NaN in its place.

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
        """Add an epoch: its number, how long it took, and its metrics."""
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
            known = ", ".join(self._metrics) or "none yet"
            raise KeyError(f"No metric {name!r} was recorded; there are: {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    @property
    def last(self) -> dict[str, float]:
        """The metrics of the last epoch."""
        return {name: values[-1] for name, values in self._metrics.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict for each epoch, as loggers take them."""
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
        """Take over the content of a checkpoint."""
        self.epoch, self.time = list(state["epoch"]), list(state["time"])
        self._metrics = {name: list(values) for name, values in state["metrics"].items()}

    def __repr__(self) -> str:
        return f"<History: {self.summary()}>"

    def _repr_html_(self) -> str:
        names = ["epoch", "time", *self._metrics]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{_shorten(row[name])}</td>" for name in names) + "</tr>"
            for row in self.rows()
        )
        return f"<table><tr>{head}</tr>{body}</table>"


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
