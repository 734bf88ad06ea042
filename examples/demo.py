"""Train a small convolutional network on handwritten digits, save it, and load it again.

The data are the 1,797 real images that scikit-learn ships, so nothing is downloaded. Results go to
`demo_output/`: the network (`digits-symbol.json`, `digits-0000.params`) and `digits.png`.
"""

from __future__ import annotations

import pathlib
import sys
import time

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

matplotlib.use("Agg")
from matplotlib import pyplot

OUTPUT = pathlib.Path("demo_output")
EPOCHS, BATCH = 20, 64


def digits() -> tuple[gluon.data.ArrayDataset, gluon.data.ArrayDataset]:
    """Return training and validation sets of 8x8 images and their labels."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(7).permutation(len(images))
    images = (images[order] / 16.0).reshape(-1, 1, 8, 8).astype("float32")
    labels = labels[order].astype("float32")
    cut = 1400
    return (
        gluon.data.ArrayDataset(images[:cut], labels[:cut]),
        gluon.data.ArrayDataset(images[cut:], labels[cut:]),
    )


def lenet() -> nn.HybridSequential:
    """Return a small relative of LeNet for 8x8 images."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(32, kernel_size=3, padding=1, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Conv2D(64, kernel_size=3, padding=1, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Flatten(),
        nn.Dense(128, activation="relu"),
        nn.Dropout(0.3),
        nn.Dense(10),
    )
    return net


def accuracy(net: gluon.Block, data: gluon.data.DataLoader) -> float:
    """Return the share of right answers."""
    metric = mx.metric.Accuracy()
    for images, labels in data:
        metric.update(labels, net(images))
    return metric.get()[1]


def train(net: gluon.Block, data: gluon.data.DataLoader, check: gluon.data.DataLoader) -> float:
    """Train with a live line for each epoch; return the last validation accuracy."""
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 2e-3})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    found = 0.0
    for epoch in range(1, EPOCHS + 1):
        start, total, seen = time.perf_counter(), 0.0, 0
        for images, labels in data:
            with autograd.record():
                loss = loss_of(net(images), labels)
            loss.backward()
            trainer.step(len(labels))
            total, seen = total + float(loss.sum().asscalar()), seen + len(labels)
            rate = seen / (time.perf_counter() - start)
            sys.stdout.write(f"\repoch {epoch:2d}  loss {total / seen:.4f}  {rate:6.0f} images/s")
            sys.stdout.flush()
        found = accuracy(net, check)
        print(f"  validation accuracy {found:.4f}")
    return found


def picture(net: gluon.Block, data: gluon.data.ArrayDataset, path: pathlib.Path) -> None:
    """Draw the confusion matrix and some predictions."""
    images, labels = nd.array(data[:][0]), np.asarray(data[:][1], dtype=int)
    predicted = net(images).argmax(axis=1).asnumpy().astype(int)
    confusion = np.zeros((10, 10), dtype=int)
    np.add.at(confusion, (labels, predicted), 1)
    figure = pyplot.figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    axes.imshow(confusion, cmap="Blues")
    for row, column in np.ndindex(10, 10):
        if confusion[row, column]:
            colour = "white" if confusion[row, column] > 20 else "black"
            axes.text(column, row, confusion[row, column], ha="center", va="center", color=colour)
    axes.set(xlabel="predicted", ylabel="true", xticks=range(10), yticks=range(10))
    axes.set_title("Confusion matrix")
    wrong_first = np.argsort(predicted == labels, kind="stable")
    for place, axes in zip(wrong_first, right.subplots(4, 6).flat, strict=False):
        axes.imshow(images[int(place), 0].asnumpy(), cmap="gray_r")
        right_answer = predicted[place] == labels[place]
        colour = "black" if right_answer else "crimson"
        axes.set_title(f"{predicted[place]} ({labels[place]})", fontsize=9, color=colour)
        axes.axis("off")
    right.suptitle("Predicted (true): mistakes first")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Train, save, draw, load and predict."""
    start = time.perf_counter()
    mx.random.seed(42)
    training, validation = digits()
    net = lenet()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    loader = gluon.data.DataLoader(training, BATCH, shuffle=True)
    check = gluon.data.DataLoader(validation, 397)
    found = train(net, loader, check)
    OUTPUT.mkdir(exist_ok=True)
    net.export(str(OUTPUT / "digits"))
    picture(net, validation, OUTPUT / "digits.png")
    again = gluon.SymbolBlock.imports(
        str(OUTPUT / "digits-symbol.json"), ["data"], str(OUTPUT / "digits-0000.params")
    )
    loaded = accuracy(again, check)
    print(f"saved, loaded again: validation accuracy {loaded:.4f}")
    print(f"see {OUTPUT}/digits.png; {time.perf_counter() - start:.0f} seconds in all")
    if loaded != found or found < 0.98:
        raise SystemExit("the demo did not reach what it promises")


if __name__ == "__main__":
    main()
