"""Input gradients of modules do not share memory with other arrays."""

from __future__ import annotations

import mxnet as mx
from mxnet import nd
from tests.arrays import check

A = mx.sym.Variable("a")


def weighted_module(symbol):
    """Return a module of data and one weight, both of shape (2, 2), that makes steps of 1."""
    m = mx.mod.Module(symbol, data_names=["a"], label_names=None)
    m.bind(data_shapes=[("a", (2, 2))], inputs_need_grad=True)
    m.init_params(mx.init.One())
    m.init_optimizer(optimizer_params={"learning_rate": 1.0, "rescale_grad": 1.0})
    return m


def test_clearing_input_gradients_does_not_change_the_update():
    m = weighted_module(A + mx.sym.Variable("b_weight", shape=(2, 2)))
    m.forward(mx.io.DataBatch([nd.ones((2, 2))]), is_train=True)
    head = nd.ones((2, 2)) * 2
    m.backward([head])
    m.get_input_grads()[0][:] = 0
    m.update()
    check(m.get_params()[0]["b_weight"], -1)
    check(head, 2)


def test_input_gradients_are_updated_in_place():
    m = weighted_module(A * mx.sym.Variable("b_weight", shape=(2, 2)))
    for head in (2, 3):
        m.forward(mx.io.DataBatch([nd.ones((2, 2))]), is_train=True)
        m.backward([nd.ones((2, 2)) * head])
        if head == 2:
            (gradient,) = m.get_input_grads()
            view = gradient.reshape((-1,))
            check(view, 2)
    check(gradient, 3)
    check(view, 3)
