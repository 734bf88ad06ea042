"""Iterators around iterators: `ResizeIter` and `PrefetchingIter`."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from ..error import InvalidValue, MXNetError
from .batches import DataBatch, DataDesc, DataIter, described

__all__ = ["PrefetchingIter", "ResizeIter"]


class _WholeBatches(DataIter):
    """An iterator that gets its batches whole: `iter_next` puts them into `current_batch`."""

    current_batch: DataBatch | None = None

    def next(self) -> DataBatch:
        """Return the next batch, or raise StopIteration."""
        if not self.iter_next():
            raise StopIteration
        return self.current_batch

    def getdata(self) -> Any:
        """Return the data of the current batch."""
        return self.current_batch.data

    def getlabel(self) -> Any:
        """Return the labels of the current batch."""
        return self.current_batch.label

    def getindex(self) -> Any:
        """Return where the samples of the current batch come from, if that is known."""
        return self.current_batch.index

    def getpad(self) -> int | None:
        """Return how many samples of the current batch only fill it."""
        return self.current_batch.pad


class ResizeIter(_WholeBatches):
    """Another iterator with `size` batches in each epoch, restarted as often as it takes.

    Parameters
    ----------
    data_iter : DataIter
        The other iterator.
    size : int
        Number of batches in an epoch.
    reset_internal : bool
        Whether `reset` resets the other iterator too.

    >>> short = mx.io.NDArrayIter(np.arange(4), batch_size=2)
    >>> [batch.data[0].asnumpy().tolist() for batch in mx.io.ResizeIter(short, 3)]
    [[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]]
    """

    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True) -> None:
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
        """Begin a new epoch."""
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self) -> bool:
        """Go to the next batch; return whether there is one."""
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
    """Fetches the next batch of one or several iterators while the current one is in use.

    Each iterator has a thread of its own; batches of several are joined to one. An error in a
    thread is raised by `next`, again and again until `reset`.

    Parameters
    ----------
    iters : DataIter or list of DataIter
        An iterator, or a list of iterators.
    rename_data, rename_label : list of dict, optional
        For each iterator, new names by old names.

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
        self.iters = list(iters) if isinstance(iters, list | tuple) else [iters]
        if not self.iters:
            raise InvalidValue("PrefetchingIter needs at least one iterator")
        self.n_iter = len(self.iters)
        self.rename_data = rename_data
        self.rename_label = rename_label
        super().__init__(self.provide_data[0].shape[0])
        self._threads = ThreadPoolExecutor(self.n_iter, "prefetch")
        self._coming: list[Future] = []
        self._fetch()

    @property
    def provide_data(self) -> list[DataDesc]:
        """What all iterators provide as data, under the new names."""
        return _renamed([it.provide_data for it in self.iters], self.rename_data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """What all iterators provide as labels, under the new names."""
        return _renamed([it.provide_label for it in self.iters], self.rename_label)

    def _fetch(self) -> None:
        self._coming = [self._threads.submit(_next_or_none, it) for it in self.iters]

    def reset(self) -> None:
        """Wait for what the threads do now, and reset all iterators."""
        wait(self._coming)
        for it in self.iters:
            it.reset()
        self._fetch()

    def iter_next(self) -> bool:
        """Go to the next batch; return whether there is one."""
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


def _renamed(provided: list[list], names: list[dict[str, str]] | None) -> list[DataDesc]:
    descs = [[described(d) for d in part] for part in provided]
    if names is None:
        return [desc for part in descs for desc in part]
    return [
        DataDesc(new[d.name], d.shape, d.dtype, d.layout)
        for new, part in zip(names, descs, strict=True)
        for d in part
    ]
