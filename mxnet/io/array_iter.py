"""`NDArrayIter`: batches of arrays in memory."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..error import InvalidType, InvalidValue, MXNetError, ShapeError
from ..ndarray import NDArray, array
from ..random import host_order
from ..runtime.array import Handle, plain, wrap_plain
from .batches import DataBatch, DataDesc, DataIter

Named = list[tuple[str, NDArray]]
LastBatch = Literal["pad", "discard", "roll_over"]


class NDArrayIter(DataIter):
    """Batches of arrays in memory.

    Parameters
    ----------
    data, label : array, list of arrays, or dict of arrays by name
        NDArrays or NumPy arrays. Arrays in a list are named ``_0_data``, ``_1_data`` and so on, and
        sorted by name: ``_10_data`` comes before ``_1_data``.
    batch_size : int
        Number of samples in a batch.
    shuffle : bool
        Whether to shuffle the samples at each `reset`.
    last_batch_handle : {'pad', 'discard', 'roll_over'}
        What to do with an incomplete last batch: fill it from the beginning, drop it, or use its
        samples in the next epoch.
    data_name, label_name : str
        Name of the data.
    layout : str
        Layout of the data; the letter N is the axis of the samples.

    >>> batches = mx.io.NDArrayIter(np.arange(5), batch_size=2)
    >>> for batch in batches:
    ...     print(batch.data[0].asnumpy(), batch.pad)
    [0. 1.] 0
    [2. 3.] 0
    [4. 0.] 1
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: LastBatch = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
        layout: str = "NCHW",
    ) -> None:
        super().__init__(batch_size)
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise ValueError(
                "last_batch_handle must be 'pad', 'discard' or 'roll_over', "
                f"got {last_batch_handle!r}"
            )
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.data = named_arrays(data, data_name)
        self.label = named_arrays(label, label_name) if label is not None else []
        if not self.data:
            raise InvalidValue("NDArrayIter needs at least one data array")
        self.layout = layout
        self.num_data = self._common_length()
        if last_batch_handle != "discard" and any(_is_csr(x) for _, x in self.data + self.label):
            raise NotImplementedError(
                "`NDArrayIter` only supports ``CSRNDArray`` with `last_batch_handle` set to "
                "`discard`."
            )
        self.idx = np.arange(self.num_data)
        self._rows = self.idx  # original position of each sample
        self.shuffle = shuffle
        self.last_batch_handle = last_batch_handle
        self.num_source = len(self.data) + len(self.label)
        self.cursor = -batch_size
        self._cache_data: list[Tensor] | None = None
        self._cache_label: list[Tensor] | None = None
        self.reset()

    @property
    def data_list(self) -> list[NDArray]:
        """All arrays, data before labels, in the order of this epoch."""
        return [x for _, x in self.data + self.label]

    @property
    def provide_data(self) -> list[DataDesc]:
        """Name, shape, type and layout of each data array of a batch."""
        return self._describe(self.data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """Name, shape, type and layout of each label array of a batch."""
        return self._describe(self.label)

    def _describe(self, arrays: Named) -> list[DataDesc]:
        descs = []
        for name, x in arrays:
            shape, axis = list(x.shape), self._axis(x)
            shape[axis] = self.batch_size
            descs.append(DataDesc(name, tuple(shape), x.dtype, self.layout))
        return descs

    def _axis(self, x: NDArray) -> int:
        axis = self.layout.find("N")
        return axis if 0 < axis < x.ndim else 0

    def _common_length(self) -> int:
        """Return the number of samples; longer arrays are truncated to the length of the first."""
        arrays = self.data + self.label
        lengths = {name: x.shape[self._axis(x)] if x.ndim else 0 for name, x in arrays}
        count = next(iter(lengths.values()))
        if min(lengths.values()) < count:
            raise ShapeError(
                f"All arrays must have as many samples as the first one, {count}, but got {lengths}"
            )
        if max(lengths.values()) > count:
            warnings.warn(
                f"NDArrayIter uses the first {count} samples of each array: they have {lengths}.",
                stacklevel=3,
            )
            self.data, self.label = (
                [(name, _beginning(x, self._axis(x), count)) for name, x in named]
                for named in (self.data, self.label)
            )
        return count

    def hard_reset(self) -> None:
        """Rewind to the beginning, and drop samples that would roll over."""
        self._forget()
        if self.shuffle:
            self._shuffle()

    def reset(self) -> None:
        """Start a new epoch, with samples rolled over from the last one."""
        rest = self.num_data - self.cursor
        in_last = 0 <= self.cursor < self.num_data and rest < self.batch_size
        if self.last_batch_handle == "roll_over" and in_last:
            self._cache_data = [self._rest(x) for _, x in self.data]
            self._cache_label = [self._rest(x) for _, x in self.label]
            self.cursor = -rest - self.batch_size
        else:
            self._forget()
        if self.shuffle:
            self._shuffle()

    def _rest(self, x: NDArray) -> Tensor:
        return plain(x).narrow(self._axis(x), self.cursor, self.num_data - self.cursor).clone()

    def _join_first(self, x: NDArray, before: Tensor, count: int) -> NDArray:
        axis, first = self._axis(x), plain(x)
        before = before.to(first.device)  # arrays of a checkpoint are on the CPU
        return _wrap_like(x, torch.cat((before, _first(first, axis, count)), axis))

    def _forget(self) -> None:
        self.cursor = -self.batch_size
        self._cache_data = self._cache_label = None

    def _shuffle(self) -> None:
        self.idx = self.idx[host_order(self.num_data)]
        self._rows = self._rows[self.idx]  # as in MXNet, shuffle the shuffled order
        positions = torch.from_numpy(self.idx)
        self.data = [(name, _reorder(x, self._axis(x), positions)) for name, x in self.data]
        self.label = [(name, _reorder(x, self._axis(x), positions)) for name, x in self.label]

    def iter_next(self) -> bool:
        """Advance to the next batch; return whether there is one."""
        self.cursor += self.batch_size
        return self.cursor < self.num_data

    def next(self) -> DataBatch:
        """Return the next batch, or raise StopIteration."""
        if not self.iter_next():
            raise StopIteration
        is_full = self.cursor < 0 or self.cursor + self.batch_size <= self.num_data
        if self.last_batch_handle != "pad" and not is_full:
            raise StopIteration  # keep the cursor: samples roll over from here
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), None)

    def getdata(self) -> list[NDArray]:
        """Return the data of the current batch."""
        return self._batch(self.data, self._cache_data)

    def getlabel(self) -> list[NDArray]:
        """Return the labels of the current batch."""
        return self._batch(self.label, self._cache_label)

    def getpad(self) -> int:
        """Return the number of padding samples, or of samples rolled over from the last epoch."""
        if self.last_batch_handle == "pad":
            return max(0, self.cursor + self.batch_size - self.num_data)
        if self.last_batch_handle == "roll_over" and -self.batch_size < self.cursor < 0:
            return -self.cursor
        return 0

    def _batch(self, arrays: Named, before: list[Tensor] | None) -> list[NDArray]:
        if not arrays:
            return []
        if not -self.batch_size < self.cursor < self.num_data:
            raise NoBatch("There is no current batch: call next(), or reset() at the end.")
        end = self.cursor + self.batch_size
        if self.cursor < 0:
            pairs = zip(arrays, before or (), strict=True)
            return [self._join_first(x, old, end) for (_, x), old in pairs]
        if end > self.num_data and self.last_batch_handle == "pad":
            return [self._join_first(x, self._rest(x), end - self.num_data) for _, x in arrays]
        end = min(end, self.num_data)
        return [_part(x, self._axis(x), self.cursor, end) for _, x in arrays]


class NoBatch(MXNetError, AssertionError):
    """Raised if there is no current batch, before the first or after the last one."""


def named_arrays(source: Any, default_name: str) -> Named:
    """Return (name, array) pairs from an array, a list or a dict of arrays."""
    if isinstance(source, Handle | np.ndarray | Tensor):
        source = [source]
    if isinstance(source, list | tuple):
        one = len(source) == 1
        names = [default_name if one else f"_{i}_{default_name}" for i in range(len(source))]
        source = dict(zip(names, source, strict=True))
    elif not isinstance(source, dict):
        raise InvalidType(
            "Input must be NDArray, numpy.ndarray, a list of them or dict with them as values, "
            f"got {type(source).__name__}"
        )
    return [(name, _as_array(name, x)) for name, x in sorted(source.items())]


def _as_array(name: str, source: Any) -> NDArray:
    if isinstance(source, NDArray):
        return source
    try:
        return array(source)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Invalid type '{type(source)}' for {name}, should be NDArray or numpy.ndarray"
        ) from error


def _is_csr(x: NDArray) -> bool:
    return x.stype == "csr"


def _first(samples: Tensor, axis: int, count: int) -> Tensor:
    if count <= samples.shape[axis]:
        return samples.narrow(axis, 0, count)
    positions = torch.arange(count, device=samples.device) % samples.shape[axis]
    return samples.index_select(axis, positions)


def _wrap_like(like: NDArray, samples: Tensor) -> NDArray:
    return wrap_plain(type(like), samples, like._ctx)


def _part(x: NDArray, axis: int, begin: int, end: int) -> NDArray:
    """Return a copy of some samples; csr arrays become dense, as in MXNet."""
    if x.stype != "default":
        return x[begin:end].tostype("default")
    return _wrap_like(x, plain(x).narrow(axis, begin, end - begin).clone())


def _beginning(x: NDArray, axis: int, count: int) -> NDArray:
    return x[:count] if _is_csr(x) else _part(x, axis, 0, count)


def _reorder(x: Any, axis: int, places: Tensor) -> NDArray:
    if not _is_csr(x):
        tensor = plain(x)
        return _wrap_like(x, tensor.index_select(axis, places.to(tensor.device)))
    from ..ndarray.sparse import csr_matrix

    pointers = plain(x.indptr).long().cpu()
    counts = pointers.diff()[places]
    ends = counts.cumsum(0)
    shifts = (pointers[:-1][places] - (ends - counts)).repeat_interleave(counts)
    entries = shifts + torch.arange(len(shifts))
    stored = [plain(part).cpu()[entries].numpy() for part in (x.data, x.indices)]
    stored.append(torch.cat((ends.new_zeros(1), ends)).numpy())
    return csr_matrix(tuple(stored), shape=x.shape, ctx=x.context, dtype=x.dtype)
