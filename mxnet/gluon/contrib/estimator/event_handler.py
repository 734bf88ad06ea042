"""Event handlers, which update metrics, log, save checkpoints or stop the training."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ....formats.atomic import one_commit
from ....metric import CompositeEvalMetric, EvalMetric
from ....metric import Loss as metric_loss
from ...block import HybridBlock
from .utils import _check_metrics

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "CheckpointHandler",
    "EarlyStoppingHandler",
    "EpochBegin",
    "EpochEnd",
    "EventHandler",
    "GradientUpdateHandler",
    "LoggingHandler",
    "MetricHandler",
    "StoppingHandler",
    "TrainBegin",
    "TrainEnd",
    "ValidationHandler",
]


class EventHandler:
    """Base of all handlers; those with a lower `priority` (default 0) are called first."""


class TrainBegin(EventHandler):
    """Listens to the start of training.

    >>> class Greeter(TrainBegin):
    ...     def train_begin(self, estimator, *args, **kwargs):
    ...         print("training begins")
    """

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Called once, before the first epoch."""


class TrainEnd(EventHandler):
    """Listens to the end of training.

    >>> class Greeter(TrainEnd):
    ...     def train_end(self, estimator, *args, **kwargs):
    ...         print("training is over")
    """

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Called once, after the last epoch."""


class EpochBegin(EventHandler):
    """Listens to the start of each epoch.

    >>> class Greeter(EpochBegin):
    ...     def epoch_begin(self, estimator, *args, **kwargs):
    ...         print("an epoch begins")
    """

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Called before the first batch of an epoch."""


class EpochEnd(EventHandler):
    """Listens to the end of each epoch.

    >>> class Greeter(EpochEnd):
    ...     def epoch_end(self, estimator, *args, **kwargs):
    ...         print("an epoch is over")
    """

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Called after the last batch of an epoch; a true return value ends the training."""
        return False


class BatchBegin(EventHandler):
    """Listens to the start of each batch.

    >>> class Counter(BatchBegin):
    ...     count = 0
    ...     def batch_begin(self, estimator, *args, **kwargs):
    ...         self.count += 1
    """

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Called with the keyword `batch` before the forward pass."""


class BatchEnd(EventHandler):
    """Listens to the end of each batch.

    >>> class Counter(BatchEnd):
    ...     count = 0
    ...     def batch_end(self, estimator, *args, **kwargs):
    ...         self.count += 1
    """

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Called with `batch`, `pred`, `label`, `loss`; a true return value ends the epoch."""
        return False


def comparison(mode: str, name: str, what: str) -> np.ufunc:
    """Return the comparison that decides whether a value improves: `np.less` or `np.greater`."""
    if mode not in ("auto", "min", "max"):
        warnings.warn(
            f"{what} mode {mode} is unknown, fallback to auto mode.", RuntimeWarning, stacklevel=3
        )
        mode = "auto"
    if mode == "auto":
        # MXNet 1.9.1 uses `greater` for every metric, even a loss, and warns.
        warnings.warn(
            f"{what}: a greater {name} is treated as better. Pass mode='max' if that is "
            "intended, which also ends this warning, or mode='min' for a loss.",
            stacklevel=3,
        )
    return np.less if mode == "min" else np.greater


class StoppingHandler(TrainBegin, BatchEnd, EpochEnd):
    """Ends training after the number of epochs or batches passed to `fit`.

    Parameters
    ----------
    max_epoch : int
        Maximum number of epochs.
    max_batch : int
        Maximum number of batches.

    >>> StoppingHandler(max_epoch=2).max_epoch
    2
    """

    def __init__(self, max_epoch: int | None = None, max_batch: int | None = None) -> None:
        self.max_epoch = max_epoch
        self.max_batch = max_batch
        self.current_batch = 0
        self.current_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Start counting from the epochs and batches already trained."""
        self.max_epoch = estimator.max_epoch
        self.max_batch = estimator.max_batch
        self.current_batch = 0
        self.current_epoch = 0
        self.stop_training = False

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Count a batch."""
        self.current_batch += 1
        self.stop_training |= self.current_batch == self.max_batch
        return self.stop_training

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Count an epoch."""
        self.current_epoch += 1
        self.stop_training |= self.current_epoch == self.max_epoch
        return self.stop_training


class MetricHandler(EpochBegin, BatchEnd):
    """Resets metrics when an epoch begins, and updates them after every batch.

    Parameters
    ----------
    metrics : EvalMetric or list
        Metrics to update; those of class `Loss` are updated with the loss.
    priority : float
        Handlers with a lower priority are called first.

    >>> MetricHandler(mx.metric.Accuracy()).metrics[0].name
    'accuracy'
    """

    def __init__(self, metrics: Any, priority: float = -1000) -> None:
        self.metrics = _check_metrics(metrics)
        self.priority = priority

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Reset the metrics."""
        for metric in self.metrics:
            metric.reset()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Update the metrics by the keywords `pred`, `label` and `loss`."""
        for metric in self.metrics:
            if isinstance(metric, metric_loss):
                metric.update(0, kwargs["loss"])
            else:
                metric.update(kwargs["label"], kwargs["pred"])


class ValidationHandler(TrainBegin, BatchEnd, EpochEnd):
    """Evaluates the network every few epochs or batches.

    Parameters
    ----------
    val_data : DataLoader
        The data to validate on.
    eval_fn : function
        Function called with `val_data`, `batch_axis` and `event_handlers`, such as
        `Estimator.evaluate`.
    epoch_period, batch_period : int or None
        Number of epochs or batches between evaluations.
    priority : float
        Handlers with a lower priority are called first.
    event_handlers
        Handlers of the evaluation.

    >>> handler = ValidationHandler([], eval_fn=lambda val_data, **_: None, epoch_period=2)
    >>> handler.epoch_period
    2
    """

    def __init__(
        self,
        val_data: Any,
        eval_fn: Callable[..., Any],
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        priority: float = -1000,
        event_handlers: Any = None,
    ) -> None:
        self.val_data = val_data
        self.eval_fn = eval_fn
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.current_batch = 0
        self.current_epoch = 0
        self.priority = priority
        self.event_handlers = event_handlers

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Start counting."""
        self.current_batch = 0
        self.current_epoch = 0

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Count a batch, and evaluate after every `batch_period` batches."""
        self.current_batch += 1
        if self.batch_period and self.current_batch % self.batch_period == 0:
            self._evaluate(estimator)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Count an epoch, and evaluate after every `epoch_period` epochs."""
        self.current_epoch += 1
        if self.epoch_period and self.current_epoch % self.epoch_period == 0:
            self._evaluate(estimator)

    def _evaluate(self, estimator: Any) -> None:
        self.eval_fn(
            val_data=self.val_data,
            batch_axis=estimator.batch_axis,
            event_handlers=self.event_handlers,
        )


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Logs the progress of training to the estimator's logger.

    Parameters
    ----------
    log_interval
        ``'epoch'``, or a number k to log after every k batches too.
    metrics : EvalMetric or list
        Metrics to log.
    priority : float
        Handlers with a lower priority are called first; by default this one is last.

    >>> LoggingHandler(log_interval=10).log_interval
    10
    """

    def __init__(
        self, log_interval: int | str = "epoch", metrics: Any = None, priority: float = np.inf
    ) -> None:
        if not isinstance(log_interval, int) and log_interval != "epoch":
            raise ValueError("log_interval must be either an integer or string 'epoch'")
        if isinstance(log_interval, int) and log_interval < 1:
            raise ValueError(
                f"log_interval counts batches and must be positive, got {log_interval}"
            )
        self.metrics = _check_metrics(metrics)
        self.batch_index = 0
        self.current_epoch = 0
        self.processed_samples = 0
        self.priority = priority
        self.log_interval = log_interval
        self.log_interval_time = 0.0

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Log the optimizer and the number of epochs or batches."""
        self.train_start = time.time()
        trainer = estimator.trainer
        estimator.logger.info(
            "Training begin: using optimizer %s with current learning rate %.4f ",
            type(trainer.optimizer).__name__,
            trainer.learning_rate,
        )
        if estimator.max_epoch:
            estimator.logger.info("Train for %d epochs.", estimator.max_epoch)
        else:
            estimator.logger.info("Train for %d batches.", estimator.max_batch)
        self.current_epoch = 0
        self.batch_index = 0
        self.processed_samples = 0
        self.log_interval_time = 0.0

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Log the training time and the metrics of the last epoch."""
        seconds = time.time() - self.train_start
        shown = int(seconds) if seconds >= 10 else round(seconds, 2)
        text = f"Train finished using total {shown}s with {self.current_epoch} epochs. "
        estimator.logger.info((text + self._values()).rstrip())

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Start the timer of the batch."""
        if isinstance(self.log_interval, int):
            self.batch_start = time.time()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Log a line after every `log_interval` batches."""
        if isinstance(self.log_interval, int):
            self.log_interval_time += time.time() - self.batch_start
            self.processed_samples += kwargs["batch"][0].shape[0]
            if self.batch_index % self.log_interval == 0:
                text = (
                    f"[Epoch {self.current_epoch}][Batch {self.batch_index}]"
                    f"[Samples {self.processed_samples}] "
                    f"time/interval: {self.log_interval_time:.3f}s "
                )
                self.log_interval_time = 0.0
                estimator.logger.info((text + self._values()).rstrip())
        self.batch_index += 1

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Log that an epoch of training, or a validation, begins."""
        self.epoch_start = time.time()
        if any("training" in metric.name for metric in self.metrics):
            estimator.logger.info(
                "[Epoch %d] Begin, current learning rate: %.4f",
                self.current_epoch,
                estimator.trainer.learning_rate,
            )
        else:
            estimator.logger.info("Validation Begin")

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Log the time and the metrics of the epoch."""
        seconds = time.time() - self.epoch_start
        text = f"[Epoch {self.current_epoch}] Finished in {seconds:.3f}s, "
        estimator.logger.info((text + self._values()).rstrip(", "))
        self.current_epoch += 1
        self.batch_index = 0

    def _values(self) -> str:
        pairs = (metric.get() for metric in self.metrics)
        return ", ".join(f"{name}: {value:.4f}" for name, value in pairs)


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Ends training when a metric no longer improves.

    Parameters
    ----------
    monitor : EvalMetric
        Metric of the estimator to watch.
    min_delta : float
        Smallest change that is an improvement.
    patience : int
        Number of epochs without improvement before training ends.
    mode
        ``'min'``, ``'max'`` or ``'auto'``, which means ``'max'`` and warns.
    baseline : float
        Value that the first epoch must improve on.

    >>> EarlyStoppingHandler(mx.metric.Accuracy(), patience=3, mode="max").patience
    3
    """

    def __init__(
        self,
        monitor: EvalMetric,
        min_delta: float = 0,
        patience: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
    ) -> None:
        if not isinstance(monitor, EvalMetric) or isinstance(monitor, CompositeEvalMetric):
            raise ValueError(
                "Please provide one of the metric objects from estimator.train_metrics and "
                "estimator.val_metrics as monitor."
            )
        self.monitor = monitor
        self.baseline = baseline
        self.patience = patience
        self.wait = 0
        self.stopped_epoch = 0
        self.current_epoch = 0
        self.stop_training = False
        self.monitor_op = comparison(mode, monitor.name, "EarlyStopping")
        self.min_delta = min_delta if self.monitor_op is np.greater else -min_delta

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Reset the best value."""
        self.wait = 0
        self.stopped_epoch = 0
        self.current_epoch = 0
        self.stop_training = False
        worst = np.inf if self.monitor_op is np.less else -np.inf
        self.best = worst if self.baseline is None else self.baseline

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Compare the metric with the best so far."""
        name, value = self.monitor.get()
        if np.isnan(value):
            warnings.warn(
                f"{name} is not updated, make sure you pass one of the metric objects from "
                "estimator.train_metrics and estimator.val_metrics as monitor.",
                RuntimeWarning,
                stacklevel=2,
            )
        elif self.monitor_op(value - self.min_delta, self.best):
            self.best = value
            self.wait = 0
        else:
            self.wait += 1
            if self.wait >= self.patience:
                self.stopped_epoch = self.current_epoch
                self.stop_training = True
        self.current_epoch += 1
        return self.stop_training

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Log why training ended early, if it did."""
        if self.stopped_epoch > 0:
            # Spelled as MXNet does.
            estimator.logger.info(
                "[Epoch %d] EarlyStoppingHanlder: early stopping due to %s not improving",
                self.stopped_epoch,
                self.monitor.get()[0],
            )


class GradientUpdateHandler(BatchEnd):
    """Updates the weights by the gradients of a batch.

    Parameters
    ----------
    priority : float
        Handlers with a lower priority are called first; by default before metrics and validation.

    >>> GradientUpdateHandler().priority < 0
    True
    """

    def __init__(self, priority: float = -2000) -> None:
        self.priority = priority

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Step the trainer by the number of samples in `loss`."""
        loss = kwargs["loss"]
        losses = loss if isinstance(loss, list) else [loss]
        estimator.trainer.step(sum(each.shape[0] for each in losses))


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Saves parameters and trainer states every few epochs or batches.

    The files are `<prefix>-epoch<E>batch<B>.params` and `.states`, `<prefix>-best` for the best
    ones, and `<prefix>-symbol.json` if the network is hybridized.

    Parameters
    ----------
    model_dir : str
        Folder of the files; created if missing.
    model_prefix : str
        Prefix of the file names.
    monitor : EvalMetric
        Metric of the estimator that decides which checkpoint is best.
    verbose : int
        Log every checkpoint if above 0.
    save_best : bool
        Whether to keep the best checkpoint too.
    mode
        "min", "max" or "auto", which means "max" and warns.
    epoch_period, batch_period : int or None
        Number of epochs or batches between checkpoints.
    max_checkpoints : int
        Number of checkpoints to keep besides the best one.
    resume_from_checkpoint : bool
        Whether to continue from the last checkpoint.

    >>> handler = CheckpointHandler("models", model_prefix="net", max_checkpoints=2)
    >>> handler.max_checkpoints
    2
    """

    def __init__(
        self,
        model_dir: str,
        model_prefix: str = "model",
        monitor: EvalMetric | None = None,
        verbose: int = 0,
        save_best: bool = False,
        mode: str = "auto",
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        max_checkpoints: int = 5,
        resume_from_checkpoint: bool = False,
    ) -> None:
        self.monitor = monitor
        self.verbose = verbose
        self.model_dir = model_dir
        self.model_prefix = model_prefix
        self.save_best = save_best
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.current_batch = 0
        self.current_epoch = 0
        self.max_checkpoints = max_checkpoints
        self.resume_from_checkpoint = resume_from_checkpoint
        self.saved_checkpoints: list[str] = []
        Path(model_dir).mkdir(parents=True, exist_ok=True)
        if not save_best:
            return
        if not isinstance(monitor, EvalMetric) or isinstance(monitor, CompositeEvalMetric):
            raise ValueError(
                "To save best model only, please provide one of the metric objects from "
                "estimator.train_metrics and estimator.val_metrics as monitor."
            )
        self.monitor_op = comparison(mode, monitor.name, "ModelCheckpoint")
        self._forget_best()

    def _forget_best(self) -> None:
        if self.save_best:
            self.best = np.inf if self.monitor_op is np.less else -np.inf

    # -- events -------------------------------------------------------------------------------

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Reset the counters, or resume from the last checkpoint."""
        self.current_batch = 0
        self.current_epoch = 0
        self._forget_best()
        if not self.resume_from_checkpoint:
            return
        periods = (self.epoch_period, self.batch_period)
        required, unwanted = periods if estimator.max_epoch else periods[::-1]
        if not required or unwanted:
            raise AssertionError(
                "To use resume from checkpoint, you must only specify the same type of period you "
                "used for training. For example, if you are training based on number of epochs, "
                "you must save only based on epochs, and set batch_period to None."
            )
        self._resume_from_checkpoint(estimator)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Save the graph after the first batch, and a checkpoint every `batch_period` batches."""
        if self.current_batch == 0:
            self._save_symbol(estimator)
        if self.batch_period and (self.current_batch + 1) % self.batch_period == 0:
            self._save_checkpoint(estimator)
        self.current_batch += 1

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Save a checkpoint after every `epoch_period` epochs."""
        if self.epoch_period and (self.current_epoch + 1) % self.epoch_period == 0:
            self._save_checkpoint(estimator)
        self.current_epoch += 1

    # -- saving -------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return os.path.join(self.model_dir, name)  # noqa: PTH118 (Path drops the "./" of messages)

    def _save_symbol(self, estimator: Any) -> None:
        path = self._path(self.model_prefix + "-symbol.json")
        graph = estimator.net._cached_graph if isinstance(estimator.net, HybridBlock) else ()
        if graph:
            graph[1].save(path)
        else:
            estimator.logger.info(
                "Model architecture(symbol file) is not saved, please use HybridBlock to construct "
                "your model, and call net.hybridize() before passing to Estimator in order to save "
                "model architecture as %s.",
                path,
            )

    def _save_checkpoint(self, estimator: Any) -> None:
        epoch, batch = self.current_epoch, self.current_batch
        if self.resume_from_checkpoint:
            epoch += self.trained_epoch + 1
            # The batch counter is already past the last batch when an epoch ends.
            batch += self.trained_batch + (0 if estimator.max_epoch else 1)
        prefix = f"{self.model_prefix}-epoch{epoch}batch{batch}"
        self._save_params_and_trainer(estimator, prefix)
        if self.verbose > 0:
            estimator.logger.info(
                "[Epoch %d] CheckpointHandler: trained total %d batches, saving model at %s with "
                "prefix: %s",
                self.current_epoch,
                self.current_batch + 1,
                self.model_dir,
                prefix,
            )
        if self.save_best:
            self._save_best(estimator)

    def _save_best(self, estimator: Any) -> None:
        assert self.monitor is not None  # __init__ requires it with save_best
        name, value = self.monitor.get()
        if np.isnan(value):
            warnings.warn(
                f"Skipping save best because {name} is not updated, make sure you pass one of the "
                "metric objects estimator.train_metrics and estimator.val_metrics as monitor",
                RuntimeWarning,
                stacklevel=4,
            )
            return
        if self.monitor_op(value, self.best):
            prefix = self.model_prefix + "-best"
            self._save_params_and_trainer(estimator, prefix)
            text = (
                f"{name} improved from {self.best:.5f} to {value:.5f}, updating best model at "
                f"{self.model_dir} with prefix: {prefix}"
            )
            self.best = value
        else:
            text = f"{name} did not improve from {self.best:.5f}, skipping updating best model"
        if self.verbose > 0:
            estimator.logger.info("[Epoch %d] CheckpointHandler: %s", self.current_epoch, text)

    def _save_params_and_trainer(self, estimator: Any, file_prefix: str) -> None:
        with one_commit():
            estimator.net.save_parameters(self._path(file_prefix + ".params"))
            estimator.trainer.save_states(self._path(file_prefix + ".states"))
        if file_prefix.endswith("-best"):
            return
        # A later training may save under the same name again; that file is then the newest.
        if file_prefix in self.saved_checkpoints:
            self.saved_checkpoints.remove(file_prefix)
        self.saved_checkpoints.append(file_prefix)
        while len(self.saved_checkpoints) > self.max_checkpoints:
            oldest = self.saved_checkpoints.pop(0)
            for suffix in (".params", ".states"):
                Path(self._path(oldest + suffix)).unlink(missing_ok=True)

    # -- resuming -----------------------------------------------------------------------------

    def _resume_from_checkpoint(self, estimator: Any) -> None:
        unit = "epoch" if estimator.max_epoch else "batch"
        units = "epochs" if estimator.max_epoch else "batches"
        limit = estimator.max_epoch or estimator.max_batch
        self.trained_epoch, self.trained_batch = self._last_checkpoint()
        if self.trained_epoch < 0:
            estimator.logger.info(
                "CheckpointHandler: No checkpoint found, training from scratch for %d %s",
                limit,
                units,
            )
            return
        trained = self.trained_epoch if estimator.max_epoch else self.trained_batch
        left = limit - trained - 1
        if left <= 0:
            raise ValueError(
                f"Found checkpoint with maximum number of {unit} {limit} reached, please specify "
                "resume_from_checkpoint=False (default value) if you want to train from scratch."
            )
        self._load(estimator)
        setattr(estimator, f"max_{unit}", left)
        estimator.logger.info(
            "CheckpointHandler: Checkpoint resumed from epoch %d batch %d, continue to train for "
            "%d %s ",
            self.trained_epoch,
            self.trained_batch,
            left,
            units,
        )

    def _last_checkpoint(self) -> tuple[int, int]:
        """Return epoch and batch of the newest parameter file, (-1, -1) if there is none."""
        form = re.compile(re.escape(self.model_prefix) + r"-epoch(\d+)batch(\d+)\.params")
        matches = (form.fullmatch(path.name) for path in Path(self.model_dir).iterdir())
        numbers = [(int(match[1]), int(match[2])) for match in matches if match]
        return max(numbers, default=(-1, -1))

    def _load(self, estimator: Any) -> None:
        prefix = f"{self.model_prefix}-epoch{self.trained_epoch}batch{self.trained_batch}"
        params, states = (Path(self._path(prefix + end)) for end in (".params", ".states"))
        if not states.exists():
            raise AssertionError(f"Failed to load checkpoint, {states} does not exist")
        estimator.net.load_parameters(str(params), ctx=estimator.context)
        estimator.trainer.load_states(str(states))
