"""Iterators for tests."""

from __future__ import annotations

from typing import Any

from ..io import DataIter, MNISTIter
from .data_files import get_mnist_ubyte


class DummyIter(DataIter):
    """Returns the first batch of another iterator again and again, to measure speed.

    Parameters
    ----------
    real_iter : DataIter
        The other iterator.

    >>> real = mx.io.NDArrayIter(np.arange(4), batch_size=2)
    >>> dummy = mx.test_utils.DummyIter(real)
    >>> dummy.next().data[0].asnumpy()
    array([0., 1.], dtype=float32)
    """

    def __init__(self, real_iter: DataIter) -> None:
        super().__init__()
        self.real_iter = real_iter
        self.provide_data = real_iter.provide_data
        self.provide_label = real_iter.provide_label
        self.batch_size = real_iter.batch_size
        self.the_batch = next(iter(real_iter))

    def __iter__(self) -> DummyIter:
        return self

    def next(self) -> Any:
        """Return the batch."""
        return self.the_batch


def get_mnist_iterator(
    batch_size: int, input_shape: tuple[int, ...], num_parts: int = 1, part_index: int = 0
) -> tuple[DataIter, DataIter]:
    """Return iterators over the training and test images of MNIST, from files in ``data``.

    Parameters
    ----------
    batch_size
        Number of samples in a batch.
    input_shape
        Shape of an image.
    num_parts
        How many parts the samples are divided into.
    part_index
        Which one of the parts to read.

    >>> train, test = mx.test_utils.get_mnist_iterator(100, (784,))  # doctest: +SKIP
    """
    get_mnist_ubyte()
    flat = len(input_shape) != 3
    parts = {"num_parts": num_parts, "part_index": part_index}
    train, test = (
        MNISTIter(
            image=f"data/{name}-images-idx3-ubyte",
            label=f"data/{name}-labels-idx1-ubyte",
            batch_size=batch_size,
            shuffle=name == "train",
            flat=flat,
            **parts,
        )
        for name in ("train", "t10k")
    )
    return train, test
