"""Train a small convolutional network on handwritten digits, save it, and load it again.

The data are the 1,797 real images that scikit-learn ships, so nothing is downloaded. Results go to
`demo_output/`: the network (`digits-symbol.json`, `digits-0000.params`) and `digits.png` with the
curves of training, the confusion matrix and the mistakes.
"""

from __future__ import annotations

import pathlib
import time
from typing import Any

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
    """Return the fraction of right answers."""
    metric = mx.metric.Accuracy()
    for images, labels in data:
        metric.update(labels, net(images))
    return metric.get()[1]


def train(
    net: gluon.Block, data: gluon.data.DataLoader, check: gluon.data.DataLoader
) -> mx.tracking.History:
    """Train with a bar for each epoch; return the loss and validation accuracy of each."""
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 2e-3})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    history = mx.tracking.History()
    for epoch in range(1, EPOCHS + 1):
        start, mean_loss = time.perf_counter(), mx.metric.Loss()
        for images, labels in mx.progress(data, f"epoch {epoch:2d}", leave=False):
            with autograd.record():
                loss = loss_of(net(images), labels)
            loss.backward()
            trainer.step(len(labels))
            mean_loss.update(None, loss)
        seconds = time.perf_counter() - start
        values = {"train_loss": mean_loss.get()[1], "val_accuracy": accuracy(net, check)}
        history.add(epoch, seconds, values)
        print(
            f"epoch {epoch:2d}  loss {values['train_loss']:.4f}  "
            f"validation accuracy {values['val_accuracy']:.4f}  {1400 / seconds:6.0f} images/s"
        )
    return history


def draw_curves(figure: Any, history: mx.tracking.History) -> None:
    """Draw loss and accuracy over the epochs."""
    all_axes = figure.subplots(2, 1, sharex=True)
    for axes, name in zip(all_axes, history, strict=True):
        axes.plot(history.epoch, history[name], marker="o", markersize=3)
        axes.set_title(name.replace("_", " "), fontsize=10)
        axes.grid(alpha=0.3)
    all_axes[-1].set_xlabel("epoch")


def draw_confusion(figure: Any, labels: np.ndarray, predicted: np.ndarray) -> None:
    """Draw how often each digit was taken for each other."""
    confusion = np.zeros((10, 10), dtype=int)
    np.add.at(confusion, (labels, predicted), 1)
    axes = figure.subplots()
    axes.imshow(confusion, cmap="Blues")
    for row, column in np.ndindex(10, 10):
        if confusion[row, column]:
            color = "white" if confusion[row, column] > 20 else "black"
            axes.text(column, row, confusion[row, column], ha="center", va="center", color=color)
    axes.set(xlabel="predicted", ylabel="true", xticks=range(10), yticks=range(10))
    axes.set_title("Confusion matrix")


def draw_mistakes(
    figure: Any, images: nd.NDArray, labels: np.ndarray, predicted: np.ndarray
) -> None:
    """Draw some images with their predictions, mistakes first."""
    order = np.argsort(predicted == labels, kind="stable")
    for position, axes in zip(order, figure.subplots(4, 6).flat, strict=False):
        axes.imshow(images[int(position), 0].asnumpy(), cmap="gray_r")
        color = "black" if predicted[position] == labels[position] else "crimson"
        axes.set_title(f"{predicted[position]} ({labels[position]})", fontsize=9, color=color)
        axes.axis("off")
    figure.suptitle("Predicted (true): mistakes first")


def draw(
    net: gluon.Block,
    data: gluon.data.ArrayDataset,
    history: mx.tracking.History,
    path: pathlib.Path,
) -> None:
    """Write a plot of the training and of what the network says."""
    images, labels = nd.array(data[:][0]), np.asarray(data[:][1], dtype=int)
    predicted = net(images).argmax(axis=1).asnumpy().astype(int)
    figure = pyplot.figure(figsize=(15, 5), layout="constrained")
    parts: Any = figure.subfigures(1, 3)
    draw_curves(parts[0], history)
    draw_confusion(parts[1], labels, predicted)
    draw_mistakes(parts[2], images, labels, predicted)
    figure.savefig(path, dpi=110)


NEXT = """
What to try next:
  mx summary {0}/digits --shape data=1,1,8,8     layers, parameters and work
  mx view {0}/digits --output {0}/digits.html    the network in a browser
  mx convert {0}/digits --to torch --shape data=1,1,8,8   a program that torch runs"""


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
    history = train(net, loader, check)
    result = history.last["val_accuracy"]
    OUTPUT.mkdir(exist_ok=True)
    net.export(str(OUTPUT / "digits"))
    draw(net, validation, history, OUTPUT / "digits.png")
    again = gluon.SymbolBlock.imports(
        str(OUTPUT / "digits-symbol.json"), ["data"], str(OUTPUT / "digits-0000.params")
    )
    loaded = accuracy(again, check)
    print(f"saved, loaded again: validation accuracy {loaded:.4f}")
    print(f"see {OUTPUT}/digits.png; {time.perf_counter() - start:.0f} seconds in all")
    if loaded != result or result < 0.98:
        raise SystemExit("the demo did not reach what it promises")
    print(NEXT.format(OUTPUT))


if __name__ == "__main__":
    main()
