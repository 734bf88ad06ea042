"""`DataBatch` and `DataDesc`, which iterators return, and `DataIter`, their base class."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from ..base import mx_real_t
from ..error import InvalidType

__all__ = ["DataBatch", "DataDesc", "DataIter"]


class DataDesc(namedtuple("DataDesc", ["name", "shape"])):
    """Name and shape of an array in a batch; dtype and layout are attributes beside the pair.

    Parameters
    ----------
    name
        Name of the array.
    shape
        Shape of the array, with the batch.
    dtype
        Data type of the array.
    layout
        Order of the axes; the place of ``N`` says where the batch is.

    >>> desc = mx.io.DataDesc("data", (8, 3, 32, 32))
    >>> desc == ("data", (8, 3, 32, 32)), desc.layout
    (True, 'NCHW')
    """

    dtype: Any
    layout: str | None

    def __new__(
        cls, name: str, shape: Sequence[int], dtype: Any = mx_real_t, layout: str | None = "NCHW"
    ) -> DataDesc:
        """Make the pair, and put dtype and layout beside it."""
        made = super().__new__(cls, name, shape)
        made.dtype = dtype
        made.layout = layout
        return made

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Return where N is in a layout: 0 without a layout, -1 if there is none.

        >>> mx.io.DataDesc.get_batch_axis("TNC")
        1
        """
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Sequence, types: Sequence | None) -> list[DataDesc]:
        """Return descriptions of (name, shape) pairs, with types from (name, type) pairs."""
        if types is None:
            return [DataDesc(name, shape) for name, shape in shapes]
        by_name = dict(types)
        return [DataDesc(name, shape, by_name[name]) for name, shape in shapes]


def described(given: DataDesc | Sequence) -> DataDesc:
    """Return a description as such; it may be given as a tuple: name, shape, dtype, layout."""
    return given if isinstance(given, DataDesc) else DataDesc(*given)


class DataBatch:
    """A batch: lists of data and label arrays.

    Parameters
    ----------
    data : list of NDArray
        Arrays of the data, in a list.
    label : list of NDArray
        Arrays of the labels, in a list.
    pad : int, optional
        How many samples at the end are there only to fill the batch.
    index : numpy.ndarray, optional
        Where the samples come from.
    bucket_key : optional
        Which bucket the batch belongs to, for `BucketingModule`.
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
    """Base of iterators over batches.

    A subclass overrides `next`, or else `iter_next`, `getdata`, `getlabel` and `getpad`; it has
    the properties ``provide_data`` and ``provide_label``, lists of `DataDesc`.

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
        """Go back to the beginning."""

    def next(self) -> DataBatch:
        """Return the next batch, or raise StopIteration."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def iter_next(self) -> bool:
        """Go to the next batch; return whether there is one."""

    def getdata(self) -> Any:
        """Return the data of the current batch."""

    def getlabel(self) -> Any:
        """Return the labels of the current batch."""

    def getindex(self) -> Any:
        """Return where the samples of the current batch come from, if that is known."""
        return None

    def getpad(self) -> int | None:
        """Return how many samples of the current batch only fill it."""
