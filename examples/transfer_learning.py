"""Transfer learning: a network that reads digits learns odd from even with 20 images.

    python examples/transfer_learning.py

The features of the first network are kept and change slowly; the new output layer learns at full
speed. A network that starts from nothing gets the same images.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from sklearn.datasets import load_digits

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


def make_features() -> nn.HybridSequential:
    """Return layers from an image to 64 numbers."""
    layers = nn.HybridSequential()
    layers.add(
        nn.Conv2D(16, 3, padding=1, activation="relu"),
        nn.MaxPool2D(2),
        nn.Conv2D(32, 3, padding=1, activation="relu"),
        nn.MaxPool2D(2),
        nn.Dense(64, activation="relu"),
    )
    return layers


class Classifier(gluon.HybridBlock):
    """Features and an output layer, divided as in the model zoo."""

    def __init__(self, classes: int, features: nn.HybridSequential | None = None) -> None:
        super().__init__()
        with self.name_scope():
            self.features = make_features() if features is None else features
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F, images):
        """Return the scores of the classes."""
        return self.output(self.features(images))


def train(net: Classifier, images: np.ndarray, labels: np.ndarray, epochs: int) -> None:
    """Train all parameters, each with its own factor of the learning rate."""
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(images, labels), 32, shuffle=True)
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 5e-3})
    for _ in range(epochs):
        for x, y in loader:
            with autograd.record():
                loss = loss_function(net(x), y)
            loss.backward()
            trainer.step(len(x))


def accuracy(net: Classifier, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the fraction of images whose class is found."""
    return float((net(nd.array(images)).argmax(axis=1).asnumpy() == labels).mean())


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Return the accuracy on the new task from scratch, and with transferred features."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--examples", type=int, default=20, help="images of the new task")
    options = parser.parse_args(arguments)

    mx.random.seed(0)
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
    labels = labels.astype("float32")
    half = len(images) // 2

    known = Classifier(10)
    known.initialize(mx.init.Xavier())
    known.hybridize()
    train(known, images[:half], labels[:half], options.epochs)
    print(f"ten digits: accuracy {accuracy(known, images[half:], labels[half:]):.3f}")

    few = slice(half, half + options.examples)
    scratch = Classifier(2)
    scratch.initialize(mx.init.Xavier())
    tuned = Classifier(2, known.features)
    tuned.output.initialize(mx.init.Xavier())
    tuned.features.collect_params().setattr("lr_mult", 0.1)
    results = []
    for net in (scratch, tuned):
        train(net, images[few], labels[few] % 2, 3 * options.epochs)
        results.append(accuracy(net, images[few.stop :], labels[few.stop :] % 2))
    print(
        f"odd or even from {options.examples} images: from scratch {results[0]:.3f}, "
        f"with the features of the ten digits {results[1]:.3f}"
    )
    return results[0], results[1]


if __name__ == "__main__":
    main()
