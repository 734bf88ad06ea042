"""`DataBatch`, `DataDesc`, the base class of iterators, and wrappers."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import RLock
from typing import Any

from ..base import mx_real_t
from ..error import InvalidType, InvalidValue, MXNetError


class DataDesc(namedtuple("DataDesc", ["name", "shape"])):
    """Name and shape of an array in a batch; dtype and layout are further attributes.

    Parameters
    ----------
    name
        Name of the array.
    shape
        Shape of the array, with the batch.
    dtype
        Data type of the array.
    layout
        Order of the axes; ``N`` is the batch axis.

    >>> desc = mx.io.DataDesc("data", (8, 3, 32, 32))
    >>> desc == ("data", (8, 3, 32, 32)), desc.layout
    (True, 'NCHW')
    """

    dtype: Any
    layout: str | None

    def __new__(
        cls, name: str, shape: Sequence[int], dtype: Any = mx_real_t, layout: str | None = "NCHW"
    ) -> DataDesc:
        """Create the pair, with dtype and layout as attributes."""
        output = super().__new__(cls, name, shape)
        output.dtype = dtype
        output.layout = layout
        return output

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Return the position of N in a layout: 0 without a layout, -1 if there is none.

        >>> mx.io.DataDesc.get_batch_axis("TNC")
        1
        """
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Sequence, types: Sequence | None) -> list[DataDesc]:
        """Return descriptions from (name, shape) pairs and optional (name, type) pairs."""
        if types is None:
            return [DataDesc(name, shape) for name, shape in shapes]
        by_name = dict(types)
        return [DataDesc(name, shape, by_name[name]) for name, shape in shapes]


def described(description: DataDesc | Sequence) -> DataDesc:
    """Return a `DataDesc` from itself or a tuple: name, shape, dtype, layout."""
    return description if isinstance(description, DataDesc) else DataDesc(*description)


class DataBatch:
    """A batch: lists of data and label arrays.

    Parameters
    ----------
    data : list of NDArray
        Arrays of the data, in a list.
    label : list of NDArray
        Arrays of the labels, in a list.
    pad : int, optional
        Number of padding samples at the end.
    index : numpy.ndarray, optional
        Indices of the samples.
    bucket_key : optional
        Bucket of the batch, for `BucketingModule`.
    provide_data : list of DataDesc, optional
        Names and shapes of the data.
    provide_label : list of DataDesc, optional
        Names and shapes of the labels.

    >>> batch = mx.io.DataBatch([mx.nd.ones((2, 3))], [mx.nd.zeros(2)], pad=0)
    >>> batch.data[0].shape
    (2, 3)
    """

    def __init__(
        self,
        data: list | None,
        label: list | None = None,
        pad: int | None = None,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: list | None = None,
        provide_label: list | None = None,
    ) -> None:
        for what, arrays in (("Data", data), ("Label", label)):
            if arrays is not None and not isinstance(arrays, list | tuple):
                raise InvalidType(f"{what} must be list of NDArrays, got {type(arrays).__name__}")
        self.data = data
        self.label = label
        self.pad = pad
        self.index = index
        self.bucket_key = bucket_key
        self.provide_data = provide_data
        self.provide_label = provide_label

    def __str__(self) -> str:
        data = [array.shape for array in self.data or ()]
        label = [array.shape for array in self.label] if self.label else None
        return f"{type(self).__name__}: data shapes: {data} label shapes: {label}"


class DataIter:
    """Base class of iterators.

    Subclasses override `next`, or `iter_next`, `getdata`, `getlabel` and `getpad`, and define
    ``provide_data`` and ``provide_label``, lists of `DataDesc`.

    Parameters
    ----------
    batch_size
        Number of samples in a batch.

    >>> class Ones(mx.io.DataIter):
    ...     provide_data, provide_label = [mx.io.DataDesc("data", (2, 3))], []
    ...     count = 2
    ...     def next(self):
    ...         if not self.count:
    ...             raise StopIteration
    ...         self.count -= 1
    ...         return mx.io.DataBatch([mx.nd.ones((2, 3))])
    >>> len(list(Ones(batch_size=2)))
    2
    """

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size

    def __iter__(self) -> DataIter:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def reset(self) -> None:
        """Reset the iterator."""

    def next(self) -> DataBatch:
        """Return the next batch, or raise StopIteration."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def iter_next(self) -> Any:
        """Advance to the next batch; return whether there is one."""

    def getdata(self) -> Any:
        """Return the data of the current batch."""

    def getlabel(self) -> Any:
        """Return the labels of the current batch."""

    def getindex(self) -> Any:
        """Return the indices of the samples of the current batch, if they are known."""
        return None

    def getpad(self) -> int | None:
        """Return the number of padding samples of the current batch."""


class _WholeBatches(DataIter):
    """An iterator whose `iter_next` sets `current_batch`."""

    current_batch: Any = None  # a DataBatch after the first `iter_next`

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return self.current_batch

    def getdata(self) -> Any:
        return self.current_batch.data

    def getlabel(self) -> Any:
        return self.current_batch.label

    def getindex(self) -> Any:
        """Return the indices of the samples of the current batch, if they are known."""
        return self.current_batch.index

    def getpad(self) -> int | None:
        """Return the number of padding samples of the current batch."""
        return self.current_batch.pad


class ResizeIter(_WholeBatches):
    """An iterator resized to `size` batches per epoch, restarted as needed.

    Parameters
    ----------
    data_iter : DataIter
        The iterator to resize.
    size : int
        Number of batches in an epoch.
    reset_internal : bool
        Whether `reset` resets the wrapped iterator too.

    >>> short = mx.io.NDArrayIter(np.arange(4), batch_size=2)
    >>> [batch.data[0].asnumpy().tolist() for batch in mx.io.ResizeIter(short, 3)]
    [[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]]
    """

    def __init__(self, data_iter: Any, size: int, reset_internal: bool = True) -> None:
        super().__init__(data_iter.batch_size)
        self.data_iter = data_iter
        self.size = size
        self.reset_internal = reset_internal
        self.cur = 0
        self.provide_data = data_iter.provide_data
        self.provide_label = data_iter.provide_label
        if hasattr(data_iter, "default_bucket_key"):
            self.default_bucket_key = data_iter.default_bucket_key

    def reset(self) -> None:
        """Start a new epoch."""
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self) -> bool:
        """Advance to the next batch; return whether there is one."""
        if self.cur >= self.size:
            return False
        try:
            self.current_batch = self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            self.current_batch = self.data_iter.next()
        self.cur += 1
        return True


class PrefetchingIter(_WholeBatches):
    """Prefetches the next batch of one or several iterators.

    Each iterator has its own thread; batches of several iterators are merged. An error in a thread
    is raised by every `next` until `reset`. Several threads may call `next`; each batch is returned
    once.

    Parameters
    ----------
    iters : DataIter or list of DataIter
        An iterator, or a list of iterators.
    rename_data, rename_label : list of dict, optional
        One dict from old to new names for each iterator.

    >>> slow = mx.io.NDArrayIter(np.arange(4), batch_size=2)
    >>> [batch.data[0].asnumpy().tolist() for batch in mx.io.PrefetchingIter(slow)]
    [[0.0, 1.0], [2.0, 3.0]]
    """

    def __init__(
        self,
        iters: DataIter | list[DataIter],
        rename_data: list[dict[str, str]] | None = None,
        rename_label: list[dict[str, str]] | None = None,
    ) -> None:
        self.iters: list[Any] = list(iters) if isinstance(iters, list | tuple) else [iters]
        if not self.iters:
            raise InvalidValue("PrefetchingIter needs at least one iterator")
        self.n_iter = len(self.iters)
        self.rename_data = rename_data
        self.rename_label = rename_label
        super().__init__(self.provide_data[0].shape[0])
        self._lock = RLock()  # parts of the current batch
        self._threads = ThreadPoolExecutor(self.n_iter, "prefetch")
        self._coming: list[Future] = []
        self._fetch()

    @property
    def provide_data(self) -> list[DataDesc]:
        """The data descriptions of all iterators, under the new names."""
        return _rename([it.provide_data for it in self.iters], self.rename_data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """The label descriptions of all iterators, under the new names."""
        return _rename([it.provide_label for it in self.iters], self.rename_label)

    def _fetch(self) -> None:
        self._coming = [self._threads.submit(_next_or_none, it) for it in self.iters]

    def reset(self) -> None:
        """Wait for the threads to finish their batches, and reset all iterators."""
        with self._lock:
            wait(self._coming)
            for it in self.iters:
                it.reset()
            self._fetch()

    def next(self) -> DataBatch:
        """Return the next batch."""
        with self._lock:
            return super().next()

    def iter_next(self) -> bool:
        """Advance to the next batch; return whether there is one."""
        with self._lock:
            return self._join_next()

    def _join_next(self) -> bool:
        batches = [coming.result() for coming in self._coming]
        ended = [batch is None for batch in batches]
        if all(ended):
            return False
        if any(ended):
            raise MXNetError("Number of entry mismatches between iterators: one ended early.")
        if any(batch.pad != batches[0].pad for batch in batches):
            raise MXNetError("Number of entry mismatches between iterators: different pads.")
        self._fetch()
        self.current_batch = DataBatch(
            [array for batch in batches for array in batch.data],
            [array for batch in batches for array in batch.label or ()],
            batches[0].pad,
            batches[0].index,
            provide_data=self.provide_data,
            provide_label=self.provide_label,
        )
        return True

    def __del__(self) -> None:
        threads = getattr(self, "_threads", None)
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)


def _next_or_none(it: DataIter) -> DataBatch | None:
    try:
        return it.next()
    except StopIteration:
        return None


def _rename(provided: list[list], names: list[dict[str, str]] | None) -> list[DataDesc]:
    descs = [[described(d) for d in part] for part in provided]
    if names is None:
        return [desc for part in descs for desc in part]
    return [
        DataDesc(new[d.name], d.shape, d.dtype, d.layout)
        for new, part in zip(names, descs, strict=True)
        for d in part
    ]
