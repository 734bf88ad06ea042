"""Every model of the zoo: exported, run by onnxruntime, imported again."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet.contrib import onnx as contrib_onnx
from mxnet.gluon.model_zoo import vision
from mxnet.onnx.export import build_model
from tests.onnx.running import relative_error, run

QUICK = ("squeezenet1.1", "resnet18_v2", "mobilenetv2_0.25")
# The last pooling of these needs the image they were made for; 64 pixels do for the others.
LARGE = {"inceptionv3": 299, "alexnet": 224, "squeezenet": 224, "densenet": 224}
CASES = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in sorted(vision.MODELS)
]


def _size(name: str) -> int:
    return next((size for start, size in LARGE.items() if name.startswith(start)), 64)


def _network(name: str) -> mx.gluon.HybridBlock:
    """Return a network with statistics of normalization that are not 0 and 1."""
    mx.random.seed(3)
    net = vision.get_model(name, classes=10)
    net.initialize(mx.init.Xavier(magnitude=2.0))
    net.hybridize()
    return net


def _move_statistics(net: mx.gluon.HybridBlock) -> None:
    for parameter in net.collect_params(".*running_(mean|var)").values():
        is_mean = parameter.name.endswith("mean")
        low, high = (-0.2, 0.2) if is_mean else (0.5, 1.5)
        parameter.set_data(mx.nd.random.uniform(low, high, shape=parameter.shape))


@pytest.mark.parametrize("name", CASES)
def test_zoo_model_goes_out_and_comes_back(name: str) -> None:
    """The error stays below 1e-5 in onnxruntime, and below 2e-6 after the way back."""
    size = _size(name)
    net = _network(name)
    data = mx.nd.random.normal(shape=(1, 3, size, size))
    net(data)
    _move_statistics(net)
    wanted = net(data).asnumpy()
    params = {p.name: p.data() for p in net.collect_params().values()}
    model = build_model(net(mx.sym.var("data")), params, [data.shape])
    assert relative_error(run(model, {"data": data.asnumpy()})[0], wanted) < 1e-5
    again = contrib_onnx.import_to_gluon(model.SerializeToString())(data).asnumpy()
    assert relative_error(again, wanted) < 2e-6
