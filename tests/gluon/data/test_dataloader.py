"""Loaders without trouble: whole batches at once, pinned memory, batchify functions, samplers."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.data import ArrayDataset, DataLoader, Dataset, SimpleDataset, batchify
from mxnet.gluon.data.dataloader import ForkingPickler, _as_in_context
from mxnet.gluon.data.dataset import batch_reader


def content(loader):
    return [[part.asnumpy().tolist() for part in batch] for batch in loader]


def test_batches_at_once_are_those_of_single_samples():
    arrays = ArrayDataset(
        mx.nd.random.uniform(shape=(7, 2, 3)),
        np.arange(7, dtype="int32"),
        mx.nd.arange(7),
        [np.float32(i) for i in range(7)],
    )
    one_by_one = arrays.transform(lambda *parts: parts)
    assert batch_reader(arrays) is not None
    assert batch_reader(one_by_one) is None
    for size in (1, 3, 7):
        for order in ([6, 0, 3, -1, -7], [2]):
            ours = DataLoader(arrays, size, sampler=order)
            theirs = DataLoader(one_by_one, size, sampler=order)
            assert content(ours) == content(theirs)
            for a, b in zip(ours, theirs, strict=True):
                assert [x.dtype for x in a] == [x.dtype for x in b]
                assert [x.shape for x in a] == [x.shape for x in b]


def test_a_batch_does_not_share_memory_with_the_data():
    data, numbers = mx.nd.ones((4, 2)), np.ones((4, 2))
    for x, y in DataLoader(ArrayDataset(data, numbers), 2):
        x[:] = 5
        y[:] = 5
    assert (data.asnumpy() == 1).all()
    assert (numbers == 1).all()


def test_a_class_of_ones_own_is_asked_for_its_samples():
    class Doubled(ArrayDataset):
        def __getitem__(self, index):
            return super().__getitem__(index) * 2

    assert next(iter(DataLoader(Doubled(np.arange(3)), 3))).asnumpy().tolist() == [0, 2, 4]
    taken = Doubled(np.arange(3)).take(2)
    assert next(iter(DataLoader(taken, 3))).asnumpy().tolist() == [0, 2]


def test_shuffling_repeats_under_a_seed():
    orders = []
    for seed in (5, 5, 6):
        mx.random.seed(seed)
        loader = DataLoader(np.arange(50), 50, shuffle=True)
        orders.append([next(iter(loader)).asnumpy().tolist() for _ in range(2)])
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[0][0] != orders[0][1]
    assert sorted(orders[0][0]) == list(range(50))


def test_rollover_goes_on_in_the_next_epoch():
    loader = DataLoader(list(range(5)), 2, last_batch="rollover")
    epochs = [[b.asnumpy().tolist() for b in loader] for _ in range(2)]
    assert epochs == [[[0, 1], [2, 3]], [[4, 0], [1, 2], [3, 4]]]


def test_nothing_is_made_before_it_is_asked_for():
    asked = []

    class Watched(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            asked.append(index)
            return index

    got = iter(DataLoader(Watched(), 2))
    assert asked == []
    next(got)
    assert asked == [0, 1]


def test_pinned_memory_is_where_it_says():
    x, y = next(iter(DataLoader(ArrayDataset(np.ones((2, 2)), [1, 2]), 2, pin_memory=True)))
    assert x.context == y.context == mx.cpu_pinned(0)


@pytest.mark.parametrize("ctx", [mx.cpu(1), mx.cpu_pinned(0)], ids=str)
def test_arrays_of_a_batch_move_to_another_context(ctx):
    first, second = _as_in_context((mx.nd.ones(2), [mx.nd.ones(3), "text"]), ctx)
    assert first.context == second[0].context == ctx
    assert second[1] == "text"
    assert isinstance(_as_in_context((1, 2), ctx), list)


def test_pickler_of_loaders_takes_arrays():
    text = io.BytesIO()
    ForkingPickler(text, pickle.HIGHEST_PROTOCOL).dump([mx.nd.array([1, 2]), "x"])
    array, word = pickle.loads(text.getvalue())
    assert (array.asnumpy().tolist(), word) == ([1, 2], "x")


def test_pools_are_there_with_mxnet():
    asked = "import multiprocessing, mxnet; print(multiprocessing.pool.Pool.__name__)"
    command = [sys.executable, "-c", asked]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.stdout == "Pool\n", finished.stderr


def test_errors_say_what_to_do():
    with pytest.raises(mx.MXNetError, match="Pad"):
        next(iter(DataLoader([mx.nd.ones((2,)), mx.nd.ones((3,))], 2)))
    with pytest.raises(ValueError, match="Pad"):
        next(iter(DataLoader([[1], [1, 2]], 2)))
    with pytest.raises(TypeError, match="batchify_fn"):
        next(iter(DataLoader(["a", "b"], 2)))
    with pytest.raises(ValueError, match="at least 1"):
        DataLoader([1], 0)


@pytest.mark.parametrize("threads", [False, True])
def test_workers_give_the_same_batches(threads):
    data = ArrayDataset(mx.nd.random.uniform(shape=(11, 200, 100)), np.arange(11))
    here = content(DataLoader(data, 4))
    ahead = DataLoader(data, 4, num_workers=2, thread_pool=threads)
    assert len(ahead) == 3
    assert content(ahead) == here
    assert content(ahead) == here


def test_a_network_takes_batches_of_workers():
    net = mx.gluon.nn.Dense(2)
    net.initialize()
    for hybrid in (False, True):
        net.hybridize(hybrid)
        for batch in DataLoader(mx.nd.ones((4, 3)), 2, num_workers=1):
            assert net(batch).shape == (2, 2)


# -- batchify -------------------------------------------------------------------------------------


def test_pad_fills_to_the_longest():
    samples = [mx.nd.ones((2, 3)), np.ones((4, 3), "float32"), [[1, 1, 1]]]
    batch = batchify.Pad(val=-1)(samples)
    assert batch.shape == (3, 4, 3)
    assert (batch.asnumpy() == 1).sum() == 3 * (2 + 4 + 1)
    assert batchify.Pad(axis=-1, round_to=8)([[[1, 2]], [[3, 4]]]).shape == (2, 1, 8)
    assert batchify.Pad(dtype="float16")([[1]]).dtype is np.float16
    with pytest.raises(mx.MXNetError, match="only that axis"):
        batchify.Pad()([np.ones((2, 3)), np.ones((2, 4))])


def test_group_in_a_loader():
    data = SimpleDataset([([1] * n, n, str(n)) for n in (1, 3, 2, 5)])
    group = batchify.Group(batchify.Pad(), batchify.Stack(), batchify.AsList())
    got = list(DataLoader(data, 2, batchify_fn=group, num_workers=1))
    assert [tokens.shape for tokens, _, _ in got] == [(2, 3), (2, 5)]
    assert got[1][1].asnumpy().tolist() == [2, 5]
    assert got[1][2] == ["2", "5"]
    with pytest.raises(ValueError, match="2 functions"):
        batchify.Group(list, list)([(1, 2, 3)])
    with pytest.raises(ValueError, match="takes functions"):
        batchify.Group(3)


def test_append_keeps_samples_apart():
    got = batchify.Append(batch_axis=1)([[1, 2, 3], mx.nd.ones((2,))])
    assert [a.shape for a in got] == [(3, 1), (2, 1)]
    assert batchify.Append(expand=False)([[1, 2, 3]])[0].shape == (3,)


@pytest.mark.parametrize("values", [np.arange(3.0), np.arange(6.0).reshape(3, 2)])
def test_batches_do_not_share_memory_with_what_they_are_made_of(values):
    for make_batch in (batchify.Stack(), mx.gluon.data.dataloader.default_batchify_fn):
        batch = make_batch(values)
        before = batch.asnumpy()
        values += 1
        np.testing.assert_array_equal(batch.asnumpy(), before)
        batch[:] = -1
        assert values.min() >= 0
