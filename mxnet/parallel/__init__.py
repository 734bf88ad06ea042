"""Distributed training: Horovod's API on torch.distributed.

A Horovod program changes one line, ``import horovod.mxnet as hvd``, to
``import mxnet.distributed as hvd``; ``mx launch -n 4 python train.py`` starts it.

>>> import mxnet.distributed as hvd
>>> hvd.init()
>>> hvd.allreduce(mx.nd.ones(2) * hvd.size(), average=True).asnumpy()
array([1., 1.], dtype=float32)
"""

from __future__ import annotations

from typing import Any

from . import collectives, group, heartbeat, membership, rendezvous, training
from .collectives import *  # noqa: F403 (Horovod's names, which it lists)
from .group import Disagreement
from .heartbeat import WorkerFailed
from .membership import *  # noqa: F403
from .training import *  # noqa: F403

__all__ = ["Disagreement", "DistributedTrainer", "WorkerFailed"]  # noqa: F405 (by __getattr__)
__all__ += [*collectives.__all__, *membership.__all__, *training.__all__]


def __getattr__(name: str) -> Any:
    if name == "DistributedTrainer":  # requires Gluon, which imports this package
        from ..gluon.trainer import DistributedTrainer

        return DistributedTrainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
