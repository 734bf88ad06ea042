"""`DistributedStore`: what all stores that the workers of a job share have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..distributed.group import join_group
from ..ndarray import NDArray
from .keys import Key, grouped
from .kvstore import KVStore

__all__ = ["DistributedStore"]


class DistributedStore(KVStore):
    """Base class of distributed stores: joins the job, and waits for all workers where MXNet does.

    Subclasses define `_init_value`, which gives one key its first value, and `_wait_pending`, which
    waits for the pushes of this worker that are still under way.

    Parameters
    ----------
    name : str
        As given to `mx.kvstore.create`.
    names : sequence of str
        The names of this kind of store.
    """

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(name, names)
        self._group = join_group()

    def init(self, key: Any, value: Any) -> None:
        """Set the first values of keys to those of rank 0, and wait for all workers."""
        entries = list(grouped("init", key, value))
        self._check_new(entries)
        described = ", ".join(
            f"key {k} {v.shape} {np.dtype(v.dtype).name} {v.stype}" for k, (v, *_) in entries
        )
        self._group.agree(described, "shape or dtype at init")
        for one, (first, *_) in entries:
            self._stored[one] = self._init_value(one, first)
        self._group.barrier("init")

    def _init_value(self, key: Key, value: NDArray) -> NDArray:
        """Return what this worker keeps of a key's first value."""
        raise NotImplementedError

    def _wait_pending(self) -> None:
        """Wait for the pushes of this worker."""
        raise NotImplementedError

    def _set_updater(self, updater: Callable[[Key, NDArray, NDArray], None]) -> None:
        """Ignore an updater, as MXNet's distributed stores do; `set_optimizer` has an effect."""

    @property
    def rank(self) -> int:
        """The number of this worker, from 0."""
        return self._group.rank

    @property
    def num_workers(self) -> int:
        """The number of workers."""
        return self._group.size

    @property
    def bytes_sent(self) -> int:
        """Bytes of arrays that this worker has sent to others in collectives since it joined."""
        return self._group.bytes_sent

    def barrier(self) -> None:
        """Wait until all workers are here and their pushes have been applied."""
        self._wait_pending()
        self._group.barrier()

    _barrier = barrier
