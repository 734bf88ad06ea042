"""The store kinds 'horovod' and 'byteps': sums over workers, without stored arrays.

Both names mean the same collectives as the other distributed stores; neither library is needed.
"""

from __future__ import annotations

from typing import Any

from ..distributed.group import join_group
from ..distributed.reduction import Reducer
from ..imperative.handle import plain
from ..ndarray import NDArray
from .base import KVStoreBase, UnknownCapability
from .keys import grouped
from .summing import summed

__all__ = ["BytePS", "Horovod"]


@KVStoreBase.register
class Horovod(KVStoreBase):
    """Sums over workers as Horovod does; `mx.kvstore.create('horovod')`.

    A program that was started without a launcher is the only worker.
    """

    def __init__(self) -> None:
        self._group = join_group(alone=True)
        self._reducer = Reducer(self._group)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copy rank 0's value into the outputs of all workers."""
        for (one, values), (_, places) in zip(
            grouped("broadcast", key, value), grouped("broadcast", key, out), strict=True
        ):
            root = values[0].copy()
            self._group.broadcast(plain(root), 0, f"broadcast of key {one}")
            for place in places:
                root.copyto(place)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sum values over devices and workers, into `out` or back into `value`."""
        entries = list(grouped("pushpull", key, value))
        outs = entries if out is None else list(grouped("pushpull", key, out))
        totals = [plain(summed(one, values, values[0].context)) for one, values in entries]
        places: dict[Any, list[NDArray]] = dict(outs)
        for bucket in self._reducer.start([k for k, _ in entries], totals).buckets():
            for one, total in bucket.sums().items():
                for place in places[one]:
                    plain(place).copy_(total)

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return False for `OPTIMIZER`: workers update by themselves."""
        if capability.lower() == KVStoreBase.OPTIMIZER:
            return False
        raise UnknownCapability(f"Unknown capability: {capability}")

    @property
    def type(self) -> str:
        """The name of the kind of store."""
        return self.__class__.__name__.lower()

    @property
    def rank(self) -> int:
        """The number of this worker, from 0."""
        return self._group.rank

    @property
    def local_rank(self) -> int:
        """The number of this worker among those of its host."""
        return self._group.local_rank

    @property
    def num_workers(self) -> int:
        """The number of workers."""
        return self._group.size


@KVStoreBase.register
class BytePS(Horovod):
    """Sums over workers as BytePS does; `mx.kvstore.create('byteps')`."""
