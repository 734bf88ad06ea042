"""Bulk execution: accepted for compatibility, without effect.

MXNet's engine ran several small operators as one task of its scheduler. Here every operator is
one call of a torch kernel, and graphs are prepared as a whole, so there is nothing to bundle.

As MXNet's engine did, this module also sees that a forked process can continue computing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_bulk_size = 0

if hasattr(os, "register_at_fork"):  # not on Windows
    # Threads of OpenMP do not come along into a fork; a kernel that asks for them waits forever.
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def set_bulk_size(size: int) -> int:
    """Set the bulk size and return the previous one; it has no effect.

    Parameters
    ----------
    size
        The size.

    >>> set_bulk_size(set_bulk_size(16))
    16
    """
    global _bulk_size
    previous, _bulk_size = _bulk_size, int(size)
    return previous


@contextmanager
def bulk(size: int) -> Iterator[None]:
    """Set the bulk size within a ``with`` block; it has no effect.

    Parameters
    ----------
    size
        The size.

    >>> with bulk(10):
    ...     y = mx.nd.ones((2,)) + 1
    """
    previous = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(previous)
