"""Training by several processes: Horovod's names on torch.distributed.

A Horovod program changes one line, ``import horovod.mxnet as hvd``, to
``import mxnet.distributed as hvd``; ``mx launch -n 4 python train.py`` starts it.

>>> import mxnet.distributed as hvd
>>> hvd.init()
>>> hvd.allreduce(mx.nd.ones(2) * hvd.size(), average=True).asnumpy()
array([1., 1.], dtype=float32)
"""

from __future__ import annotations

from typing import Any

from . import collectives, environment, group, heartbeat, rendezvous
from .collectives import (
    allgather,
    allgather_object,
    allreduce,
    allreduce_,
    alltoall,
    barrier,
    broadcast,
    broadcast_,
    broadcast_object,
    broadcast_parameters,
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    grouped_allreduce,
    grouped_allreduce_,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    reduce_metric,
    rocm_built,
    shutdown,
    size,
)
from .group import Disagreement
from .heartbeat import WorkerFailed
from .optimizer import DistributedOptimizer


def __getattr__(name: str) -> Any:
    if name == "DistributedTrainer":  # it builds on Gluon, which builds on this package
        from ..gluon.trainer import DistributedTrainer

        return DistributedTrainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Disagreement",
    "DistributedOptimizer",
    "DistributedTrainer",
    "WorkerFailed",
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
