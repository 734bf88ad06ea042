"""DataDesc, DataBatch and DataIter as programs use them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import mxnet as mx
from mxnet.io import DataBatch, DataDesc, DataIter


def test_a_description_is_a_pair_with_attributes():
    desc = DataDesc("data", (3, 4), "float16", "NHWC")
    assert desc == ("data", (3, 4))
    assert (desc.name, desc.shape, desc.dtype, desc.layout) == ("data", (3, 4), "float16", "NHWC")
    assert repr(desc) == "DataDesc[data,(3, 4),float16,NHWC]"
    assert repr(DataDesc("x", (1,))) == "DataDesc[x,(1,),<class 'numpy.float32'>,NCHW]"


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_keep_the_attributes(again):
    desc = again(DataDesc("data", (3, 4), "float16", "NHWC"))
    assert (desc, desc.dtype, desc.layout) == (("data", (3, 4)), "float16", "NHWC")


def test_descriptions_from_pairs():
    shapes = [("a", (1, 2)), ("b", (3,))]
    found = DataDesc.get_list(shapes, [("b", np.float16), ("a", "int32")])
    assert [d.dtype for d in found] == ["int32", np.float16]
    assert [d.dtype for d in DataDesc.get_list(shapes, None)] == [np.float32, np.float32]


def test_the_batch_axis():
    found = [DataDesc.get_batch_axis(layout) for layout in (None, "NCHW", "TNC", "CHW")]
    assert found == [0, 0, 1, -1]


def test_a_batch_tells_its_shapes():
    batch = DataBatch([mx.nd.ones((2, 3))], [mx.nd.ones((2,))], pad=1)
    assert str(batch) == "DataBatch: data shapes: [(2, 3)] label shapes: [(2,)]"
    alone = DataBatch([mx.nd.ones((2, 3))])
    assert str(alone) == "DataBatch: data shapes: [(2, 3)] label shapes: None"
    assert (batch.pad, batch.index, batch.bucket_key) == (1, None, None)


def test_a_batch_takes_lists_only():
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


def test_an_iterator_of_ones_own():
    assert [(b.data, b.label, b.pad, b.index) for b in Counter()] == [
        ([1], [-1], 0, None),
        ([2], [-2], 0, None),
    ]


def test_the_base_has_no_batches():
    assert list(DataIter(4)) == []


def test_places_as_mxnet():
    import mxnet.io.io

    assert mxnet.io.io.NDArrayIter is mx.io.NDArrayIter
