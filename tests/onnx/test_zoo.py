"""Every model of the zoo: exported, run by onnxruntime, imported again."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import onnx as contrib_onnx
from mxnet.gluon.model_zoo import vision
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


def _network(name: str, size: int) -> mx.gluon.HybridBlock:
    mx.random.seed(3)
    net = vision.get_model(name, classes=10)
    net.initialize(mx.init.Xavier(magnitude=2.0))
    net.hybridize()
    with mx.autograd.record():  # moves the running statistics of normalization
        net(mx.nd.random.normal(shape=(2, 3, size, size)))
    return net


@pytest.mark.parametrize("name", CASES)
def test_zoo_model_goes_out_and_comes_back(name: str, tmp_path: pathlib.Path) -> None:
    """The error stays below 1e-5 in onnxruntime, and below 1e-6 after the way back."""
    size = _size(name)
    net = _network(name, size)
    data = mx.nd.random.normal(shape=(1, 3, size, size))
    wanted = net(data).asnumpy()
    net.export(str(tmp_path / "net"))
    path = mx.onnx.export_model(
        str(tmp_path / "net-symbol.json"),
        str(tmp_path / "net-0000.params"),
        [data.shape],
        np.float32,
        str(tmp_path / "net.onnx"),
    )
    assert relative_error(run(path, {"data": data.asnumpy()})[0], wanted) < 1e-5
    again = contrib_onnx.import_to_gluon(path)(data).asnumpy()
    assert relative_error(again, wanted) < 2e-6
