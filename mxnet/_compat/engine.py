"""Bulk execution, accepted for compatibility.

MXNet's engine bundled several small operators into one task. Here every operator is a call of a
torch kernel, so there is nothing to bundle.

This module also makes computation in forked processes possible, like MXNet's engine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_bulk_size = 0

if hasattr(os, "register_at_fork"):  # not on Windows
    # OpenMP's threads do not exist in a forked process; a kernel that uses them would wait forever.
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
