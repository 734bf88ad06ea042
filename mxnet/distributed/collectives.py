"""Horovod's names: exchanges of arrays between workers, and an optimizer that averages."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .. import accelerator
from .. import optimizer as opt
from ..error import MXNetError
from ..imperative.handle import plain, wrap_plain
from ..metric import CompositeEvalMetric, EvalMetric
from ..ndarray import NDArray
from .group import Group, current_group, join_group, leave_group
from .reduction import Reducer

__all__ = [
    "DistributedOptimizer",
    "allgather",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "alltoall",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_object",
    "broadcast_parameters",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "gloo_built",
    "gloo_enabled",
    "grouped_allreduce",
    "grouped_allreduce_",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "reduce_metric",
    "rocm_built",
    "shutdown",
    "size",
]

_reducers: dict[Group, Reducer] = {}
_counts: dict[str, int] = {}


def init(*_: Any, **__: Any) -> None:
    """Join the job that the launcher described; without a launcher this is the only worker.

    >>> mx.distributed.init()
    >>> mx.distributed.rank(), mx.distributed.size()
    (0, 1)
    """
    join_group(alone=True)


def shutdown() -> None:
    """Leave the job, after all workers have come here.

    >>> mx.distributed.init()
    >>> mx.distributed.shutdown()
    """
    group = current_group()
    if group is not None:
        _reducers.pop(group, None)
    leave_group()


def is_initialized() -> bool:
    """Return whether this process has joined its job.

    >>> mx.distributed.init()
    >>> mx.distributed.is_initialized()
    True
    """
    return current_group() is not None


def _group() -> Group:
    group = current_group()
    if group is None:
        raise MXNetError("mx.distributed has not been initialized: call mx.distributed.init().")
    return group


def rank() -> int:
    """Return the number of this worker, from 0.

    >>> mx.distributed.init()
    >>> mx.distributed.rank()
    0
    """
    return _group().rank


def size() -> int:
    """Return the number of workers.

    >>> mx.distributed.init()
    >>> mx.distributed.size()
    1
    """
    return _group().size


def local_rank() -> int:
    """Return the number of this worker among those of its host.

    >>> mx.distributed.init()
    >>> mx.distributed.local_rank()
    0
    """
    return _group().local_rank


def local_size() -> int:
    """Return the number of workers on this host.

    >>> mx.distributed.init()
    >>> mx.distributed.local_size()
    1
    """
    return _group().local_size


def cross_rank() -> int:
    """Return the number of this host.

    >>> mx.distributed.init()
    >>> mx.distributed.cross_rank()
    0
    """
    hosts = list(dict.fromkeys(_group().hosts))
    return hosts.index(_group().hosts[_group().rank])


def cross_size() -> int:
    """Return the number of hosts.

    >>> mx.distributed.init()
    >>> mx.distributed.cross_size()
    1
    """
    return len(set(_group().hosts))


def is_homogeneous() -> bool:
    """Return whether every host has the same number of workers.

    >>> mx.distributed.init()
    >>> mx.distributed.is_homogeneous()
    True
    """
    hosts = _group().hosts
    return len({hosts.count(host) for host in hosts}) == 1


def barrier() -> None:
    """Wait for all workers.

    >>> mx.distributed.init()
    >>> mx.distributed.barrier()
    """
    _group().barrier()


def _name(kind: str, name: str | None) -> str:
    """Return the name of a collective; without one, collectives are numbered."""
    if name is not None:
        return f"{kind}.{name}"
    _counts[kind] = _counts.get(kind, 0) + 1
    return f"{kind}.{_counts[kind]}"


def _sum_in_place(names: Sequence[str], arrays: Sequence[NDArray], factor: float) -> None:
    group = _group()
    reducer = _reducers.get(group)
    if reducer is None:
        reducer = _reducers[group] = Reducer(group)
    tensors = {name: plain(array) for name, array in zip(names, arrays, strict=True)}
    for name, total in reducer.sums(names, list(tensors.values())):
        tensors[name].copy_(total if factor == 1.0 else total * factor)


def _factor(average: bool, prescale_factor: float, postscale_factor: float) -> float:
    factor = prescale_factor * postscale_factor
    return factor / size() if average else factor


def allreduce_(
    tensor: NDArray,
    average: bool = True,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> NDArray:
    """Average, or sum, an array in place over all workers, and return it.

    Parameters
    ----------
    tensor
        The array.
    average
        Whether to average; else the sum is taken.
    name, priority
        Accepted for compatibility: collectives are matched by their order.
    prescale_factor, postscale_factor
        Factors before and after the collective.

    >>> mx.distributed.init()
    >>> mx.distributed.allreduce_(mx.nd.array([1, 2])).asnumpy()
    array([1., 2.], dtype=float32)
    """
    factor = _factor(average, prescale_factor, postscale_factor)
    _sum_in_place([_name("allreduce", name)], [tensor], factor)
    return tensor


def allreduce(
    tensor: NDArray,
    average: bool = True,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> NDArray:
    """Return the average, or the sum, of an array over all workers.

    Parameters
    ----------
    tensor
        The array.
    average
        Whether to average; else the sum is taken.
    name, priority
        Accepted for compatibility: collectives are matched by their order.
    prescale_factor, postscale_factor
        Factors before and after the collective.

    >>> mx.distributed.init()
    >>> mx.distributed.allreduce(mx.nd.array([1, 2])).asnumpy()
    array([1., 2.], dtype=float32)
    """
    result = tensor.copy()
    return allreduce_(result, average, name, priority, prescale_factor, postscale_factor)


def grouped_allreduce_(
    tensors: Sequence[NDArray],
    average: bool = True,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[NDArray]:
    """Average, or sum, arrays in place over all workers in one collective, and return them.

    Parameters
    ----------
    tensors
        The arrays.
    average
        Whether to average; else the sum is taken.
    name, priority
        Accepted for compatibility: collectives are matched by their order.
    prescale_factor, postscale_factor
        Factors before and after the collective.

    >>> mx.distributed.init()
    >>> len(mx.distributed.grouped_allreduce_([mx.nd.ones(2), mx.nd.ones(3)]))
    2
    """
    prefix = _name("grouped_allreduce", name)
    factor = _factor(average, prescale_factor, postscale_factor)
    _sum_in_place([f"{prefix}.{i}" for i in range(len(tensors))], tensors, factor)
    return list(tensors)


def grouped_allreduce(
    tensors: Sequence[NDArray],
    average: bool = True,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[NDArray]:
    """Return the averages, or the sums, of arrays over all workers in one collective.

    Parameters
    ----------
    tensors
        The arrays.
    average
        Whether to average; else the sum is taken.
    name, priority
        Accepted for compatibility: collectives are matched by their order.
    prescale_factor, postscale_factor
        Factors before and after the collective.

    >>> mx.distributed.init()
    >>> [x.shape for x in mx.distributed.grouped_allreduce([mx.nd.ones(2), mx.nd.ones(3)])]
    [(2,), (3,)]
    """
    copies = [tensor.copy() for tensor in tensors]
    return grouped_allreduce_(copies, average, name, priority, prescale_factor, postscale_factor)


def allgather(tensor: NDArray, name: str | None = None, priority: int = 0) -> NDArray:
    """Return the arrays of all workers, joined along their first dimension, which may differ.

    Parameters
    ----------
    tensor
        The array.
    name, priority
        Accepted for compatibility: collectives are matched by their order.

    >>> mx.distributed.init()
    >>> mx.distributed.allgather(mx.nd.array([1, 2])).shape
    (2,)
    """
    parts = _group().gather_ragged(plain(tensor), _name("allgather", name))
    return wrap_plain(NDArray, torch.cat(parts), tensor._ctx)


def broadcast_(
    tensor: NDArray, root_rank: int, name: str | None = None, priority: int = 0
) -> NDArray:
    """Overwrite an array by the one of a worker, and return it.

    Parameters
    ----------
    tensor
        The array.
    root_rank
        Number of the worker whose value all get.
    name, priority
        Accepted for compatibility: collectives are matched by their order.

    >>> mx.distributed.init()
    >>> mx.distributed.broadcast_(mx.nd.array([1]), root_rank=0).asnumpy()
    array([1.], dtype=float32)
    """
    _check_root(root_rank)
    _group().broadcast(plain(tensor), root_rank, _name("broadcast", name))
    return tensor


def broadcast(
    tensor: NDArray, root_rank: int, name: str | None = None, priority: int = 0
) -> NDArray:
    """Return the array of a worker.

    Parameters
    ----------
    tensor
        The array.
    root_rank
        Number of the worker whose value all get.
    name, priority
        Accepted for compatibility: collectives are matched by their order.

    >>> mx.distributed.init()
    >>> mx.distributed.broadcast(mx.nd.array([1]), root_rank=0).asnumpy()
    array([1.], dtype=float32)
    """
    return broadcast_(tensor.copy(), root_rank, name, priority)


def _check_root(root_rank: int) -> None:
    if not 0 <= root_rank < size():
        raise MXNetError(f"root_rank {root_rank} is not among {size()} workers.")


def alltoall(
    tensor: NDArray, splits: Any = None, name: str | None = None, priority: int = 0
) -> NDArray:
    """Send a part of an array to each worker, and return the parts that came for this one.

    Parameters
    ----------
    tensor : NDArray
        Its rows go to the workers in order.
    splits : list of int, optional
        How many rows go to each; by default the same number.
    name, priority
        Accepted for compatibility: collectives are matched by their order.

    >>> mx.distributed.init()
    >>> mx.distributed.alltoall(mx.nd.array([1, 2])).asnumpy()
    array([1., 2.], dtype=float32)
    """
    group, data = _group(), plain(tensor)
    counts = [len(data) // group.size] * group.size if splits is None else _as_integers(splits)
    if len(counts) != group.size or sum(counts) != len(data):
        raise MXNetError(
            f"alltoall: {len(data)} rows cannot be split as {counts} over {group.size} workers."
        )
    what = _name("alltoall", name)
    table = group.gather(torch.tensor(counts), what)
    rows = group.gather_ragged(data, what)
    starts = table.cumsum(1) - table
    parts = [
        part[starts[r, group.rank] : starts[r, group.rank] + table[r, group.rank]]
        for r, part in enumerate(rows)
    ]
    return wrap_plain(NDArray, torch.cat(parts), tensor._ctx)


def _as_integers(splits: Any) -> list[int]:
    values = splits.asnumpy() if isinstance(splits, NDArray) else splits
    return [int(v) for v in values]


def broadcast_object(obj: Any = None, root_rank: int = 0, name: str | None = None) -> Any:
    """Return the object of a worker; it is pickled, as the workers of a job trust each other.

    Parameters
    ----------
    obj
        The object; anything that can be pickled.
    root_rank
        Number of the worker whose value all get.
    name
        Accepted for compatibility: collectives are matched by their order.

    >>> mx.distributed.init()
    >>> mx.distributed.broadcast_object("settings")
    'settings'
    """
    _check_root(root_rank)
    group, what = _group(), _name("broadcast_object", name)
    data = pickle.dumps(obj) if group.rank == root_rank else b""
    return pickle.loads(group.gather_bytes(data, what)[root_rank])


def allgather_object(obj: Any, name: str | None = None) -> list[Any]:
    """Return the objects of all workers.

    Parameters
    ----------
    obj
        The object; anything that can be pickled.
    name
        Accepted for compatibility: collectives are matched by their order.

    >>> mx.distributed.init()
    >>> mx.distributed.allgather_object("me")
    ['me']
    """
    what = _name("allgather_object", name)
    return [pickle.loads(data) for data in _group().gather_bytes(pickle.dumps(obj), what)]


def broadcast_parameters(params: Any, root_rank: int = 0, prefix: str | None = None) -> None:
    """Overwrite parameters by those of a worker; one that waits for its shape does so later.

    Parameters
    ----------
    params : ParameterDict, or dict of Parameter or NDArray
        Parameters: a `ParameterDict`, or a dict of parameters or arrays.
    root_rank : int
        Number of the worker whose value all get.
    prefix : str, optional
        Accepted: names need not be unique.

    >>> mx.distributed.init()
    >>> mx.distributed.broadcast_parameters({"w": mx.nd.ones(2)})
    """
    if not isinstance(params, Mapping) and not hasattr(params, "items"):
        raise MXNetError(f"invalid params of type {type(params).__name__}: give a dict.")
    _check_root(root_rank)
    for name, param in sorted(params.items()):
        if isinstance(param, NDArray):
            arrays = [param]
        elif param._deferred_init:
            _broadcast_when_ready(param, root_rank)
            continue
        else:
            arrays = param.list_data()
        _broadcast_arrays(name, arrays, root_rank)


def _broadcast_arrays(name: str, arrays: Sequence[NDArray], root_rank: int) -> None:
    _group().agree(f"{name} {arrays[0].shape} {arrays[0].dtype}", "parameters to broadcast")
    broadcast_(arrays[0], root_rank, name)
    for other in arrays[1:]:
        arrays[0].copyto(other)


def _broadcast_when_ready(param: Any, root_rank: int) -> None:
    finish = param._init_impl

    def init_and_broadcast(*arguments: Any, **settings: Any) -> None:
        finish(*arguments, **settings)
        param._init_impl = finish
        _broadcast_arrays(param.name, param.list_data(), root_rank)

    param._init_impl = init_and_broadcast


def reduce_metric(metric: EvalMetric) -> EvalMetric:
    """Sum what a metric has counted over all workers, in place, and return it.

    Call it on all workers, once before `get`; after `reset` counting starts over.

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
    _group().sum(values, f"metric {metric.name}")
    for name, value in zip(names, values.tolist(), strict=True):
        setattr(metric, name, int(value) if "num" in name else value)
    return metric


def mpi_threads_supported() -> bool:
    """Return False: collectives are torch's, not MPI's.

    >>> mx.distributed.init()
    >>> mx.distributed.mpi_threads_supported()
    False
    """
    return False


def gloo_built() -> bool:
    """Return whether torch has Gloo, which connects CPUs.

    >>> mx.distributed.init()
    >>> isinstance(mx.distributed.gloo_built(), bool)
    True
    """
    return torch.distributed.is_gloo_available()


def nccl_built() -> bool:
    """Return whether torch has NCCL, which connects GPUs.

    >>> mx.distributed.init()
    >>> isinstance(mx.distributed.nccl_built(), bool)
    True
    """
    return torch.distributed.is_nccl_available()


mpi_built = mpi_enabled = ddl_built = ccl_built = rocm_built = mpi_threads_supported
gloo_enabled = gloo_built
cuda_built = accelerator.has_cuda


class DistributedOptimizer(opt.Optimizer):
    """An optimizer that averages gradients over all workers before it updates.

    Parameters
    ----------
    optimizer : Optimizer
        It does the updates.
    gradient_predivide_factor : float
        Gradients are divided by it before they are summed, and the rest of the average after.
    num_groups
        Accepted for compatibility, without effect.

    >>> mx.distributed.init()
    >>> optimizer = mx.distributed.DistributedOptimizer(mx.optimizer.SGD(learning_rate=0.1))
    >>> optimizer.learning_rate
    0.1
    """

    def __init__(
        self, optimizer: opt.Optimizer, gradient_predivide_factor: float = 1.0, num_groups: int = 0
    ) -> None:
        vars(self).update(_optimizer=optimizer, _average=1.0 / size())

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_optimizer"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._optimizer, name, value)  # all settings are the inner optimizer's

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        """Return the state of a parameter."""
        return self._optimizer.create_state_multi_precision(index, weight)

    def create_state(self, index: Any, weight: NDArray) -> Any:
        """Return the state of a parameter."""
        return self._optimizer.create_state(index, weight)

    def _do_allreduce(self, index: Any, grad: Any) -> None:
        indices, grads = (index, grad) if isinstance(index, list | tuple) else ([index], [grad])
        names = [f"gradient.{i}" for i in indices]
        _sum_in_place(names, grads, self._average)

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
