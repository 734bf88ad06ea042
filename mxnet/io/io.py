"""MXNet's name for this module: `mxnet.io.io` has all iterators."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray, array
from ..ndarray.sparse import CSRNDArray
from .array_iter import NDArrayIter, named_arrays
from .batches import DataBatch, DataDesc, DataIter
from .file_iters import CSVIter, LibSVMIter, MNISTIter, MXDataIter
from .image_iterators import (
    ImageDetRecordIter,
    ImageRecordInt8Iter,
    ImageRecordIter,
    ImageRecordIter_v1,
    ImageRecordUInt8Iter,
    ImageRecordUInt8Iter_v1,
)
from .wrapping_iters import PrefetchingIter, ResizeIter


def _init_data(data: Any, allow_empty: bool, default_name: str) -> list[tuple[str, NDArray]]:
    """Return pairs of name and array, as `NDArrayIter` reads its arguments."""
    if data is None and allow_empty:
        return []
    return named_arrays(data, default_name)


__all__ = [
    "CSRNDArray",
    "CSVIter",
    "DataBatch",
    "DataDesc",
    "DataIter",
    "ImageDetRecordIter",
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordUInt8Iter",
    "ImageRecordUInt8Iter_v1",
    "LibSVMIter",
    "MNISTIter",
    "MXDataIter",
    "NDArray",
    "NDArrayIter",
    "PrefetchingIter",
    "ResizeIter",
    "array",
]
