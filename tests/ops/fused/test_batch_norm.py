"""BatchNorm layers of training graphs update their moving statistics in one step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

RULE = "join_statistics"


def network(*momenta: float) -> gluon.HybridBlock:
    net = nn.HybridSequential()
    for momentum in momenta:
        net.add(nn.Conv2D(4, 3, padding=1), nn.BatchNorm(momentum=momentum))
        net.add(nn.Activation("relu"))
    net.add(nn.Dense(2))
    return net


def state(net: gluon.HybridBlock) -> list[np.ndarray]:
    return [p.data().asnumpy() for p in net.collect_params().values()]


def train(passes: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Return all parameters and states after three steps."""
    monkeypatch.setenv("MXNET_GRAPH_PASSES", passes)
    mx.random.seed(3)
    net = network(0.9, 0.5, 0.9)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(3):
        with autograd.record():
            loss = net(nd.random.normal(2, 3, shape=shape)).square().sum()
        loss.backward()
        trainer.step(8)
    return state(net)


@pytest.mark.parametrize("shape", [(4, 3, 5, 5), (1, 3, 1, 1)])
def test_joint_statistics_updates_equal_separate_updates(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for ours, plain in zip(
        train(RULE, shape, monkeypatch), train("0", shape, monkeypatch), strict=True
    ):
        np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-5)


def test_statistics_updates_with_equal_momentum_are_merged() -> None:
    net = network(0.9, 0.5, 0.9)
    net.initialize()
    net.hybridize()
    x = nd.ones((2, 3, 4, 4))
    net(x)
    report = net.compiled(x, training=True)
    assert report.rules[RULE] == 2
    assert RULE not in net.compiled(x).rules
    assert len(report.symbol.list_outputs()) == 1
    before = net(x)  # nothing moves in inference
    np.testing.assert_array_equal(before.asnumpy(), net(x).asnumpy())


def layer(data: Any, number: int, **options: Any) -> Any:
    states = [mx.sym.var(f"{kind}{number}") for kind in ("gamma", "beta", "mean", "var")]
    return mx.sym.BatchNorm(data, *states, **options)


def bind(out: Any) -> Any:
    exe = out.simple_bind(mx.cpu(), x=(6, 2))
    exe.arg_dict["x"][:] = nd.array(np.arange(12).reshape(6, 2))
    for name, array in exe.aux_dict.items():
        array[:] = float("var" in name)
    return exe


def moved(value: float, toward: float) -> float:
    return 0.9 * value + 0.1 * toward


def test_moving_statistics_change_only_in_training_forward() -> None:
    exe = bind(layer(layer(mx.sym.var("x"), 0), 1))
    exe.forward(is_train=False)
    assert exe.aux_dict["mean0"].asnumpy().tolist() == [0, 0]
    exe.forward(is_train=True)
    np.testing.assert_allclose(exe.aux_dict["mean0"].asnumpy(), [0.5, 0.6], rtol=1e-5)
    variance = np.arange(0, 12, 2).var()
    np.testing.assert_allclose(exe.aux_dict["var0"].asnumpy(), moved(1, variance), rtol=1e-5)


def test_shared_statistics_are_updated_in_order() -> None:
    x = mx.sym.var("x")
    states = [mx.sym.var(f"{kind}0") for kind in ("gamma", "beta", "mean", "var")]
    exe = bind(mx.sym.BatchNorm(mx.sym.BatchNorm(x, *states), *states))
    exe.forward(is_train=True)
    mean = moved(moved(0, np.arange(0, 12, 2).mean()), 0)
    np.testing.assert_allclose(exe.aux_dict["mean0"].asnumpy()[0], mean, rtol=1e-4)
    assert RULE not in exe.compiled.rules
    global_stats = layer(layer(x, 0, use_global_stats=True), 1, use_global_stats=True)
    exe = bind(global_stats)
    exe.forward(is_train=True)
    assert exe.aux_dict["mean0"].asnumpy().tolist() == [0, 0]


def test_empty_batch_does_not_change_moving_statistics() -> None:
    net = nn.HybridSequential()
    net.add(nn.BatchNorm(in_channels=2), nn.BatchNorm(in_channels=2))
    net.initialize()
    net.hybridize()
    with mx.util.np_shape(True), autograd.record():
        out = net(nd.zeros((0, 2)))
    assert out.shape == (0, 2)
    assert net[0].running_mean.data().asnumpy().tolist() == [0, 0]
    assert net[1].running_var.data().asnumpy().tolist() == [1, 1]


def test_compiled_symbol_trains_like_the_graph() -> None:
    exe = bind(layer(layer(mx.sym.var("x"), 0), 1))
    exe.forward(is_train=True)
    net = gluon.nn.HybridSequential()
    net.add(nn.BatchNorm(in_channels=2), nn.BatchNorm(in_channels=2))
    net.initialize()
    net.hybridize()
    x = nd.array(np.arange(12).reshape(6, 2))
    net(x)
    symbol = net.compiled(x, training=True).symbol
    assert mx.sym.load_json(symbol.tojson()).list_auxiliary_states() == [
        name for name in net.collect_params() if "running" in name
    ]
    again = symbol.simple_bind(mx.cpu(), **{symbol.list_arguments()[0]: (6, 2)})
    for name, array in again.aux_dict.items():
        array[:] = float("var" in name)
    again.arg_arrays[0][:] = x
    again.forward(is_train=True)
    for name, value in zip(("mean0", "var0"), again.aux_arrays[:2], strict=True):
        np.testing.assert_allclose(value.asnumpy(), exe.aux_dict[name].asnumpy(), rtol=1e-5)
