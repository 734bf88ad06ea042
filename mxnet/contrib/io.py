"""`DataLoaderIter`: a Gluon DataLoader as a DataIter for Module."""

from __future__ import annotations

from typing import Any

from .. import ndarray as nd
from ..io import DataDesc, DataIter

__all__ = ["DataLoaderIter"]


class DataLoaderIter(DataIter):
    """Iterates over the batches of a DataLoader of pairs (data, label).

    An incomplete last batch is padded with zeros; `pad` is their number.

    Parameters
    ----------
    loader : gluon.data.DataLoader
        The loader.
    data_name, label_name : str
        The names of the network's inputs.
    dtype : str
        Data type of data and labels.

    >>> pairs = mx.gluon.data.ArrayDataset(mx.nd.ones((3, 4)), mx.nd.arange(3))
    >>> it = mx.contrib.io.DataLoaderIter(mx.gluon.data.DataLoader(pairs, batch_size=2))
    >>> [(batch.data[0].shape, batch.pad) for batch in it]
    [((2, 4), 0), ((2, 4), 1)]
    """

    def __init__(
        self,
        loader: Any,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self._loader = loader
        self.dtype = dtype
        # One batch is prefetched for its shapes.
        data, label = next(iter(loader))
        self.batch_size = data.shape[0]
        self.provide_data = [DataDesc(data_name, data.shape, dtype)]
        self.provide_label = [DataDesc(label_name, label.shape, dtype)]
        self.reset()

    def reset(self) -> None:
        """Start again at the first batch."""
        self._iter = iter(self._loader)
        self._current_batch: Any = None

    def iter_next(self) -> bool:
        """Go to the next batch; return whether there is one."""
        self._current_batch = next(self._iter, None)
        return self._current_batch is not None

    def _pad_batch(self, which: int) -> list[Any]:
        if self._current_batch is None:
            raise ValueError("DataLoaderIter: there is no batch; call next() or reset() first.")
        array = self._current_batch[which].astype(self.dtype)
        if not self.getpad():
            return [array]
        whole = nd.zeros((self.batch_size, *array.shape[1:]), dtype=self.dtype, ctx=array.context)
        whole[: array.shape[0]] = array
        return [whole]

    def getdata(self) -> list[Any]:
        """Return the data of the batch."""
        return self._pad_batch(0)

    def getlabel(self) -> list[Any]:
        """Return the labels of the batch."""
        return self._pad_batch(1)

    def getpad(self) -> int:
        """Return the number of padding samples in the batch."""
        return self.batch_size - self._current_batch[0].shape[0]

    def getindex(self) -> None:
        """Return None: a DataLoader does not report which samples it took."""
