"""With ``MXNET_GRAPH_PASSES=0`` hybridized blocks equal eager blocks bit for bit."""

from __future__ import annotations

import re
import zlib

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, nd
from mxnet.gluon.model_zoo import vision
from mxnet.test_utils import assert_almost_equal
from tests.batches import check_each
from tests.golden.record.layer_cases import FAMILIES, Case, answer

# Their output is also their state. In eager calls this is one array, whose gradients are summed
# on arrival; hybridized blocks return two, so three gradients are summed in a different order.
RETURNED_TWICE = re.compile(r"rnn/(GRUCell_|hybrid_stack|stack|both_ways)|contrib/conv.*(GRU|gru)")
ZOO = ("resnet18_v1", "resnet18_v2", "mobilenet0.25", "mobilenetv2_0.25")


@pytest.fixture(autouse=True)
def without_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "0")


def _check_layer(case: Case) -> None:
    mx.random.seed(zlib.crc32(case.key.encode()))
    eager = answer(mx, case)
    mx.random.seed(zlib.crc32(case.key.encode()))
    hybridized = answer(mx, case, hybridize=True)
    assert eager.keys() == hybridized.keys()
    for name, values in eager.items():
        if RETURNED_TWICE.match(case.key) and not name.startswith("out"):
            assert_almost_equal(values, hybridized[name], names=("eager", name))
        else:
            np.testing.assert_array_equal(values, hybridized[name], err_msg=name)


@pytest.mark.filterwarnings("ignore:All children of this Sequential layer")
@pytest.mark.parametrize("family", FAMILIES)
def test_hybridized_layers_equal_eager_layers_bit_for_bit(family: str) -> None:
    """Compare outputs, gradients and states of every layer, loss and cell."""
    check_each({case.key: case for case in FAMILIES[family]}, _check_layer)


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.slow
def test_hybridized_zoo_networks_equal_eager_ones_bit_for_bit(name: str) -> None:
    """Compare a prediction, then a training step with all its gradients."""
    net = vision.get_model(name, classes=10)
    net.initialize(mx.init.Xavier(rnd_type="uniform"))
    x = nd.array(np.random.RandomState(0).rand(2, 3, 64, 64))
    net(x)
    saved = {key: p.data().copy() for key, p in net.collect_params().items()}
    eager = _run(net, x)
    for key, parameter in net.collect_params().items():
        parameter.set_data(saved[key])
    net.hybridize()
    for ours, theirs in zip(_run(net, x), eager, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def _run(net: mx.gluon.Block, x: nd.NDArray) -> list[np.ndarray]:
    results = [net(x).asnumpy()]
    with autograd.record():
        y = net(x)
        loss = (y * y).sum()
    loss.backward()
    results.append(y.asnumpy())
    parameters = net.collect_params().values()
    results += [p.grad().asnumpy() for p in parameters if p.grad_req != "null"]
    return results + [p.data().asnumpy() for p in parameters if p.grad_req == "null"]
