"""Training copies nothing from the device to the host until the program reads a number."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from tests.device import second_device
from tests.device.second_device import Traffic

pytestmark = pytest.mark.skipif(
    not second_device.is_loaded(), reason="only the second device counts its copies"
)


def counted(run: object, *args: object) -> Traffic:
    """Return the transfers to and from the devices during a call."""
    before = second_device.traffic()
    run(*args)  # type: ignore[operator]
    return second_device.traffic() - before


def assert_nothing_left(traffic: Traffic) -> None:
    assert (traffic.to_host, traffic.scalars, traffic.waits) == (0, 0, 0), traffic


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybridized"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_trainer_step_copies_nothing_to_the_host(
    optimizer: str, hybrid: bool, last: mx.Context
) -> None:
    net = gluon.model_zoo.vision.resnet18_v1(classes=3)
    net.initialize(ctx=last)
    if hybrid:
        net.hybridize(static_alloc=True, static_shape=True)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"wd": 1e-4})
    x, y = nd.random.normal(shape=(1, 3, 32, 32), ctx=last), nd.zeros(1, ctx=last)

    def step() -> None:
        with autograd.record():
            out = loss(net(x), y)
        out.backward()
        trainer.step(1)

    step()  # the first one prepares graphs and states
    step()
    traffic = counted(step)
    assert_nothing_left(traffic)
    assert traffic.across == 0
    assert traffic.from_host == 0


@pytest.mark.parametrize(
    "metric", ["acc", "ce", "nll_loss", "mse", "perplexity", "top_k_accuracy", "loss"]
)
def test_metric_update_copies_nothing_to_the_host(metric: str, last: mx.Context) -> None:
    options = {"top_k_accuracy": {"top_k": 2}, "perplexity": {"ignore_label": None}}
    meter = mx.metric.create(metric, **options.get(metric, {}))
    labels = nd.array([0, 1, 1, 0], ctx=last)
    scores = nd.softmax(nd.random.normal(shape=(4, 3), ctx=last))
    if metric == "mse":
        labels, scores = nd.ones((4, 1), ctx=last), scores[:, :1]
    assert_nothing_left(counted(meter.update, [labels], [scores]))
    assert_nothing_left(counted(meter.update, [labels], [scores]))
    assert np.isfinite(meter.get()[1])


def test_module_fit_copies_nothing_to_the_host_within_an_epoch(
    last: mx.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches are copied to the device; nothing is copied back before the epoch ends."""
    monkeypatch.setenv("MXNET_PROGRESS", "off")  # a bar reads the metric now and then
    data = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(data, num_hidden=8, name="one")
    net = mx.sym.BatchNorm(mx.sym.Activation(net, act_type="relu"), name="bn")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3, name="two"), name="softmax")
    rng = np.random.default_rng(0)
    batches = mx.io.NDArrayIter(
        rng.standard_normal((32, 5)).astype("float32"), rng.integers(0, 3, 32), 8
    )
    seen: list[Traffic] = []
    module = mx.mod.Module(net, context=last)
    module.fit(
        batches,
        num_epoch=2,
        optimizer_params={"learning_rate": 0.1, "momentum": 0.9},
        batch_end_callback=lambda _: seen.append(second_device.traffic()),
    )
    for epoch in (seen[:4], seen[4:]):
        *steps, end = [after - before for before, after in itertools.pairwise(epoch)]
        for step in (*steps, replace(end, to_host=end.to_host - 1)):  # it reads the metric
            assert_nothing_left(step)
            assert step.from_host == 3  # data, labels, labels for the metric


def test_prediction_copies_nothing_to_the_host(last: mx.Context) -> None:
    """CPU kernels with finite checks read their data; on a device the host would have to wait."""
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(8, 3), gluon.nn.BatchNorm(), gluon.nn.Activation("relu"))
    net.add(gluon.nn.MaxPool2D(), gluon.nn.Dense(4))
    net.initialize(ctx=last)
    net.hybridize(static_alloc=True, static_shape=True)
    x = nd.ones((2, 3, 8, 8), ctx=last)
    for _ in range(5):
        net(x)
    traffic = counted(net, x)
    assert_nothing_left(traffic)
    assert traffic.from_host == 0


def test_two_devices_exchange_gradients_directly(two: list[mx.Context]) -> None:
    net = gluon.nn.Dense(4, in_units=3)
    net.initialize(ctx=two)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore="device")
    xs = [nd.ones((2, 3), ctx=ctx) for ctx in two]

    def step() -> None:
        with autograd.record():
            losses = [net(x).sum() for x in xs]
        autograd.backward(losses)
        trainer.step(4)

    step()
    traffic = counted(step)
    assert_nothing_left(traffic)
    assert traffic.from_host == 0
    assert traffic.across > 0


def test_waitall_waits_for_every_device() -> None:
    nd.ones(2, ctx=mx.gpu(0))
    assert counted(nd.waitall).waits == mx.context.num_gpus()
    assert counted(nd.ones(2, ctx=mx.gpu(0)).wait_to_read).waits == 1
    assert counted(nd.ones(2).wait_to_read).waits == 0


def test_labels_on_a_device_are_checked_when_the_metric_is_read(last: mx.Context) -> None:
    meter = mx.metric.CrossEntropy()
    meter.update([nd.array([0, 5], ctx=last)], [nd.ones((2, 3), ctx=last)])
    with pytest.raises(IndexError, match="labels from 0 to 5 for 3 classes"):
        meter.get()
