"""Servers that many tests share: each is started once."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet import gluon

from .server import DENSE, serving

NEEDED = ("granian", "starlette", "msgspec", "prometheus_client", "python_multipart")


@pytest.fixture(scope="session", autouse=True)
def _packages():
    for name in NEEDED:
        pytest.importorskip(name)


@pytest.fixture(scope="session")
def image_model(tmp_path_factory):
    """A small network for images of 32 x 32, with labels and settings beside it."""
    folder = tmp_path_factory.mktemp("image_model")
    mx.random.seed(0)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(4, 3, strides=4), gluon.nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.zeros((1, 3, 32, 32)))
    net.export(str(folder / "animals"))
    (folder / "labels.txt").write_text("cat\ndog\nowl\n")
    (folder / "animals-serve.json").write_text(
        '{"shape": {"data": [3, 32, 32]}, "labels": "labels.txt", "softmax": true, "top": 2,'
        ' "preprocess": {"scale": 0.00392157}}'
    )
    return str(folder / "animals")


@pytest.fixture(scope="session")
def both(image_model):
    """A server of two models, with short times."""
    with serving(
        f"dense={DENSE}",
        f"animals={image_model}",
        "--header-timeout=4",
        "--timeout=6",
        "--max-connections=64",
        "--max-in-flight=48",
        "--max-queue=64",
        "--max-pixels=1000000",
    ) as server:
        yield server


@pytest.fixture(scope="session")
def dense():
    """A server of one model, whose shape is known."""
    with serving(DENSE, "--shape=5", "--max-connections=64", "--timeout=6") as server:
        yield server
