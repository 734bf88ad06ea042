"""`FeedForward`: MXNet's first training interface for symbols."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import io
from .. import metric as metrics
from ..base import _as_list
from ..callback import BatchEndParam, LogValidationMetricsCallback
from ..context import Context, listed_contexts
from ..formats.model_files import Params, load_checkpoint, save_checkpoint
from ..initializer import Initializer, Uniform
from ..ndarray import NDArray
from ..symbol import Symbol


class FeedForward:
    """MXNet's first training interface, replaced by `Module`; it takes arrays or iterators.

    Parameters
    ----------
    symbol : Symbol, or a callable that gives the symbol of a bucket key
        The network, or a function from a bucket key to a network.
    ctx : Context or list of Context
        Device, or list of devices.
    num_epoch, epoch_size : int
        Number of epochs, and of batches per epoch (by default all).
    optimizer : str or Optimizer
        Optimizer, or its name.
    initializer : Initializer
        Initializer of the parameters.
    numpy_batch_size : int
        Batch size for arrays.
    arg_params : dict of NDArray
        Values of parameters, by name.
    aux_params : dict of NDArray
        Values of auxiliary states, by name.
    allow_extra_params : bool
        Whether to ignore parameters that the symbol does not have; otherwise they raise an error.
    begin_epoch : int
        Number of the first epoch.
    **kwargs
        Arguments of the optimizer.

    >>> import warnings
    >>> warnings.simplefilter("ignore", DeprecationWarning)
    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> model = mx.model.FeedForward(mx.sym.SoftmaxOutput(net, name="softmax"), num_epoch=1)
    >>> model.fit(np.ones((8, 3)), np.zeros(8))
    >>> model.predict(np.ones((8, 3))).shape
    (8, 2)
    """

    def __init__(
        self,
        symbol: Any,
        ctx: Context | Sequence[Context] | None = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Initializer = Uniform(0.01),  # noqa: B008 (it holds no state)
        numpy_batch_size: int = 128,
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_extra_params: bool = False,
        begin_epoch: int = 0,
        **kwargs: Any,
    ) -> None:
        warnings.warn(
            "mxnet.model.FeedForward has been deprecated. Please use mxnet.mod.Module instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        self.symbol: Any = symbol if isinstance(symbol, Symbol) else None
        self.sym_gen: Any = None if isinstance(symbol, Symbol) else symbol
        self.arg_params: Any = arg_params  # by name, or None before training
        self.aux_params: Any = aux_params
        self.allow_extra_params = allow_extra_params
        self.ctx = listed_contexts(ctx)
        self.num_epoch, self.epoch_size, self.begin_epoch = num_epoch, epoch_size, begin_epoch
        self.kwargs = kwargs.copy()
        self.optimizer, self.initializer = optimizer, initializer
        self.numpy_batch_size = numpy_batch_size
        self._check_extra()

    def _check_extra(self) -> None:
        if self.symbol is None or self.arg_params is None:
            return
        names = {*self.symbol.list_arguments(), *self.symbol.list_auxiliary_states()}
        extra = sorted({*self.arg_params, *(self.aux_params or {})} - names)
        if extra and not self.allow_extra_params:
            raise ValueError(
                f"The symbol has no {', '.join(extra)}; allow_extra_params=True ignores them."
            )
        self.arg_params = {n: x for n, x in self.arg_params.items() if n in names}
        self.aux_params = {n: x for n, x in (self.aux_params or {}).items() if n in names}

    # -- data ---------------------------------------------------------------------------------

    def _init_iter(self, X: Any, y: Any, is_train: bool) -> Any:
        if not isinstance(X, np.ndarray | NDArray):
            if not hasattr(X, "provide_data"):
                raise TypeError("X must be DataIter, NDArray or numpy.ndarray")
            return X
        if y is None:
            if is_train:
                raise ValueError("y must be specified when X is numpy.ndarray")
            y = np.zeros(X.shape[0])
        y = np.asarray(y.asnumpy() if isinstance(y, NDArray) else y)
        if X.shape[0] != y.shape[0]:
            raise ValueError(f"X has {X.shape[0]} samples, y has {y.shape[0]}")
        if y.ndim == 2 and y.shape[1] == 1:
            y = y.flatten()
        if y.ndim != 1:
            raise ValueError("Label must be 1D or 2D (with 2nd dimension being 1)")
        size = min(X.shape[0], self.numpy_batch_size)
        last = "roll_over" if is_train else "pad"
        return io.NDArrayIter(X, y, size, shuffle=is_train, last_batch_handle=last)

    def _init_eval_iter(self, eval_data: Any) -> Any:
        if not isinstance(eval_data, list | tuple):
            return eval_data
        if len(eval_data) != 2:
            raise ValueError("Eval data must be a pair (data, label)")
        data, label = eval_data
        data = np.array(data) if isinstance(data, list) else data
        label = np.array(label) if isinstance(label, list) else label
        return self._init_iter(data, label, is_train=True)  # shuffled, as in MXNet

    def _module(self, data: Any, **kwargs: Any) -> Any:
        from . import BucketingModule, Module  # module imports this file

        names = [desc[0] for desc in data.provide_data]
        labels = [desc[0] for desc in data.provide_label or ()]
        if self.sym_gen is None:
            arguments = self.symbol.list_arguments()
            labels = [name for name in labels if name in arguments]
            # Arguments that are neither data nor parameters are labels.
            if self.arg_params is not None:
                other = {*names, *self.arg_params, *labels}
                labels += [name for name in arguments if name not in other]
            return Module(self.symbol, names, labels, context=self.ctx, **kwargs)
        generate = self.sym_gen
        return BucketingModule(
            lambda key: (generate(key), names, labels),
            data.default_bucket_key,
            context=self.ctx,
            **kwargs,
        )

    # -- training -----------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        logger: Any = None,
        work_load_list: Sequence[float] | None = None,
        monitor: Any = None,
        eval_end_callback: Any = LogValidationMetricsCallback(),  # noqa: B008 (it holds no state)
        eval_batch_end_callback: Any = None,
    ) -> None:
        """Train on an iterator, or on arrays `X` and labels `y`.

        Parameters
        ----------
        X
            The data: an iterator, or arrays.
        y
            The labels, for arrays.
        eval_data
            Data to evaluate on after each epoch.
        eval_metric
            The metric, or its name.
        epoch_end_callback
            Callback, or list of callbacks, after each epoch.
        batch_end_callback
            Callback, or list of callbacks, after each batch.
        kvstore
            Store that sums gradients, or its name.
        logger
            Logger of the training.
        work_load_list
            Relative size of each device's part of the batch.
        monitor
            A monitor to install.
        eval_end_callback
            Callback, or list of callbacks, after each evaluation.
        eval_batch_end_callback
            Callback, or list of callbacks, after each batch of an evaluation.
        """
        logger = logging if logger is None else logger
        data = self._init_iter(X, y, is_train=True)
        eval_data = self._init_eval_iter(eval_data)
        eval_metric = metrics.create(eval_metric)
        if self.num_epoch is None:
            raise TypeError("num_epoch is needed: for how many epochs to train")
        if self.sym_gen is not None:
            self.symbol = self.sym_gen(data.default_bucket_key)
        mod = self._module(data, work_load_list=work_load_list, logger=logger)
        mod.bind(data.provide_data, data.provide_label, for_training=True)
        mod.init_params(self.initializer, self.arg_params, self.aux_params, allow_missing=True)
        mod.init_optimizer(kvstore, self.optimizer, self.kwargs)
        if monitor is not None:
            mod.install_monitor(monitor)
        logger.info("Start training with %s", str(self.ctx))
        data.reset()
        for epoch in range(self.begin_epoch, self.num_epoch):
            tic = time.time()
            eval_metric.reset()
            self._train_epoch(mod, data, epoch, eval_metric, batch_end_callback, monitor, logger)
            logger.info("Epoch[%d] Time cost=%.3f", epoch, (time.time() - tic))
            self.arg_params, self.aux_params = mod.get_params()
            mod.set_params(self.arg_params, self.aux_params)
            for callback in _as_list(epoch_end_callback) if epoch_end_callback else ():
                callback(epoch, self.symbol, self.arg_params, self.aux_params)
            if eval_data is not None:
                mod.score(
                    eval_data,
                    eval_metric,
                    batch_end_callback=eval_batch_end_callback,
                    score_end_callback=eval_end_callback,
                    epoch=epoch,
                )
                eval_data.reset()

    def _train_epoch(
        self,
        mod: Any,
        data: Any,
        epoch: int,
        eval_metric: Any,
        batch_end_callback: Any,
        monitor: Any,
        logger: Any,
    ) -> None:
        """Run one epoch: all batches, or the next `epoch_size` batches."""
        nbatch = 0
        while True:
            finished = True
            for data_batch in data:
                if monitor is not None:
                    monitor.tic()
                mod.forward_backward(data_batch)
                mod.update()
                if monitor is not None:
                    monitor.toc_print()
                mod.update_metric(eval_metric, data_batch.label)
                nbatch += 1
                if batch_end_callback is not None:
                    param = BatchEndParam(epoch, nbatch, eval_metric, locals())
                    for callback in _as_list(batch_end_callback):
                        callback(param)
                if self.epoch_size is not None and nbatch >= self.epoch_size:
                    finished = False
                    break
            if finished:
                logger.info("Epoch[%d] Resetting Data Iterator", epoch)
                data.reset()
            if self.epoch_size is None or nbatch >= self.epoch_size:
                return

    # -- prediction ---------------------------------------------------------------------------

    def _predictor(self, data: Any) -> Any:
        if self.arg_params is None:
            raise ValueError("fit or load first: there are no parameters yet")
        mod = self._module(data)
        labels = data.provide_label or None
        if labels:
            arguments = (
                self.sym_gen(data.default_bucket_key) if self.symbol is None else self.symbol
            ).list_arguments()
            labels = [desc for desc in labels if desc[0] in arguments] or None
        with warnings.catch_warnings():  # prediction needs no labels
            warnings.simplefilter("ignore", UserWarning)
            mod.bind(data.provide_data, labels, for_training=False)
        mod.set_params(self.arg_params, self.aux_params or {})
        return mod

    def predict(
        self, X: Any, num_batch: int | None = None, return_data: bool = False, reset: bool = True
    ) -> Any:
        """Return the outputs as NumPy arrays; with `return_data` also data and labels.

        Parameters
        ----------
        X
            The data: an iterator, or arrays.
        num_batch
            Number of batches; by default all.
        return_data
            Whether to return data and labels too.
        reset
            Whether to reset the iterator first.
        """
        data = self._init_iter(X, None, is_train=False)
        mod = self._predictor(data)
        outputs: list[list] = []
        seen: list[list] = []
        labels: list[list] = []
        for outs, _, batch in mod.iter_predict(data, num_batch, reset):
            size = outs[0].shape[0]
            outputs.append([out.asnumpy() for out in outs])
            seen.append([x[:size].asnumpy() for x in batch.data])
            labels.append([x[:size].asnumpy() for x in batch.label or ()])
        if not return_data:
            return _join_batches(outputs)
        return _join_batches(outputs), _join_batches(seen), _join_batches(labels)

    def score(
        self,
        X: Any,
        eval_metric: Any = "acc",
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        reset: bool = True,
    ) -> float:
        """Return the value of a metric.

        Parameters
        ----------
        X
            The data: an iterator, or arrays.
        eval_metric
            The metric, or its name.
        num_batch
            Number of batches; by default all.
        batch_end_callback
            Callback, or list of callbacks, after each batch.
        reset
            Whether to reset the iterator first.
        """
        data = self._init_iter(X, None, is_train=False)
        metric = metrics.create(eval_metric)
        mod = self._predictor(data)
        mod.score(data, metric, num_batch, batch_end_callback, reset=reset)
        return metric.get()[1]

    # -- files --------------------------------------------------------------------------------

    def save(self, prefix: str, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Write a checkpoint, of the last epoch by default.

        Parameters
        ----------
        prefix
            Prefix of the file names.
        epoch
            Number of the epoch.
        remove_amp_cast
            Whether to remove casts of mixed precision.
        """
        epoch = self.num_epoch if epoch is None else epoch
        if epoch is None:
            raise ValueError("epoch is needed: there is no num_epoch")
        save_checkpoint(
            prefix, epoch, self.symbol, self.arg_params, self.aux_params, remove_amp_cast
        )

    @staticmethod
    def load(prefix: str, epoch: int, ctx: Any = None, **kwargs: Any) -> FeedForward:
        """Return a model from a checkpoint.

        Parameters
        ----------
        prefix
            Prefix of the file names.
        epoch
            Number of the epoch.
        ctx
            Device, or list of devices.
        """
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        return FeedForward(
            symbol,
            ctx=ctx,
            arg_params=arg_params,
            aux_params=aux_params,
            begin_epoch=epoch,
            **kwargs,
        )

    @staticmethod
    def create(
        symbol: Any,
        X: Any,
        y: Any = None,
        ctx: Any = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Initializer = Uniform(0.01),  # noqa: B008 (it holds no state)
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        logger: Any = None,
        work_load_list: Sequence[float] | None = None,
        eval_end_callback: Any = LogValidationMetricsCallback(),  # noqa: B008 (it holds no state)
        eval_batch_end_callback: Any = None,
        **kwargs: Any,
    ) -> FeedForward:
        """Create a model and train it.

        Parameters
        ----------
        symbol
            The network.
        X
            The data: an iterator, or arrays.
        y
            The labels, for arrays.
        ctx
            Device, or list of devices.
        num_epoch
            Number of epochs.
        epoch_size
            Number of batches per epoch.
        optimizer
            The optimizer, or its name.
        initializer
            Initializer of the parameters.
        eval_data
            Data to evaluate on after each epoch.
        eval_metric
            The metric, or its name.
        epoch_end_callback
            Callback, or list of callbacks, after each epoch.
        batch_end_callback
            Callback, or list of callbacks, after each batch.
        kvstore
            Store that sums gradients, or its name.
        logger
            Logger of the training.
        work_load_list
            Relative size of each device's part of the batch.
        eval_end_callback
            Callback, or list of callbacks, after each evaluation.
        eval_batch_end_callback
            Callback, or list of callbacks, after each batch of an evaluation.
        """
        model = FeedForward(
            symbol,
            ctx=ctx,
            num_epoch=num_epoch,
            epoch_size=epoch_size,
            optimizer=optimizer,
            initializer=initializer,
            **kwargs,
        )
        model.fit(
            X,
            y,
            eval_data=eval_data,
            eval_metric=eval_metric,
            epoch_end_callback=epoch_end_callback,
            batch_end_callback=batch_end_callback,
            kvstore=kvstore,
            logger=logger,
            work_load_list=work_load_list,
            eval_end_callback=eval_end_callback,
            eval_batch_end_callback=eval_batch_end_callback,
        )
        return model


def _join_batches(batches: Sequence[Sequence[np.ndarray]]) -> Any:
    arrays = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    return arrays[0] if len(arrays) == 1 else arrays
