"""Fully connected layers use prepacked weights in prediction, and detect changes."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, nd
from mxnet.gluon import nn
from mxnet.ops.fused import dense as prepared_dense


@pytest.fixture(autouse=True)
def small_weights(monkeypatch):
    if prepared_dense.dense_kernels() is None:
        pytest.skip("needs oneDNN")
    for name, value in {"MIN_WEIGHT": 1, "MIN_ROWS": 2}.items():
        monkeypatch.setattr(prepared_dense, name, value)


def layer(**options):
    mx.random.seed(1)
    net = nn.Dense(7, in_units=12, **options)
    net.initialize(mx.init.Normal(1.0))
    net.hybridize()
    return net


def wanted(net, x):
    weight, bias = net.weight.data().asnumpy(), 0 if net.bias is None else net.bias.data().asnumpy()
    flat = x.asnumpy().reshape((x.shape[0], -1) if net._flatten else x.shape)
    return flat @ weight.T + bias


def packed(net):
    steps = [s for p in net._cached_op.function.programs.values() for s in p.steps]
    (kernel,) = {s.kernel for s in steps if isinstance(s.kernel, prepared_dense.PreparedDense)}
    return kernel


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize(
    ("flatten", "shape"),
    [(True, (5, 12)), (True, (5, 3, 4)), (False, (2, 3, 12)), (False, (5, 12))],
)
def test_prepacked_dense_equals_plain_dense(use_bias, flatten, shape):
    net = layer(use_bias=use_bias, flatten=flatten)
    x = nd.random.normal(shape=shape)
    for _ in range(3):
        np.testing.assert_allclose(net(x).asnumpy(), wanted(net, x), rtol=1e-5, atol=1e-5)
    assert len(packed(net)._packed) == 1


def test_changed_weights_are_used():
    net, x = layer(), nd.ones((3, 12))
    for scale in (1, 2, 3):
        net.weight.set_data(nd.ones((7, 12)) * scale)
        np.testing.assert_array_equal(net(x).asnumpy(), np.full((3, 7), 12 * scale))
    net.weight.data()[:] = 4
    np.testing.assert_array_equal(net(x).asnumpy(), np.full((3, 7), 48))


def test_weights_are_prepacked_for_few_batch_sizes_above_one():
    net = layer()
    for rows in (2, 3, 4, 5, 1):
        x = nd.random.normal(shape=(rows, 12))
        np.testing.assert_allclose(net(x).asnumpy(), wanted(net, x), rtol=1e-5, atol=1e-5)
    assert sorted(packed(net)._packed) == [2, 3]


def test_weights_are_not_prepacked_for_too_few_or_too_many_rows(monkeypatch):
    monkeypatch.setattr(prepared_dense, "MIN_ROWS", 4)
    monkeypatch.setattr(prepared_dense, "MAX_ROWS", 4)
    net = layer()
    for rows in (2, 3, 4, 5):
        x = nd.random.normal(shape=(rows, 12))
        np.testing.assert_allclose(net(x).asnumpy(), wanted(net, x), rtol=1e-5, atol=1e-5)
    assert sorted(packed(net)._packed) == [4]


def test_weights_that_change_on_every_call_are_not_prepacked():
    data, weight = mx.sym.Variable("data"), mx.sym.Variable("weight")
    net = nd.CachedOp(mx.sym.FullyConnected(data, weight, num_hidden=7, no_bias=True))
    for i in range(40):
        made = net(nd.ones((2, 12)), nd.full((7, 12), i))
        np.testing.assert_array_equal(made.asnumpy(), np.full((2, 7), 12 * i))


def test_nan_and_infinity_are_propagated():
    net, x = layer(), nd.ones((2, 12))
    x[0, 0] = np.nan
    x[1, 3] = np.inf
    found = net(x).asnumpy()
    assert np.isnan(found[0]).all() and np.isinf(found[1]).all()


def test_wrong_shapes_raise_after_prepacking():
    net, x = layer(), nd.ones((2, 12))
    net(x)
    with pytest.raises(mx.MXNetError, match="12"):
        net(nd.ones((2, 11)))


def test_weights_are_not_prepacked_when_training():
    net, x = layer(), nd.ones((2, 12))
    with autograd.record():
        net(x).sum().backward()
    assert net.weight.grad().asnumpy().min() == 2
