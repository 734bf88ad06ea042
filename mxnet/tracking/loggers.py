"""Loggers that write the metrics of each epoch to a file."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from ..error import InvalidValue
from ..formats.atomic import replacing
from ..formats.location import local_path
from .history import History

__all__ = ["CSVLogger", "JSONLinesLogger", "Logger", "check_loggers"]


class Logger:
    """Writes the metrics of each epoch somewhere; subclass it for a place of your own.

    Give loggers to ``Module.fit(loggers=...)`` or ``Estimator.fit(loggers=...)``; in a loop of
    your own call the three methods.

    >>> class Printer(mx.tracking.Logger):
    ...     def log(self, row):
    ...         print(row["epoch"], row["train_loss"])
    >>> Printer().log({"epoch": 0, "time": 1.5, "train_loss": 0.25})
    0 0.25
    """

    def begin(self, history: History) -> None:
        """Start; a resumed training gives the epochs that are done."""

    def log(self, row: Mapping[str, Any]) -> None:
        """Take an epoch: a dict with ``epoch``, ``time`` (seconds) and the metrics."""
        raise NotImplementedError

    def end(self) -> None:
        """Finish; it is called also when training failed."""


class _FileLogger(Logger):
    """A logger that rewrites its file when training begins, so that resumed runs match."""

    def __init__(self, path: str | os.PathLike[str], append: bool = False) -> None:
        self._path: Path = local_path(path)
        self._append = append
        self._kept: list[dict[str, Any]] = []
        self._rows: list[dict[str, Any]] = []

    def begin(self, history: History) -> None:
        """Write the rows that are known: of the file with ``append``, and of a resumed run."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        is_continued = self._append and self._path.exists()
        self._kept = self._read() if is_continued and not history.epoch else []
        self._rows = history.rows()
        self._write_all()

    def log(self, row: Mapping[str, Any]) -> None:
        """Append an epoch to the file."""
        self._rows.append(dict(row))
        self._append_last()

    def _write_all(self) -> None:
        with replacing(self._path) as file:
            file.write(self._format([*self._kept, *self._rows]).encode())

    def _append_last(self) -> None:
        with self._path.open("a", encoding="utf-8", newline="") as file:
            file.write(self._format(self._rows[-1:]))

    def _format(self, rows: list[dict[str, Any]]) -> str:
        raise NotImplementedError

    def _read(self) -> list[dict[str, Any]]:
        raise NotImplementedError


class JSONLinesLogger(_FileLogger):
    r"""Writes one JSON object for each epoch, one in a line; NaN and infinities become null.

    Parameters
    ----------
    path : str
        The file to write.
    append : bool
        Keep the lines of an older training.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "run.jsonl")
    >>> logger = mx.tracking.JSONLinesLogger(path)
    >>> logger.begin(mx.tracking.History())
    >>> logger.log({"epoch": 0, "time": 1.5, "train_loss": 0.25})
    >>> path.read_text()
    '{"epoch": 0, "time": 1.5, "train_loss": 0.25}\n'
    """

    def _format(self, rows: list[dict[str, Any]]) -> str:
        finite = ({k: v if math.isfinite(v) else None for k, v in row.items()} for row in rows)
        return "".join(json.dumps(row) + "\n" for row in finite)

    def _read(self) -> list[dict[str, Any]]:
        lines = self._path.read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines if line.strip()]
        return [{k: math.nan if v is None else v for k, v in row.items()} for row in rows]


class CSVLogger(_FileLogger):
    """Writes a table with a row for each epoch: epoch, time in seconds, metrics.

    Parameters
    ----------
    path : str
        The file to write.
    append : bool
        Keep the rows of an older training.

    >>> logger = mx.tracking.CSVLogger("run.csv")
    >>> logger.begin(mx.tracking.History())
    >>> logger.log({"epoch": 0, "time": 1.5, "train_loss": 0.25})
    >>> print(Path("run.csv").read_text())
    epoch,time,train_loss
    0,1.5,0.25
    """

    _names: tuple[str, ...] = ()

    def log(self, row: Mapping[str, Any]) -> None:
        """Append an epoch; a metric that is new adds a column."""
        self._rows.append(dict(row))
        if all(name in self._names for name in row):
            self._append_last()
        else:
            self._write_all()

    def _write_all(self) -> None:
        rows = [*self._kept, *self._rows]
        self._names = tuple(dict.fromkeys(["epoch", "time", *(n for row in rows for n in row)]))
        with replacing(self._path) as file:
            file.write((self._line(self._names) + self._format(rows)).encode())

    def _format(self, rows: list[dict[str, Any]]) -> str:
        return "".join(self._line([row.get(n, math.nan) for n in self._names]) for row in rows)

    def _line(self, values: Any) -> str:
        made = io.StringIO()
        csv.writer(made, lineterminator="\n").writerow(values)
        return made.getvalue()

    def _read(self) -> list[dict[str, Any]]:
        with self._path.open(encoding="utf-8", newline="") as file:
            return [dict(row) for row in csv.DictReader(file)]


def check_loggers(loggers: Any) -> list[Logger]:
    """Return what was given as `loggers` as a list."""
    is_several = isinstance(loggers, list | tuple | NoneType)
    given: list[Any] = list(loggers or ()) if is_several else [loggers]
    for each in given:
        if not isinstance(each, Logger):
            raise InvalidValue(
                f"loggers are objects such as mx.tracking.CSVLogger('run.csv'), got {each!r}."
            )
    return given
