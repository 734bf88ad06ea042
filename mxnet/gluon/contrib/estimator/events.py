"""The moments of training a handler can listen to, one class each."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "EpochBegin",
    "EpochEnd",
    "EventHandler",
    "TrainBegin",
    "TrainEnd",
]


class EventHandler:
    """Base of all handlers; those with a lower attribute `priority` (0 if absent) go first."""


class TrainBegin(EventHandler):
    """Listens to the start of training.

    >>> class Greeter(TrainBegin):
    ...     def train_begin(self, estimator, *args, **kwargs):
    ...         print("training begins")
    """

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Is called once, before the first epoch."""


class TrainEnd(EventHandler):
    """Listens to the end of training.

    >>> class Greeter(TrainEnd):
    ...     def train_end(self, estimator, *args, **kwargs):
    ...         print("training is over")
    """

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Is called once, after the last epoch."""


class EpochBegin(EventHandler):
    """Listens to the start of each epoch.

    >>> class Greeter(EpochBegin):
    ...     def epoch_begin(self, estimator, *args, **kwargs):
    ...         print("an epoch begins")
    """

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Is called before the first batch of an epoch."""


class EpochEnd(EventHandler):
    """Listens to the end of each epoch.

    >>> class Greeter(EpochEnd):
    ...     def epoch_end(self, estimator, *args, **kwargs):
    ...         print("an epoch is over")
    """

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Is called after the last batch of an epoch; a true answer ends the training."""
        return False


class BatchBegin(EventHandler):
    """Listens to the start of each batch.

    >>> class Counter(BatchBegin):
    ...     count = 0
    ...     def batch_begin(self, estimator, *args, **kwargs):
    ...         self.count += 1
    """

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Is called with the keyword `batch` before the network sees it."""


class BatchEnd(EventHandler):
    """Listens to the end of each batch.

    >>> class Counter(BatchEnd):
    ...     count = 0
    ...     def batch_end(self, estimator, *args, **kwargs):
    ...         self.count += 1
    """

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Is called with `batch`, `pred`, `label`, `loss`; a true answer ends the epoch."""
        return False
