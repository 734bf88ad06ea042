"""`LogMetricsCallback`: metrics of a training, for TensorBoard."""

from __future__ import annotations

from typing import Any

from ..error import MXNetError

__all__ = ["LogMetricsCallback"]


class LogMetricsCallback:
    """A batch or evaluation callback that writes metrics to event files.

    TensorBoard shows them: ``tensorboard --logdir=path``. The files are written by
    `torch.utils.tensorboard`, which needs the package `tensorboard`.

    Parameters
    ----------
    logging_dir : str
        Folder of the event files.
    prefix : str
        Prefix of the metric names, to distinguish training from evaluation.

    >>> log = mx.contrib.tensorboard.LogMetricsCallback("logs")  # doctest: +SKIP
    """

    def __init__(self, logging_dir: str, prefix: str | None = None) -> None:
        self.prefix = prefix
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MXNetError(
                "LogMetricsCallback writes with the package tensorboard, which is not installed: "
                "pip install tensorboard"
            ) from error
        self.summary_writer = SummaryWriter(logging_dir)

    def __call__(self, param: Any) -> None:
        """Write the metrics of `param.eval_metric` at the step `param.epoch`."""
        if param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            tag = name if self.prefix is None else f"{self.prefix}-{name}"
            self.summary_writer.add_scalar(tag, value, global_step=param.epoch)
