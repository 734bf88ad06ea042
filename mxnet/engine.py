"""Bulk execution: accepted and remembered, but nothing depends on it.

MXNet's engine ran several small operators as one task of its scheduler. Here every operator is
one call of a torch kernel, and graphs are prepared as a whole, so there is nothing to bundle.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_bulk_size = 0


def set_bulk_size(size: int) -> int:
    """Remember a bulk size and return the previous one; it has no effect on how things run.

    >>> set_bulk_size(set_bulk_size(16))
    16
    """
    global _bulk_size
    previous, _bulk_size = _bulk_size, int(size)
    return previous


@contextmanager
def bulk(size: int) -> Iterator[None]:
    """Set the bulk size within a ``with`` block; it has no effect on how things run.

    >>> with bulk(10):
    ...     y = mx.nd.ones((2,)) + 1
    """
    previous = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(previous)
