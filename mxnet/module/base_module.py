"""`BaseModule`: what all modules can do; training and prediction loops made of a few steps."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import metric as metrics
from .. import ndarray
from ..base import _as_list
from ..context import cpu  # noqa: F401 (MXNet shows it here)
from ..initializer import Initializer, Uniform
from ..io import DataBatch, DataDesc, DataIter  # noqa: F401 (MXNet shows them here)
from ..metric import EvalMetric
from ..model import BatchEndParam, named_params, read_params
from ..ndarray import NDArray
from .progress import Progress
from .snapshot import Resuming

Params = dict[str, NDArray]
SGD_DEFAULTS = (("learning_rate", 0.01),)


class BaseModule:
    """A machine that computes: bound to shapes, given parameters, run on batches, and updated.

    Its life: `bind`, `init_params`, `init_optimizer`, then for each batch `forward`, `backward`,
    `update`. `fit`, `score` and `predict` do all of this. A subclass tells the steps.

    Parameters
    ----------
    logger : logging.Logger
        Where `fit` and `score` write.
    """

    def __init__(self, logger: Any = logging) -> None:
        self.logger = logger
        self.binded = False
        self.for_training = False
        self.inputs_need_grad = False
        self.params_initialized = False
        self.optimizer_initialized = False
        self._symbol = None

    # -- loops --------------------------------------------------------------------------------

    def forward_backward(self, data_batch: Any) -> None:
        """Run forward in training mode, and backward."""
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
        """Predict over an iterator and return the metric's names and values.

        Samples that only fill the last batch are counted too, as MXNet does.
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
            self._update_metric_by(eval_metric, eval_batch)
            if batch_end_callback is not None:
                call_all(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            actual_num_batch += 1
        if score_end_callback:
            call_all(
                score_end_callback,
                BatchEndParam(epoch, actual_num_batch, eval_metric, locals()),
            )
        return eval_metric.get_name_value()

    def _update_metric_by(self, eval_metric: EvalMetric, batch: Any) -> None:
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
        """Yield (outputs without padding, number of the batch, batch)."""
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
        """Return the outputs for an iterator, or for one array.

        Parameters
        ----------
        eval_data : DataIter, NDArray or numpy.ndarray
        num_batch : int, optional
            Stop after so many batches.
        merge_batches : bool
            Join the batches to one array for each output, or return a list of lists of arrays.
        reset : bool
            Whether the iterator is reset first.
        always_output_list : bool
            Return a list even if there is only one output.
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
    ) -> None:
        """Train on an iterator.

        Parameters
        ----------
        train_data, eval_data : DataIter
        eval_metric, validation_metric : EvalMetric, str or list
            Metrics of training, and of `eval_data`; the second is the first by default.
        epoch_end_callback : callable or list, called with (epoch, symbol, arg_params, aux_params).
        batch_end_callback : callable or list, called with a `BatchEndParam`.
        kvstore : str, KVStore or None
        optimizer : str or Optimizer
        optimizer_params : dict, or pairs
        eval_end_callback, eval_batch_end_callback : callables, called with a `BatchEndParam`.
        initializer : Initializer
        arg_params, aux_params : dict of NDArray
            First values; with `allow_missing` the others are initialized.
        force_rebind, force_init : bool
            Bind and initialize again if that was done before.
        begin_epoch, num_epoch : int
            First epoch, and the one to stop before.
        monitor : Monitor
        sparse_row_id_fn : callable, see `prepare`.
        resume : str, optional
            Prefix of a file, ``<prefix>-resume.params``, in which everything is kept that is
            needed to go on: parameters, optimizer, random streams, position. If it is there,
            training continues from it, to the same result as if it had never stopped.
        resume_every : int, optional
            Write that file every so many batches too, not only after each epoch.
        progress : bool, optional
            Show a live line on stderr; by default when stderr is a terminal.

        Notes
        -----
        `resume`, `resume_every` and `progress` are additions to MXNet.
        """
        if num_epoch is None:
            raise AssertionError("please specify number of epochs")
        self.bind(
            data_shapes=train_data.provide_data,
            label_shapes=train_data.provide_label,
            for_training=True,
            force_rebind=force_rebind,
        )
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
        keeper = Resuming(self, resume, resume_every, train_data, eval_metric)
        begin_epoch = keeper.continue_from(begin_epoch)
        bar = Progress(progress, train_data, begin_epoch, num_epoch)

        for epoch in range(begin_epoch, num_epoch):
            tic = time.time()
            eval_metric.reset()
            data_iter = iter(train_data)
            nbatch, next_data_batch = keeper.start(data_iter)
            bar.start(epoch, nbatch)
            end_of_batch = False
            eval_name_vals: list[tuple[str, float]] = []
            while not end_of_batch:
                data_batch = next_data_batch
                if monitor is not None:
                    monitor.tic()
                self.forward_backward(data_batch)
                self.update()
                next_data_batch = keeper.fetch(data_iter)
                end_of_batch = next_data_batch is None
                if not end_of_batch:
                    self.prepare(next_data_batch, sparse_row_id_fn=sparse_row_id_fn)
                self._update_metric_by(eval_metric, data_batch)
                bar.step(eval_metric)
                if monitor is not None:
                    bar.clear()
                    monitor.toc_print()
                if end_of_batch:
                    eval_name_vals = eval_metric.get_global_name_value()
                if batch_end_callback is not None:
                    bar.clear()
                    call_all(
                        batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals())
                    )
                nbatch += 1
                keeper.after_batch(epoch, nbatch, end_of_batch)

            bar.clear()
            for name, value in eval_name_vals:
                self.logger.info("Epoch[%d] Train-%s=%f", epoch, name, value)
            self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - tic)

            # Devices may differ in what they averaged, such as moving means: bring them in line.
            arg_params, aux_params = self.get_params()
            self.set_params(arg_params, aux_params)
            if epoch_end_callback is not None:
                for callback in _as_list(epoch_end_callback):
                    callback(epoch, self.symbol, arg_params, aux_params)
            if eval_data is not None:
                for name, value in self.score(
                    eval_data,
                    validation_metric,
                    score_end_callback=eval_end_callback,
                    batch_end_callback=eval_batch_end_callback,
                    epoch=epoch,
                ):
                    self.logger.info("Epoch[%d] Validation-%s=%f", epoch, name, value)
            keeper.reset_data()
            keeper.after_epoch(epoch)

    # -- what is asserted ---------------------------------------------------------------------

    def _need_bind(self) -> None:
        if not self.binded:
            raise AssertionError("call bind first, or fit")

    def _need_params(self) -> None:
        self._need_bind()
        if not self.params_initialized:
            raise AssertionError("call init_params, set_params or fit first")

    def _need_optimizer(self) -> None:
        self._need_params()
        if not self.optimizer_initialized:
            raise AssertionError("call init_optimizer or fit first")

    # -- names and shapes: told by subclasses -------------------------------------------------

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
        """The symbol that is computed, if there is one."""
        return self._symbol

    # -- parameters ---------------------------------------------------------------------------

    def get_params(self) -> tuple[Params, Params]:
        """Return arguments and auxiliary states by name."""
        raise NotImplementedError

    def init_params(
        self,
        initializer: Initializer | None = Uniform(0.01),  # noqa: B008 (it holds no state)
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Give all parameters their first values."""
        raise NotImplementedError

    def set_params(
        self,
        arg_params: Params,
        aux_params: Params,
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
        """Return states, of modules that have some."""
        self._need_params()
        if merge_multi_context:
            raise AssertionError("merge_multi_context=True is not supported for get_states yet.")
        return []

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set states, of modules that have some."""
        self._need_params()
        if states or value:
            raise AssertionError("this module has no states")

    def install_monitor(self, mon: Any) -> None:
        """Let a monitor watch what is computed."""
        raise NotImplementedError

    # -- steps --------------------------------------------------------------------------------

    def prepare(self, data_batch: Any, sparse_row_id_fn: Callable | None = None) -> None:
        """Get ready for a batch that will come to `forward` next."""
        if sparse_row_id_fn is not None:
            raise NotImplementedError(f"{type(self).__name__}.prepare takes no sparse_row_id_fn.")

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch."""
        raise NotImplementedError

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients."""
        raise NotImplementedError

    def get_outputs(self, merge_multi_context: bool = True) -> list:
        """Return the outputs of the last forward."""
        raise NotImplementedError

    def get_input_grads(self, merge_multi_context: bool = True) -> list:
        """Return the gradients of the inputs."""
        raise NotImplementedError

    def update(self) -> None:
        """Change the parameters by the gradients of the last backward."""
        raise NotImplementedError

    def update_metric(self, eval_metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Let a metric take the outputs of the last forward."""
        raise NotImplementedError

    def bind(
        self,
        data_shapes: list,
        label_shapes: list | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Get ready to compute on batches of these shapes."""
        raise NotImplementedError

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = SGD_DEFAULTS,
        force_init: bool = False,
    ) -> None:
        """Get ready to update."""
        raise NotImplementedError

    # -- all that training changes, for `fit(resume=...)` -------------------------------------

    def _training_state(self) -> Mapping[str, Any]:
        """Return everything that training changes, as a tree of arrays, bytes and numbers."""
        arg_params, aux_params = self.get_params()
        return {"arg": dict(arg_params), "aux": dict(aux_params)}

    def _restore_training_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `_training_state` gave."""
        self.set_params(state["arg"], state["aux"])


def call_all(callbacks: Any, param: Any) -> None:
    """Call one callback or several."""
    for callback in _as_list(callbacks):
        callback(param)
