"""Training callbacks: logging of speed and metrics, checkpoints.

The log lines equal MXNet's exactly, because programs parse them.
"""

from __future__ import annotations

import logging
import math
import time
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from .formats.model_files import save_checkpoint

__all__ = [
    "LogValidationMetricsCallback",
    "ProgressBar",
    "Speedometer",
    "do_checkpoint",
    "log_train_metric",
    "module_checkpoint",
]

BatchEndParam = namedtuple("BatchEndParams", ["epoch", "nbatch", "eval_metric", "locals"])
BatchEndParam.__doc__ = """Argument of batch callbacks.

Parameters
----------
epoch
    Number of the epoch.
nbatch
    Number of the batch.
eval_metric
    The metric so far.
locals
    The variables of the loop.

>>> BatchEndParam(epoch=0, nbatch=3, eval_metric=None, locals=None).nbatch
3
"""


def module_checkpoint(
    mod: Any, prefix: str, period: int = 1, save_optimizer_states: bool = False
) -> Callable[..., None]:
    """Return an epoch callback that saves a module every `period` epochs.

    Parameters
    ----------
    mod
        The module to save.
    prefix
        Prefix of the file names.
    period
        Number of epochs between checkpoints.
    save_optimizer_states
        Whether to save the states of the optimizer too.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2)
    >>> module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    >>> module.bind([("data", (1, 3))], [("softmax_label", (1,))])
    >>> module.init_params()
    >>> mx.callback.module_checkpoint(module, "net")(0)
    >>> len(mx.model.load_params("net", 1)[0])
    2
    """
    period = max(1, int(period))

    def save(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            mod.save_checkpoint(prefix, iter_no + 1, save_optimizer_states)

    return save


def do_checkpoint(prefix: str, period: int = 1) -> Callable[..., None]:
    """Return an epoch callback that saves a checkpoint every `period` epochs.

    Parameters
    ----------
    prefix
        Prefix of the file names.
    period
        Number of epochs between checkpoints.

    >>> save = mx.callback.do_checkpoint("net", period=2)
    >>> save(1, mx.sym.var("x"), {"w": mx.nd.ones(2)}, {})
    >>> mx.model.load_params("net", 2)[0]["w"].shape
    (2,)
    """
    period = max(1, int(period))

    def save(iter_no: int, sym: Any, arg: Any, aux: Any) -> None:
        if (iter_no + 1) % period == 0:
            save_checkpoint(prefix, iter_no + 1, sym, arg, aux)

    return save


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[Any], None]:
    """Return a batch callback that logs the metric every `period` batches.

    Parameters
    ----------
    period
        Number of batches between two lines.
    auto_reset
        Whether to reset the metric after each line.

    >>> metric = mx.metric.Accuracy()
    >>> log = mx.callback.log_train_metric(period=10)
    >>> log(mx.callback.BatchEndParam(epoch=0, nbatch=10, eval_metric=metric, locals=None))
    """

    def log(param: Any) -> None:
        metric = param.eval_metric
        if param.nbatch % period or metric is None:
            return
        for name, value in metric.get_name_value():
            logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
        if auto_reset:
            metric.reset_local()

    return log


class Speedometer:
    """A batch callback that regularly logs samples per second and the metric.

    Parameters
    ----------
    batch_size : int
        Number of samples in a batch.
    frequent : int
        Number of batches between two lines.
    auto_reset : bool
        Whether to reset the metric after each line.

    >>> speed = mx.callback.Speedometer(batch_size=32, frequent=10)
    >>> speed(mx.callback.BatchEndParam(epoch=0, nbatch=1, eval_metric=None, locals=None))
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True) -> None:
        self.batch_size = batch_size
        self.frequent = frequent
        self.init = False
        self.tic = 0.0
        self.last_count = 0
        self.auto_reset = auto_reset

    def __call__(self, param: Any) -> None:
        """Count a batch, and log the speed every `frequent` batches."""
        count = param.nbatch
        if self.last_count > count:  # new epoch
            self.init = False
        self.last_count = count
        if not self.init:
            self.init = True
            self.tic = time.time()
        elif count % self.frequent == 0:
            elapsed = time.time() - self.tic
            speed = self.frequent * self.batch_size / elapsed if elapsed else math.inf
            self._log(param, count, speed)
            self.tic = time.time()

    def _log(self, param: Any, count: int, speed: float) -> None:
        metric = param.eval_metric
        if metric is None:
            logging.info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, count, speed)
            return
        values = metric.get_name_value()
        if self.auto_reset:
            metric.reset_local()
        first = count - self.frequent if self.auto_reset else 0
        message = "Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec" + "\t%s=%f" * len(values)
        logging.info(message, param.epoch, first, count, speed, *sum(values, ()))


class ProgressBar:
    """A batch callback that logs a progress bar.

    Parameters
    ----------
    total : int
        Total number of batches.
    length : int
        Length of the bar in characters.

    >>> bar = mx.callback.ProgressBar(total=100)
    >>> bar(mx.callback.BatchEndParam(epoch=0, nbatch=50, eval_metric=None, locals=None))
    """

    def __init__(self, total: int, length: int = 80) -> None:
        self.bar_len = length
        self.total = total

    def __call__(self, param: Any) -> None:
        """Log the progress."""
        done = param.nbatch / float(self.total)
        filled = round(self.bar_len * done)
        bar = "=" * filled + "-" * (self.bar_len - filled)
        logging.info("[%s] %s%s\r", bar, math.ceil(100.0 * param.nbatch / self.total), "%")


class LogValidationMetricsCallback:
    """An evaluation callback that logs the metric at the end of an epoch.

    >>> callable(mx.callback.LogValidationMetricsCallback())
    True
    """

    def __call__(self, param: Any) -> None:
        """Log the metric, if there is one."""
        if not param.eval_metric:
            return
        for name, value in param.eval_metric.get_name_value():
            logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)
