"""`KVStoreBase`, the base of all stores, the registry, and `create`."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from ..base import string_types
from ..error import MXNetError

__all__ = ["KVStoreBase", "TestStore", "create"]

Class = TypeVar("Class", bound=type)
Key = int | str


def _missing(store: KVStoreBase, what: str) -> NotImplementedError:
    return NotImplementedError(f"{type(store).__name__} does not have {what}")


class UnknownCapability(MXNetError, ValueError):
    """Raised for an unknown capability of stores."""


def answer_capability(capability: str, can_update: bool) -> bool:
    """Return whether a store updates weights itself, the only defined capability."""
    if capability.lower() == KVStoreBase.OPTIMIZER:
        return can_update
    raise UnknownCapability(f"Unknown capability: {capability}")


class KVStoreBase:
    """Base class of stores; subclasses override the methods that they support.

    >>> isinstance(mx.kvstore.create("local"), mx.kvstore.KVStoreBase)
    True
    """

    OPTIMIZER = "optimizer"  # capability: the store updates weights itself
    kv_registry: ClassVar[dict[str, type]] = {}

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copy the first worker's value to all workers, into `out`."""
        raise _missing(self, "broadcast")

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sum values over devices and workers, into `out` or back into `value`."""
        raise _missing(self, "pushpull")

    def set_optimizer(self, optimizer: Any) -> None:
        """Set the optimizer with which the store updates weights."""
        raise _missing(self, "set_optimizer")

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return whether the store has a capability; only `OPTIMIZER` is defined."""
        raise NotImplementedError("is_capable must be overridden by subclasses")

    def save_optimizer_states(self, fname: Any, dump_optimizer: bool = False) -> None:
        """Write the states of the optimizer to a file."""
        raise _missing(self, "save_optimizer_states")

    def load_optimizer_states(self, fname: Any) -> None:
        """Read the states of the optimizer from a file."""
        raise _missing(self, "load_optimizer_states")

    @property
    def type(self) -> str:
        """The type of the store."""
        raise _missing(self, "type")

    @property
    def rank(self) -> int:
        """The rank of this worker, from 0."""
        raise _missing(self, "rank")

    @property
    def num_workers(self) -> int:
        """The number of workers."""
        raise _missing(self, "num_workers")

    @staticmethod
    def register(klass: Class) -> Class:
        """Register a store class for `create`, by its lowercase name.

        >>> @mx.kvstore.KVStoreBase.register
        ... class MyStore(mx.kvstore.KVStoreBase): ...
        >>> type(mx.kvstore.create("mystore")).__name__
        'MyStore'
        """
        if not isinstance(klass, type):
            raise TypeError(f"only classes can be registered as stores, got {klass!r}")
        KVStoreBase.kv_registry[klass.__name__.lower()] = klass
        return klass


@KVStoreBase.register
class TestStore(KVStoreBase):
    """A store without state that copies and sums, for tests."""

    __test__ = False  # not a test case

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copy a value, or the first of several, to all outputs."""
        source = value[0] if isinstance(value, list | tuple) else value
        for target in out if isinstance(out, list | tuple) else [out]:
            target[:] = source

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sum values into the outputs, or back into the values."""
        values = list(value) if isinstance(value, list | tuple) else [value]
        total = values[0].copy()
        for other in values[1:]:
            total += other.as_in_context(total.context)
        self.broadcast(key, total, values if out is None else out)

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return False for `OPTIMIZER`."""
        return answer_capability(capability, can_update=False)

    @property
    def type(self) -> str:
        """The type of the store."""
        return "teststore"

    @property
    def rank(self) -> int:
        """Always 0."""
        return 0

    @property
    def num_workers(self) -> int:
        """Always 1."""
        return 1


def create(name: str = "local") -> KVStoreBase:
    """Create a store by its name, in any case.

    'local' sums on the CPU, 'device' on the devices of the values; 'nccl' and old names are
    aliases. 'dist_sync', 'dist_device_sync' and 'p3' sum over the workers of a job; 'dist_async'
    applies every push immediately; 'horovod' and 'byteps' sum without storing. Registered classes
    are created by their own names.

    Parameters
    ----------
    name
        Name of the store.

    >>> mx.kvstore.create("device").type
    'device'
    """
    if not isinstance(name, string_types):
        raise TypeError("name must be a string")
    registered = KVStoreBase.kv_registry.get(name.lower())
    if registered is not None:
        return registered()
    from .kvstore import ASYNC, SYNC, KVStore

    if name.lower() in SYNC:
        from .dist_sync import DistSyncStore

        return DistSyncStore(name)
    if name.lower() in ASYNC:
        from .dist_async import DistAsyncStore

        return DistAsyncStore(name)
    return KVStore(name)
