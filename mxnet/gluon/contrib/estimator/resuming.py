"""`Estimator.fit(resume=...)`: save checkpoints, and resume training from the newest one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from ....error import MXNetError
from ....formats import checkpoints as checkpoint
from ....formats.checkpoints.state import get_fields, set_fields
from ....visualization.tracking import History
from ....visualization.tracking.interrupts import Position, describe_interrupt
from .event_handler import EventHandler, StoppingHandler

__all__ = ["Resuming"]

# Arguments of the current `fit` call override those stored in the checkpoint.
OF_THIS_CALL = {"train_start", "max_epoch", "max_batch", "stop_training"}


class Resuming:
    """Saves checkpoints while an estimator trains; without a folder it only yields the batches.

    Parameters
    ----------
    estimator : Estimator
    train_data : DataLoader
    handlers
        The event handlers of this training.
    history : History
        Metrics of the finished epochs.
    folder
        Folder of the checkpoints, or None.
    every
        Number of batches between checkpoints inside an epoch, or None.
    """

    def __init__(
        self,
        estimator: Any,
        train_data: Any,
        handlers: Sequence[EventHandler],
        history: History,
        folder: str | os.PathLike[str] | None,
        every: int | None,
    ) -> None:
        if every is not None and (folder is None or every < 1):
            raise ValueError(
                "resume_every is a positive number of batches, and needs resume=folder."
            )
        self.estimator, self.handlers, self.folder, self.every = estimator, handlers, folder, every
        self.data = train_data if folder is None else checkpoint.track(train_data)
        self.history = history
        self.epoch = 0  # the current or next epoch
        self.batches_done = 0  # batches of that epoch done before the interruption
        self.step = 0
        self.is_inside_epoch = False  # whether the next epoch was interrupted before
        self.has_stopped = False
        self.saved: Position | None = None  # step of the newest checkpoint

    def describe_interrupt(self) -> str:
        """Return a message about how to continue an interrupted training."""
        return describe_interrupt(self.saved, self.folder)

    @property
    def _metrics(self) -> list:
        return [*self.estimator.train_metrics, *self.estimator.val_metrics]

    def restore(self) -> bool:
        """Resume from the newest checkpoint, if any; return whether training is complete."""
        if self.folder is None:
            return False
        net, trainer = self.estimator.net, self.estimator.trainer
        loaded = checkpoint.load(self.folder, net=net, trainer=trainer, data=self.data)
        if loaded is None:
            return False
        kinds = [type(handler).__name__ for handler in self.handlers]
        if loaded.extra["kinds"] != kinds:
            raise MXNetError(
                f"{str(loaded.path)!r} was made with the event handlers {loaded.extra['kinds']}, "
                f"and these are {kinds}. Give the same ones, or another folder."
            )
        for handler, fields in zip(self.handlers, loaded.extra["handlers"], strict=True):
            saved = {name: value for name, value in fields.items() if name not in OF_THIS_CALL}
            set_fields(handler, saved)
        for metric, fields in zip(self._metrics, loaded.extra["metrics"], strict=True):
            set_fields(metric, fields)
        self.history.load_state_dict(loaded.extra["history"])
        self.epoch = loaded.extra["epoch"]
        self.batches_done = loaded.extra["batches"]
        self.step = loaded.step
        self.saved = Position(self.epoch, self.batches_done)
        self.is_inside_epoch = loaded.extra["is_inside_epoch"]
        self.has_stopped = any(_is_over(h) for h in self.handlers if isinstance(h, StoppingHandler))
        return self.has_stopped and not self.is_inside_epoch

    def batches(self) -> Iterator[Any]:
        """Iterate over an epoch of the data, or over the rest of an interrupted one."""
        self.is_inside_epoch = False
        return iter(()) if self.has_stopped else iter(self.data)

    def after_batch(self) -> None:
        """Count a batch, and save after every `every` batches."""
        self.step += 1
        if self.every is not None and self.step % self.every == 0:
            self._save(is_inside_epoch=True)

    def after_epoch(self) -> None:
        """Save at the end of an epoch."""
        self.epoch += 1
        self.batches_done = 0
        if self.folder is not None:
            self._save(is_inside_epoch=False)

    def _save(self, is_inside_epoch: bool) -> None:
        assert self.folder is not None
        extra = {
            "epoch": self.epoch,
            "batches": self.data.batches if is_inside_epoch else 0,
            "history": self.history.state_dict(),
            "is_inside_epoch": is_inside_epoch,
            "kinds": [type(handler).__name__ for handler in self.handlers],
            "handlers": [get_fields(handler) for handler in self.handlers],
            "metrics": [get_fields(metric) for metric in self._metrics],
        }
        net, trainer = self.estimator.net, self.estimator.trainer
        checkpoint.save(
            self.folder, self.step, net=net, trainer=trainer, data=self.data, extra=extra
        )
        self.saved = Position(self.epoch, extra["batches"])


def _is_over(handler: StoppingHandler) -> bool:
    limits = (
        (handler.current_epoch, handler.max_epoch),
        (handler.current_batch, handler.max_batch),
    )
    return any(limit is not None and count >= limit for count, limit in limits)
