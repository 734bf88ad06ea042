"""`Estimator`: fits a Gluon network to data and evaluates it."""

from __future__ import annotations

import copy
import logging
import os
import string
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ...._process.interrupts import explain_interrupt
from ....context import Context, cpu, gpu, num_gpus
from ....metric import EvalMetric
from ....metric import Loss as metric_loss
from ....visualization.tracking import History, Tracker
from ...block import Block
from ...data import DataLoader
from ...loss import Loss as gluon_loss
from ...trainer import Trainer
from ...utils import split_and_load
from .batch_processor import BatchProcessor
from .event_handler import (
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    EventHandler,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
)
from .resuming import Resuming
from .utils import (
    _check_handler_metric_ref,
    _check_metrics,
    _named_results,
    _suggest_metric_for_loss,
)

__all__ = ["Estimator"]


class Estimator:
    """Trains and validates a network; event handlers do everything except forward and backward.

    Parameters
    ----------
    net : Block
        The network to train.
    loss : gluon.loss.Loss
        The loss to minimize.
    train_metrics, val_metrics
        Metrics; their names get "training " and "validation ". Without val_metrics, copies of the
        training metrics are used.
    initializer
        Initializer of a network that is not yet initialized.
    trainer : Trainer
        The trainer; by default SGD with learning rate 0.001.
    context : Context or list of Context
        Device, or list of devices over which each batch is split.
    val_net, val_loss
        Network and loss for validation; by default `net` and `loss`.
    batch_processor : BatchProcessor
        Training and validation step for one batch.

    >>> from mxnet.gluon.contrib.estimator import Estimator
    >>> net = mx.gluon.nn.Dense(1, in_units=2)
    >>> net.initialize()
    >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    >>> est = Estimator(net, mx.gluon.loss.L2Loss(), trainer=trainer)
    >>> [metric.name for metric in est.train_metrics]
    ['training l2loss']
    """

    logger: logging.Logger | None = None

    def __init__(
        self,
        net: Block,
        loss: gluon_loss,
        train_metrics: EvalMetric | Sequence[EvalMetric] | None = None,
        val_metrics: EvalMetric | Sequence[EvalMetric] | None = None,
        initializer: Any = None,
        trainer: Trainer | None = None,
        context: Context | Sequence[Context] | None = None,
        val_net: Block | None = None,
        val_loss: gluon_loss | None = None,
        batch_processor: BatchProcessor | None = None,
    ) -> None:
        self.net = net
        self.loss = self._check_loss(loss)
        self._train_metrics = _check_metrics(train_metrics)
        self._val_metrics = _check_metrics(val_metrics)
        self._add_default_training_metrics()
        self._add_validation_metrics()
        self.val_loss = self.loss if val_loss is None else self._check_loss(val_loss)
        self.val_net = net if val_net is None else val_net
        # A logger of its own: handlers that users set on it stay with this estimator.
        self.logger = logging.Logger(name="Estimator", level=logging.INFO)
        self.logger.addHandler(logging.StreamHandler(sys.stdout))
        self.context = self._check_context(context)
        self._initialize(initializer)
        self.trainer = self._check_trainer(trainer)
        self.batch_processor = self._check_batch_processor(batch_processor)
        self._evaluations = 0
        self._epoch = 0  # of the training in progress

    # -- checks of the arguments
    # -----------------------------------------------------------------------

    def _check_loss(self, loss: Any) -> gluon_loss:
        if not isinstance(loss, gluon_loss):
            raise ValueError(f"loss must be a Loss, refer to gluon.loss.Loss:{loss}")
        return loss

    def _check_context(self, context: Any) -> list[Context]:
        if not context:
            return [gpu(0)] if num_gpus() > 0 else [cpu()]
        contexts = [context] if isinstance(context, Context) else context
        if isinstance(contexts, str) or not all(isinstance(each, Context) for each in contexts):
            raise ValueError(
                "context must be a Context or a list of Context, for example mx.cpu() or "
                f"[mx.gpu(0), mx.gpu(1)], refer to mxnet.Context:{context}"
            )
        usable = [gpu(i) for i in range(num_gpus())]
        for each in contexts:
            if each.device_type == "gpu" and each not in usable:
                names = ", ".join(["mx.cpu()", *(f"mx.{one}" for one in usable)])
                raise AssertionError(
                    f"{each} is not available, please make sure your context is in one of: {names}"
                )
        return list(contexts)

    def _check_batch_processor(self, batch_processor: Any) -> BatchProcessor:
        if batch_processor is None:
            return BatchProcessor()
        if not all(hasattr(batch_processor, name) for name in ("fit_batch", "evaluate_batch")):
            raise ValueError(
                "Customized Batch Processor must contain fit_batch() and evaluate_batch() methods"
            )
        return batch_processor

    def _is_initialized(self) -> bool:
        for param in self.net.collect_params().values():
            try:
                param.list_ctx()
            except RuntimeError:
                return False
        return True

    def _initialize(self, initializer: Any) -> None:
        if not self._is_initialized():
            options = {} if initializer is None else {"init": initializer}
            self.net.initialize(ctx=self.context, **options)
        elif initializer is not None:
            warnings.warn(
                "Network already fully initialized, skipping initialization. You don't need to "
                "pass initializer if you already initialized your net. You can use "
                "net.initialize(init=your_initializer, force_reinit=True) to force re-initialize.",
                stacklevel=3,
            )

    def _check_trainer(self, trainer: Any) -> Trainer:
        if trainer is None:
            warnings.warn(
                "No trainer specified, default SGD optimizer with learning rate 0.001 is used.",
                stacklevel=3,
            )
            return Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.001})
        if not isinstance(trainer, Trainer):
            raise ValueError(
                f"Trainer must be a Gluon Trainer instance, refer to gluon.Trainer:{trainer}"
            )
        return trainer

    # -- metrics ------------------------------------------------------------------------------

    def _add_default_training_metrics(self) -> None:
        if not self._train_metrics:
            suggested = _suggest_metric_for_loss(self.loss)
            own = metric_loss(self.loss.name.rstrip(string.digits))
            self._train_metrics = [own] if suggested is None else [suggested, own]
        for metric in self._train_metrics:
            metric.name = "training " + metric.name

    def _add_validation_metrics(self) -> None:
        if not self._val_metrics:
            self._val_metrics = [copy.deepcopy(metric) for metric in self._train_metrics]
            for metric in self._val_metrics:
                metric.name = metric.name.replace("training", "validation")
            return
        for metric in self._val_metrics:
            metric.name = "validation " + metric.name

    @property
    def train_metrics(self) -> Sequence[EvalMetric]:
        """Metrics of the training data, their names preceded by "training "."""
        return self._train_metrics

    @property
    def val_metrics(self) -> Sequence[EvalMetric]:
        """Metrics of the validation data, their names preceded by "validation "."""
        return self._val_metrics

    # -- the two loops ------------------------------------------------------------------------

    def evaluate(
        self, val_data: DataLoader, batch_axis: int = 0, event_handlers: Any = None
    ) -> None:
        """Run the network over validation data; `val_metrics` hold the result.

        Parameters
        ----------
        val_data : DataLoader
            Pairs (data, label).
        batch_axis : int
            The axis along which a batch is split over devices.
        event_handlers : EventHandler or list
            Event handlers; a MetricHandler and a LoggingHandler are added if missing.
        """
        _check_loader(val_data)
        self._evaluations += 1
        handlers = self._prepare_default_validation_handlers(event_handlers)
        _, epoch_begin, batch_begin, batch_end, epoch_end, _ = self._categorize_handlers(handlers)
        for handler in epoch_begin:
            handler.epoch_begin(self)
        for batch in val_data:
            for handler in batch_begin:
                handler.batch_begin(self, batch=batch)
            _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            for handler in batch_end:
                handler.batch_end(self, batch=batch, pred=pred, label=label, loss=loss)
        for handler in epoch_end:
            handler.epoch_end(self)

    def fit(
        self,
        train_data: DataLoader,
        val_data: DataLoader | None = None,
        epochs: int | None = None,
        event_handlers: Any = None,
        batches: int | None = None,
        batch_axis: int = 0,
        *,
        resume: str | os.PathLike[str] | None = None,
        resume_every: int | None = None,
        progress: bool | None = None,
        loggers: Any = None,
    ) -> History:
        """Train for a number of epochs or of batches, and return the metrics of each epoch.

        Parameters
        ----------
        train_data : DataLoader
            Pairs (data, label).
        val_data : DataLoader
            If given, the network is validated after every epoch.
        epochs, batches : int
            Number of epochs or batches to train; pass exactly one of them.
        event_handlers : EventHandler or list; a StoppingHandler, GradientUpdateHandler,
            MetricHandler, LoggingHandler and, with val_data, a ValidationHandler are added
            unless they are among them.
        batch_axis : int
            The axis along which a batch is split over devices.
        resume : str
            Folder of checkpoints, written after every epoch. If it has some, training resumes from
            the newest one, with the result of an uninterrupted run.
        resume_every : int
            Number of batches between checkpoints inside an epoch.
        progress : bool
            Whether to show progress on stderr: a bar on a terminal or in a notebook, a line per
            minute in a file. By default as ``MXNET_PROGRESS`` says.
        loggers : Logger or list
            Where to write the metrics of each epoch, such as ``mx.tracking.CSVLogger("run.csv")``.

        Returns
        -------
        History
            ``history["train_accuracy"]`` is a list with a value for each epoch, and so is
            ``history["val_accuracy"]`` with validation.
        """
        _check_loader(train_data)
        if bool(epochs) == bool(batches):
            raise ValueError(
                "Fit only support exactly one type of iteration, train by number of epochs or "
                "number of batches. Please specify one and only one of: epochs or batches."
            )
        self.max_epoch = epochs
        self.max_batch = batches
        self.batch_axis = batch_axis
        handlers = self._prepare_default_handlers(val_data, event_handlers)
        train_begin, *during, train_end = self._categorize_handlers(handlers)
        for handler in train_begin:
            handler.train_begin(self)
        tracker = Tracker(train_data, progress, loggers, self.logger, epochs)
        resuming = Resuming(self, train_data, handlers, tracker.history, resume, resume_every)
        is_over = resuming.restore()
        if resuming.saved is not None:
            tracker.announce(f"Resumed from {resuming.saved} ({resuming.folder})")
        with explain_interrupt(resuming.describe_interrupt), tracker:
            while not is_over:
                self._epoch = resuming.epoch
                is_over = self._fit_epoch(resuming, tracker, batch_axis, *during)
            self._epoch = 0
            for handler in train_end:
                handler.train_end(self)
        return tracker.history

    def _fit_epoch(
        self,
        resuming: Resuming,
        tracker: Tracker,
        batch_axis: int,
        epoch_begin: list,
        batch_begin: list,
        batch_end: list,
        epoch_end: list,
    ) -> bool:
        """Train one epoch; return whether a handler wants the training to end."""
        is_continued = resuming.is_inside_epoch
        for handler in [] if is_continued else epoch_begin:
            handler.epoch_begin(self)
        batch = None
        evaluations = self._evaluations
        tracker.start_epoch(resuming.epoch, resuming.batches_done)
        for batch in resuming.batches():
            for handler in batch_begin:
                handler.batch_begin(self, batch=batch)
            _, label, pred, loss = self.batch_processor.fit_batch(self, batch, batch_axis)
            results = {"batch": batch, "pred": pred, "label": label, "loss": loss}
            # A list: every handler is called, even after one has requested a stop.
            answers = [handler.batch_end(self, **results) for handler in batch_end]
            tracker.step(self.train_metrics)
            resuming.after_batch()
            if any(answers):
                break
        if batch is None and self.max_batch and not is_continued:
            raise ValueError("Estimator.fit: train_data has no batches to count.")
        tracker.finish_batches(self.train_metrics)
        answers = [handler.epoch_end(self) for handler in epoch_end]
        is_validated = self._evaluations > evaluations
        metrics = [*self.train_metrics, *(self.val_metrics if is_validated else ())]
        tracker.end_epoch(resuming.epoch, _named_results(metrics))
        resuming.after_epoch()
        return any(answers) or resuming.has_stopped

    # -- handlers -----------------------------------------------------------------------------

    def _prepare_default_handlers(self, val_data: Any, event_handlers: Any) -> list[EventHandler]:
        handlers = _check_handlers(event_handlers)
        handlers.append(StoppingHandler(self.max_epoch, self.max_batch))
        if not _has(handlers, GradientUpdateHandler):
            handlers.append(GradientUpdateHandler())
        if not _has(handlers, MetricHandler):
            handlers.append(MetricHandler(metrics=self.train_metrics))
        if val_data is not None and not _has(handlers, ValidationHandler):
            handlers.append(ValidationHandler(val_data=val_data, eval_fn=self.evaluate))
        if not _has(handlers, LoggingHandler):
            handlers.append(LoggingHandler(metrics=self.train_metrics))
        return self._ordered(handlers)

    def _prepare_default_validation_handlers(self, event_handlers: Any) -> list[EventHandler]:
        handlers = _check_handlers(event_handlers)
        if not _has(handlers, MetricHandler):
            handlers.append(MetricHandler(metrics=self.val_metrics))
        if not _has(handlers, LoggingHandler):
            handler = LoggingHandler(metrics=self.val_metrics)
            handler.current_epoch = self._epoch  # MXNet logs epoch 0 for every validation
            handlers.append(handler)
        return self._ordered(handlers)

    def _ordered(self, handlers: list[EventHandler]) -> list[EventHandler]:
        metrics = [*self.train_metrics, *self.val_metrics]
        for handler in handlers:
            _check_handler_metric_ref(handler, metrics)
        return sorted(handlers, key=lambda handler: getattr(handler, "priority", 0))

    def _categorize_handlers(self, event_handlers: Sequence[EventHandler]) -> tuple[list, ...]:
        events = (TrainBegin, EpochBegin, BatchBegin, BatchEnd, EpochEnd, TrainEnd)
        return tuple([h for h in event_handlers if isinstance(h, event)] for event in events)

    def _get_data_and_label(self, batch: Any, ctx: Any, batch_axis: int = 0) -> tuple[list, list]:
        data = split_and_load(batch[0], ctx_list=ctx, batch_axis=batch_axis)
        return data, split_and_load(batch[1], ctx_list=ctx, batch_axis=batch_axis)


def _check_loader(data: Any) -> None:
    if not isinstance(data, DataLoader):
        raise ValueError(
            "Estimator only support input as Gluon DataLoader. Alternatively, you can transform "
            "your DataIter or any NDArray into Gluon DataLoader. Refer to gluon.data.DataLoader"
        )


def _check_handlers(handlers: Any) -> list[EventHandler]:
    if isinstance(handlers, EventHandler):
        return [handlers]
    listed = list(handlers) if isinstance(handlers, (list, tuple)) else handlers or []
    if not isinstance(listed, list) or not all(isinstance(each, EventHandler) for each in listed):
        raise ValueError(
            f"handlers must be an EventHandler or a list of EventHandler, got: {handlers}"
        )
    return listed


def _has(handlers: Sequence[EventHandler], kind: type[EventHandler]) -> bool:
    return any(isinstance(handler, kind) for handler in handlers)
