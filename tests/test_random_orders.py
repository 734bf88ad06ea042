"""Shuffles under the seeds of NumPy and Python: orders recorded from MXNet 1.9.1."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mxnet as mx
from tests.conftest import UNSEEDED

DATA = mx.gluon.data


@pytest.fixture(autouse=True)
def seeds() -> None:
    """Seed what MXNet's own shuffles draw from."""
    np.random.seed(0)  # noqa: NPY002 (the seed that programs call)
    random.seed(0)


def test_samplers_and_loaders() -> None:
    """Each epoch has the order that MXNet gives it."""
    sampler = DATA.RandomSampler(6)
    assert [list(sampler) for _ in range(2)] == [[5, 2, 1, 3, 0, 4], [1, 3, 4, 0, 2, 5]]
    np.random.seed(0)  # noqa: NPY002
    loader = DATA.DataLoader(DATA.ArrayDataset(np.arange(6)), 6, shuffle=True)
    assert next(iter(loader)).asnumpy().tolist() == [5, 2, 1, 3, 0, 4]


def test_array_iterators() -> None:
    """A reset shuffles what is shuffled already, by the product of all orders so far."""
    data = mx.io.NDArrayIter(np.arange(7), np.arange(7), 7, shuffle=True)
    epochs = []
    for _ in range(3):
        epochs.append(data.next().label[0].asnumpy().astype(int).tolist())
        data.reset()
    first, second, third = [6, 2, 1, 3, 0, 5, 4], [1, 4, 0, 3, 6, 2, 5], [2, 3, 4, 5, 6, 1, 0]
    assert epochs == [first, second, third]


def test_sentences_in_buckets() -> None:
    """The order of batches is Python's, that of sentences NumPy's."""
    lines = [[i, i + 1] for i in range(6)] + [[i] * 4 for i in range(6)]
    data = mx.rnn.BucketSentenceIter(lines, 2, buckets=[2, 4])
    batches = [b.data[0].asnumpy()[:, 0].astype(int).tolist() for b in data]
    assert batches == [[4, 0], [0, 4], [1, 3], [5, 2], [2, 5], [1, 3]]


def test_augmenters() -> None:
    """Draws of `mx.image` are those of MXNet, number by number."""
    picture = mx.nd.arange(30 * 40 * 3).reshape((30, 40, 3))
    corners = [mx.image.random_crop(picture, (20, 20))[1][:2] for _ in range(3)]
    assert corners == [(12, 6), (1, 4), (16, 7)]
    flip = mx.image.HorizontalFlipAug(0.5)
    assert [flip(picture)[0, 0, 0].asscalar() for _ in range(6)] == [117, 0, 117, 117, 0, 0]


def test_numpy_goes_on_where_it_does_in_mxnet() -> None:
    """What the program draws after a shuffle is the same, too."""
    list(DATA.RandomSampler(5))
    assert np.random.randint(1000) == 835  # noqa: NPY002


def test_without_these_seeds_ours_counts() -> None:
    """`mx.random.seed` alone repeats the orders."""
    np.random.set_bit_generator(np.random.MT19937())
    orders = []
    for _ in range(2):
        mx.random.seed(5)
        orders.append(list(DATA.RandomSampler(20)))
    assert orders[0] == orders[1]


def test_programs_that_seed_numpy_alone_repeat_under_our_seed() -> None:
    """In MXNet they do not repeat at all: Python's stream is another in each run."""
    random.setstate(UNSEEDED)
    lines = [[i, i + 1] for i in range(40)]
    epochs = []
    for _ in range(2):
        mx.random.seed(3)
        np.random.seed(3)  # noqa: NPY002
        data = mx.rnn.BucketSentenceIter(lines, 2, buckets=[2])
        draws = [mx.image.random_crop(mx.nd.ones((30, 30, 3)), (9, 9))[1] for _ in range(3)]
        epochs.append((data.idx, draws))
    assert epochs[0] == epochs[1]


def test_the_last_batch_of_pictures_is_filled_in_the_order_of_its_epoch(tmp_path) -> None:
    """`reset` alone shuffles, so that filling does not change the epochs that follow."""
    files = {"path_imgidx": str(tmp_path / "a.idx"), "path_imgrec": str(tmp_path / "a.rec")}
    with mx.recordio.MXIndexedRecordIO(*files.values(), "w") as file:
        for number in range(5):
            header = mx.recordio.IRHeader(0, float(number), number, 0)
            pixels = np.full((16, 16, 3), number, np.uint8)
            file.write_idx(number, mx.recordio.pack_img(header, pixels, 3, ".png"))
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    batches = mx.image.ImageIter(2, (3, 16, 16), shuffle=True, **files)
    epochs = []
    for _ in range(3):
        epochs.append([b.label[0].asnumpy().astype(int).tolist() for b in batches])
        batches.reset()
    assert epochs == [
        [[0, 1], [3, 2], [4, 0]],
        [[3, 2], [1, 0], [4, 3]],
        [[1, 0], [4, 2], [3, 1]],
    ]
