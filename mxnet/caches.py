"""Bounds for dictionaries that cache results under keys that users choose."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar

__all__ = ["store"]

Value = TypeVar("Value")


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
