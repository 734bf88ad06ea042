"""The models of `tools.deployments`: one of each kind that people deploy."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mxnet as mx
from examples.bert import LENGTH, WORDS, Layer
from examples.demo import digits, lenet
from mxnet.gluon import nn
from mxnet.interop.source import Model, as_model

RECURRENT = Path(__file__).resolve().parents[1] / "tests/golden/data/recurrent_models/lstm"
EPOCHS = 3


class Subject(NamedTuple):
    """A model with inputs to compare on."""

    model: Model
    inputs: dict[str, np.ndarray]


def _trained_digits() -> tuple[nn.HybridSequential, np.ndarray, np.ndarray]:
    """Return the demo network after a few epochs, training images and others."""
    mx.random.seed(0)
    training, validation = digits()
    net = lenet()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    for _ in range(EPOCHS):
        for images, labels in mx.gluon.data.DataLoader(training, 64):
            with mx.autograd.record():
                error = loss(net(images), labels)
            error.backward()
            trainer.step(len(images))
    parts = [np.stack([np.asarray(d[i][0]) for i in range(8)]) for d in (training, validation)]
    return net, parts[0], parts[1]


def demo() -> Subject:
    """Return the network of examples/demo.py, trained on digits."""
    net, _, images = _trained_digits()
    return Subject(as_model(net, shapes=[images.shape]), {"data": images})


def demo_int8() -> Subject:
    """Return the same with 8-bit layers."""
    net, calibration, images = _trained_digits()
    with tempfile.TemporaryDirectory() as folder:
        prefix = f"{folder}/demo-int8"
        mx.convert.convert(net, prefix, [images.shape], inputs=[{"data": calibration}])
        files = (f"{prefix}-symbol.json", f"{prefix}-0000.params")
        model = as_model(files[0], params=files[1], shapes=[images.shape])
    return Subject(replace(model, name="demo-int8"), {"data": images})


def mxnet_lstm() -> Subject:
    """Return an LSTM with a dense layer, as MXNet 1.9.1 exported it."""
    with np.load(f"{RECURRENT}.npz") as stored:
        data = stored["data"]
    params = f"{RECURRENT}-0000.params"
    model = as_model(f"{RECURRENT}-symbol.json", params=params, shapes=[data.shape])
    return Subject(model, {"data": data})


class Pyramid(mx.gluon.HybridBlock):
    """Levels of features that are enlarged and added, with a head on each, as RetinaFace has."""

    def __init__(self, channels: int = 16, levels: int = 3) -> None:
        super().__init__()
        self._levels = levels
        with self.name_scope():
            self.down, self.side, self.heads = (nn.HybridSequential() for _ in range(3))
            for _ in range(levels):
                layer = nn.HybridSequential()
                layer.add(nn.Conv2D(channels, 3, 2, 1), nn.BatchNorm(), nn.LeakyReLU(0.1))
                self.down.add(layer)
                self.side.add(nn.Conv2D(channels, 1))
                self.heads.add(nn.Conv2D(2 * (2 + 4 + 10), 1))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return scores, boxes and points of all places, of shape (batch, places, 16)."""
        maps = []
        for level in range(self._levels):
            x = self.down[level](x)
            maps.append(self.side[level](x))
        total, rows = None, []
        for level in reversed(range(self._levels)):
            if total is None:
                total = maps[level]
            else:
                up = F.UpSampling(total, scale=2, sample_type="nearest", num_args=1)
                total = maps[level] + F.Crop(up, maps[level], num_args=2)
            head = F.transpose(self.heads[level](total), axes=(0, 2, 3, 1))
            rows.append(F.reshape(head, shape=(0, -1, 16)))
        return F.concat(*rows, dim=1)


class Encoder(mx.gluon.HybridBlock):
    """BERT with the layers of examples/bert.py: words to a score for each word of the language."""

    def __init__(self, units: int = 64, layers: int = 4, heads: int = 4) -> None:
        super().__init__()
        with self.name_scope():
            self.words = nn.Embedding(len(WORDS), units)
            self.places = self.params.get("places", shape=(1, LENGTH, units))
            self.layers = nn.HybridSequential()
            for _ in range(layers):
                self.layers.add(Layer(units, heads))
            self.guess = nn.Dense(len(WORDS), flatten=False)

    def hybrid_forward(self, F: Any, tokens: Any, places: Any) -> Any:
        """Return the scores."""
        return self.guess(self.layers(F.broadcast_add(self.words(tokens), places)))


def _initialized(net: mx.gluon.HybridBlock, shape: tuple[int, ...], inputs: Any = None) -> Subject:
    mx.random.seed(0)
    net.initialize(mx.init.MSRAPrelu("in", 0))  # numbers keep their size through all layers
    if inputs is None:
        inputs = np.random.RandomState(0).standard_normal(shape).astype(np.float32)
    return Subject(as_model(net, shapes=[shape]), {"data": inputs})


def bert() -> Subject:
    """Return an encoder on two sentences."""
    tokens = np.random.RandomState(0).randint(0, len(WORDS), (2, LENGTH))
    return _initialized(Encoder(), tokens.shape, tokens.astype(np.float32))


def zoo(name: str, size: int = 224) -> Callable[[], Subject]:
    """Return a function that makes a network of the zoo."""
    return lambda: _initialized(mx.gluon.model_zoo.vision.get_model(name), (1, 3, size, size))


MODELS: dict[str, Callable[[], Subject]] = {
    "digits (examples/demo.py)": demo,
    "digits, 8-bit": demo_int8,
    "LSTM of MXNet 1.9.1": mxnet_lstm,
    "BERT, 4 layers": bert,
    "face pyramid": lambda: _initialized(Pyramid(), (1, 3, 96, 128)),
    "MobileNet 0.25": zoo("mobilenet0.25"),
    "MobileNetV2 1.0": zoo("mobilenetv2_1.0"),
    "SqueezeNet 1.1": zoo("squeezenet1.1"),
    "ResNet-18 v1": zoo("resnet18_v1"),
    "ResNet-18 v2": zoo("resnet18_v2"),
    "DenseNet-121": zoo("densenet121"),
    "Inception v3": zoo("inceptionv3", 299),
    "AlexNet": zoo("alexnet"),
    "VGG-11": zoo("vgg11"),
}
