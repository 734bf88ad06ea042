"""Bounds for dictionaries that cache results under keys that users choose."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar

import numpy as np

__all__ = ["has_nan", "store"]

Value = TypeVar("Value")
_INEXACT = (float, complex, np.inexact)


def store(cache: dict[Any, Value], key: Hashable, value: Value, max_entries: int) -> Value:
    """Add an entry to a cache, and return its value; a full cache first drops its older half.

    Several threads may do so at once: there may be a few entries more than `max_entries` for a
    moment, and one that two threads make is made twice.

    >>> cache = {}
    >>> for number in range(5):
    ...     _ = store(cache, number, number * number, 4)
    >>> cache
    {2: 4, 3: 9, 4: 16}
    """
    if len(cache) >= max_entries:
        # Python copies the keys in one step; an iterator would fail when another thread writes.
        for old in list(cache)[: (max_entries + 1) // 2]:
            cache.pop(old, None)
    cache[key] = value
    return value


def has_nan(key: Any) -> bool:
    """Return whether a key is NaN or a tuple with one: no later key is equal to it.

    >>> has_nan(("clip", (1.0, float("nan")))), has_nan(("clip", 1.0))
    (True, False)
    """
    if isinstance(key, tuple):
        return any(map(has_nan, key))
    return isinstance(key, _INEXACT) and bool(key != key)
