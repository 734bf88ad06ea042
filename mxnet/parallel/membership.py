"""Horovod's functions for joining the job, ranks, sizes and process sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .. import accelerator
from ..error import InvalidValue, MXNetError
from .group import Group, current_group, join_group, leave_group

__all__ = [
    "ProcessSet",
    "add_process_set",
    "barrier",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
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
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
]


class ProcessSet:
    """A subset of the workers, for the argument ``process_set`` of collectives.

    Parameters
    ----------
    ranks
        Ranks of the workers.

    >>> mx.distributed.ProcessSet([2, 0]).ranks
    [0, 2]
    """

    process_set_id: int | None = None  # None: not added yet

    def __init__(self, ranks: Sequence[int]) -> None:
        self.ranks: list[int] = sorted(set(ranks))

    def size(self) -> int:
        """Return the number of workers in the set."""
        return group_of(self, is_member=False).size

    def rank(self) -> int:
        """Return the rank of this worker in the set."""
        return group_of(self).rank

    def included(self) -> bool:
        """Return whether this worker is in the set."""
        return group_of(self, is_member=False).rank >= 0

    def __repr__(self) -> str:
        number = self.process_set_id
        return f"ProcessSet(process_set_id={number}, ranks={self.ranks})"


global_process_set = ProcessSet([])
global_process_set.process_set_id = 0
_sets: dict[int, tuple[ProcessSet, Group]] = {}


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Add a set of workers and return it; all workers must call it.

    Parameters
    ----------
    process_set
        A `ProcessSet` or the ranks of one.

    >>> mx.distributed.init()
    >>> one = mx.distributed.add_process_set([0])
    >>> one.size(), mx.distributed.remove_process_set(one)
    (1, True)
    """
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    group = world()
    ranks = process_set.ranks
    if not ranks or not set(ranks) <= set(group.ranks):
        raise InvalidValue(
            f"A process set must be a subset of the ranks 0 to {group.size - 1}: {ranks}."
        )
    if process_set is global_process_set or any(s.ranks == ranks for s, _ in _sets.values()):
        raise InvalidValue(f"There already is a process set of the ranks {ranks} already.")
    group.agree(str(ranks), "a process set to add")
    process_set.process_set_id = max(_sets, default=0) + 1
    _sets[process_set.process_set_id] = process_set, group.split(ranks)
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Remove a set; return whether it existed.

    Parameters
    ----------
    process_set
        The set. The global set cannot be removed.

    >>> mx.distributed.remove_process_set(mx.distributed.global_process_set)
    False
    """
    number = process_set.process_set_id
    if number is None or _sets.pop(number, None) is None:
        return False
    process_set.process_set_id = None
    return True


def group_of(process_set: ProcessSet, is_member: bool = True) -> Group:
    """Return the workers of a set; with `is_member`, this worker must be one of them."""
    group = world()
    if process_set is global_process_set:
        return group
    number = process_set.process_set_id
    if number not in _sets:
        raise InvalidValue(f"{process_set} was not added: call add_process_set on all workers.")
    part = _sets[number][1]
    if is_member and part.rank < 0:
        raise InvalidValue(f"Rank {group.rank} is not in {process_set}.")
    return part


def init(
    comm: Any = None, process_sets: Sequence[ProcessSet] | str | None = None, **_: Any
) -> None:
    """Join the job that the launcher described; without a launcher this is the only worker.

    Parameters
    ----------
    comm
        Accepted for compatibility.
    process_sets : list of ProcessSet, optional
        Sets to add; "dynamic" is accepted, because sets can always be added later.

    >>> mx.distributed.init()
    >>> mx.distributed.rank(), mx.distributed.size()
    (0, 1)
    """
    join_group(alone=True)
    for process_set in process_sets if isinstance(process_sets, Sequence) else ():
        if isinstance(process_set, ProcessSet):
            add_process_set(process_set)


def shutdown() -> None:
    """Leave the job, after all workers have called this.

    >>> mx.distributed.init()
    >>> mx.distributed.shutdown()
    """
    _sets.clear()
    leave_group()


def is_initialized() -> bool:
    """Return whether this process has joined its job.

    >>> mx.distributed.init()
    >>> mx.distributed.is_initialized()
    True
    """
    return current_group() is not None


def world() -> Group:
    """Return the group of all workers."""
    group = current_group()
    if group is None:
        raise MXNetError("mx.distributed has not been initialized: call mx.distributed.init().")
    return group


def rank() -> int:
    """Return the rank of this worker, from 0.

    >>> mx.distributed.init()
    >>> mx.distributed.rank()
    0
    """
    return world().rank


def size() -> int:
    """Return the number of workers.

    >>> mx.distributed.init()
    >>> mx.distributed.size()
    1
    """
    return world().size


def local_rank() -> int:
    """Return the rank of this worker on its host.

    >>> mx.distributed.init()
    >>> mx.distributed.local_rank()
    0
    """
    return world().local_rank


def local_size() -> int:
    """Return the number of workers on this host.

    >>> mx.distributed.init()
    >>> mx.distributed.local_size()
    1
    """
    return world().local_size


def cross_rank() -> int:
    """Return the index of this host.

    >>> mx.distributed.init()
    >>> mx.distributed.cross_rank()
    0
    """
    hosts = list(dict.fromkeys(world().hosts))
    return hosts.index(world().hosts[world().rank])


def cross_size() -> int:
    """Return the number of hosts.

    >>> mx.distributed.init()
    >>> mx.distributed.cross_size()
    1
    """
    return len(set(world().hosts))


def is_homogeneous() -> bool:
    """Return whether every host has the same number of workers.

    >>> mx.distributed.init()
    >>> mx.distributed.is_homogeneous()
    True
    """
    hosts = world().hosts
    return len({hosts.count(host) for host in hosts}) == 1


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait for all workers, or for those of a process set.

    Parameters
    ----------
    process_set
        Workers that participate.

    >>> mx.distributed.init()
    >>> mx.distributed.barrier()
    """
    group_of(process_set).barrier()


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
