"""Backward from some outputs of a hybridized block reaches all of its parameters."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


class Forked(gluon.HybridBlock):
    """Two outputs, each of a parameter of its own; `depth` operators follow each."""

    def __init__(self, depth):
        super().__init__()
        self.depth = depth
        self.left, self.right = nn.Dense(2, in_units=3), nn.Dense(2, in_units=3)

    def hybrid_forward(self, F, x):
        left, right = self.left(x), self.right(x)
        for _ in range(self.depth):
            left, right = F.sigmoid(left), F.sigmoid(right)
        return left, right


def forked(depth=1, **hints):
    net = Forked(depth)
    net.initialize(mx.init.One())
    net.hybridize(**hints)
    return net


def run_left(net, x=None):
    """Run backward from the left output alone; say whether the right parameter heard of it."""
    weight = net.right.weight
    weight.grad()[:] = 7
    weight.data()._fresh_grad = False
    with autograd.record():
        left, _ = net(nd.ones((1, 3)) if x is None else x)
    left.backward()
    assert net.left.weight.data()._fresh_grad
    return weight.data()._fresh_grad


@pytest.mark.parametrize("times", [1, 3])
def test_parameters_of_an_unused_output_get_zeros(times):
    net = forked()
    for _ in range(times):
        assert run_left(net)
    np.testing.assert_array_equal(net.right.weight.grad().asnumpy(), np.zeros((2, 3)))
    assert np.all(net.left.weight.grad().asnumpy() != 0)


def test_a_trainer_does_not_call_them_stale():
    net = forked()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    run_left(net)
    trainer.step(1)
    np.testing.assert_array_equal(net.right.weight.data().asnumpy(), np.ones((2, 3)))


def test_without_a_graph_they_are_stale():
    net = forked()
    net.hybridize(active=False)
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    assert not run_left(net)
    assert np.all(net.right.weight.grad().asnumpy() == 7)
    with pytest.raises(UserWarning, match="ignore_stale_grad"):
        trainer.step(1)


def test_graphs_of_two_operators_are_recorded_one_by_one():
    assert not run_left(forked(depth=0))
    assert run_left(forked(depth=0, inline_limit=0))
    assert not run_left(forked(depth=1, inline_limit=4))


def test_added_gradients_stay():
    net = forked()
    net.collect_params().setattr("grad_req", "add")
    assert run_left(net)
    assert np.all(net.right.weight.grad().asnumpy() == 7)


def test_it_goes_on_before_the_graph():
    class Twins(gluon.HybridBlock):
        def hybrid_forward(self, F, x, y):
            return F.exp(x * 2), F.exp(y * 2)

    net, x, y = Twins(), nd.ones(2), nd.ones(2)
    net.hybridize()
    x.attach_grad()
    y.attach_grad()
    y.grad[:] = 7
    with autograd.record():
        out = net(x, y * 5)
    out[0].backward()
    assert y.grad.asnumpy().tolist() == [0, 0]


def test_outputs_without_gradients_stay_out():
    class Counted(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.exp(x * 2), F.shape_array(x), F.BlockGrad(F.exp(x) + 1)

    net, x = Counted(), nd.array([0.0, 1.0])
    net.hybridize()
    x.attach_grad()
    with autograd.record():
        out, size, _ = net(x)
    out.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * np.exp([0, 2]), rtol=1e-6)
    assert size.asnumpy().tolist() == [2]


def test_integers_with_gradients_stay_out_of_the_joint():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    whole = mx.sym.cast(x, dtype="int32") * 2
    run = nd.CachedOp(mx.sym.Group([whole + 1, mx.sym.cast(whole, dtype="float32") * y, y * 3]))
    a, b = nd.array([1.5, 2.5]), nd.array([3.0, 4.0])
    a.attach_grad()
    b.attach_grad()
    with autograd.record():
        outputs = run(a, b)
        outputs[1].backward()
    np.testing.assert_array_equal(outputs[0].asnumpy(), [3, 5])
    np.testing.assert_array_equal(a.grad.asnumpy(), [6, 8])
    np.testing.assert_array_equal(b.grad.asnumpy(), [2, 4])
