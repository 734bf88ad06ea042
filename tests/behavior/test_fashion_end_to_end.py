"""End-to-end training on Fashion-MNIST, from arrays and from record files."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn
from mxnet.gluon.data.vision import FashionMNIST, transforms

FILES = Path("/usr/share/datasets/fashion-mnist")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILES.exists(), reason="needs Debian's package dataset-fashion-mnist"),
]


def test_training_on_fashion_mnist_reaches_accuracy():
    mx.random.seed(3)
    training = FashionMNIST(train=True).take(15_000).transform_first(transforms.ToTensor())
    checking = FashionMNIST(train=False).transform_first(transforms.ToTensor())
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(16, 5, padding=2, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Conv2D(32, 3, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Dense(128, activation="relu"),
        nn.Dense(10),
    )
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 2e-3})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(2):
        for images, labels in gluon.data.DataLoader(training, 128, shuffle=True):
            with autograd.record():
                loss = loss_of(net(images), labels)
            loss.backward()
            trainer.step(len(labels))
    metric = mx.metric.Accuracy()
    for images, labels in gluon.data.DataLoader(checking, 1000):
        metric.update(labels, net(images))
    assert metric.get()[1] > 0.82


def _written_as_pictures(folder: Path, count: int) -> None:
    cv2 = pytest.importorskip("cv2")
    data = FashionMNIST(train=True)
    for i in range(count):
        image, label = data[i]
        place = folder / f"class{int(label)}"
        place.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(place / f"{i:05d}.png"), image.asnumpy()[:, :, 0])


def test_training_on_record_files_of_fashion_mnist(tmp_path):
    from mxnet.io import im2rec

    mx.random.seed(4)
    np.random.seed(4)  # noqa: NPY002 (im2rec and old initialisers draw from it)
    _written_as_pictures(tmp_path / "pictures", 3000)
    prefix = str(tmp_path / "clothes")
    im2rec.main(
        [prefix, str(tmp_path / "pictures"), "--list", "--recursive", "--train-ratio", "0.8"]
    )
    for part in ("train", "val"):
        im2rec.main(
            [f"{prefix}_{part}", str(tmp_path / "pictures"), "--encoding", ".png", "--color", "0"]
        )
    batches = {
        part: mx.io.ImageRecordIter(
            path_imgrec=f"{prefix}_{part}.rec", data_shape=(1, 28, 28), batch_size=100,
            shuffle=part == "train", scale=1 / 255, preprocess_threads=2,
        )
        for part in ("train", "val")
    }  # fmt: skip
    net = mx.sym.Convolution(mx.sym.var("data"), kernel=(5, 5), num_filter=16, name="conv1")
    net = mx.sym.Pooling(
        mx.sym.Activation(net, act_type="relu"), kernel=(2, 2), stride=(2, 2), pool_type="max"
    )
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=64, name="fc1")
    net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="relu"), num_hidden=10, name="fc2")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    logger = logging.Logger("quiet")
    logger.addHandler(logging.StreamHandler(io.StringIO()))
    module = mx.mod.Module(net, logger=logger)
    module.fit(
        batches["train"],
        optimizer="adam",
        optimizer_params={"learning_rate": 2e-3},
        initializer=mx.init.Xavier(),
        num_epoch=6,
    )
    assert dict(module.score(batches["val"], "acc"))["accuracy"] > 0.78
