"""Iterators over files that are read incrementally: CSV, LibSVM and MNIST.

They are functions that return an `MXDataIter`. Arguments are keywords; strings are parsed.
"""

from __future__ import annotations

import functools
import inspect
import logging
import math
import typing
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch

from ..dtypes import to_name, to_numpy
from ..error import FormatError, MXNetError, ShapeError
from ..formats import sample_files
from ..formats.sample_files import read_idx
from ..ndarray import NDArray, array, sparse
from ..ops.attributes import Attribute, Count, DType, Shape, attribute_type
from ..runtime.array import wrap_plain
from .batches import DataBatch, DataDesc, DataIter

Rows = Any  # supports slicing and len: a NumPy array or SparseRows
Read = Callable[[], Iterator[Rows]]
Join = Callable[[list[Rows]], Rows]


class Batch(NamedTuple):
    """One batch of a file."""

    data: NDArray
    label: NDArray
    pad: int
    index: np.ndarray  # pyright: ignore[reportIncompatibleMethodOverride]  # tuple's method is not needed


class RowStream:
    """A file's rows, read in blocks."""

    def __init__(self, read: Read, join: Join = np.concatenate) -> None:
        self.read = read
        self.join = join
        self.rewind()

    def rewind(self) -> None:
        """Go back to the first row."""
        self.blocks = self.read()
        self.block: Rows = ()
        self.at = 0  # position in the block
        self.row = 0  # position in the file

    def take(self, count: int) -> Rows | None:
        """Return the next rows, at most `count`; None if there are no more."""
        parts = []
        while count:
            if self.at == len(self.block):
                self.block = next(self.blocks, None)
                self.at = 0
                if self.block is None:
                    self.block = ()
                    break
            part = self.block[self.at : self.at + count]
            parts.append(part)
            self.at += len(part)
            self.row += len(part)
            count -= len(part)
        return self.join(parts) if parts else None


def only_part(read: Read, num_parts: int, part_index: int) -> Read:
    """Return a function that reads one of `num_parts` nearly equal parts of the rows."""
    if not 0 <= part_index < num_parts:
        raise ValueError(f"part_index must be from 0 to {num_parts - 1}, got {part_index}")
    if num_parts == 1:
        return read
    count = sum(map(len, read()))
    begin, end = (count * i // num_parts for i in (part_index, part_index + 1))

    def read_part() -> Iterator[Rows]:
        at = 0
        for block in read():
            part = block[max(0, begin - at) : max(0, end - at)]
            at += len(block)
            if len(part):
                yield part
            if at >= end:
                return

    return read_part


class RowBatches:
    """Batches of rows of a data file and an optional label file.

    With `round_batch` the last batch is filled with rows from the beginning, and the next epoch
    starts after these; otherwise it is filled with rows of the previous batch.
    """

    def __init__(
        self,
        name: str,
        streams: list[RowStream],
        make: Callable[..., tuple[NDArray, NDArray]],
        batch_size: int,
        round_batch: bool = True,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"{name}: batch_size must be at least 1, got {batch_size}")
        self.name = name
        self.streams = streams
        self.make = make
        self.batch_size = batch_size
        self.round_batch = round_batch
        self.ended = self.overflown = False
        self.before: list[Rows] | None = None

    def reset(self) -> None:
        """Start a new epoch."""
        if not self.overflown:
            for stream in self.streams:
                stream.rewind()
        self.ended = self.overflown = False

    def next_batch(self) -> Batch | None:
        """Return the next batch, or None at the end of the epoch."""
        if self.ended:
            return None
        first = self.streams[0].row
        rows = self._take(self.batch_size)
        if rows is None:
            rows = []
        count = len(rows[0]) if rows else 0
        index = np.arange(first, first + count, dtype=np.uint64)
        pad = self.batch_size - count
        if pad:
            self.ended = True
            if not count:
                return None
            rows, index = self._fill_batch(rows, index, pad)
        self.before, self.index_before = rows, index
        return Batch(*self.make(*rows), pad, index)

    def _take(self, count: int) -> list[Rows] | None:
        rows = [stream.take(count) for stream in self.streams]
        if rows[0] is None:
            return None
        for other in rows[1:]:
            if other is None or len(other) < len(rows[0]):
                raise FormatError(
                    f"{self.name}: the label file has {self.streams[1].row} rows, fewer than the "
                    "data file."
                )
        return rows

    def _fill_batch(
        self, rows: list[Rows], index: np.ndarray, pad: int
    ) -> tuple[list[Rows], np.ndarray]:
        if self.round_batch:
            for stream in self.streams:
                stream.rewind()
            more = self._take(pad)
            if more is None or len(more[0]) < pad:
                raise MXNetError(
                    f"{self.name}: number of input must be bigger than batch size; there are "
                    f"{self.streams[0].row} rows for batches of {self.batch_size}."
                )
            self.overflown = True
            numbers = np.arange(pad, dtype=np.uint64)
        else:
            count = len(index)
            if self.before is None:  # the only batch is filled with its first row
                more = [
                    stream.join([part[:1]] * pad)
                    for stream, part in zip(self.streams, rows, strict=True)
                ]
                numbers = np.repeat(index[:1], pad)
            else:
                more = [part[count:] for part in self.before]
                numbers = self.index_before[count:]
        joined = [
            stream.join([part, filler])
            for stream, part, filler in zip(self.streams, rows, more, strict=True)
        ]
        return joined, np.concatenate((index, numbers))


Device = Literal["cpu", "gpu"]


class Source(Protocol):
    """The data source of an `MXDataIter`."""

    batch_size: int

    def reset(self) -> None:
        """Start a new epoch."""

    def next_batch(self) -> Batch | None:
        """Return the next batch, or None at the end of the epoch."""


class MXDataIter(DataIter):
    r"""An iterator over a file, created by `CSVIter`, `LibSVMIter` and others.

    Parameters
    ----------
    handle : Source
        Source of the batches.
    data_name, label_name : str
        Name of the data.

    >>> import pathlib
    >>> _ = pathlib.Path("data.csv").write_text("1\n")
    >>> numbers = mx.io.CSVIter(data_csv="data.csv", data_shape=(1,), batch_size=1)
    >>> isinstance(numbers, mx.io.MXDataIter)
    True
    """

    def __init__(
        self,
        handle: Source,
        data_name: str = "data",
        label_name: str = "softmax_label",
        **_: Any,
    ) -> None:
        super().__init__(handle.batch_size)
        self.handle = handle
        self._current: Any = None  # a Batch after `__init__`
        self._waits = False  # whether the first batch is still to be returned
        self._debug_skip_load = False
        if not self._load():
            raise MXNetError(
                f"There is no batch of {handle.batch_size} to start with: fewer samples than "
                "batch_size."
            )
        self._waits = True
        data, label = self._current.data, self._current.label
        self.provide_data = [DataDesc(data_name, data.shape, data.dtype)]
        self.provide_label = [DataDesc(label_name, label.shape, label.dtype)]

    def _load(self) -> bool:
        batch = self.handle.next_batch()
        if batch is not None:
            self._current = batch
        return batch is not None

    def debug_skip_load(self) -> None:
        """Return the same batch forever, to benchmark everything but reading."""
        self._debug_skip_load = True
        logging.getLogger().info("Set debug_skip_load to be true, will simply return first batch")

    def reset(self) -> None:
        """Start a new epoch."""
        if not self._waits:
            self.handle.reset()

    def iter_next(self) -> bool:
        """Advance to the next batch; return whether there is one."""
        if self._waits or self._debug_skip_load:
            self._waits = False
            return True
        return self._load()

    def next(self) -> DataBatch:
        """Return the next batch, or raise StopIteration."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch([self.getdata()], [self.getlabel()], self.getpad(), self.getindex())

    def getdata(self) -> NDArray:
        """Return the data of the current batch."""
        return self._current.data

    def getlabel(self) -> NDArray:
        """Return the labels of the current batch."""
        return self._current.label

    def getpad(self) -> int:
        """Return the number of padding samples of the current batch."""
        return self._current.pad

    def getindex(self) -> np.ndarray:
        """Return the row numbers of the samples of the current batch."""
        return self._current.index


def file_iter(make: Callable[..., Source]) -> Callable[..., MXDataIter]:
    """Decorate a source's factory: parse arguments and return an iterator."""
    hints = typing.get_type_hints(make, include_extras=True)
    options = {
        name: Attribute(name, attribute_type(hints[name]), p.default, p.default is p.empty)
        for name, p in inspect.signature(make).parameters.items()
    }
    title = make.__name__

    @functools.wraps(make)
    def create(**kwargs: Any) -> MXDataIter:
        names = {key: kwargs.pop(key) for key in ("data_name", "label_name") if key in kwargs}
        unknown = sorted(set(kwargs) - set(options))
        if unknown:
            warnings.warn(f"{title} ignores {', '.join(unknown)}", stacklevel=2)
        for option in options.values():
            if option.required and option.name not in kwargs:
                raise MXNetError(
                    f"Required parameter {option.name} of {option.type.label} is not presented, "
                    f"in {title}"
                )
        arguments = {k: options[k].parse(v, title) for k, v in kwargs.items() if k in options}
        return MXDataIter(make(**arguments), **names)

    return create


def _element_type(title: str, dtype: torch.dtype | None, *allowed: torch.dtype) -> Any:
    dtype = torch.float32 if dtype is None else dtype
    if dtype not in allowed:
        kinds = ", ".join(map(to_name, allowed))
        raise MXNetError(f"{to_name(dtype)} is not supported for {title}, only {kinds}")
    return to_numpy(dtype)


@file_iter
def CSVIter(
    *,
    data_csv: str,
    data_shape: Shape,
    label_csv: str = "NULL",
    label_shape: Shape = (1,),
    batch_size: Count,
    round_batch: bool = True,
    prefetch_buffer: Count = 4,
    ctx: Device = "gpu",
    dtype: DType | None = None,
) -> RowBatches:
    r"""Iterate over a CSV file with one sample per line, in the shape `data_shape`.

    Parameters
    ----------
    data_csv : str
        File of the data.
    data_shape : tuple
        Shape of a sample.
    label_csv : str, optional
        File of the labels; by default all labels are 0.
    label_shape : tuple
        Shape of a label.
    batch_size : int
        Number of samples in a batch.
    round_batch : bool
        Whether to fill the last batch from the beginning of the file, where the next epoch
        continues; otherwise it is filled with samples of the previous batch.
    prefetch_buffer
        Number of batches to prefetch.
    ctx
        Accepted for compatibility; batches are on the CPU.
    dtype : {'float32', 'int32', 'int64'}, optional
        Data type of the data; float32 by default.

    >>> import pathlib
    >>> _ = pathlib.Path("data.csv").write_text("1,2\n3,4\n")
    >>> batch = next(mx.io.CSVIter(data_csv="data.csv", data_shape=(2,), batch_size=2))
    >>> batch.data[0].asnumpy()
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    kind = _element_type("CSVIter", dtype, torch.float32, torch.int32, torch.int64)

    def rows(path: str, shape: Shape) -> RowStream:
        return RowStream(lambda: sample_files.read_csv(path, math.prod(shape), kind))

    streams = [rows(data_csv, data_shape)]
    if label_csv != "NULL":
        streams.append(rows(label_csv, label_shape))

    def make(data: np.ndarray, label: np.ndarray | None = None) -> tuple[NDArray, NDArray]:
        if label is None:
            label = np.zeros((len(data), math.prod(label_shape)), kind)
        sizes = () if label_shape == (1,) else label_shape
        return (
            array(data.reshape(-1, *data_shape), dtype=kind),
            array(label.reshape(-1, *sizes), dtype=kind),
        )

    return RowBatches(f"CSVIter({data_csv!r})", streams, make, batch_size, round_batch)


@file_iter
def LibSVMIter(
    *,
    data_libsvm: str,
    data_shape: Shape,
    label_libsvm: str = "NULL",
    label_shape: Shape = (1,),
    num_parts: int = 1,
    part_index: int = 0,
    batch_size: Count,
    round_batch: bool = True,
    prefetch_buffer: Count = 4,
    ctx: Device = "gpu",
    dtype: DType | None = None,
) -> RowBatches:
    r"""Iterate over a LibSVM file; the data of a batch is a csr array.

    Parameters
    ----------
    data_libsvm : str
        File with a label and ``index:value`` of nonzero elements in each line; indices start at 0.
    data_shape : tuple
        Number of features, as a tuple of one number.
    label_libsvm : str, optional
        File of the labels, read as csr arrays; by default those of `data_libsvm`.
    label_shape : tuple
        Shape of a label.
    num_parts, part_index : int
        Number of parts the samples are split into, and index of the part to read.
    batch_size : int
        Number of samples in a batch.
    round_batch
        Whether to fill the last batch from the beginning of the file, where the next epoch
        continues.
    prefetch_buffer
        Number of batches to prefetch.
    ctx
        Accepted for compatibility; batches are on the CPU.
    dtype
        Data type of the data; only float32.

    >>> import pathlib
    >>> _ = pathlib.Path("data.txt").write_text("1 0:5\n0 2:7\n")
    >>> batch = next(mx.io.LibSVMIter(data_libsvm="data.txt", data_shape=(3,), batch_size=2))
    >>> batch.data[0].asnumpy()
    array([[5., 0., 0.],
           [0., 0., 7.]], dtype=float32)
    """
    _element_type("LibSVMIter", dtype, torch.float32)
    if not round_batch:
        raise MXNetError("LibSVMIter doesn't support round_batch == false")
    for what, shape in (("data_shape", data_shape), ("label_shape", label_shape)):
        if len(shape) != 1:
            raise ShapeError(f"dimension of {what} is expected to be 1 in LibSVMIter, got {shape}")
    if label_libsvm == "NULL" and label_shape != (1,):
        raise ShapeError(
            "label_shape is expected to be (1,) when label_libsvm is NULL, got " + str(label_shape)
        )

    def rows(path: str, width: int) -> RowStream:
        read = only_part(lambda: sample_files.read_libsvm(path, width), num_parts, part_index)
        return RowStream(read, sample_files.SparseRows.join)

    streams = [rows(data_libsvm, data_shape[0])]
    if label_libsvm != "NULL":
        streams.append(rows(label_libsvm, label_shape[0]))

    def make(data: sample_files.SparseRows, label: Any = None) -> tuple[NDArray, NDArray]:
        if label is None:
            return _csr(data, data_shape[0]), array(data.labels)
        return _csr(data, data_shape[0]), _csr(label, label_shape[0])

    return RowBatches(f"LibSVMIter({data_libsvm!r})", streams, make, batch_size)


def _csr(rows: sample_files.SparseRows, width: int) -> NDArray:
    parts = rows.values, rows.indices, rows.indptr
    return sparse.csr_matrix(parts, shape=(len(rows), width), dtype=np.float32)


class _ImageBatches:
    """Batches of images in memory; an incomplete last batch is dropped."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor, batch_size: int) -> None:
        self.images = images
        self.labels = labels
        self.batch_size = batch_size
        self.at = 0

    def reset(self) -> None:
        self.at = 0

    def next_batch(self) -> Batch | None:
        end = self.at + self.batch_size
        if end > len(self.images):
            return None
        images, labels = self.images[self.at : end], self.labels[self.at : end]
        self.at = end
        data = wrap_plain(NDArray, images.float() / 256)
        index = np.zeros(self.batch_size, np.uint64)  # MXNet reports no padding here
        return Batch(data, wrap_plain(NDArray, labels.float()), 0, index)


@file_iter
def MNISTIter(
    *,
    image: str = "./train-images-idx3-ubyte",
    label: str = "./train-labels-idx1-ubyte",
    batch_size: int = 128,
    shuffle: bool = True,
    flat: bool = False,
    seed: int = 0,
    silent: bool = False,
    num_parts: int = 1,
    part_index: int = 0,
    prefetch_buffer: Count = 4,
    ctx: Device = "gpu",
    dtype: DType | None = None,
) -> _ImageBatches:
    """Iterate over the MNIST files of images and labels, plain or gzipped; pixels are in [0, 1).

    Parameters
    ----------
    image : str
        File of the images.
    label : str
        File of the labels.
    batch_size : int
        Number of samples in a batch.
    shuffle : bool
        Whether to shuffle the samples once, by `seed`.
    flat : bool
        Whether images are flat vectors instead of (1, height, width).
    seed
        Seed of the shuffling.
    silent : bool
        Whether to log nothing.
    num_parts, part_index : int
        Number of parts the samples are split into, and index of the part to read.
    prefetch_buffer
        Number of batches to prefetch.
    ctx
        Accepted for compatibility; batches are on the CPU.
    dtype
        Accepted for compatibility; batches are float32.

    >>> import pathlib, struct
    >>> _ = pathlib.Path("images").write_bytes(struct.pack(">iiii", 2051, 2, 2, 2) + bytes(8))
    >>> _ = pathlib.Path("labels").write_bytes(struct.pack(">ii", 2049, 2) + bytes([3, 7]))
    >>> settings = {"batch_size": 2, "shuffle": False, "silent": True}
    >>> batch = next(mx.io.MNISTIter(image="images", label="labels", **settings))
    >>> batch.data[0].shape, batch.label[0].asnumpy()
    ((2, 1, 2, 2), array([3., 7.], dtype=float32))
    """
    _element_type("MNISTIter", dtype, torch.float32)
    if batch_size < 1:
        raise ValueError(f"MNISTIter: batch_size must be at least 1, got {batch_size}")
    if not 0 <= part_index < num_parts:
        raise ValueError(f"part_index must be from 0 to {num_parts - 1}, got {part_index}")
    images, labels = read_idx(image, 3), read_idx(label, 1)
    if len(images) != len(labels):
        raise ShapeError(f"{image} has {len(images)} images, and {label} has {len(labels)} labels")
    begin, end = (len(images) * i // num_parts for i in (part_index, part_index + 1))
    images, labels = images[begin:end], labels[begin:end]
    if shuffle:
        order = torch.from_numpy(np.random.default_rng(seed % 2**32).permutation(len(images)))
        images, labels = images[order], labels[order]
    images = images.flatten(1) if flat else images.unsqueeze(1)
    if not silent:
        shape = (batch_size, *images.shape[1:])
        logging.getLogger().info(
            "MNISTIter: load %d images, shuffle=%d, shape=%s", len(images), shuffle, shape
        )
    return _ImageBatches(images, labels, batch_size)
