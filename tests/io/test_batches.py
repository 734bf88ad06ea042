"""DataDesc, DataBatch, DataIter, PrefetchingIter and ResizeIter."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import time

import numpy as np
import pytest

import mxnet as mx
from mxnet.io import DataBatch, DataDesc, DataIter, NDArrayIter, PrefetchingIter, ResizeIter


def test_data_desc_is_a_pair_with_attributes():
    desc = DataDesc("data", (3, 4), "float16", "NHWC")
    assert desc == ("data", (3, 4))
    assert (desc.name, desc.shape, desc.dtype, desc.layout) == ("data", (3, 4), "float16", "NHWC")
    assert repr(desc) == "DataDesc[data,(3, 4),float16,NHWC]"
    assert repr(DataDesc("x", (1,))) == "DataDesc[x,(1,),<class 'numpy.float32'>,NCHW]"


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_data_desc_keep_attributes(again):
    desc = again(DataDesc("data", (3, 4), "float16", "NHWC"))
    assert (desc, desc.dtype, desc.layout) == (("data", (3, 4)), "float16", "NHWC")


def test_data_desc_get_list():
    shapes = [("a", (1, 2)), ("b", (3,))]
    found = DataDesc.get_list(shapes, [("b", np.float16), ("a", "int32")])
    assert [d.dtype for d in found] == ["int32", np.float16]
    assert [d.dtype for d in DataDesc.get_list(shapes, None)] == [np.float32, np.float32]


def test_get_batch_axis_of_layouts():
    found = [DataDesc.get_batch_axis(layout) for layout in (None, "NCHW", "TNC", "CHW")]
    assert found == [0, 0, 1, -1]


def test_str_of_a_batch_lists_shapes():
    batch = DataBatch([mx.nd.ones((2, 3))], [mx.nd.ones((2,))], pad=1)
    assert str(batch) == "DataBatch: data shapes: [(2, 3)] label shapes: [(2,)]"
    alone = DataBatch([mx.nd.ones((2, 3))])
    assert str(alone) == "DataBatch: data shapes: [(2, 3)] label shapes: None"
    assert (batch.pad, batch.index, batch.bucket_key) == (1, None, None)


def test_batch_data_other_than_lists_raises():
    with pytest.raises(TypeError, match="Data must be list of NDArrays"):
        DataBatch(mx.nd.ones((2, 3)))
    with pytest.raises(TypeError, match="Label must be list of NDArrays"):
        DataBatch([], mx.nd.ones((2, 3)))


class Counter(DataIter):
    def __init__(self):
        super().__init__(1)
        self.count = 0

    def iter_next(self):
        self.count += 1
        return self.count < 3

    def getdata(self):
        return [self.count]

    def getlabel(self):
        return [-self.count]

    def getpad(self):
        return 0


def test_custom_data_iter():
    assert [(b.data, b.label, b.pad, b.index) for b in Counter()] == [
        ([1], [-1], 0, None),
        ([2], [-2], 0, None),
    ]


def test_base_data_iter_is_empty():
    assert list(DataIter(4)) == []


def test_module_paths_match_mxnet():
    import mxnet.io.io

    assert mxnet.io.io.NDArrayIter is mx.io.NDArrayIter


class Failing(DataIter):
    """An iterator that returns two batches, then raises."""

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


def test_prefetching_error_is_raised_until_reset():
    it = PrefetchingIter(Failing())
    assert (it.next().pad, it.next().pad) == (0, 0)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="disk on fire"):
            it.next()
    it.reset()
    assert it.next().data[0].shape == (2,)


def test_exhausted_iterators_keep_raising_stop_iteration():
    it = PrefetchingIter(NDArrayIter(np.arange(4), batch_size=2))
    assert len(list(it)) == 2
    for _ in range(3):
        with pytest.raises(StopIteration):
            it.next()
    it.reset()
    assert len(list(it)) == 2


def test_prefetching_iter_reset_within_an_epoch():
    it = PrefetchingIter(NDArrayIter(np.arange(40), batch_size=2))
    for _ in range(20):
        it.next()
        it.reset()
    assert it.next().data[0].asnumpy().tolist() == [0, 1]


def test_prefetching_iterators_of_different_lengths_raises():
    it = PrefetchingIter([NDArrayIter(np.arange(n), batch_size=2) for n in (4, 6)])
    with pytest.raises(mx.MXNetError, match="one ended early"):
        list(it)


def test_prefetching_iterators_with_different_pads_raises():
    it = PrefetchingIter([NDArrayIter(np.arange(n), batch_size=4) for n in (4, 3)])
    with pytest.raises(mx.MXNetError, match="different pads"):
        it.next()


def test_prefetching_no_iterators_raises():
    with pytest.raises(ValueError, match="at least one iterator"):
        PrefetchingIter([])


def test_prefetch_threads_end_with_the_iterator():
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


def test_prefetching_iter_fetches_the_next_batch_ahead():
    fetched = threading.Event()

    class Telling(Failing):
        def next(self):
            if self.count == 1:
                fetched.set()
            return super().next()

    it = PrefetchingIter(Telling())
    it.next()
    assert fetched.wait(5)


def test_resize_iter_of_an_empty_iterator_is_empty():
    empty = NDArrayIter(np.arange(3), batch_size=4, last_batch_handle="discard")
    assert list(ResizeIter(empty, 5)) == []


def test_resize_iter_keeps_the_default_bucket_key():
    inner = NDArrayIter(np.arange(3), batch_size=2)
    inner.default_bucket_key = 7
    assert ResizeIter(inner, 2).default_bucket_key == 7
