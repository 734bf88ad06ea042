"""The executors of one symbol on several devices, for training loops from before modules.

`mx.mod.Module` has a richer group of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..context import Context
from ..module import executor_group
from ..module.executor_group import (
    _load_data,
    _load_general,  # noqa: F401 (MXNet shows it here)
    _load_label,
    _split_input_slice,
)
from ..ndarray import NDArray
from ..symbol import Symbol
from .star_imports import complete_star_imports

__all__ = ["DataParallelExecutorGroup", "DataParallelExecutorManager"]


def _check_arguments(symbol: Symbol) -> None:
    """Raise if a name of an argument or of an auxiliary state occurs twice."""
    for what, names in (
        ("argument", symbol.list_arguments()),
        ("auxiliary param", symbol.list_auxiliary_states()),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"Find duplicated {what} name, please make the weight name non-duplicated: "
                f"{', '.join(twice)} among {', '.join(names)}"
            )


class DataParallelExecutorGroup(executor_group.DataParallelExecutorGroup):
    """Executors of one symbol, each on its own device with its part of the batch.

    Parameters
    ----------
    sym : Symbol
    arg_names : list of str
        ``sym.list_arguments()``.
    param_names : list of str
        The arguments that are trained: they get gradients.
    ctx : list of Context
    slices : list of slice
        Each device's part of the batch.
    train_data : DataIter or DataBatch
        Anything with `provide_data` and `provide_label`.
    shared_group : DataParallelExecutorGroup, optional
        A group whose parameters this one uses too.
    """

    def __init__(
        self,
        sym: Symbol,
        arg_names: Sequence[str],
        param_names: Sequence[str],
        ctx: Sequence[Context],
        slices: Sequence[slice],
        train_data: Any,
        shared_group: DataParallelExecutorGroup | None = None,
    ) -> None:
        _check_arguments(sym)
        trained = set(param_names)
        super().__init__(
            sym,
            ctx,
            [part.stop - part.start for part in slices],
            train_data.provide_data,
            train_data.provide_label,
            [name for name in arg_names if name in trained],
            for_training=True,
            inputs_need_grad=False,
            shared_group=shared_group,
        )
        self.param_idx = [i for i, name in enumerate(arg_names) if name in trained]
        self.train_execs = self.execs

    def load_data_batch(self, data_batch: Any) -> None:
        """Copy data and labels to the devices."""
        _load_data(data_batch, self.data_arrays, self.data_layouts)
        _load_label(data_batch, self.label_arrays or [], self.label_layouts)

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride] (the batch is loaded before)
        self, is_train: bool = False
    ) -> None:
        """Compute the outputs of every executor."""
        for executor in self.train_execs:
            executor.forward(is_train=is_train)


class DataParallelExecutorManager:
    """Executors on several devices, for custom training loops.

    For old programs; use `mx.mod.Module`.

    Parameters
    ----------
    symbol : Symbol
    ctx : list of Context
    train_data : DataIter
    arg_names, param_names, aux_names : list of str
        All arguments, those that are trained, and the auxiliary states.
    work_load_list : list of float, optional
        Relative size of each device's part of the batch.
    logger : logging.Logger, optional
    sym_gen : callable, optional
        Returns the symbol for a bucket key; `train_data` then has a `default_bucket_key`.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    >>> batches = mx.io.NDArrayIter(np.ones((4, 2)), batch_size=4)
    >>> names = net.list_arguments()
    >>> manager = mx.executor_manager.DataParallelExecutorManager(
    ...     net, [mx.cpu(0), mx.cpu(1)], batches, names, names[1:], [])
    >>> manager.slices
    [slice(0, 2, None), slice(2, 4, None)]
    """

    def __init__(
        self,
        symbol: Symbol,
        ctx: Sequence[Context],
        train_data: Any,
        arg_names: Sequence[str],
        param_names: Sequence[str],
        aux_names: Sequence[str],
        work_load_list: Sequence[float] | None = None,
        logger: Any = None,
        sym_gen: Callable[[Any], Symbol] | None = None,
    ) -> None:
        (logger or logging).info("Start training with %s", ctx)
        loads = [1] * len(ctx) if work_load_list is None else work_load_list
        if not isinstance(loads, list) or len(loads) != len(ctx):
            raise AssertionError(
                f"Invalid settings for work load: work_load_list is {loads!r}, but needs to be a "
                f"list of {len(ctx)} numbers, one for each device."
            )
        self.slices = _split_input_slice(train_data.batch_size, loads)
        self.arg_names, self.param_names, self.aux_names = arg_names, param_names, aux_names
        self.ctx, self.symbol, self.sym_gen = ctx, symbol, sym_gen
        self.execgrp = DataParallelExecutorGroup(
            symbol, arg_names, param_names, ctx, self.slices, train_data
        )
        self.curr_execgrp: Any = None  # the group of the batch that was loaded
        if sym_gen is not None:
            self.execgrp_bucket = {train_data.default_bucket_key: self.execgrp}

    @property
    def param_arrays(self) -> list[list[NDArray]]:
        """The parameters, each as a list of its copies on the devices."""
        return self.execgrp.param_arrays

    @property
    def grad_arrays(self) -> list[list[NDArray | None]]:
        """The gradients, each as a list with one array of each device."""
        return self.execgrp.grad_arrays

    @property
    def aux_arrays(self) -> list[list[NDArray]]:
        """The auxiliary states, each as a list of its copies on the devices."""
        return self.execgrp.aux_arrays

    def install_monitor(self, monitor: Any) -> None:
        """Install a monitor on all executors."""
        if self.sym_gen is not None:
            raise NotImplementedError("Monitoring is not implemented for bucketing")
        self.execgrp.install_monitor(monitor)

    def set_params(
        self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray]
    ) -> None:
        """Copy parameters and auxiliary states to the devices."""
        self.execgrp.set_params(arg_params, aux_params)

    def copy_to(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray]) -> None:
        """Write the means over the devices into the given arrays, by name."""
        self.execgrp.get_params(arg_params, aux_params)

    def load_data_batch(self, data_batch: Any) -> None:
        """Copy a batch to the devices, to the executors of its bucket if there are several."""
        if self.sym_gen is None:
            self.curr_execgrp = self.execgrp
        else:
            key = data_batch.bucket_key
            if key not in self.execgrp_bucket:
                self.execgrp_bucket[key] = self._bucket(self.sym_gen(key), data_batch)
            self.curr_execgrp = self.execgrp_bucket[key]
        self.curr_execgrp.load_data_batch(data_batch)

    def _bucket(self, symbol: Symbol, data_batch: Any) -> DataParallelExecutorGroup:
        return DataParallelExecutorGroup(
            symbol,
            symbol.list_arguments(),
            self.param_names,
            self.ctx,
            self.slices,
            data_batch,
            shared_group=self.execgrp,
        )

    def forward(self, is_train: bool = False) -> None:
        """Compute the outputs for the loaded batch."""
        self.curr_execgrp.forward(is_train=is_train)

    def backward(self) -> None:
        """Compute the gradients for the loaded batch."""
        self.curr_execgrp.backward()

    def update_metric(self, metric: Any, labels: Sequence[Any], pre_sliced: bool = False) -> None:
        """Update the metric with the outputs for the loaded batch."""
        self.curr_execgrp.update_metric(metric, labels, pre_sliced)


complete_star_imports("executor_manager")
