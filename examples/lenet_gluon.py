"""LeNet on handwritten digits with Gluon: define, train, validate, save and load.

    python examples/lenet_gluon.py --epochs 10

The data are the 1,797 images of 8x8 pixels that scikit-learn ships.
"""

from __future__ import annotations

import argparse
import pathlib
import tempfile
from collections.abc import Sequence

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn


def make_loaders(batch_size: int) -> tuple[gluon.data.DataLoader, gluon.data.DataLoader]:
    """Return loaders of training and validation batches."""
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 1, 8, 8).astype("float32") / 16
    split = train_test_split(images, labels.astype("float32"), test_size=0.2, random_state=0)
    train_images, test_images, train_labels, test_labels = split
    train = gluon.data.ArrayDataset(train_images, train_labels)
    test = gluon.data.ArrayDataset(test_images, test_labels)
    return (
        gluon.data.DataLoader(train, batch_size, shuffle=True),
        gluon.data.DataLoader(test, batch_size),
    )


def make_lenet() -> nn.HybridSequential:
    """Return two convolutions and two dense layers."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(20, kernel_size=3, padding=1, activation="tanh"),
        nn.MaxPool2D(),
        nn.Conv2D(50, kernel_size=3, padding=1, activation="tanh"),
        nn.MaxPool2D(),
        nn.Dense(128, activation="tanh"),
        nn.Dense(10),
    )
    return net


def evaluate(net: gluon.Block, loader: gluon.data.DataLoader) -> float:
    """Return the accuracy of `net`."""
    metric = mx.metric.Accuracy()
    for images, labels in loader:
        metric.update(labels, net(images))
    return metric.get()[1]


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, print the loss and accuracy of each epoch, and return the last accuracy."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--picture", help="a file to draw the result to, such as result.png")
    options = parser.parse_args(arguments)

    mx.random.seed(0)
    train, test = make_loaders(options.batch_size)
    net = make_lenet()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    settings = {"learning_rate": options.learning_rate, "momentum": 0.9}
    trainer = gluon.Trainer(net.collect_params(), "sgd", settings)
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    history: dict[str, list[float]] = {"train_loss": [], "val_accuracy": []}
    for epoch in range(1, options.epochs + 1):
        mean_loss = mx.metric.Loss()
        for images, labels in train:
            with autograd.record():
                loss = loss_fn(net(images), labels)
            loss.backward()
            trainer.step(len(images))
            mean_loss.update(None, loss)
        accuracy = evaluate(net, test)
        history["train_loss"].append(mean_loss.get()[1])
        history["val_accuracy"].append(accuracy)
        print(f"epoch {epoch}: loss {mean_loss.get()[1]:.4f}, accuracy {accuracy:.4f}")

    if options.picture:
        mx.viz.plot_history(history, options.picture)
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "lenet.params")
        net.save_parameters(path)
        loaded = make_lenet()
        loaded.load_parameters(path)
        print(f"saved and loaded: accuracy {evaluate(loaded, test):.4f}")
    return evaluate(net, test)


if __name__ == "__main__":
    main()
