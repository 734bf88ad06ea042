"""`mx.io`: data iterators over arrays in memory and files."""

from .array_iter import NDArrayIter
from .batches import DataBatch, DataDesc, DataIter, PrefetchingIter, ResizeIter
from .file_iters import CSVIter, LibSVMIter, MNISTIter, MXDataIter
from .image_iterators import (
    ImageDetRecordIter,
    ImageRecordInt8Iter,
    ImageRecordIter,
    ImageRecordIter_v1,
    ImageRecordUInt8Iter,
    ImageRecordUInt8Iter_v1,
)

__all__ = [
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
    "NDArrayIter",
    "PrefetchingIter",
    "ResizeIter",
]

from . import io  # isort: skip (it shows what this module does)
from .io import _init_data  # used by old programs
