"""Every model of the zoo, exported and run by onnxruntime."""

from __future__ import annotations

import functools
import pathlib

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.model_zoo import vision
from tests.onnx.running import relative_error, run

QUICK = {"squeezenet1.1": 224, "resnet18_v2": 64, "mobilenetv2_0.25": 64}
NAMES = sorted(vision.MODELS)
SIZES = {"inceptionv3": 299}


@functools.cache
def _prepared(name: str, size: int) -> tuple:
    mx.random.seed(3)
    net = vision.get_model(name, classes=10)
    net.initialize(mx.init.Xavier(magnitude=2.0))
    data = mx.nd.random.normal(shape=(1, 3, size, size))
    net.hybridize()
    with mx.autograd.record():  # moves the running statistics of normalization
        net(mx.nd.random.normal(shape=(2, 3, size, size)))
    return net, data, net(data).asnumpy()


def _export(net: mx.gluon.HybridBlock, folder: pathlib.Path, shape: tuple) -> str:
    net.export(str(folder / "net"))
    return mx.onnx.export_model(
        str(folder / "net-symbol.json"),
        str(folder / "net-0000.params"),
        [shape],
        np.float32,
        str(folder / "net.onnx"),
    )


def _check(name: str, size: int, folder: pathlib.Path) -> None:
    net, data, wanted = _prepared(name, size)
    path = _export(net, folder, data.shape)
    found = run(path, {"data": data.asnumpy()})
    assert relative_error(found[0], wanted) < 1e-5


@pytest.mark.parametrize("name", QUICK)
def test_zoo_model_runs_in_onnxruntime(name: str, tmp_path: pathlib.Path) -> None:
    """Small images suffice for these; the error stays below 1e-5."""
    _check(name, QUICK[name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_zoo_model_runs_in_onnxruntime(name: str, tmp_path: pathlib.Path) -> None:
    """All models at their own size."""
    _check(name, SIZES.get(name, 224), tmp_path)
