"""Loggers that write the metrics of each epoch to a file or a service."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from ...error import InvalidValue, MXNetError
from ...formats.atomic import replacing
from ...formats.files import local_path

if TYPE_CHECKING:
    from .tracker import History


class Logger:
    """Base class of loggers of each epoch's metrics; subclass it for other targets.

    Pass loggers to ``Module.fit(loggers=...)`` or ``Estimator.fit(loggers=...)``; in custom loops
    call the three methods.

    >>> class Printer(mx.tracking.Logger):
    ...     def log(self, row):
    ...         print(row["epoch"], row["train_loss"])
    >>> Printer().log({"epoch": 0, "time": 1.5, "train_loss": 0.25})
    0 0.25
    """

    shows_metrics = False  # whether it is visible to the user: then one bar is used for all epochs

    def begin(self, history: History) -> None:
        """Start logging; a resumed training passes the completed epochs."""

    def log(self, row: Mapping[str, Any]) -> None:
        """Log an epoch: a dict with ``epoch``, ``time`` (seconds) and the metrics."""
        raise NotImplementedError

    def end(self) -> None:
        """Finish; also called after a failed training."""


class _FileLogger(Logger):
    """A logger that rewrites its file when training begins, so that resumed runs match."""

    def __init__(self, path: str | os.PathLike[str], append: bool = False) -> None:
        self._path: Path = local_path(path)
        self._append = append
        self._kept: list[dict[str, Any]] = []
        self._rows: list[dict[str, Any]] = []

    def begin(self, history: History) -> None:
        """Write the earlier rows: of the file with ``append``, and of a resumed run."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        is_continued = self._append and self._path.exists()
        self._kept = self._read() if is_continued and not history.epoch else []
        self._rows = history.rows()
        self._write_all()

    def log(self, row: Mapping[str, Any]) -> None:
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
        Path of the file.
    append : bool
        Whether to keep the lines of an older training.

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


FORMULA_SIGNS = "=+-@\t\r"  # spreadsheets evaluate cells that start with one of them


class CSVLogger(_FileLogger):
    """Writes a table with a row for each epoch: epoch, time in seconds, metrics.

    Parameters
    ----------
    path : str
        Path of the file.
    append : bool
        Whether to keep the rows of an older training.

    >>> logger = mx.tracking.CSVLogger("run.csv")
    >>> logger.begin(mx.tracking.History())
    >>> logger.log({"epoch": 0, "time": 1.5, "train_loss": 0.25})
    >>> print(Path("run.csv").read_text())
    epoch,time,train_loss
    0,1.5,0.25
    """

    _names: tuple[str, ...] = ()

    def log(self, row: Mapping[str, Any]) -> None:
        """Append an epoch; a new metric adds a column."""
        self._rows.append(dict(row))
        if all(name in self._names for name in row):
            self._append_last()
        else:
            self._write_all()

    def _write_all(self) -> None:
        rows = [*self._kept, *self._rows]
        self._names = tuple(dict.fromkeys(["epoch", "time", *(n for row in rows for n in row)]))
        with replacing(self._path) as file:
            head = self._line(name.lstrip(FORMULA_SIGNS) or "metric" for name in self._names)
            file.write((head + self._format(rows)).encode())

    def _format(self, rows: list[dict[str, Any]]) -> str:
        return "".join(self._line([row.get(n, math.nan) for n in self._names]) for row in rows)

    def _line(self, values: Any) -> str:
        output = io.StringIO()
        csv.writer(output, lineterminator="\n").writerow(values)
        return output.getvalue()

    def _read(self) -> list[dict[str, Any]]:
        with self._path.open(encoding="utf-8", newline="") as file:
            return [dict(row) for row in csv.DictReader(file)]


def check_loggers(loggers: Any) -> list[Logger]:
    """Return `loggers` as a list; raise for invalid ones."""
    is_several = isinstance(loggers, list | tuple | NoneType)
    checked: list[Any] = list(loggers or ()) if is_several else [loggers]
    for each in checked:
        if not isinstance(each, Logger):
            raise InvalidValue(
                f"loggers must be objects such as mx.tracking.CSVLogger('run.csv'), got {each!r}."
            )
    return checked


def _missing(logger: Logger, package: str) -> MXNetError:
    return MXNetError(f"{type(logger).__name__} needs the package {package}: pip install {package}")


def _metrics(row: Mapping[str, Any]) -> dict[str, float]:
    return {n: float(v) for n, v in row.items() if n != "epoch" and not math.isnan(v)}


class TensorBoardLogger(Logger):
    """Writes event files for ``tensorboard --logdir=folder``.

    The curves of a metric in training and validation share a chart: ``accuracy/train`` and
    ``accuracy/val``.

    Parameters
    ----------
    folder : str
        Folder of the event files.

    >>> logger = mx.tracking.TensorBoardLogger("logs")  # doctest: +SKIP
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise _missing(self, "tensorboard") from None
        self._open = SummaryWriter
        self._folder = os.fspath(folder)
        self._writer: Any = None

    def begin(self, history: History) -> None:
        """Open an event file; of a resumed run, later epochs of an older file are dropped."""
        first = history.epoch[-1] + 1 if history.epoch else None
        self._writer = self._open(self._folder, purge_step=first)

    def log(self, row: Mapping[str, Any]) -> None:
        """Write the metrics at the step of the epoch."""
        for name, value in _metrics(row).items():
            split, _, metric = name.partition("_")
            tag = f"{metric}/{split}" if split in ("train", "val") else name
            self._writer.add_scalar(tag, value, global_step=row["epoch"])
        self._writer.flush()

    def end(self) -> None:
        """Close the event file."""
        if self._writer is not None:
            self._writer.close()


class WandbLogger(Logger):
    """Logs to a run of Weights & Biases.

    Parameters
    ----------
    project : str, optional
        Name of the project.
    run : optional
        A run of ``wandb.init``, which stays open. By default training starts and finishes a run.
    options
        Arguments of ``wandb.init``, such as ``name``, ``config``, ``mode="offline"``.

    >>> logger = mx.tracking.WandbLogger("digits")  # doctest: +SKIP
    """

    def __init__(self, project: str | None = None, run: Any = None, **options: Any) -> None:
        try:
            import wandb  # pyright: ignore[reportMissingImports]  # optional
        except ImportError:
            raise _missing(self, "wandb") from None
        self._start = lambda: wandb.init(project=project, **options)
        self._run: Any = run
        self._is_own = run is None

    def begin(self, history: History) -> None:
        """Start a run, unless one was given."""
        if self._is_own:
            self._run = self._start()

    def log(self, row: Mapping[str, Any]) -> None:
        """Log the metrics at the step of the epoch."""
        self._run.log(_metrics(row), step=row["epoch"])

    def end(self) -> None:
        """Finish the run, if this logger started it."""
        if self._is_own and self._run is not None:
            self._run.finish()
            self._run = None


class MLflowLogger(Logger):
    """Logs to the active run of MLflow, or starts and ends a run.

    Parameters
    ----------
    experiment : str, optional
        The experiment that a new run belongs to.
    options
        Arguments of ``mlflow.start_run``, such as ``run_name``.

    >>> logger = mx.tracking.MLflowLogger(run_name="digits")  # doctest: +SKIP
    """

    def __init__(self, experiment: str | None = None, **options: Any) -> None:
        try:
            import mlflow  # pyright: ignore[reportMissingImports]  # optional
        except ImportError:
            raise _missing(self, "mlflow") from None
        self._mlflow = mlflow
        self._experiment, self._options = experiment, options
        self._is_own = False

    def begin(self, history: History) -> None:
        """Start a run, unless one is active."""
        if self._mlflow.active_run() is not None:
            return
        if self._experiment is not None:
            self._mlflow.set_experiment(self._experiment)
        self._mlflow.start_run(**self._options)
        self._is_own = True

    def log(self, row: Mapping[str, Any]) -> None:
        """Log the metrics at the step of the epoch."""
        self._mlflow.log_metrics(_metrics(row), step=row["epoch"])

    def end(self) -> None:
        """End the run, if this logger started it."""
        if self._is_own:
            self._mlflow.end_run()
            self._is_own = False
