"""Zoo models are exported to ONNX and imported again."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet.contrib import onnx as contrib_onnx
from mxnet.gluon.model_zoo import vision
from mxnet.interop.onnx.export import build_model
from tests.golden.record.zoo_cases import SEEN
from tests.interop.onnx.running import check_files_here, relative_error, run

QUICK = ("squeezenet1.1", "resnet18_v2", "mobilenetv2_0.25")
# The other networks repeat the layers of these, as `tests/gluon/test_model_zoo.py` proves.
# These come back by the process that checks files; the largest takes the most of its memory.
ISOLATED = (*QUICK, "vgg11")
CASES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SEEN]


def _network(name: str) -> mx.gluon.HybridBlock:
    """Return a network with normalization statistics other than 0 and 1."""
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
def test_zoo_models_roundtrip_through_onnx(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is below 1e-5 in onnxruntime, and below 2e-6 after reimport."""
    if name not in ISOLATED:
        check_files_here(monkeypatch)
    size = max(64, SEEN[name])
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
