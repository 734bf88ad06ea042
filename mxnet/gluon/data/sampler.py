"""Samplers: the order in which the samples of a data set are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...random import host_order

__all__ = ["BatchSampler", "FilterSampler", "RandomSampler", "Sampler", "SequentialSampler"]


class Sampler:
    """Base of samplers: define `__iter__`, which yields indices, and `__len__`.

    >>> class Backwards(mx.gluon.data.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    ...     def __len__(self):
    ...         return 3
    >>> list(Backwards())
    [2, 1, 0]
    """

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class SequentialSampler(Sampler):
    """Yield ``length`` indices in order, beginning with ``start``.

    Parameters
    ----------
    length
        Number of indices.
    start
        The first index.

    >>> list(mx.gluon.data.SequentialSampler(3, start=2))
    [2, 3, 4]
    """

    def __init__(self, length: int, start: int = 0) -> None:
        self._length = length
        self._start = start

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._start, self._start + self._length))

    def __len__(self) -> int:
        return self._length


class RandomSampler(Sampler):
    """Yield the indices below ``length`` in a new random order each time.

    `mx.random.seed` makes the orders reproducible; so does `numpy.random.seed`, as in MXNet.

    Parameters
    ----------
    length
        Number of indices.

    >>> sorted(mx.gluon.data.RandomSampler(4))
    [0, 1, 2, 3]
    """

    def __init__(self, length: int) -> None:
        self._length = length

    def __iter__(self) -> Iterator[int]:
        return iter(host_order(self._length).tolist())

    def __len__(self) -> int:
        return self._length


class FilterSampler(Sampler):
    """Yield the indices of the samples for which a function is true.

    Parameters
    ----------
    fn
        Function of a sample that returns whether to keep it.
    dataset
        The data set.

    >>> list(mx.gluon.data.FilterSampler(lambda x: x > 4, [3, 5, 1, 7]))
    [1, 3]
    """

    def __init__(self, fn: Callable[[Any], Any], dataset: Any) -> None:
        self._fn = fn
        self._dataset = dataset
        self._indices = [i for i in range(len(dataset)) if fn(dataset[i])]

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


class BatchSampler(Sampler):
    """Yield lists of ``batch_size`` indices of another sampler.

    Parameters
    ----------
    sampler : Sampler
        The sampler whose indices are grouped.
    batch_size : int
        Number of indices in a batch.
    last_batch : {'keep', 'discard', 'rollover'}
        What to do with an incomplete last batch: yield it, drop it, or use its indices in the next
        epoch.

    >>> sampler = mx.gluon.data.SequentialSampler(5)
    >>> list(mx.gluon.data.BatchSampler(sampler, 2, "keep"))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, last_batch: str = "keep") -> None:
        self._sampler = sampler
        self._batch_size = batch_size
        self._last_batch = last_batch
        self._prev: list[Any] = []

    def __iter__(self) -> Iterator[list[Any]]:
        self._check()
        batch, self._prev = self._prev, []
        for index in self._sampler:
            batch.append(index)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if not batch or self._last_batch == "discard":
            return
        if self._last_batch == "keep":
            yield batch
        else:
            self._prev = batch

    def __len__(self) -> int:
        self._check()
        count = len(self._sampler)
        if self._last_batch == "keep":
            return -(-count // self._batch_size)
        if self._last_batch == "discard":
            return count // self._batch_size
        return (len(self._prev) + count) // self._batch_size

    def _check(self) -> None:
        if self._last_batch not in ("keep", "discard", "rollover"):
            raise ValueError(
                "last_batch must be one of 'keep', 'discard', or 'rollover', but got "
                f"{self._last_batch}"
            )
