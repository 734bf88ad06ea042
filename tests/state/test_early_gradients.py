"""Gradients written during backward do not affect the rest of backward."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import mxnet as mx
from mxnet import autograd, nd
from mxnet._process.memory import untouched_zeros
from mxnet.runtime.gradients import MIN_LARGE
from mxnet.torch_private import has_one_owner

SIZES = [2, 2 * MIN_LARGE, 2**20]  # written together, immediately, in separate pages


def leaves(size, *values):
    """Return arrays whose gradients are filled with 7."""
    arrays = [nd.full((size,), value) for value in values]
    for array in arrays:
        array.attach_grad()
        array.grad[:] = 7
    return arrays


def assert_all(array, value):
    assert_array_equal(array.asnumpy(), np.full(array.shape, value, "float32"))


@pytest.mark.parametrize("is_view", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_head_gradient_can_be_a_gradient_array(size, is_view):
    x, w = leaves(size, 2, 3)
    with autograd.record():
        y = (x * 5 + 1) * w  # the gradient of w is written first, over its head gradient
    y.backward(w.grad.reshape((1, -1)) if is_view else w.grad)
    assert_all(w.grad, 7 * 11)
    assert_all(x.grad, 7 * 3 * 5)


@pytest.mark.parametrize("size", SIZES)
def test_gradient_array_as_an_operand(size):
    x, w = leaves(size, 2, 3)
    with autograd.record():
        y = (x * w.grad) * w
    y.backward()
    assert_all(w.grad, 2 * 7)
    assert_all(x.grad, 7 * 3)


@pytest.mark.parametrize("size", SIZES)
def test_views_of_gradients_show_the_new_values(size):
    x, w = leaves(size, 2, 3)
    views = [x.grad[1:], w.grad.reshape((2, -1)), w.grad.detach()]
    with autograd.record():
        y = x * w
    y.backward()
    for view, value in zip(views, (3, 2, 2), strict=True):
        assert_all(view, value)


@pytest.mark.parametrize("size", SIZES)
def test_grad_req_add_adds_each_gradient_once(size):
    x = nd.full((size,), 2)
    x.attach_grad(grad_req="add")
    for _ in range(3):
        with autograd.record():
            y = x * 3 + x * x
        y.backward()
    assert_all(x.grad, 3 * 7)


class Seen(autograd.Function):
    """Passes values and gradients through, and records other gradients during backward."""

    def __init__(self, *arrays):
        super().__init__()
        self.arrays, self.seen = arrays, []

    def forward(self, x):
        return x * 1

    def backward(self, dy):
        self.seen = [array.grad[0].asscalar() for array in self.arrays]
        return dy


@pytest.mark.parametrize("size", SIZES)
def test_custom_functions_can_read_gradients_during_backward(size):
    x, v, w = leaves(size, 1, 5, 3)
    function = Seen(w, v)
    with autograd.record():
        y = function(x * v) * w
    y.backward()
    assert function.seen == [5, 7]  # as in MXNet 1.9.1 with its NaiveEngine


class SeenInOperator(mx.operator.CustomOp):
    """The same as an operator."""

    watched: tuple = ()
    seen: tuple = ()

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        SeenInOperator.seen = [array.grad[0].asscalar() for array in SeenInOperator.watched]
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("seen_in_operator")
class SeenProp(mx.operator.CustomOpProp):
    """Makes the operator."""

    def create_operator(self, ctx, shapes, dtypes):
        return SeenInOperator()


@pytest.mark.parametrize("size", SIZES)
def test_custom_operators_can_read_gradients_during_backward(size):
    x, v, w = leaves(size, 1, 5, 3)
    SeenInOperator.watched = (w, v)
    with autograd.record():
        y = nd.Custom(x * v, op_type="seen_in_operator") * w
    y.backward()
    assert SeenInOperator.seen == [5, 7]


def test_untouched_zeros_have_one_owner():
    assert has_one_owner(untouched_zeros((2, 2**19), torch.float32))
