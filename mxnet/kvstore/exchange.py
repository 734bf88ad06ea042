"""Exchange with stores: built-in ones take all keys in one call, others key by key.

User-defined stores have the methods of `KVStoreBase`: `broadcast` and `pushpull` of one key with
dense arrays. Built-in stores also take lists of keys, keep arrays between `push` and `pull`, and
support sparse arrays. `Trainer` and `Module` use both in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ndarray import NDArray
from .base import Key
from .kvstore import KVStore

__all__ = ["KeyedExchange", "exchange_with"]

Arrays = Sequence[list[NDArray]]  # one array per device for each key


class KeyedExchange:
    """Exchange with a store that has only the methods of `KVStoreBase`.

    Such a store fills the outputs immediately, so `pull` does nothing.
    """

    takes_sparse = False

    def __init__(self, store: Any) -> None:
        self.store = store

    def init(self, keys: Sequence[Key], values: Sequence[NDArray], outs: Arrays) -> None:
        """Set the initial values; a store without state writes rank 0's into `outs`."""
        for key, value, out in zip(keys, values, outs, strict=True):
            self.store.broadcast(key, value, out)

    def push(
        self, keys: Sequence[Key], values: Arrays, outs: Arrays | None, priorities: Sequence[int]
    ) -> None:
        """Push values; the results are written into `outs` here or by `pull`.

        Without `outs` the sums replace the values.
        """
        for i, key in enumerate(keys):
            if outs is None:
                self.store.pushpull(key, values[i], priority=priorities[i])
            else:
                self.store.pushpull(key, values[i], out=outs[i], priority=priorities[i])

    def pull(self, keys: Sequence[Key], outs: Arrays, ignore_sparse: bool = True) -> None:
        """Copy the stored values into `outs`."""

    def watch_gradients(self, keys: Sequence[Key], weights: Sequence[NDArray]) -> Any:
        """Start sending gradients during backward; return None if the store does not support it."""
        return None


class _BatchedExchange(KeyedExchange):
    takes_sparse = True

    def init(self, keys: Sequence[Key], values: Sequence[NDArray], outs: Arrays) -> None:
        self.store.init(list(keys), list(values))

    def push(
        self, keys: Sequence[Key], values: Arrays, outs: Arrays | None, priorities: Sequence[int]
    ) -> None:
        self.store.push(list(keys), list(values))

    def pull(self, keys: Sequence[Key], outs: Arrays, ignore_sparse: bool = True) -> None:
        self.store.pull(list(keys), list(outs), ignore_sparse=ignore_sparse)

    def watch_gradients(self, keys: Sequence[Key], weights: Sequence[NDArray]) -> Any:
        return self.store.watch_gradients(keys, weights)


def exchange_with(store: Any) -> KeyedExchange:
    """Return the exchange for a store.

    >>> exchange_with(mx.kvstore.create("local")).takes_sparse
    True
    >>> exchange_with(mx.kvstore.create("teststore")).takes_sparse
    False
    """
    return _BatchedExchange(store) if isinstance(store, KVStore) else KeyedExchange(store)
