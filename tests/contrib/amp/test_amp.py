"""Mixed precision while training. `amp.init` is for good, so it runs in processes of its own."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import amp
from mxnet.contrib.amp.loss_scaler import LossScaler
from tests.contrib.amp.test_conversion import run


def dense() -> mx.gluon.nn.Dense:
    net = mx.gluon.nn.Dense(2, in_units=2)
    net.initialize()
    return net


def overflows(scaler: LossScaler, net, value: float) -> bool:
    for param in net.collect_params().values():
        param.grad()[:] = value
    return scaler.has_overflow(net.collect_params().values())


class TestLossScaler:
    @pytest.mark.parametrize(
        ("value", "overflow"),
        [(1.0, False), (1e30, False), (np.inf, True), (-np.inf, True), (np.nan, True)],
    )
    def test_overflow(self, value, overflow):
        assert overflows(LossScaler(), dense(), value) is overflow

    def test_it_falls_and_rises(self, caplog):
        caplog.set_level(logging.INFO)
        scaler, net = LossScaler(), dense()
        scaler._scale_seq_len = 3
        overflows(scaler, net, np.inf)
        assert scaler.loss_scale == 2.0**16  # this step's gradients were scaled by it
        scales = [overflows(scaler, net, 1.0) or scaler.loss_scale for _ in range(4)]
        assert scales == [2.0**15, 2.0**15, 2.0**15, 2.0**16]
        assert [record.message for record in caplog.records] == [
            "AMP: decreasing loss scale to 32768.000000",
            "AMP: increasing loss scale to 65536.000000",
        ]

    def test_it_has_a_limit(self):
        scaler, net = LossScaler(), dense()
        scaler._scale_seq_len = 1
        for _ in range(12):
            overflows(scaler, net, 1.0)
        assert scaler.loss_scale == 2.0**24


def test_nothing_works_before_init():
    net = dense()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    with pytest.raises(AssertionError, match=r"call amp.init\(\)"):
        amp.init_trainer(trainer)
    with pytest.raises(AssertionError, match=r"amp.init_trainer\(\)"):
        amp.scale_loss(mx.nd.ones(1), trainer).__enter__()
    with pytest.raises(TypeError, match="should be a Gluon Trainer"):
        amp.unscale(3)
    with pytest.raises(TypeError, match="only compatible with Gluon Trainer"):
        amp.unscale(mx.optimizer.SGD())
    with pytest.raises(AssertionError, match="only float16 or bfloat16"):
        amp.init("float64")


FUNCTIONS = """
import mxnet as mx
from mxnet.contrib import amp
amp.init("bfloat16")
amp.init("bfloat16")

def name(array):
    return mx.dtypes.to_name(array.dtype)

x, w = mx.nd.ones((2, 3)), mx.nd.ones((4, 3))
y = mx.nd.FullyConnected(x, w, no_bias=True, num_hidden=4)
assert name(y) == "bfloat16"
assert name(mx.nd.FullyConnected(data=x, weight=w, no_bias=True, num_hidden=4)) == "bfloat16"
assert name(mx.nd.relu(y)) == "bfloat16"
assert name(y + y) == "bfloat16"
for full in (mx.nd.exp(y), y.exp(), y.softmax(), mx.nd.softmax(y), y + x[:, :1], x[:, :1] * y,
             mx.nd.concat(y, x, dim=1).sum(), y**2, 1 / y, mx.nd.broadcast_add(y, x[:, :1]),
             mx.nd.Activation(y, act_type="softrelu"), mx.nd.Activation(y, "softrelu")):
    assert name(full) == "float32", full
assert name(mx.nd.Activation(y, act_type="relu")) == "bfloat16"
out = mx.nd.zeros((2, 4))
assert mx.nd.exp(y, out=out) is out

a, b = mx.sym.var("a"), mx.sym.var("b")
s = mx.sym.FullyConnected(a, num_hidden=2, name="f")
assert s.list_arguments() == ["a", "f_weight", "f_bias"]
assert s.get_internals().list_outputs() == [
    "a", "amp_cast0_output", "f_weight", "amp_cast1_output", "f_bias", "amp_cast2_output",
    "f_output"]
assert "amp_multicast0" in (s + b).get_internals().list_outputs()[-3]
assert [n for n in mx.sym.softmax(s).get_internals().list_outputs() if "cast3" in n]
assert s.infer_shape(a=(5, 7))[0] == [(5, 7), (2, 7), (2,)]
"""


def test_functions_cast():
    run(FUNCTIONS)


HALF = """
import mxnet as mx, numpy as np
from mxnet.contrib import amp
amp.init()
x = mx.nd.ones((2, 3))
assert mx.nd.FullyConnected(x, x, no_bias=True, num_hidden=2).dtype == np.float16
picture, kernel = mx.nd.ones((1, 1, 3, 3)), mx.nd.ones((1, 1, 2, 2))
y = mx.nd.Convolution(picture, kernel, kernel=(2, 2), num_filter=1, no_bias=True)
assert y.dtype == np.float16
assert mx.nd.exp(x.astype("float16")).dtype == np.float16
assert (x.astype("float16") + x).dtype == np.float32
names = mx.sym.FullyConnected(mx.sym.var("a"), num_hidden=2).get_internals().list_outputs()
assert "amp_cast0_output" in names
"""


def test_float16_arrays_on_a_cpu_are_not_cast_to_float32():
    run(HALF)


TRAINING = """
import numpy as np
import mxnet as mx
from mxnet import autograd, gluon
from mxnet.contrib import amp
amp.init("bfloat16")
mx.random.seed(1)
np.random.seed(1)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Conv2D(4, 3, padding=1), gluon.nn.BatchNorm(), gluon.nn.Activation("relu"),
        gluon.nn.Dense(2))
net.initialize()
if HYBRID:
    net.hybridize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
amp.init_trainer(trainer)
label = np.arange(16) % 2
x = mx.nd.array(np.random.rand(16, 1, 6, 6) + label[:, None, None, None])
y = mx.nd.array(label)
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
losses = []
for step in range(12):
    with autograd.record():
        out = net(x)
        loss = loss_of(out, y)
        with amp.scale_loss(loss, trainer) as scaled:
            autograd.backward(scaled)
    assert mx.dtypes.to_name(out.dtype) == "bfloat16"
    trainer.step(16)
    losses.append(loss.mean().asscalar())
assert losses[-1] < losses[0] / 2, losses
assert {mx.dtypes.to_name(p.dtype) for p in net.collect_params().values()} == {"float32"}

before = net[3].weight.data().asnumpy()
for grad in net[3].weight.list_grad():
    grad[:] = np.inf
trainer.step(16)
assert (net[3].weight.data().asnumpy() == before).all()
assert trainer._amp_loss_scaler._next_loss_scale == 2.0**15

with autograd.record():
    loss = loss_of(net(x), y)
    with amp.scale_loss([loss], trainer) as scaled:
        autograd.backward(scaled)
big = net[3].weight.grad().asnumpy()
scale = trainer._scale
amp.unscale(trainer)
np.testing.assert_allclose(net[3].weight.grad().asnumpy(), big * scale, rtol=1e-6)
assert trainer._scale == 1.0

z = mx.nd.ones((1, 2))
z.attach_grad()
with autograd.record():
    p = mx.nd.SoftmaxOutput(z, mx.nd.zeros((1,)))
p.backward()
scale = trainer._amp_loss_scaler.loss_scale
np.testing.assert_allclose(z.grad.asnumpy(), np.array([[-0.5, 0.5]]) * scale)
"""


@pytest.mark.parametrize("hybrid", [False, True])
def test_training(hybrid):
    run(f"HYBRID = {hybrid}\n{TRAINING}")
