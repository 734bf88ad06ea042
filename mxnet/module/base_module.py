"""`BaseModule`: the interface of modules, and loops for training and prediction."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import metric as metrics
from .. import ndarray
from .._process.interrupts import explain_interrupt
from ..base import _as_list
from ..callback import BatchEndParam
from ..context import cpu  # noqa: F401 (MXNet shows it here)
from ..error import InvalidType
from ..formats.model_files import Params, named_params, read_params
from ..initializer import Initializer, Uniform
from ..io import DataBatch, DataDesc, DataIter  # noqa: F401 (MXNet shows two of them here)
from ..metric import EvalMetric
from ..ndarray import NDArray
from ..visualization.tracking import History, Tracker
from .inputs import check_input_names as _check_input_names  # noqa: F401
from .inputs import parse_data_desc as _parse_data_desc  # noqa: F401
from .resume import Resuming

SGD_DEFAULTS = (("learning_rate", 0.01),)


class BaseModule:
    """Base class of modules: a computation with parameters, bound to shapes.

    Call `bind`, `init_params` and `init_optimizer`, then for each batch `forward`, `backward` and
    `update`. `fit`, `score` and `predict` call these; subclasses implement them.

    Parameters
    ----------
    logger : logging.Logger
        Logger of `fit` and `score`.

    >>> issubclass(mx.mod.Module, mx.mod.BaseModule)
    True
    """

    def __init__(self, logger: Any = logging) -> None:
        self.logger = logger
        self.binded = False
        self.for_training = False
        self.inputs_need_grad = False
        self.params_initialized = False
        self.optimizer_initialized = False
        self._symbol = None

    # -- assertions ---------------------------------------------------------------------

    def _need_bind(self) -> None:
        if not self.binded:
            raise AssertionError("call bind first, or fit")

    def _need_params(self) -> None:
        if not self.binded:
            self._need_bind()
        if not self.params_initialized:
            raise AssertionError("call init_params, set_params or fit first")

    def _need_optimizer(self) -> None:
        if not (self.binded and self.params_initialized):
            self._need_params()
        if not self.optimizer_initialized:
            raise AssertionError("call init_optimizer or fit first")

    # -- names and shapes: implemented by subclasses ------------------------------------------

    @property
    def data_names(self) -> list[str]:
        """Names of the inputs."""
        raise NotImplementedError

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        raise NotImplementedError

    @property
    def data_shapes(self) -> list[DataDesc]:
        """Descriptions of the inputs, after `bind`."""
        raise NotImplementedError

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """Descriptions of the labels, after `bind`; None if there are none."""
        raise NotImplementedError

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of each output, after `bind`."""
        raise NotImplementedError

    @property
    def symbol(self) -> Any:
        """The symbol of the module, or None."""
        return self._symbol

    # -- parameters ---------------------------------------------------------------------------

    def get_params(self) -> tuple[Params, Params]:
        """Return arguments and auxiliary states by name."""
        raise NotImplementedError

    def init_params(
        self,
        initializer: Initializer | None = Uniform(0.01),  # noqa: B008 (it holds no state)
        arg_params: Mapping[str, NDArray] | None = None,
        aux_params: Mapping[str, NDArray] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Initialize all parameters."""
        raise NotImplementedError

    def set_params(
        self,
        arg_params: Mapping[str, NDArray],
        aux_params: Mapping[str, NDArray],
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Set the parameters."""
        self.init_params(
            initializer=None,
            arg_params=arg_params,
            aux_params=aux_params,
            allow_missing=allow_missing,
            force_init=force_init,
            allow_extra=allow_extra,
        )

    def save_params(self, fname: str) -> None:
        """Write the parameters to a file."""
        ndarray.save(fname, named_params(*self.get_params()))

    def load_params(self, fname: str) -> None:
        """Read the parameters from a file."""
        self.set_params(*read_params(fname))

    def get_states(self, merge_multi_context: bool = True) -> list:
        """Return the states; an empty list by default."""
        self._need_params()
        if merge_multi_context:
            raise AssertionError("merge_multi_context=True is not supported for get_states yet.")
        return []

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states."""
        self._need_params()
        if states or value:
            raise AssertionError("this module has no states")

    def install_monitor(self, mon: Any) -> None:
        """Install a monitor on the executors."""
        raise NotImplementedError

    # -- steps --------------------------------------------------------------------------------

    def prepare(self, data_batch: Any, sparse_row_id_fn: Callable | None = None) -> None:
        """Prepare for the batch of the next `forward`."""
        if sparse_row_id_fn is not None:
            raise NotImplementedError(f"{type(self).__name__}.prepare takes no sparse_row_id_fn.")

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch."""
        raise NotImplementedError

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients.

        Parameters
        ----------
        out_grads
            Gradients of the outputs; not needed for loss layers.
        """
        raise NotImplementedError

    def get_outputs(self, merge_multi_context: bool = True) -> list:
        """Return the outputs of the last forward.

        Parameters
        ----------
        merge_multi_context
            Whether to concatenate the results of several devices.
        """
        raise NotImplementedError

    def get_input_grads(self, merge_multi_context: bool = True) -> list:
        """Return the gradients of the inputs.

        Parameters
        ----------
        merge_multi_context
            Whether to concatenate the results of several devices.
        """
        raise NotImplementedError

    def update(self) -> None:
        """Update the parameters by the gradients of the last backward."""
        raise NotImplementedError

    def update_metric(self, eval_metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Update a metric with the outputs of the last forward.

        Parameters
        ----------
        eval_metric
            The metric.
        labels
            The labels.
        pre_sliced
            Whether `labels` is a list with the labels of each device.
        """
        raise NotImplementedError

    def bind(
        self,
        data_shapes: Sequence,
        label_shapes: Sequence | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Bind for batches of these shapes."""
        raise NotImplementedError

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = SGD_DEFAULTS,
        force_init: bool = False,
    ) -> None:
        """Create the optimizer and its states."""
        raise NotImplementedError

    # -- training state, for `fit(resume=...)` -------------------------------------

    def _training_state(self) -> Mapping[str, Any]:
        """Return the complete training state, as a tree of arrays, bytes and numbers."""
        arg_params, aux_params = self.get_params()
        return {"arg": dict(arg_params), "aux": dict(aux_params)}

    def _restore_training_state(self, state: Mapping[str, Any]) -> None:
        self.set_params(state["arg"], state["aux"])

    # -- loops ---------------------------------------------------------------------------------

    def forward_backward(self, data_batch: Any) -> None:
        """Run forward in training mode, and backward.

        Parameters
        ----------
        data_batch
            The batch.
        """
        self.forward(data_batch, is_train=True)
        self.backward()

    def score(
        self,
        eval_data: Any,
        eval_metric: Any,
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        score_end_callback: Any = None,
        reset: bool = True,
        epoch: int = 0,
        sparse_row_id_fn: Callable | None = None,
    ) -> list[tuple[str, float]]:
        """Evaluate a metric on the data of an iterator; return its names and values.

        Padding samples of the last batch are included, as in MXNet.

        Parameters
        ----------
        eval_data
            Iterator over the data to evaluate on.
        eval_metric
            The metric, or its name.
        num_batch
            Number of batches; by default all.
        batch_end_callback
            Callback, or list of callbacks, after each batch.
        score_end_callback
            Callback, or list of callbacks, at the end.
        reset
            Whether to reset the iterator first.
        epoch
            Number of the epoch.
        sparse_row_id_fn
            Function of a batch that returns the required rows of sparse parameters.
        """
        self._need_params()
        if reset:
            eval_data.reset()
        if not isinstance(eval_metric, EvalMetric):
            eval_metric = metrics.create(eval_metric)
        eval_metric.reset()
        actual_num_batch = 0
        for nbatch, eval_batch in enumerate(eval_data):
            if num_batch is not None and nbatch == num_batch:
                break
            self.prepare(eval_batch, sparse_row_id_fn=sparse_row_id_fn)
            self.forward(eval_batch, is_train=False)
            self._update_metric_from(eval_metric, eval_batch)
            if batch_end_callback is not None:
                call_all(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            actual_num_batch += 1
        if score_end_callback:
            call_all(
                score_end_callback,
                BatchEndParam(epoch, actual_num_batch, eval_metric, locals()),
            )
        return eval_metric.get_name_value()

    def _update_metric_from(self, eval_metric: EvalMetric, batch: Any) -> None:
        if isinstance(batch, list):  # one batch for each device
            self.update_metric(eval_metric, [one.label for one in batch], pre_sliced=True)
        else:
            self.update_metric(eval_metric, batch.label)

    def iter_predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        reset: bool = True,
        sparse_row_id_fn: Callable | None = None,
    ) -> Iterator[tuple[list[NDArray], int, Any]]:
        """Yield (outputs without padding, batch number, batch).

        Parameters
        ----------
        eval_data
            Iterator over the data to evaluate on.
        num_batch
            Number of batches; by default all.
        reset
            Whether to reset the iterator first.
        sparse_row_id_fn
            Function of a batch that returns the required rows of sparse parameters.
        """
        self._need_params()
        if reset:
            eval_data.reset()
        for nbatch, eval_batch in enumerate(eval_data):
            if num_batch is not None and nbatch == num_batch:
                break
            self.prepare(eval_batch, sparse_row_id_fn=sparse_row_id_fn)
            self.forward(eval_batch, is_train=False)
            pad = eval_batch.pad or 0
            yield [out[0 : out.shape[0] - pad] for out in self.get_outputs()], nbatch, eval_batch

    def predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        merge_batches: bool = True,
        reset: bool = True,
        always_output_list: bool = False,
        sparse_row_id_fn: Callable | None = None,
    ) -> Any:
        """Return the outputs for the data of an iterator, or for one array.

        Parameters
        ----------
        eval_data : DataIter, NDArray or numpy.ndarray
            Iterator over the data to evaluate on.
        num_batch : int, optional
            Maximum number of batches.
        merge_batches : bool
            Whether to concatenate the batches of each output; otherwise returns a list of lists of
            arrays.
        reset : bool
            Whether to reset the iterator first.
        always_output_list : bool
            Whether to return a list even if there is only one output.
        sparse_row_id_fn
            Function of a batch that returns the required rows of sparse parameters.
        """
        self._need_params()
        if isinstance(eval_data, NDArray | np.ndarray):
            data = eval_data if isinstance(eval_data, NDArray) else ndarray.array(eval_data)
            self.forward(DataBatch([data]), is_train=False)
            return self.get_outputs()[0]
        if not hasattr(eval_data, "__iter__") or isinstance(eval_data, list | tuple | dict):
            raise ValueError(
                f"eval_data must be of type NDArray or DataIter, not {type(eval_data).__name__}"
            )
        batches = [
            [out.copy() for out in outputs]
            for outputs, _, _ in self.iter_predict(eval_data, num_batch, reset, sparse_row_id_fn)
        ]
        if not batches or not merge_batches:
            return batches
        counts = {len(outputs) for outputs in batches}
        if len(counts) > 1:
            raise AssertionError(
                "Cannot merge batches, as num of outputs is not the same in mini-batches "
                f"({sorted(counts)}). Maybe bucketing is used? Use merge_batches=False."
            )
        merged = [
            parts[0] if len(parts) == 1 else ndarray.concat(*parts, dim=0)
            for parts in zip(*batches, strict=True)
        ]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    def fit(
        self,
        train_data: Any,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = SGD_DEFAULTS,
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
        initializer: Initializer | None = Uniform(0.01),  # noqa: B008 (it holds no state)
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_rebind: bool = False,
        force_init: bool = False,
        begin_epoch: int = 0,
        num_epoch: int | None = None,
        validation_metric: Any = None,
        monitor: Any = None,
        sparse_row_id_fn: Callable | None = None,
        *,
        resume: str | os.PathLike | None = None,
        resume_every: int | None = None,
        progress: bool | None = None,
        loggers: Any = None,
    ) -> History:
        """Train on an iterator and return the metrics of each epoch.

        Parameters
        ----------
        train_data, eval_data : DataIter
            Iterators over the training data, and over the data to evaluate on after each epoch.
        eval_metric, validation_metric : EvalMetric, str or list
            Metrics of the training data, and of `eval_data`; by default both are `eval_metric`.
        epoch_end_callback : callable or list
            Called with (epoch, symbol, arg_params, aux_params).
        batch_end_callback : callable or list
            Called with a `BatchEndParam`.
        kvstore : str, KVStore or None
            Store that sums gradients, its name, or None.
        optimizer : str or Optimizer
            The optimizer, or its name.
        optimizer_params : dict, or pairs
            Arguments of the optimizer, as a dict or pairs.
        eval_end_callback, eval_batch_end_callback : callables
            Called with a `BatchEndParam`.
        initializer : Initializer
            Initializer of parameters without a value.
        arg_params, aux_params : dict of NDArray
            Initial values; with `allow_missing` the others are initialized.
        allow_missing
            Whether to initialize parameters without a value; otherwise they raise an error.
        force_rebind, force_init : bool
            Whether to bind and initialize again if already done.
        begin_epoch, num_epoch : int
            First epoch, and the epoch to stop before.
        monitor : Monitor
            Monitor to install.
        sparse_row_id_fn : callable
            See `prepare`.
        resume : str, optional
            Prefix of a file ``<prefix>-resume.params`` with the training state: parameters,
            optimizer, random streams and position. If it exists, training resumes from it, with the
            result of an uninterrupted run.
        resume_every : int, optional
            Number of batches between writes of that file inside an epoch.
        progress : bool, optional
            Whether to show progress on stderr: a bar on a terminal or in a notebook, a line per
            minute in a file. By default as ``MXNET_PROGRESS`` says.
        loggers : Logger or list
            Where to write the metrics of each epoch, such as ``mx.tracking.CSVLogger("run.csv")``.

        Returns
        -------
        History
            ``history["train_accuracy"]`` is a list with a value for each epoch, and so is
            ``history["val_accuracy"]`` with `eval_data`.

        Notes
        -----
        `resume`, `resume_every`, `progress`, `loggers` and the history are additions to MXNet.
        """
        if num_epoch is None:
            raise AssertionError("please specify number of epochs: num_epoch=...")
        self._bind_to_data(train_data, force_rebind)
        if monitor is not None:
            self.install_monitor(monitor)
        self.init_params(
            initializer=initializer,
            arg_params=arg_params,
            aux_params=aux_params,
            allow_missing=allow_missing,
            force_init=force_init,
        )
        self.init_optimizer(kvstore=kvstore, optimizer=optimizer, optimizer_params=optimizer_params)
        if validation_metric is None:
            validation_metric = eval_metric
        if not isinstance(eval_metric, EvalMetric):
            eval_metric = metrics.create(eval_metric)
        tracker = Tracker(train_data, progress, loggers, self.logger, num_epoch)
        resuming = Resuming(self, resume, resume_every, train_data, eval_metric, tracker.history)
        begin_epoch = resuming.continue_from(begin_epoch)
        if resuming.saved is not None:
            tracker.announce(f"Resumed from {resuming.saved} ({resuming.path})")

        # The loop over batches is here, because callbacks read its variables in `param.locals`.
        with explain_interrupt(resuming.describe_interrupt), tracker:
            for epoch in range(begin_epoch, num_epoch):
                tic = time.time()
                eval_metric.reset()
                data_iter = iter(train_data)
                nbatch, next_data_batch = resuming.start(data_iter)
                tracker.start_epoch(epoch, nbatch)
                end_of_batch = False
                eval_name_vals: list[tuple[str, float]] = []
                while not end_of_batch:
                    data_batch = next_data_batch
                    if monitor is not None:
                        monitor.tic()
                    self.forward_backward(data_batch)
                    self.update()
                    # Before fetching the next batch, which iterators may write into the same
                    # memory.
                    self._update_metric_from(eval_metric, data_batch)
                    next_data_batch = resuming.fetch(data_iter)
                    end_of_batch = next_data_batch is None
                    if not end_of_batch:
                        self.prepare(next_data_batch, sparse_row_id_fn=sparse_row_id_fn)
                    if monitor is not None:
                        monitor.toc_print()
                    if end_of_batch:
                        eval_name_vals = eval_metric.get_global_name_value()
                    tracker.step((eval_metric,))
                    if batch_end_callback is not None:
                        call_all(
                            batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals())
                        )
                    nbatch += 1
                    resuming.after_batch(epoch, nbatch, end_of_batch)

                tracker.finish_batches((eval_metric,))
                results = self._log_metrics("train", epoch, eval_name_vals)
                self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - tic)
                # Synchronize values that differ between devices, such as moving means.
                arg_params, aux_params = self.get_params()
                self.set_params(arg_params, aux_params)
                if epoch_end_callback is not None:
                    for callback in _as_list(epoch_end_callback):
                        callback(epoch, self.symbol, arg_params, aux_params)
                if eval_data is not None:
                    values = self.score(
                        eval_data,
                        validation_metric,
                        score_end_callback=eval_end_callback,
                        batch_end_callback=eval_batch_end_callback,
                        epoch=epoch,
                    )
                    results |= self._log_metrics("val", epoch, values)
                tracker.end_epoch(epoch, results)
                resuming.reset_data()
                resuming.after_epoch(epoch)
        return tracker.history

    def _bind_to_data(self, train_data: Any, force_rebind: bool) -> None:
        if not hasattr(train_data, "provide_data"):
            raise InvalidType(
                f"train_data must be a DataIter, got a {type(train_data).__name__}; for a Gluon "
                "DataLoader use mx.contrib.io.DataLoaderIter(loader)."
            )
        self.bind(
            data_shapes=train_data.provide_data,
            label_shapes=train_data.provide_label,
            for_training=True,
            force_rebind=force_rebind,
        )

    def _log_metrics(
        self, part: str, epoch: int, values: list[tuple[str, float]]
    ) -> dict[str, float]:
        title = {"train": "Train", "val": "Validation"}[part]
        for name, value in values:
            self.logger.info("Epoch[%d] %s-%s=%f", epoch, title, name, value)
        return {f"{part}_{name}": value for name, value in values}


def call_all(callbacks: Any, param: Any) -> None:
    """Call one callback or several."""
    for callback in _as_list(callbacks):
        callback(param)
