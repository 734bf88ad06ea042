"""`CheckpointHandler`: saves a network while it trains, and goes on from what was saved."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ....formats.atomic import one_commit
from ....metric import CompositeEvalMetric, EvalMetric
from ...block import HybridBlock
from .events import BatchEnd, EpochEnd, TrainBegin
from .improvement import comparison

__all__ = ["CheckpointHandler"]


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Saves parameters and trainer states every few epochs or batches.

    The files are `<prefix>-epoch<E>batch<B>.params` and `.states`, `<prefix>-best` for the best
    ones, and `<prefix>-symbol.json` if the network is hybridized.

    Parameters
    ----------
    model_dir : str
        A folder; it is made if need be.
    model_prefix : str
        What the names of the files begin with.
    monitor : EvalMetric
        One of the estimator's, that decides which checkpoint is best.
    verbose : int
        Above 0 logs every checkpoint.
    save_best : bool
        Whether to keep the best checkpoint too.
    mode
        "min", "max" or "auto"; "auto" is "max" and says so in a warning.
    epoch_period, batch_period : int or None
        How often to save.
    max_checkpoints : int
        How many to keep besides the best one.
    resume_from_checkpoint : bool
        Whether to load the last checkpoint and train only the rest.

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
        """Start counting, or resume."""
        self.current_batch = 0
        self.current_epoch = 0
        self._forget_best()
        if not self.resume_from_checkpoint:
            return
        periods = (self.epoch_period, self.batch_period)
        wanted, unwanted = periods if estimator.max_epoch else periods[::-1]
        if not wanted or unwanted:
            raise AssertionError(
                "To use resume from checkpoint, you must only specify the same type of period you "
                "used for training. For example, if you are training based on number of epochs, "
                "you must save only based on epochs, and set batch_period to None."
            )
        self._resume_from_checkpoint(estimator)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Save the graph after the first batch, and a checkpoint if it is time."""
        if self.current_batch == 0:
            self._save_symbol(estimator)
        if self.batch_period and (self.current_batch + 1) % self.batch_period == 0:
            self._save_checkpoint(estimator)
        self.current_batch += 1

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Save a checkpoint if it is time."""
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
        # A later training may save under the same name again: it is then the newest one.
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
        found = (form.fullmatch(path.name) for path in Path(self.model_dir).iterdir())
        numbers = [(int(match[1]), int(match[2])) for match in found if match]
        return max(numbers, default=(-1, -1))

    def _load(self, estimator: Any) -> None:
        prefix = f"{self.model_prefix}-epoch{self.trained_epoch}batch{self.trained_batch}"
        params, states = (Path(self._path(prefix + end)) for end in (".params", ".states"))
        if not states.exists():
            raise AssertionError(f"Failed to load checkpoint, {states} does not exist")
        estimator.net.load_parameters(str(params), ctx=estimator.context)
        estimator.trainer.load_states(str(states))
