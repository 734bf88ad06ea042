"""Whole arrays that are written while recording keep their gradients, as in MXNet 1.9.1."""

import pytest
from numpy.testing import assert_array_equal

import mxnet as mx
from mxnet import autograd, nd


def gradient(function, make=nd.array):
    x = make([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    return x.grad.asnumpy()


def written(key, make_zeros=nd.zeros, shape=(3,)):
    def write(x):
        y = make_zeros(shape)
        y[key] = x
        return y * y

    return write


@pytest.mark.parametrize("key", [slice(None), Ellipsis, slice(0, 3), ()])
@pytest.mark.parametrize("module", [mx.nd, mx.np], ids=["nd", "np"])
def test_writing_a_whole_array_keeps_gradients(module, key):
    assert_array_equal(gradient(written(key, module.zeros), module.array), [2, 4, 6])


def test_a_written_array_may_broadcast():
    assert_array_equal(gradient(written(slice(None), shape=(2, 3))), [4, 8, 12])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_copyto_keeps_gradients(dtype):
    assert_array_equal(gradient(lambda x: x.copyto(nd.zeros(3, dtype=dtype)) * 2), [2, 2, 2])


def test_array_of_a_recorded_array_keeps_gradients():
    assert_array_equal(gradient(lambda x: nd.array(x, dtype="float64") * 3), [3, 3, 3])
    assert_array_equal(gradient(lambda x: mx.np.array(x) * 3, mx.np.array), [3, 3, 3])


@pytest.mark.parametrize("module", [mx.nd, mx.np], ids=["nd", "np"])
def test_writing_a_recorded_array_into_a_part_is_refused(module):
    with pytest.raises(mx.MXNetError, match="Inplace operations"):
        gradient(written(0, module.zeros, (2, 3)), module.array)


def test_constants_may_be_written_into_parts():
    def write(x):
        y = nd.zeros(3)
        y[:] = 1
        y[1] = x.detach()[1]
        return y * x

    assert_array_equal(gradient(write), [1, 2, 1])


def test_a_written_array_stays_in_place():
    y = nd.zeros(3)
    part = y[1:]
    x = nd.array([1, 2, 3])
    x.attach_grad()
    with autograd.record():
        y[:] = x
    assert_array_equal(part.asnumpy(), [2, 3])


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"shape \(3,\) cannot be written"):
        gradient(written(slice(None), shape=(2, 2)))
