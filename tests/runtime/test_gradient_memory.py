"""Gradients, head gradients and outputs do not share memory; views stay valid."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, nd
from tests.arrays import backward, bound, check, leaf, ones

# Ways in which gradients reach a leaf through torch's views: leaf shape, recorded function.
VIEWS = {
    "reshape": ((4,), lambda x: x.reshape((2, 2)) + 1),
    "reshape operator": ((4,), lambda x: nd.reshape(x, shape=(2, 2)) + 1),
    "reshape alone": ((4,), lambda x: x.reshape((2, 2))),
    "expand_dims": ((2, 2), lambda x: nd.expand_dims(x, axis=0)),
    "squeeze": ((1, 2, 2), lambda x: nd.squeeze(x, axis=0)),
    "stack": ((2, 2), lambda x: nd.stack(x, axis=0)),
    "reshape_like": ((4,), lambda x: nd.reshape_like(x, nd.zeros((2, 2)))),
    "transpose": ((1, 4), lambda x: nd.transpose(x)),
    "flatten": ((2, 1, 2), lambda x: nd.flatten(x)),
    "identity": ((2, 2), lambda x: nd.identity(x)),
    "plus": ((2, 2), lambda x: x + 1),
    "concat": ((2, 2), lambda x: nd.concat(x, dim=0)),
    "swapaxes": ((1, 4), lambda x: nd.swapaxes(x, 0, 1)),
    "broadcast_to": ((2, 2), lambda x: nd.broadcast_to(x, shape=(2, 2))),
    "slice": ((2, 2), lambda x: x[0:2]),
    "copy": ((2, 2), lambda x: x.copy()),
    "dropout": ((2, 2), lambda x: nd.Dropout(x, p=0)),
    "split": ((2, 2), lambda x: nd.split(x, num_outputs=1, axis=0)),
}

each_view = pytest.mark.parametrize(("shape", "function"), VIEWS.values(), ids=VIEWS)


@each_view
def test_clearing_a_gradient_does_not_change_other_gradients(shape, function):
    x = ones(*shape)
    y = backward(lambda: function(x))
    x.grad[:] = 0
    for other in (ones(2, 2), ones(*shape), ones(*y.shape)):
        backward(lambda w=other: w * 3)
        check(other.grad, 3)


@each_view
def test_gradients_do_not_share_memory_with_head_gradients(shape, function):
    x = ones(*shape)
    with autograd.record():
        y = function(x)
    head = nd.ones(y.shape)
    y.backward(head)
    head[:] = 9
    check(x.grad, 1)
    x.grad[:] = 5
    check(head, 9)


@each_view
def test_views_of_gradients_show_the_next_backward(shape, function):
    x = ones(*shape)
    gradient, flat, first = x.grad, x.grad.reshape((-1,)), x.grad[0:1]
    backward(lambda: function(x) * 3)
    for view in (gradient, flat, first):
        check(view, 3)
    flat[:] = 7
    check(x.grad, 7)
    backward(lambda: function(x))
    check(flat, 1)


@each_view
def test_gradients_cleared_after_each_backward_sum_correctly(shape, function):
    x = ones(*shape)
    total = nd.zeros(shape)
    for _ in range(3):
        backward(lambda: function(x))
        total += x.grad
        x.grad[:] = 0
    check(total, 3)


@each_view
def test_gradients_of_two_leaves_do_not_share_memory(shape, function):
    x, w = ones(*shape), ones(*shape)
    backward(lambda: function(x) + function(w))
    x.grad[:] = 0
    check(w.grad, 1)
    first, second = ones(*shape), ones(*shape)
    with autograd.record():
        y = function(first) + function(second)
    actual = autograd.grad(y, [first, second])
    actual[0][:] = 0
    check(actual[1], 1)
    backward(lambda: first * 2)
    check(first.grad, 2)


@each_view
def test_results_of_grad_do_not_share_memory_with_head_gradients(shape, function):
    x = ones(*shape)
    with autograd.record():
        y = function(x)
    head = nd.ones(y.shape)
    (actual,) = autograd.grad(y, [x], head_grads=[head])
    head[:] = 9
    check(actual, 1)
    actual[:] = 5
    check(head, 9)
    check(x.grad, 0)


@each_view
def test_gradients_with_grad_req_add_do_not_share_memory(shape, function):
    x, w = leaf(np.ones(shape), "add"), leaf(np.ones(shape), "add")
    for count in (1, 2, 3):
        backward(lambda: function(x * 1) + function(w * 1))
        check(x.grad, count)
        check(w.grad, 10 * (count - 1) + count)
        w.grad[:] += 10


def test_concat_gradients_do_not_share_memory_with_the_head_gradient():
    x, w, head = ones(2), ones(2), nd.ones((4,))
    backward(lambda: nd.concat(x, w, dim=0), head)
    x.grad[:] = 5
    check(head, 1)
    check(w.grad, 1)


A, B = mx.sym.Variable("a"), mx.sym.Variable("b")


JOINED = {
    "sum": (A + B, (2, 2), (2, 2)),
    "elementwise": (mx.sym.elemwise_add(A, B), (2, 2), (2, 2)),
    "broadcast": (mx.sym.broadcast_add(A, B), (2, 2), (2, 2)),
    "concat": (mx.sym.concat(A, B, dim=0), (2, 2), (2, 2)),
    "stack": (mx.sym.stack(A, B), (2, 2), (2, 2)),
    "reshape": (mx.sym.reshape(A, shape=(2, 2)) + B, (4,), (2, 2)),
    "expand_dims": (mx.sym.expand_dims(A, axis=0) + B, (2, 2), (1, 2, 2)),
    "add_n": (mx.sym.add_n(A, B), (2, 2), (2, 2)),
}

each_joined = pytest.mark.parametrize(("symbol", "a", "b"), JOINED.values(), ids=JOINED)


@each_joined
def test_executor_gradients_do_not_share_memory(symbol, a, b):
    e = bound(symbol, a=a, b=b)
    (out,) = e.forward(is_train=True)
    head = nd.ones(out.shape)
    e.backward(head)
    for gradient in e.grad_arrays:
        gradient *= 0.5
    for gradient in e.grad_arrays:
        check(gradient, 0.5)
    head[:] = 9
    check(e.grad_arrays[0], 0.5)
    e.grad_arrays[1][:] = 3
    check(e.grad_arrays[0], 0.5)
    check(head, 9)


@each_joined
def test_views_of_executor_gradients_show_the_next_backward(symbol, a, b):
    e = bound(symbol, a=a, b=b)
    views = [g.reshape((-1,)) for g in e.grad_arrays]
    (out,) = e.forward(is_train=True)
    for head in (2, 3):
        e.forward(is_train=True)
        e.backward(nd.ones(out.shape) * head)
        for view in views:
            check(view, head)


def test_gradient_views_of_reshaped_executors_show_the_next_backward():
    e = (A * 2 * B).simple_bind(mx.cpu(), a=(4, 2), b=(4, 2))
    f = e.reshape(a=(2, 2), b=(2, 2))
    views = [f.grad_dict[name].reshape((-1,)) for name in "ab"]
    for value in (1, 3):
        for array in f.arg_arrays:
            array[:] = value
        f.forward(is_train=True)
        f.backward(nd.ones((2, 2)))
        for view in views:
            check(view, 2 * value)


def test_executors_do_not_write_gradients_of_labels():
    symbol = mx.sym.SoftmaxOutput(A, B)
    e = bound(symbol, a=(2, 3), b=(2,))
    e.grad_dict["b"][:] = 7
    e.forward(is_train=True)
    e.backward()
    check(e.grad_dict["b"], 7)
    assert np.abs(e.grad_dict["a"].asnumpy()).max() > 0.1


def test_views_of_executor_outputs_show_the_next_forward():
    e = bound(A * 2, a=(3, 2))
    out = e.forward()[0]
    first, flat = out[0:1], out.reshape((-1,))
    e.forward(a=nd.ones((3, 2)) * 5)
    check(out, 10)
    check(first, 10)
    check(flat, 10)
    e.forward(is_train=True, a=nd.ones((3, 2)) * 6)
    check(e.outputs[0], 12)
    check(first, 12)
