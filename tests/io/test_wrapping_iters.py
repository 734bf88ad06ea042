"""ResizeIter and PrefetchingIter: errors pass, nothing hangs."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest

import mxnet as mx
from mxnet.io import DataBatch, DataDesc, DataIter, NDArrayIter, PrefetchingIter, ResizeIter


class Failing(DataIter):
    """Gives two batches, then an error."""

    provide_data = (DataDesc("data", (2,)),)
    provide_label = ()

    def __init__(self):
        super().__init__(2)
        self.count = 0

    def reset(self):
        self.count = 0

    def next(self):
        self.count += 1
        if self.count > 2:
            raise RuntimeError("disk on fire")
        return DataBatch([mx.nd.ones((2,))], [], 0)


def test_an_error_in_a_thread_is_raised_until_reset():
    it = PrefetchingIter(Failing())
    assert (it.next().pad, it.next().pad) == (0, 0)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="disk on fire"):
            it.next()
    it.reset()
    assert it.next().data[0].shape == (2,)


def test_after_the_end_it_stays_ended():
    it = PrefetchingIter(NDArrayIter(np.arange(4), batch_size=2))
    assert len(list(it)) == 2
    for _ in range(3):
        with pytest.raises(StopIteration):
            it.next()
    it.reset()
    assert len(list(it)) == 2


def test_reset_in_the_middle():
    it = PrefetchingIter(NDArrayIter(np.arange(40), batch_size=2))
    for _ in range(20):
        it.next()
        it.reset()
    assert it.next().data[0].asnumpy().tolist() == [0, 1]


def test_iterators_of_different_lengths_are_refused():
    it = PrefetchingIter([NDArrayIter(np.arange(n), batch_size=2) for n in (4, 6)])
    with pytest.raises(mx.MXNetError, match="one ended early"):
        list(it)


def test_iterators_with_different_pads_are_refused():
    it = PrefetchingIter([NDArrayIter(np.arange(n), batch_size=4) for n in (4, 3)])
    with pytest.raises(mx.MXNetError, match="different pads"):
        it.next()


def test_no_iterator_is_refused():
    with pytest.raises(ValueError, match="at least one iterator"):
        PrefetchingIter([])


def test_threads_end_with_the_iterator():
    def prefetching():
        return [t for t in threading.enumerate() if t.name.startswith("prefetch")]

    gc.collect()
    before = len(prefetching())
    its = [PrefetchingIter(NDArrayIter(np.arange(4), batch_size=2)) for _ in range(5)]
    assert len(prefetching()) > before
    del its
    gc.collect()
    until = time.monotonic() + 5
    while len(prefetching()) > before and time.monotonic() < until:
        time.sleep(0.01)
    assert len(prefetching()) <= before


def test_the_next_batch_is_fetched_meanwhile():
    fetched = threading.Event()

    class Telling(Failing):
        def next(self):
            if self.count == 1:
                fetched.set()
            return super().next()

    it = PrefetchingIter(Telling())
    it.next()
    assert fetched.wait(5)


def test_resize_of_an_empty_iterator_ends():
    empty = NDArrayIter(np.arange(3), batch_size=4, last_batch_handle="discard")
    assert list(ResizeIter(empty, 5)) == []


def test_resize_keeps_the_bucket_key():
    inner = NDArrayIter(np.arange(3), batch_size=2)
    inner.default_bucket_key = 7
    assert ResizeIter(inner, 2).default_bucket_key == 7
