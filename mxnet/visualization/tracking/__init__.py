"""Progress, history and loggers of training, for `fit` and for custom training loops.

>>> history = mx.tracking.History()
>>> history.add(0, 1.5, {"train_loss": 0.25})
>>> history["train_loss"], history.epoch
([0.25], [0])
"""

from .bar import progress
from .loggers import (
    CSVLogger,
    JSONLinesLogger,
    Logger,
    MLflowLogger,
    TensorBoardLogger,
    WandbLogger,
)
from .tracker import History, Tracker

__all__ = [
    "CSVLogger",
    "History",
    "JSONLinesLogger",
    "Logger",
    "MLflowLogger",
    "TensorBoardLogger",
    "WandbLogger",
    "progress",
]
