"""NDArrayIter: names, dtypes, shuffling, axes. Batch order is in the golden tests."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mxnet as mx
import mxnet.io
from mxnet.io import NDArrayIter
from tests.golden import HERE
from tests.golden.record.record_io import MAKERS, describe

X, Y = np.arange(14).reshape(7, 2), np.arange(7)


def labels_of(it, epochs=1):
    found = []
    for _ in range(epochs):
        found.append([int(x) for batch in it for x in batch.label[0].asnumpy()])
        it.reset()
    return found


def test_data_and_label_names():
    def names(data, label):
        it = NDArrayIter(data, label, 3)
        return [d.name for d in it.provide_data], [d.name for d in it.provide_label]

    assert names(X, Y) == names([X], [Y]) == (["data"], ["softmax_label"])
    assert names([X, X], None) == (["_0_data", "_1_data"], [])
    assert names({"b": X, "a": X}, {"l": Y}) == (["a", "b"], ["l"])


def test_numpy_data_becomes_float32_and_ndarrays_keep_dtype():
    assert NDArrayIter(X.astype("int64"), batch_size=3).provide_data[0].dtype == np.float32
    for dtype in (np.float64, np.uint8, np.float16):
        it = NDArrayIter(mx.nd.array(X, dtype=dtype), batch_size=3)
        assert it.provide_data[0].dtype == it.next().data[0].dtype == dtype


def test_iterator_without_labels():
    assert [batch.label for batch in NDArrayIter(X, batch_size=4)] == [[], []]


def test_changing_a_batch_does_not_change_the_data():
    it = NDArrayIter(X, Y, 3)
    it.next().data[0][:] = 99
    it.reset()
    assert it.next().data[0].asnumpy()[0, 0] == 0


def test_shuffling_keeps_data_and_labels_together():
    it = NDArrayIter(X, Y, 7, shuffle=True)
    for _ in range(3):
        batch = it.next()
        assert (batch.data[0].asnumpy()[:, 0] == 2 * batch.label[0].asnumpy()).all()
        assert sorted(batch.label[0].asnumpy()) == list(range(7))
        assert (it.label[0][1].asnumpy() == batch.label[0].asnumpy()).all()
        assert sorted(it.idx) == list(range(7))
        it.reset()


def test_shuffling_is_reproducible_with_a_seed():
    def order():
        mx.random.seed(3)
        return labels_of(NDArrayIter(X, Y, 7, shuffle=True), 3)

    first = order()
    assert first == order()
    assert first[0] != first[1]


def test_shuffled_samples_roll_over_unchanged():
    it = NDArrayIter(X, Y, 3, shuffle=True, last_batch_handle="roll_over")
    (seen,) = labels_of(it)
    batch = it.next()
    assert batch.pad == 1
    assert {*seen, int(batch.label[0].asnumpy()[0])} == set(range(7))


def test_hard_reset_drops_samples_to_roll_over():
    it = NDArrayIter(X, Y, 3, last_batch_handle="roll_over")
    labels_of(it)
    it.hard_reset()
    assert it.next().label[0].asnumpy().tolist() == [0, 1, 2]


def test_roll_over_with_a_batch_larger_than_the_data():
    it = NDArrayIter(X, Y, 16, last_batch_handle="roll_over")
    assert labels_of(it, 2)[1] == [*range(7), *range(7), 0, 1]


def test_samples_along_the_batch_axis_of_the_layout():
    data = np.arange(4 * 5).reshape(4, 5)
    it = NDArrayIter(data, Y[:5], 2, layout="TN")
    assert [d.shape for d in it.provide_data + it.provide_label] == [(4, 2), (2,)]
    last = list(it)[-1]
    assert last.data[0].asnumpy().tolist() == data[:, [4, 0]].tolist()
    assert (last.label[0].asnumpy().tolist(), last.pad) == ([4, 0], 1)
    shuffled = NDArrayIter(data, Y[:5], 5, layout="TN", shuffle=True).next()
    assert (shuffled.data[0].asnumpy()[0] == shuffled.label[0].asnumpy()).all()


def test_csr_data_requires_discard():
    csr = mx.nd.array(X).tostype("csr")
    it = NDArrayIter(csr, Y, 3, last_batch_handle="discard")
    assert [b.data[0].asnumpy().tolist() for b in it] == [X[:3].tolist(), X[3:6].tolist()]
    shuffled = NDArrayIter(csr, Y, 7, shuffle=True, last_batch_handle="discard").next()
    assert (shuffled.data[0].asnumpy() == X[shuffled.label[0].asnumpy().astype(int)]).all()
    with pytest.raises(NotImplementedError, match="set to `discard`"):
        NDArrayIter(csr, Y, 3)


def test_iter_next_getlabel_and_getpad():
    it, found = NDArrayIter(X, Y, 3), []
    while it.iter_next():
        found.append((it.getlabel()[0].asnumpy().tolist(), it.getpad(), it.cursor))
    assert found == [([0, 1, 2], 0, 0), ([3, 4, 5], 0, 3), ([6, 0, 1], 2, 6)]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: NDArrayIter("text"), TypeError, "Input must be NDArray"),
        (lambda: NDArrayIter(["text"]), TypeError, "Invalid type"),
        (lambda: NDArrayIter([]), ValueError, "at least one data array"),
        (lambda: NDArrayIter(X, Y[:5]), ValueError, "'data': 7, 'softmax_label': 5"),
        (lambda: NDArrayIter(X, Y, 0), ValueError, "at least 1"),
        (lambda: NDArrayIter(X, Y, 2, last_batch_handle="keep"), ValueError, "got 'keep'"),
        (lambda: NDArrayIter(X, Y, 2).getdata(), mx.MXNetError, "no current batch"),
    ],
)
def test_invalid_arguments_of_array_iterators_raise(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_extra_samples_of_later_arrays_are_ignored_with_a_warning():
    with pytest.warns(UserWarning, match="first 3 samples"):
        batches = NDArrayIter(np.arange(3), np.arange(5), 2)
    found = [(b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist()) for b in batches]
    assert found == [([0, 1], [0, 1]), ([2, 0], [2, 0])]
    csr = mx.nd.array(np.eye(5)).tostype("csr")
    with pytest.warns(UserWarning, match="first 4 samples"):
        batches = NDArrayIter(np.ones(4), csr, 2, last_batch_handle="discard")
    assert batches.label[0][1].stype == "csr" and batches.label[0][1].shape == (4, 5)


def test_fewer_samples_than_in_the_first_array_raise():
    with pytest.raises(mx.MXNetError, match="as many samples as the first one, 4"):
        NDArrayIter(np.ones(4), np.ones(3), 2)


def test_more_than_ten_arrays_are_sorted_by_name():
    it = NDArrayIter([np.full(2, n) for n in range(12)], batch_size=2)
    order = [0, 10, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [d.name for d in it.provide_data] == sorted(f"_{n}_data" for n in range(12))
    assert [int(x.asnumpy()[0]) for x in it.next().data] == order


def test_iter_next_includes_the_batch_that_next_discards():
    it = NDArrayIter(Y, batch_size=3, last_batch_handle="discard")
    seen = []
    while it.iter_next():
        seen.append(it.getdata()[0].asnumpy().tolist())
    assert seen == [[0, 1, 2], [3, 4, 5], [6]]
    it.reset()
    assert len(list(it)) == 2


def test_getdata_before_the_first_batch_raises():
    it = NDArrayIter(Y, batch_size=3)
    assert it.getlabel() == []
    with pytest.raises(AssertionError, match="no current batch"):
        it.getdata()


@pytest.mark.parametrize("handle", ["pad", "discard", "roll_over"])
def test_empty_arrays_yield_no_batches(handle):
    assert not list(NDArrayIter(np.zeros((0, 2)), batch_size=2, last_batch_handle=handle))


ITERATORS = HERE / "iterators.json"
ROWS = json.loads(ITERATORS.read_text())


@pytest.mark.parametrize(
    ("maker", "arguments", "provided", "epochs"),
    ROWS,
    ids=[f"{i}-{row[0]}" for i, row in enumerate(ROWS)],
)
def test_batches_match_mxnet(maker, arguments, provided, epochs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = describe(MAKERS[maker](mxnet.io, **arguments))
    assert found == [provided, epochs]
