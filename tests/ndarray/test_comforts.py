"""Spellings of other frameworks that MXNet lacked."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import ShapeError

nd = mx.nd


def test_one_element_is_formatted_as_a_number():
    assert f"{nd.array([1.23456]):.3f}" == "1.235"
    assert f"{nd.array(7, dtype='int32'):05d}" == "00007"
    assert f"{nd.ones((1,))}" == str(nd.ones((1,)))
    with pytest.raises(TypeError, match="one element"):
        f"{nd.ones((2,)):.3f}"


def test_numbers_of_one_element_are_scalars_of_numpy():
    one = nd.array([4.0]).asnumpy()
    for number in (one.sum(), one.mean(), one.max(), np.sum(one), one.dot(one), np.median(one)):
        assert type(number) is np.float32
        assert hash(number) == hash(float(number))
    assert type(one.argmax()) is np.int64
    assert float(np.sqrt(one)) == float(one / 2) == 2.0
    assert repr(0.5 * one) == "array([2.], dtype=float32)"


def test_products_of_matrices():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose((nd.array(a) @ nd.array(b)).asnumpy(), a @ b)
    np.testing.assert_allclose((nd.array(a) @ nd.array(b[:, 0])).asnumpy(), a @ b[:, 0])
    stack = np.arange(24.0).reshape(2, 3, 4)
    left = nd.array(stack)
    np.testing.assert_allclose(
        (left @ nd.array(stack.transpose(0, 2, 1))).asnumpy(), stack @ stack.transpose(0, 2, 1)
    )
    with pytest.raises(ShapeError, match="@ multiplies matrices"):
        left @ nd.array(b)
    with pytest.raises(TypeError):
        nd.array(a) @ 3


def test_products_have_gradients():
    x = nd.ones((1, 2))
    x.attach_grad()
    with mx.autograd.record():
        y = x @ nd.array([[1.0], [2.0]])
    y.backward()
    assert x.grad.asnumpy().tolist() == [[1, 2]]


def test_numpy_is_asnumpy():
    assert nd.ones((2,)).numpy().tolist() == [1, 1]


def test_an_array_stands_for_its_data_type():
    """Sockeye writes ``output.astype(label)``."""
    assert mx.nd.ones(2).astype(mx.nd.ones(1, dtype="int32")).dtype == np.int32
    assert mx.nd.ones(2).astype(np.ones(1)).dtype == np.float64
