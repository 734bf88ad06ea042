"""Networks of the zoo compute the same with all passes as without any."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd

SMALL = ["mobilenet0.25", "mobilenetv2_0.25", "resnet18_v1", "squeezenet1.1"]
LARGE = ["densenet121", "resnet18_v2", "resnet50_v1"]
SIZES = {"densenet121": 224, "squeezenet1.1": 224}


def build(name):
    mx.random.seed(11)
    net = gluon.model_zoo.vision.get_model(name, classes=5)
    net.initialize(mx.init.Xavier())
    x = nd.random.normal(shape=(2, 3, SIZES.get(name, 64), SIZES.get(name, 64)))
    net(x)
    for key, param in net.collect_params().items():
        if key.endswith(("running_var", "gamma")):
            param.set_data(nd.random.uniform(0.5, 1.5, shape=param.shape))
        elif key.endswith(("running_mean", "beta", "bias")):
            param.set_data(nd.random.normal(0, 0.1, shape=param.shape))
    return net, x


def outputs(net, x):
    """Return predictions and, of training in double precision, loss, gradients and statistics."""
    net.hybridize()
    predictions = [net(x).asnumpy() for _ in range(3)]
    net.cast("float64")
    mx.random.seed(1)  # Dropout
    with autograd.record():
        loss = (net(x.astype("float64")) ** 2).mean()
    loss.backward()
    params = net.collect_params().values()
    found = [loss.asnumpy(), *(p.grad().asnumpy() for p in params if p.grad_req != "null")]
    return predictions, found + [p.data().asnumpy() for p in params if p.grad_req == "null"]


def agree(first, second, tolerance):
    scale = max(np.abs(a).max() for a in first)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize(
    "name", [*SMALL, *(pytest.param(n, marks=pytest.mark.slow) for n in LARGE)]
)
def test_passes_on_and_off(name, monkeypatch):
    optimized = outputs(*build(name))
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "0")
    plain = outputs(*build(name))
    agree(plain[0], optimized[0], 1e-5)
    agree(plain[1], optimized[1], 1e-9)
