"""`SVRGModule`: a Module that is trained by stochastic variance reduced gradients."""

from __future__ import annotations

import functools
import logging
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ... import context as ctx
from ...error import MXNetError
from ...initializer import Initializer, Uniform
from ...module import Module
from ...ndarray import NDArray
from ...optimizer import Optimizer
from ...visualization.tracking import History
from .svrg_optimizer import _FULL, _SVRGOptimizer

__all__ = ["SVRGModule"]


class SVRGModule(Module):
    """A Module whose gradient of a batch is ``g(w) - g(s) + G(s)``.

    ``s`` is a snapshot of the weights ``w``, taken every `update_freq` epochs, ``g`` the gradient
    of the batch and ``G`` the mean of it over all batches. Its expectation is that of ``g(w)``; its
    variance falls as ``w`` settles (Johnson and Zhang, 2013).

    Parameters
    ----------
    symbol
        The network.
    data_names
        Names of the arguments that come with each batch.
    label_names
        Names of the labels that come with each batch.
    logger
        Where training writes.
    context
        Device, or list of devices.
    work_load_list
        Relative size of each device's part of the batch.
    fixed_param_names
        Parameters that are not trained.
    state_names
        Arguments that are neither parameters nor come with a batch.
    group2ctxs
        Device of each ``ctx_group``.
    compression_params
        How gradients are compressed for transfer.
    update_freq : int
        Number of epochs between snapshots.

    >>> from mxnet.contrib.svrg_optimization.svrg_module import SVRGModule
    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1)
    >>> module = SVRGModule(mx.sym.LinearRegressionOutput(net, name="softmax"), update_freq=2)
    >>> module.update_freq
    2
    """

    def __init__(
        self,
        symbol: Any,
        data_names: Sequence[str] = ("data",),
        label_names: Sequence[str] = ("softmax_label",),
        logger: Any = logging,
        context: Any = ctx.cpu(),  # noqa: B008 (a Context is a constant)
        work_load_list: Sequence[float] | None = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
        update_freq: int | None = None,
    ) -> None:
        options = {
            "data_names": data_names,
            "label_names": label_names,
            "logger": logger,
            "context": context,
            "work_load_list": work_load_list,
            "fixed_param_names": fixed_param_names,
            "state_names": state_names,
            "group2ctxs": group2ctxs,
            "compression_params": compression_params,
        }
        super().__init__(symbol, **options)
        need = "to represent the frequency for calculating full gradients"
        if not isinstance(update_freq, int):
            raise TypeError(f"update_freq in SVRGModule must be an integer {need}")
        if update_freq <= 0:
            raise ValueError(f"update_freq in SVRGModule must be a positive integer {need}")
        self.update_freq = update_freq
        self._mod_aux = Module(symbol, **options)  # the network at the snapshot
        self._ctx_len = len(self._context)
        # Whether the snapshot was used in the last forward.
        self._has_snapshot = self._at_snapshot = False
        # The mean gradient at the snapshot: of each device, by the names of parameters.
        self._param_dict: list[dict[str, NDArray]] | None = None

    # -- methods that apply to both networks
    # ------------------------------------------------------------

    def bind(
        self,
        data_shapes: Sequence,
        label_shapes: Sequence | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Module | None = None,
        grad_req: Any = "write",
    ) -> None:
        """Bind for batches of these shapes, as `Module.bind`."""
        options = (for_training, inputs_need_grad, force_rebind, shared_module, grad_req)
        super().bind(data_shapes, label_shapes, *options)
        if for_training:
            self._mod_aux.bind(data_shapes, label_shapes, *options)

    def reshape(self, data_shapes: Sequence, label_shapes: Sequence | None = None) -> None:
        """Rebind for batches of other shapes; parameters are kept."""
        super().reshape(data_shapes, label_shapes)
        if self._mod_aux.binded:
            self._mod_aux.reshape(data_shapes, label_shapes)

    def prepare(self, data_batch: Any, sparse_row_id_fn: Callable | None = None) -> None:
        """Prepare for the batch of the next `forward`."""
        super().prepare(data_batch, sparse_row_id_fn)
        if self._mod_aux.binded:
            self._mod_aux.prepare(data_batch, sparse_row_id_fn)

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Create the optimizer and its states; see `Module.init_optimizer`."""
        super().init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        if self._param_dict is None:
            zeros = [[_zeros(g) for g in devices] for devices in self._exec_group.grad_arrays]
            self._param_dict = self._by_device(zeros)

    def _make_optimizer(
        self, optimizer: Any, params: Any, kvstore: Any, on_kvstore: bool
    ) -> Optimizer:
        """Return MXNet's pair: an optimizer of the weights, and one that stores mean gradients."""
        weights = super()._make_optimizer(optimizer, params, kvstore, on_kvstore)
        count = len(weights.idx2name)
        names = {count + i: f"{name}_{_FULL}" for i, name in weights.idx2name.items()}
        own = {
            k: getattr(weights, k) for k in ("rescale_grad", "wd", "clip_gradient", "lr_scheduler")
        }
        return _SVRGOptimizer(
            weights,
            sym=self.symbol,
            param_idx2name={**weights.idx2name, **names},
            learning_rate=weights.lr,
            **own,
        )

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch; in training, also those at the snapshot."""
        super().forward(data_batch, is_train)
        training = self.for_training if is_train is None else is_train
        self._at_snapshot = training and self._has_snapshot
        if self._at_snapshot:
            self._mod_aux.forward(data_batch, is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients of both networks."""
        super().backward(out_grads)
        if self._at_snapshot:
            self._mod_aux.backward(out_grads)

    # -- the gradient -------------------------------------------------------------------------

    def update_full_grads(self, train_data: Any) -> None:
        """Take a snapshot of the parameters, and the mean gradient over all batches there."""
        arg_params, aux_params = self.get_params()
        snapshot = self._mod_aux
        snapshot.init_params(
            arg_params=arg_params, aux_params=aux_params, allow_missing=False, force_init=True
        )
        sums: list[list[NDArray | None]] = []
        count = 0
        train_data.reset()
        for batch in train_data:
            snapshot.forward(batch, is_train=True)
            snapshot.backward()
            grads = snapshot._exec_group.grad_arrays
            if not sums:
                sums = [[_copy(grad) for grad in devices] for devices in grads]
            else:
                for total, grad in _pairs(sums, grads):
                    total += grad
            count += 1
        if not count:
            raise ValueError("SVRGModule.update_full_grads: the iterator has no batches.")
        for total, _ in _pairs(sums, sums):
            total /= count
        self._param_dict, self._has_snapshot = self._by_device(sums), True
        train_data.reset()

    def _by_device(self, grads: list[list[NDArray | None]]) -> list[dict[str, NDArray]]:
        names = self._exec_group.param_names
        return [
            {
                name: grad
                for name, devices in zip(names, grads, strict=True)
                if (grad := devices[i]) is not None
            }
            for i in range(self._ctx_len)
        ]

    def _accumulate_kvstore(self, key: str, value: Sequence[NDArray]) -> None:
        """Sum the gradients of a parameter over the devices."""
        totals = [
            functools.reduce(operator.add, (v.as_in_context(device) for v in value))
            for device in self._context
        ]
        self._allocate_gradients(key, totals)

    def _allocate_gradients(self, key: str, value: Sequence[NDArray]) -> None:
        for i, gradients in enumerate(self._param_dict or []):
            gradients[key] = value[i] / self._ctx_len

    def _svrg_grads_update_rule(
        self,
        g_curr_batch_curr_weight: NDArray,
        g_curr_batch_special_weight: NDArray,
        g_special_weight_all_batch: NDArray,
    ) -> NDArray:
        """Return the gradient with less variance: ``g(w) - g(s) + G(s)``."""
        return g_curr_batch_curr_weight - g_curr_batch_special_weight + g_special_weight_all_batch

    def _update_svrg_gradients(self) -> None:
        names = self._exec_group.param_names
        before = self._mod_aux._exec_group.grad_arrays
        for name, grads, old in zip(names, self._exec_group.grad_arrays, before, strict=True):
            for device, full in enumerate(self._param_dict or []):
                if name in full:
                    rule = self._svrg_grads_update_rule
                    grads[device][:] = rule(grads[device], old[device], full[name])

    def update(self) -> None:
        """Update the parameters by the variance-reduced gradients of the last backward."""
        if self._at_snapshot:
            self._update_svrg_gradients()
        super().update()

    def fit(
        self,
        train_data: Any,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
        initializer: Initializer | None = Uniform(0.01),  # noqa: B008 (it holds no state)
        arg_params: dict[str, NDArray] | None = None,
        aux_params: dict[str, NDArray] | None = None,
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
        """Train like `Module.fit`, with a snapshot every `update_freq` epochs."""
        if resume is not None or resume_every is not None:
            raise MXNetError(
                "SVRGModule.fit cannot resume: the mean gradient of the snapshot is not saved. Do "
                "not pass `resume` and `resume_every`."
            )
        return super().fit(
            _WithSnapshots(train_data, self, begin_epoch),
            eval_data,
            eval_metric,
            epoch_end_callback,
            batch_end_callback,
            kvstore,
            optimizer,
            optimizer_params,
            eval_end_callback,
            eval_batch_end_callback,
            initializer,
            arg_params,
            aux_params,
            allow_missing,
            force_rebind,
            force_init,
            begin_epoch,
            num_epoch,
            validation_metric,
            monitor,
            sparse_row_id_fn,
            progress=progress,
            loggers=loggers,
        )


class _WithSnapshots:
    """Wraps an iterator to compute the module's mean gradient before some epochs."""

    def __init__(self, train_data: Any, module: SVRGModule, begin_epoch: int) -> None:
        self._data = train_data
        self._module = module
        self._epoch = begin_epoch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)

    def __iter__(self) -> Iterator[Any]:
        if self._epoch % self._module.update_freq == 0:
            self._module.update_full_grads(self._data)
        self._epoch += 1
        return iter(self._data)


def _zeros(grad: NDArray | None) -> NDArray | None:
    return None if grad is None else grad * 0


def _copy(grad: NDArray | None) -> NDArray | None:
    return None if grad is None else grad.copy()


def _pairs(left: list[list], right: list[list]) -> list[tuple[NDArray, NDArray]]:
    """Return gradients in pairs, over parameters and devices; fixed parameters have none."""
    return [
        (a, b)
        for row, other in zip(left, right, strict=True)
        for a, b in zip(row, other, strict=True)
        if a is not None
    ]
