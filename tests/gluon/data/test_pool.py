"""Loaders of one's own, built as MXNet's is: on a pool, by way of `_MultiWorkerIter`."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.data import DataLoader
from mxnet.gluon.data.dataloader import (
    _MultiWorkerIter,
    _worker_fn,
    _worker_initializer,
    default_batchify_fn,
    default_mp_batchify_fn,
)

SAMPLER = [[0, 1], [2, 3], [4]]


def scaled_batch(indices, scale, batchify_fn):
    return pickle.dumps(batchify_fn([index * scale for index in indices]))


class Growing(_MultiWorkerIter):
    """Every batch has a scale of its own: what a subclass can do by its own `_push_next`."""

    def __init__(self, pool, prefetch, **kwargs):
        super().__init__(pool, list, SAMPLER, worker_fn=scaled_batch, **kwargs)
        self._scale = 1
        for _ in range(prefetch):
            self._push_next()

    def _push_next(self):
        indices = next(self._iter, None)
        if indices is None:
            return
        self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(
            self._worker_fn, (indices, self._scale, self._batchify_fn)
        )
        self._sent_idx += 1
        self._scale *= 10


@pytest.mark.parametrize("prefetch", [0, 2, 9])
def test_a_subclass_decides_what_workers_get(prefetch):
    with ThreadPool(2) as pool:
        batches = Growing(pool, prefetch)
        assert len(batches) == 3
        assert iter(batches) is batches
        assert batches.next() == [0, 1]
        assert list(batches) == [[20, 30], [400]]


def test_what_is_made_ahead():
    with ThreadPool(1) as pool:
        batches = Growing(pool, 2)
        assert (batches._rcvd_idx, batches._sent_idx) == (0, 2)
        next(batches)
        assert (batches._rcvd_idx, batches._sent_idx) == (1, 3)
        assert sorted(batches._data_buffer) == [1, 2]


def test_with_a_data_set_answers_come_as_they_are():
    def read(indices, batchify_fn, dataset):
        return batchify_fn([dataset[index] for index in indices])

    with ThreadPool(2) as pool:
        batches = _MultiWorkerIter(pool, list, SAMPLER, worker_fn=read, dataset="abcde", prefetch=1)
        assert list(batches) == [["a", "b"], ["c", "d"], ["e"]]


def test_pinned_batches():
    def read(indices, batchify_fn, dataset):
        return (batchify_fn(indices), "name")

    with ThreadPool(1) as pool:
        batches = _MultiWorkerIter(
            pool, mx.nd.array, SAMPLER, pin_memory=True, worker_fn=read, dataset=()
        )
        array, name = next(batches)
        assert array.context == mx.cpu_pinned(0)
        assert name == "name"


def test_a_worker_that_is_too_slow():
    class Never:
        def get(self, timeout):
            assert timeout == 7
            raise multiprocessing.TimeoutError

    class Pool:
        def apply_async(self, function, arguments):
            return Never()

    with pytest.raises(multiprocessing.TimeoutError):
        next(_MultiWorkerIter(Pool(), list, SAMPLER, timeout=7))


@pytest.mark.skipif(os.name != "posix", reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_send_arrays():
    data = np.arange(15, dtype="float32").reshape(5, 3)
    context = multiprocessing.get_context("fork")
    with context.Pool(2, initializer=_worker_initializer, initargs=(data, False, False)) as pool:
        batches = _MultiWorkerIter(pool, default_mp_batchify_fn, SAMPLER, prefetch=2)
        arrays = list(batches)
    assert all(type(array) is mx.nd.NDArray for array in arrays)
    np.testing.assert_array_equal(np.concatenate([a.asnumpy() for a in arrays]), data)
    assert _worker_fn.__module__.startswith("mxnet.")


def test_a_loader_tells_its_subclasses_how_to_pin():
    loader = DataLoader([1, 2], 1, pin_memory=True, pin_device_id=0)
    assert loader._pin_memory
    assert loader._pin_device_id == 0
    assert next(iter(loader)).context == mx.cpu_pinned(0)
    assert not DataLoader([1, 2], 1)._pin_memory
    assert loader._batchify_fn is default_batchify_fn
