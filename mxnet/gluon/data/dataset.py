"""Data sets: objects with a length and samples by index, and transformations of them.

A data set whose samples are in arrays also returns whole batches, by `_batch`; the loader uses it
if there is no user-defined function in between.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ... import recordio
from ...ndarray import NDArray
from .batchify import gathered
from .sampler import FilterSampler, Sampler, SequentialSampler

__all__ = ["ArrayDataset", "Dataset", "RecordFileDataset", "SimpleDataset"]


class Dataset:
    """Base of data sets: define `__getitem__` (one sample) and `__len__`.

    Lists and arrays of NumPy and MXNet are accepted in place of a data set.

    >>> odd = mx.gluon.data.SimpleDataset(list(range(6))).filter(lambda x: x % 2)
    >>> doubled = odd.transform(lambda x: x * 2)
    >>> len(doubled), doubled[1]
    (3, 6)
    """

    def __getitem__(self, idx: Any) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def filter(self, fn: Callable[[Any], Any]) -> Dataset:
        """Return the samples for which a function is true; it is called immediately for all.

        Parameters
        ----------
        fn
            The function.
        """
        return _SampledDataset(self, FilterSampler(fn, self))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Return one of ``num_shards`` parts in order; the first ones may be one sample longer.

        Parameters
        ----------
        num_shards
            Number of parts.
        index
            Number of the part, from 0.
        """
        if index < 0:
            raise AssertionError("Index must be non-negative")
        if index >= num_shards:
            raise AssertionError(f"Shard index of out bound: {index} out of {num_shards}")
        size, longer = divmod(len(self), num_shards)
        start = size * index + min(index, longer)
        return _SampledDataset(self, SequentialSampler(size + (index < longer), start))

    def take(self, count: int | None) -> Dataset:
        """Return the first ``count`` samples, or all if there are fewer.

        Parameters
        ----------
        count
            Number of samples.
        """
        if count is None or count > len(self):
            count = len(self)
        if count < 0:
            raise ValueError(f"Cannot take {count} samples")
        return _SampledDataset(self, SequentialSampler(count))

    def sample(self, sampler: Sampler) -> Dataset:
        """Return the samples that a sampler selects, in its order.

        Parameters
        ----------
        sampler
            The sampler.
        """
        if not isinstance(sampler, Sampler):
            raise TypeError(
                f"Invalid sampler type: {type(sampler)}. Expected gluon.data.Sampler instead."
            )
        return _SampledDataset(self, sampler)

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """Return the samples transformed by a function; parts of a tuple are passed as arguments.

        Parameters
        ----------
        fn : callable
            The function.
        lazy : bool
            Whether to transform samples when they are read; otherwise all are transformed
            immediately.
        """
        changed = _LazyTransformDataset(self, fn)
        return changed if lazy else SimpleDataset([changed[i] for i in range(len(changed))])

    def transform_first(self, fn: Callable[[Any], Any], lazy: bool = True) -> Dataset:
        """Return the samples with a transformed first part; labels are unchanged.

        Parameters
        ----------
        fn
            The function.
        lazy
            Whether to transform samples when they are read; otherwise all are transformed
            immediately.
        """
        return self.transform(_TransformFirstClosure(fn), lazy)


class SimpleDataset(Dataset):
    """A list or array as a data set.

    Parameters
    ----------
    data
        A list, an array, or anything with `__getitem__` and `__len__`.

    >>> mx.gluon.data.SimpleDataset([4, 5]).transform(lambda x: x + 1)[1]
    6
    """

    def __init__(self, data: Sequence) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: Any) -> Any:
        return self._data[idx]

    def _batch(self, indices: Sequence[int]) -> Any:
        return gathered(self._data, indices)


class _LazyTransformDataset(Dataset):
    def __init__(self, data: Dataset, fn: Callable[..., Any]) -> None:
        self._data = data
        self._fn = fn

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: Any) -> Any:
        item = self._data[idx]
        try:
            return self._fn(*item) if isinstance(item, tuple) else self._fn(item)
        except TypeError as error:
            if "positional argument" in str(error) and sys.version_info >= (3, 11):
                parts = len(item) if isinstance(item, tuple) else 1
                error.add_note(
                    f"The function of transform() gets the {parts} part(s) of a sample; "
                    "transform_first() gives it the first one alone."
                )
            raise


class _TransformFirstClosure:
    """Transforms the first part of a sample; unlike a closure, it can be pickled."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self._fn = fn

    def __call__(self, first: Any, *rest: Any) -> Any:
        return (self._fn(first), *rest) if rest else self._fn(first)


class _SampledDataset(Dataset):
    def __init__(self, dataset: Dataset, sampler: Sampler) -> None:
        self._dataset = dataset
        self._sampler = sampler
        ordered = type(sampler) is SequentialSampler
        first = sampler._start if ordered else 0
        self._indices: Any = range(first, first + len(sampler)) if ordered else list(sampler)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, idx: Any) -> Any:
        return self._dataset[self._indices[idx]]

    @property
    def _batch(self) -> Callable[[Sequence[int]], Any] | None:
        inner = batch_reader(self._dataset)
        if inner is None:
            return None
        return lambda indices: inner([self._indices[i] for i in indices])


class ArrayDataset(Dataset):
    """Arrays and lists of one length; a sample is a tuple with one element of each.

    Parameters
    ----------
    args
        Data sets or arrays of equal length; a sample has one part of each.

    >>> data = mx.gluon.data.ArrayDataset(nd.array([[1, 2], [3, 4]]), ["a", "b"])
    >>> data[1][0].asnumpy(), data[1][1]
    (array([3., 4.], dtype=float32), 'b')
    """

    def __init__(self, *args: Any) -> None:
        if not args:
            raise AssertionError("Needs at least 1 arrays")
        self._length = len(args[0])
        self._data: list[Any] = []
        for number, data in enumerate(args):
            if len(data) != self._length:
                raise AssertionError(
                    "All arrays must have the same length; array[0] has length "
                    f"{self._length} while array[{number}] has {len(data)}."
                )
            # Labels: an element is a number, not an array of shape (1,).
            vector = isinstance(data, NDArray) and len(data.shape) == 1
            self._data.append(data.asnumpy() if vector else data)

    def __getitem__(self, idx: Any) -> Any:
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple(data[idx] for data in self._data)

    def __len__(self) -> int:
        return self._length

    def _batch(self, indices: Sequence[int]) -> Any:
        parts = [gathered(data, indices) for data in self._data]
        return parts[0] if len(parts) == 1 else parts


class RecordFileDataset(Dataset):
    """The records of a RecordIO file, as bytes; its ``.idx`` file must be next to it.

    Parameters
    ----------
    filename : str
        The path of the ``.rec`` file.

    >>> with mx.recordio.MXIndexedRecordIO("a.idx", "a.rec", "w") as file:
    ...     _ = file.write_idx(0, b"first")
    >>> mx.gluon.data.RecordFileDataset("a.rec")[0]
    b'first'
    """

    def __init__(self, filename: str | os.PathLike[str]) -> None:
        self.filename = os.fspath(filename)
        self.idx_file = str(Path(self.filename).with_suffix(".idx"))
        self._record = recordio.MXIndexedRecordIO(self.idx_file, self.filename, "r")

    def __getitem__(self, idx: int) -> Any:
        return self._record.read_idx(self._record.keys[idx])

    def __len__(self) -> int:
        return len(self._record.keys)


class _DownloadedDataset(Dataset):
    """Base of downloadable data sets: arrays of samples and of labels.

    A subclass defines `_get_data`, which sets `_data` and `_label`.
    """

    def __init__(self, root: str | os.PathLike[str], transform: Callable | None) -> None:
        self._transform = transform
        self._data: Any = None
        self._label: Any = None
        self._root = str(Path(root).expanduser())
        Path(self._root).mkdir(parents=True, exist_ok=True)
        self._get_data()

    def __getitem__(self, idx: Any) -> Any:
        if self._transform is not None:
            return self._transform(self._data[idx], self._label[idx])
        return self._data[idx], self._label[idx]

    def __len__(self) -> int:
        return len(self._label)

    def _get_data(self) -> None:
        raise NotImplementedError

    @property
    def _batch(self) -> Callable[[Sequence[int]], Any] | None:
        if self._transform is not None:
            return None
        return lambda indices: [gathered(self._data, indices), gathered(self._label, indices)]


_DIRECT = (SimpleDataset, ArrayDataset, _SampledDataset, _DownloadedDataset)


def batch_reader(dataset: Any) -> Callable[[Sequence[int]], Any] | None:
    """Return a function from indices to a batch, or None if samples must be read one by one.

    The batch equals that of `default_batchify_fn`.
    """
    if isinstance(dataset, NDArray | np.ndarray):
        return lambda indices: gathered(dataset, indices)
    for kind in _DIRECT:
        # A user's class may override `__getitem__`: read its samples through it.
        if isinstance(dataset, kind) and type(dataset).__getitem__ is kind.__getitem__:
            return dataset._batch
    return None
