"""Horovod's training functions: optimizer, broadcast of parameters, sums of metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from .. import optimizer as opt
from ..error import MXNetError
from ..metric import CompositeEvalMetric, EvalMetric
from ..ndarray import NDArray
from ..runtime.array import plain
from .collectives import Average, allreduce_in_place, find_root
from .group import Group
from .membership import ProcessSet, global_process_set, group_of, world

__all__ = ["Compression", "DistributedOptimizer", "broadcast_parameters", "reduce_metric"]


class _NoCompression:
    params: Mapping[str, Any] | None = None  # parameters of `set_gradient_compression`

    @staticmethod
    def compress(tensor: NDArray) -> tuple[NDArray, Any]:
        """Return the array to send, and the context for `decompress`."""
        return tensor, None

    @staticmethod
    def decompress(tensor: NDArray, ctx: Any) -> NDArray:
        return tensor


class _HalfCompression(_NoCompression):
    """Sends floating-point gradients in 16 bits."""

    params: Mapping[str, Any] | None = {"type": "fp16"}

    @staticmethod
    def compress(tensor: NDArray) -> tuple[NDArray, Any]:
        is_float = plain(tensor).is_floating_point()
        return (tensor.astype("float16") if is_float else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: NDArray, ctx: Any) -> NDArray:
        return tensor.astype(ctx)


class Compression:
    """Compression of gradients: ``Compression.none`` or ``Compression.fp16``.

    >>> half, kind = mx.distributed.Compression.fp16.compress(mx.nd.ones(2))
    >>> half.dtype, mx.distributed.Compression.fp16.decompress(half, kind).dtype
    (<class 'numpy.float16'>, <class 'numpy.float32'>)
    """

    none = _NoCompression
    fp16 = _HalfCompression


def broadcast_parameters(
    params: Any,
    root_rank: int = 0,
    prefix: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Broadcast parameters from a worker; deferred ones at initialization.

    Parameters
    ----------
    params : ParameterDict, or dict of Parameter or NDArray
        Parameters: a `ParameterDict`, or a dict of parameters or arrays.
    root_rank : int
        Rank of the worker whose value is broadcast.
    prefix : str, optional
        Accepted for compatibility; has no effect.
    process_set : ProcessSet
        Workers that participate.

    >>> mx.distributed.init()
    >>> mx.distributed.broadcast_parameters({"w": mx.nd.ones(2)})
    """
    if not isinstance(params, Mapping) and not hasattr(params, "items"):
        raise MXNetError(f"invalid params of type {type(params).__name__}: pass a dict.")
    group = group_of(process_set)
    ready: dict[str, list[NDArray]] = {}
    for name, param in sorted(params.items()):
        if not isinstance(param, NDArray) and param._deferred_init:
            _broadcast_when_ready(group, param, root_rank)
        else:
            ready[name] = [param] if isinstance(param, NDArray) else param.list_data()
    _broadcast_arrays(group, ready, root_rank)


def _broadcast_arrays(group: Group, params: Mapping[str, list[NDArray]], root_rank: int) -> None:
    described = ", ".join(f"{n} {a[0].shape} {np.dtype(a[0].dtype)}" for n, a in params.items())
    group.agree(f"{described} from rank {root_rank}", "parameters to broadcast")
    root = find_root(group, root_rank)
    for name, (first, *others) in params.items():
        group.broadcast(plain(first), root, f"broadcast of {name}")
        for other in others:
            first.copyto(other)


def _broadcast_when_ready(group: Group, param: Any, root_rank: int) -> None:
    finish = param._init_impl

    def init_and_broadcast(*arguments: Any, **settings: Any) -> None:
        finish(*arguments, **settings)
        param._init_impl = finish
        _broadcast_arrays(group, {param.name: param.list_data()}, root_rank)

    param._init_impl = init_and_broadcast


def reduce_metric(metric: EvalMetric) -> EvalMetric:
    """Sum a metric's counts over all workers in place, and return the metric.

    Call it on all workers, once before `get`.

    Parameters
    ----------
    metric
        The metric.

    >>> mx.distributed.init()
    >>> mx.distributed.reduce_metric(mx.metric.Accuracy()).name
    'accuracy'
    """
    if isinstance(metric, CompositeEvalMetric):
        for part in metric.metrics:
            reduce_metric(part)
        return metric
    names = ("sum_metric", "num_inst", "global_sum_metric", "global_num_inst")
    values = torch.tensor([float(getattr(metric, name)) for name in names], dtype=torch.float64)
    world().sum(values, f"metric {metric.name}")
    for name, value in zip(names, values.tolist(), strict=True):
        setattr(metric, name, int(value) if "num" in name else value)
    return metric


class DistributedOptimizer(opt.Optimizer):
    """An optimizer that averages gradients over all workers before updates.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer for the updates.
    gradient_predivide_factor : float
        Part of the divisor of the average that is applied before the sum.
    num_groups
        Accepted for compatibility; has no effect.
    process_set
        Workers that participate.

    >>> mx.distributed.init()
    >>> optimizer = mx.distributed.DistributedOptimizer(mx.optimizer.SGD(learning_rate=0.1))
    >>> optimizer.learning_rate
    0.1
    """

    def __init__(
        self,
        optimizer: opt.Optimizer,
        gradient_predivide_factor: float = 1.0,
        num_groups: int = 0,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        group_of(process_set)
        vars(self).update(
            _optimizer=optimizer, _factor=gradient_predivide_factor, _process_set=process_set
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_optimizer"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._optimizer, name, value)  # attributes are those of the inner optimizer

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        """Return the state of a parameter."""
        return self._optimizer.create_state_multi_precision(index, weight)

    def create_state(self, index: Any, weight: NDArray) -> Any:
        """Return the state of a parameter."""
        return self._optimizer.create_state(index, weight)

    def _do_allreduce(self, index: Any, grad: Any) -> None:
        indices, grads = (index, grad) if isinstance(index, list | tuple) else ([index], [grad])
        own = vars(self)
        scales = (1 / own["_factor"], own["_factor"])
        names = [f"gradient.{i}" for i in indices]
        allreduce_in_place(names, grads, Average, scales, own["_process_set"])

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Average gradients and update."""
        self._do_allreduce(index, grad)
        self._optimizer.update(index, weight, grad, state)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Average gradients and update."""
        self._do_allreduce(index, grad)
        self._optimizer.update_multi_precision(index, weight, grad, state)

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate."""
        self._optimizer.set_learning_rate(lr)

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Set factors of the learning rate."""
        self._optimizer.set_lr_mult(args_lr_mult)

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Set factors of weight decay."""
        self._optimizer.set_wd_mult(args_wd_mult)
