"""Backends run hybridized blocks in inference with equal results."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import autograd, nd
from mxnet.gluon import nn
from mxnet.runtime import backends
from tests.arrays import ALIASES, check


@pytest.fixture
def block():
    mx.random.seed(5)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Activation("relu"), nn.Dropout(0.5), nn.Dense(3))
    net.initialize(mx.init.Normal(0.3))
    return net


@pytest.fixture
def x():
    return nd.random.normal(shape=(2, 3, 8, 8))


@pytest.fixture
def register(monkeypatch):
    monkeypatch.setattr(backends, "_backends", dict(backends._backends))
    return mx.executor.register_backend


def eager(block, x):
    block.hybridize(active=False)
    return block(x).asnumpy()


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_onnx_backends_match_eager(block, x, engine):
    pytest.importorskip(engine)
    other = nd.random.normal(shape=(5, 3, 9, 9))
    block(x)
    block[4].weight.shape  # noqa: B018 (made by the first call)
    wanted = eager(block, x)
    block.hybridize(backend=engine)
    for _ in range(3):
        np.testing.assert_allclose(block(x).asnumpy(), wanted, rtol=1e-4, atol=1e-5)
    assert isinstance(
        next(iter(block._cached_op.function.programs.values())), backends.BackendProgram
    )
    with pytest.raises(mx.MXNetError):
        block(other)  # made for images of 8 by 8


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_backends_use_updated_parameters(block, x, engine):
    pytest.importorskip(engine)
    block.hybridize(backend=engine)
    block(x)
    before = block(x).asnumpy()
    block[0].weight.set_data(block[0].weight.data() * 2)
    after = [block(x).asnumpy() for _ in range(3)]
    assert np.abs(after[0] - before).max() > 1e-3
    np.testing.assert_allclose(after[2], eager(block, x), rtol=1e-4, atol=1e-5)


def test_backends_are_not_used_when_training(block, x, register):
    register("refuses", lambda graph, feed, data: pytest.fail("not in training"))
    block(x)
    block.hybridize(backend="refuses")
    with autograd.record():
        loss = block(x).sum()
    loss.backward()
    with autograd.record(train_mode=False):
        loss = block(x).sum()
    loss.backward()
    assert np.isfinite(block[0].weight.grad().asnumpy()).all()


def test_custom_backend_is_prepared_for_each_shape(block, x, register):
    prepared, runs = [], []

    def prepare(graph, feed, data):
        prepared.append([tuple(feed[i].shape) for i in data])
        own = backends.Program(graph, graph.mode, feed[0].device)

        def run(feed):
            runs.append(1)
            return own.run(feed)

        return run

    register("mine", prepare)
    block(x)
    block.hybridize(backend="mine")
    wanted = eager(block, x)
    block.optimize_for(x, backend="mine")
    for _ in range(3):
        np.testing.assert_allclose(block(x).asnumpy(), wanted, rtol=1e-5, atol=1e-6)
    block(x[:1])
    assert prepared == [[(2, 3, 8, 8)], [(1, 3, 8, 8)]] and len(runs) == 5
    assert block.compiled(x).rules["fold_batch_norm"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t + 1, "difference of 1"),
        (lambda t: t[:1], "shape"),
        (lambda t: t.double(), "float64"),
    ],
)
def test_wrong_results_of_a_backend_raise(block, x, register, change, message):
    good = nd.NDArray(torch.zeros(0))

    def prepare(graph, feed, data):
        return lambda feed: [change(good._data)]

    register("wrong", prepare)
    good = block(x)
    block.hybridize(backend="wrong")
    with pytest.raises(mx.MXNetError, match=message):
        block(x)


def test_auto_selects_the_fastest_correct_backend(block, x, register):
    used = []

    def engine(name, seconds, change=0.0):
        def prepare(graph, feed, data):
            def run(feed):
                used.append(name)
                time.sleep(seconds)
                return [good._data + change]

            return run

        register(name, prepare, prepares_quickly=True)

    block(x)
    block.hybridize()
    good = block(x)
    engine("slow", 0.05)
    engine("wrong", 0.0, change=1.0)
    block.hybridize(backend="auto")
    block(x)
    used.clear()
    np.testing.assert_allclose(block(x).asnumpy(), good.asnumpy(), rtol=1e-4, atol=1e-5)
    assert used == []


@pytest.fixture
def engine(register):
    """Return which inputs of graphs changed, for each compilation by the backend "mine"."""
    prepared = []

    def prepare(graph, feed, data):
        names = [n.name for n in graph.variables]
        prepared.append([names[i] for i in data])
        return backends.Program(graph, graph.mode, feed[0].device).run

    register("mine", prepare)
    return prepared


@pytest.fixture
def layer():
    return mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")


def test_module_uses_MXNET_SUBGRAPH_BACKEND(layer, engine, monkeypatch):
    monkeypatch.setenv("MXNET_SUBGRAPH_BACKEND", "mine")
    module = mx.mod.Module(layer, label_names=[])
    module.bind([("data", (1, 3))], for_training=False)
    module.set_params({"fc_weight": nd.ones((2, 3))}, {})
    for value in (1, 2):
        module.forward(mx.io.DataBatch([nd.full((1, 3), value)]))
        assert module.get_outputs()[0].asnumpy().tolist() == [[3 * value] * 2]
    module.set_params({"fc_weight": nd.zeros((2, 3))}, {})
    module.forward(mx.io.DataBatch([nd.ones((1, 3))]))
    assert module.get_outputs()[0].asnumpy().tolist() == [[0, 0]]
    assert engine == [["data"], ["data"]]


def test_bound_symbol_detects_which_arrays_change(layer, engine):
    args = {"data": nd.ones((1, 3)), "fc_weight": nd.ones((2, 3))}
    executor = layer.optimize_for("mine").bind(mx.cpu(), args)
    for value in (1, 2, 3):
        executor.forward(data=nd.full((1, 3), value))
        assert executor.outputs[0].asnumpy().tolist() == [[3 * value] * 2]
    assert engine == [[], ["data"]]


def test_bound_symbols_do_not_use_backends_when_training(layer, engine):
    executor = layer.optimize_for("mine").simple_bind(mx.cpu(), data=(1, 3))
    executor.forward(is_train=True, data=nd.ones((1, 3)))
    executor.backward(nd.ones((1, 2)))
    assert executor.grad_dict["fc_weight"].asnumpy().tolist() == [[1, 1, 1], [1, 1, 1]]
    assert engine == []


@pytest.mark.parametrize("name", ["NONE", "MKLDNN"])
def test_backend_names_of_mxnet_use_native_kernels(layer, monkeypatch, name):
    monkeypatch.setenv("MXNET_SUBGRAPH_BACKEND", name)
    executor = layer.simple_bind(mx.cpu(), data=(1, 3))
    assert executor.forward()[0].shape == (1, 2)


def test_unknown_MXNET_SUBGRAPH_BACKEND_raises(layer, monkeypatch):
    monkeypatch.setenv("MXNET_SUBGRAPH_BACKEND", "openvin")
    with pytest.raises(mx.MXNetError, match="openvino"):
        layer.simple_bind(mx.cpu(), data=(1, 3))


def test_unknown_backend_name_warns(block):
    with pytest.warns(UserWarning, match="onnxruntime"):
        block.hybridize(backend="onnxruntim")


@pytest.mark.slow
@pytest.mark.skipif(" " in torch.__file__, reason="torch.compile takes no folder with a space")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch imports torch.jit
def test_inductor_backend_matches_eager(block, x):
    block(x)
    wanted = eager(block, x)
    block.hybridize(backend="inductor")
    for _ in range(3):
        np.testing.assert_allclose(block(x).asnumpy(), wanted, rtol=1e-4, atol=1e-5)


def test_inputs_returned_by_a_backend_share_memory(engine):
    x = mx.sym.Variable("x")
    net = mx.sym.Group([x * 2, x])
    for flags in ({}, {"backend": "mine", "data_indices": [0]}):
        op = nd.CachedOp(net, flags.items())
        data = nd.ones((2,))
        for value in range(1, 4):
            data[:] = value
            doubled, passed = op(data)
            assert doubled.asnumpy().tolist() == [2 * value] * 2
            passed[:] = -1
            assert data.asnumpy().tolist() == [-1, -1]


@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
def test_backends_detect_writes_through_views(alias):
    pytest.importorskip("onnxruntime")
    net, x = nn.Dense(3, in_units=4, use_bias=False), nd.ones((1, 4))
    net.initialize(mx.init.One())
    net.hybridize(backend="onnxruntime")
    view = alias(net.weight.data())
    for _ in range(3):
        check(net(x)[0, 0], 4)
    for value in (0, 3):
        view[:] = value
        check(net(x)[0, 0], value * 4)
        check(net(x)[0, 0], value * 4)
