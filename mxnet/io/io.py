"""MXNet's module `mxnet.io.io`, with all iterators."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray, array
from ..ndarray.sparse import CSRNDArray
from . import *  # noqa: F403 (the iterators)
from . import __all__ as _iterators
from .array_iter import named_arrays

__all__ = ["CSRNDArray", "NDArray", "array", *_iterators]


def _init_data(data: Any, allow_empty: bool, default_name: str) -> list[tuple[str, NDArray]]:
    """Return (name, array) pairs from an argument of `NDArrayIter`."""
    if data is None and allow_empty:
        return []
    return named_arrays(data, default_name)
