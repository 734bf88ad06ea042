"""Thread-safe helpers: bounded caches with arbitrary keys, and locks that survive forks."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable
from typing import Any, TypeVar

import numpy as np

__all__ = [
    "ForkSafeLock",
    "has_nan",
    "store",
]

Value = TypeVar("Value")
_INEXACT = (float, complex, np.inexact)


def store(cache: dict[Any, Value], key: Hashable, value: Value, max_entries: int) -> Value:
    """Add an entry to a cache, and return its value; a full cache first drops its older half.

    It is thread-safe: there may temporarily be a few more than `max_entries` entries, and two
    threads may compute the same entry.

    >>> cache = {}
    >>> for number in range(5):
    ...     _ = store(cache, number, number * number, 4)
    >>> cache
    {2: 4, 3: 9, 4: 16}
    """
    if len(cache) >= max_entries:
        # Copying the keys is atomic; an iterator would fail if another thread writes.
        for old in list(cache)[: (max_entries + 1) // 2]:
            cache.pop(old, None)
    cache[key] = value
    return value


def has_nan(key: Any) -> bool:
    """Return whether a key is NaN or a tuple with NaN, which equals no other key.

    >>> has_nan(("clip", (1.0, float("nan")))), has_nan(("clip", 1.0))
    (True, False)
    """
    if isinstance(key, tuple):
        return any(map(has_nan, key))
    return isinstance(key, _INEXACT) and bool(key != key)


# -- locks that survive a fork --------------------------------------------------------------------


class ForkSafeLock:
    """A reentrant lock that is free in every forked process.

    A plain lock that another thread holds at the moment of a fork stays locked in the child.
    """

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
