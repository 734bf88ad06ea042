"""MXNet's spelling of this place: `mxnet.io.io` has all iterators."""

from __future__ import annotations

from ..ndarray import NDArray, array
from ..ndarray.sparse import CSRNDArray
from .array_iter import NDArrayIter
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
