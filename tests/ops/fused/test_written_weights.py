"""Layers with prepared weights detect writes through aliases."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.gluon import nn
from mxnet.ops.fused import dense as prepared_dense
from tests.arrays import ALIASES, check, dlpack


@pytest.fixture(autouse=True)
def pack_weights_for_few_rows(monkeypatch):
    for name, value in {"MIN_WEIGHT": 1, "MIN_ROWS": 2}.items():
        monkeypatch.setattr(prepared_dense, name, value)


def wide_dense(hybridize=True):
    """Return a frozen layer that is large enough for prepacking."""
    net = nn.Dense(512, in_units=512, use_bias=False)
    net.initialize(mx.init.One())
    net.collect_params().setattr("grad_req", "null")
    if hybridize:
        net.hybridize(static_alloc=True, static_shape=True)
    return net


def small_conv():
    net = nn.Conv2D(2, 1, in_channels=4, use_bias=False)
    net.initialize(mx.init.One())
    net.hybridize()
    return net


def small_norm():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 1, in_channels=4, use_bias=False), nn.BatchNorm(in_channels=2, epsilon=0))
    net.initialize(mx.init.One())
    net.hybridize()
    return net


LAYERS = {
    "dense": (wide_dense, lambda net: net, (1, 512), 512),
    "conv": (small_conv, lambda net: net, (1, 4, 1, 1), 4),
    "conv and norm": (small_norm, lambda net: net[0], (1, 4, 1, 1), 4),
}


@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
@pytest.mark.parametrize(("make", "layer", "shape", "total"), LAYERS.values(), ids=LAYERS)
def test_hybridized_layers_detect_writes_through_aliases(make, layer, shape, total, alias):
    net, x = make(), nd.ones(shape)
    weight = layer(net).weight
    view = alias(weight.data())
    for _ in range(3):
        net(x)
    for value in (0, 3):
        view[:] = value
        check(net(x)[0, 0], value * total)
        check(net(x)[0, 0], value * total)
    weight.set_data(nd.ones(weight.shape) * 2)
    check(net(x)[0, 0], 2 * total)
    net(x)
    view[:] = 5
    check(net(x)[0, 0], 5 * total)


@pytest.mark.parametrize("name", ["running_mean", "running_var", "gamma", "beta"])
@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
def test_folded_batch_norms_detect_writes_through_aliases(name, alias):
    net, x = small_norm(), nd.ones((1, 4, 1, 1))
    parameter = getattr(net[1], name)
    view = alias(parameter.data())
    parameter.set_data(nd.ones((2,)))
    expected = {"running_mean": (3, -1), "running_var": (4, 2), "gamma": (4, 20), "beta": (5, 9)}
    for _ in range(3):
        check(net(x)[0, 0], expected[name][0])
    view[:] = {"running_var": 4}.get(name, 5)
    check(net(x)[0, 0], expected[name][1])
    check(net(x)[0, 0], expected[name][1])


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
def test_bound_layers_detect_writes_through_aliases(alias, train):
    symbol = mx.sym.FullyConnected(mx.sym.var("a"), num_hidden=512, no_bias=True, name="f")
    weight = nd.ones((512, 512))
    e = symbol.bind(mx.cpu(), {"a": nd.ones((1, 512)), "f_weight": weight}, grad_req="null")
    view = alias(weight)
    for _ in range(3):
        check(e.forward(is_train=train)[0][0, 0], 512)
    view[:] = 0
    check(e.forward(is_train=train)[0][0, 0], 0)
    weight[:] = 2
    check(e.forward(is_train=train)[0][0, 0], 1024)
    view[:] = 3
    check(e.forward(is_train=train)[0][0, 0], 1536)


@pytest.mark.parametrize(("make", "layer", "shape", "total"), LAYERS.values(), ids=LAYERS)
def test_layers_detect_writes_to_shared_numpy_memory(make, layer, shape, total):
    net, x = make(), nd.ones(shape)
    weight = layer(net).weight
    symbol = net(mx.sym.Variable("data"))
    params = {p.name: p for p in net.collect_params().values()}
    numbers = np.ones(weight.shape, "float32")
    arrays = {name: p.data() for name, p in params.items()}
    arrays[weight.name] = nd.from_numpy(numbers, zero_copy=True)
    args = {n: arrays.get(n, x) for n in symbol.list_arguments()}
    aux = {n: arrays[n] for n in symbol.list_auxiliary_states()}
    e = symbol.bind(mx.cpu(), args, grad_req="null", aux_states=aux)
    shared = args[weight.name]
    for _ in range(3):
        check(e.forward()[0][0, 0], total)
    shared[:] = 0.5
    check(e.forward()[0][0, 0], total / 2)
    numbers.flags.writeable = True
    numbers[...] = 0
    check(e.forward()[0][0, 0], 0)


def test_int8_layers_detect_writes_through_views():
    rng = np.random.RandomState(0)
    net = nn.HybridSequential()
    net.add(nn.Dense(16, in_units=8))
    net.initialize(mx.init.Xavier())
    x = nd.array(rng.uniform(-1, 1, (4, 8)).astype("float32"))
    quantized = mx.contrib.quantization.quantize_net_v2(
        net, quantized_dtype="int8", calib_mode="naive", calib_data=[x], num_calib_examples=4
    )
    for _ in range(3):
        before = quantized(x).asnumpy()
    (name,) = [n for n in quantized.collect_params() if n.endswith("weight_quantize")]
    weight = quantized.collect_params()[name].data()
    for view in (weight[0:8], dlpack(weight)[8:16]):
        view[:] = view * -1
    bias = next(p for n, p in quantized.collect_params().items() if n.endswith("bias_quantize"))
    flat = bias.data().reshape((-1,))
    flat[:] = flat * -1
    step = np.abs(before).max() / 50
    np.testing.assert_allclose(quantized(x).asnumpy(), -before, atol=step)
    assert np.abs(before).max() > 0.1
