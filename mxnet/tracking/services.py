"""Loggers that hand the metrics of each epoch to TensorBoard, Weights & Biases or MLflow."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from ..error import MXNetError
from .history import History
from .loggers import Logger

__all__ = ["MLflowLogger", "TensorBoardLogger", "WandbLogger"]


def _missing(logger: Logger, package: str) -> MXNetError:
    return MXNetError(
        f"{type(logger).__name__} needs the package {package}: pip install 'mxnext[{package}]'"
    )


def _metrics(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics of an epoch that have a value, and its time."""
    return {n: float(v) for n, v in row.items() if n != "epoch" and not math.isnan(v)}


class TensorBoardLogger(Logger):
    """Writes event files, which ``tensorboard --logdir=folder`` shows.

    The curves of a metric in training and validation share a chart: ``accuracy/train`` and
    ``accuracy/val``.

    Parameters
    ----------
    folder : str
        Where the event files go.

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
        A run that was started by ``wandb.init``; it stays open. Without one, training starts and
        finishes its own.
    options
        As of ``wandb.init``, such as ``name``, ``config``, ``mode="offline"``.

    >>> logger = mx.tracking.WandbLogger("digits")  # doctest: +SKIP
    """

    def __init__(self, project: str | None = None, run: Any = None, **options: Any) -> None:
        try:
            import wandb
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
        """Finish the run, if it is our own."""
        if self._is_own and self._run is not None:
            self._run.finish()
            self._run = None


class MLflowLogger(Logger):
    """Logs to the active run of MLflow; without one, training starts and ends its own.

    Parameters
    ----------
    experiment : str, optional
        The experiment that a new run belongs to.
    options
        As of ``mlflow.start_run``, such as ``run_name``.

    >>> logger = mx.tracking.MLflowLogger(run_name="digits")  # doctest: +SKIP
    """

    def __init__(self, experiment: str | None = None, **options: Any) -> None:
        try:
            import mlflow
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
        """End the run, if it is our own."""
        if self._is_own:
            self._mlflow.end_run()
            self._is_own = False
