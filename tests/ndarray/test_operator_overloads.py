"""Signs between arrays and numbers, where their short way could go wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, nd


def test_in_place_with_an_overlapping_part_of_the_same_memory():
    x = nd.array([1, 2, 3, 4])
    x[0:3] += x[1:4]
    assert x.asnumpy().tolist() == [3, 5, 7, 4]
    part = x[1:3]
    part += x[0:2]
    assert x.asnumpy().tolist() == [3, 8, 12, 4]


def test_in_place_keeps_the_memory_and_the_shape():
    x, y = nd.ones((2, 3)), nd.ones((3,))
    memory = x.handle.data_ptr()
    for _ in range(2):  # the second time the numbers are known
        x += 1
        x *= 2.0
        x -= y
        x /= 2
    assert x.handle.data_ptr() == memory
    np.testing.assert_array_equal(x.asnumpy(), 2)
    with pytest.raises(mx.MXNetError, match="Shape inconsistent"):
        y += x


def test_in_place_inside_record_is_refused():
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = x * 2
        with pytest.raises(mx.MXNetError, match="Assigning to NDArrays"):
            y += 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_a_number_means_the_same_every_time(dtype):
    x = nd.array([1, 2, 3], dtype=dtype)
    for _ in range(3):
        assert (x + 1.5).asnumpy().tolist() == (np.array([1, 2, 3]) + 1.5).astype(dtype).tolist()
        assert (x > 2).asnumpy().tolist() == [0, 0, 1] and (x > 2).dtype == np.dtype(dtype)
        assert (3 - x).asnumpy().tolist() == [2, 1, 0]


def test_the_sign_of_zero():
    x = nd.array([1.0])
    for _ in range(2):
        assert (x / 0).asscalar() == math.inf and (x / -0.0).asscalar() == -math.inf
        assert (x / 0.0).asscalar() == math.inf


def test_comparisons_broadcast():
    x, y = nd.array([[1], [2]]), nd.array([1, 2])
    assert (x == y).asnumpy().tolist() == [[1, 0], [0, 1]]
    assert (x >= x).asnumpy().tolist() == [[1], [1]]


def test_mixed_types_are_refused_whatever_came_before():
    x, y = nd.ones((2,)), nd.ones((2,), dtype="int32")
    assert (x + x).asnumpy().tolist() == [2, 2]
    for _ in range(2):
        with pytest.raises(mx.MXNetError, match=r"expected float32, got int32"):
            x + y
        with pytest.raises(mx.MXNetError, match=r"expected float32, got int32"):
            x += y
