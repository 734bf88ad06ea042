"""Train a small network on handwritten digits with arrays and automatic differentiation alone.

Run `make demo`. It shows its progress, then leaves in `demo_output/` the trained weights
(`digits.params`, a file that MXNet 1.x can load) and a picture of how the training went.
"""

from __future__ import annotations

import pathlib
import sys
import time

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import mxnet as mx
from mxnet import autograd, nd

mpl.use("Agg")  # draws into files; no screen needed
from matplotlib import pyplot as plt

OUTPUT = pathlib.Path(__file__).resolve().parents[1] / "demo_output"
EPOCHS, BATCH, HIDDEN = 30, 64, 64
LEARNING_RATE, MOMENTUM = 0.1, 0.9


def load_data() -> list[np.ndarray]:
    """Return training pictures, test pictures, training labels and test labels."""
    pixels, labels = load_digits(return_X_y=True)
    pixels = (pixels / 16).astype("float32")
    return train_test_split(pixels, labels, test_size=0.25, random_state=0, stratify=labels)


def new_parameters() -> dict[str, nd.NDArray]:
    """Return random weights and zero biases that record their gradients."""
    parameters = {
        "hidden_weight": nd.random.normal(0, (2 / 64) ** 0.5, shape=(HIDDEN, 64)),
        "hidden_bias": nd.zeros(HIDDEN),
        "output_weight": nd.random.normal(0, (1 / HIDDEN) ** 0.5, shape=(10, HIDDEN)),
        "output_bias": nd.zeros(10),
    }
    for array in parameters.values():
        array.attach_grad()
    return parameters


def forward(p: dict[str, nd.NDArray], x: nd.NDArray) -> nd.NDArray:
    """Return ten scores for each picture."""
    hidden = nd.FullyConnected(x, p["hidden_weight"], p["hidden_bias"], num_hidden=HIDDEN)
    return nd.FullyConnected(nd.relu(hidden), p["output_weight"], p["output_bias"], num_hidden=10)


def accuracy(p: dict[str, nd.NDArray], x: nd.NDArray, labels: np.ndarray) -> float:
    """Return the share of pictures whose best score is that of their label."""
    return float((forward(p, x).argmax(axis=1).asnumpy() == labels).mean())


def train_epoch(
    p: dict[str, nd.NDArray],
    speed: dict[str, nd.NDArray],
    x: np.ndarray,
    labels: np.ndarray,
    order: np.ndarray,
) -> float:
    """Go once through the pictures by gradient descent with momentum; return the mean loss."""
    total = 0.0
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        batch, target = nd.array(x[chosen]), nd.array(labels[chosen])
        with autograd.record():
            loss = -nd.pick(nd.log_softmax(forward(p, batch)), target).mean()
        loss.backward()
        for name, array in p.items():
            speed[name][:] = MOMENTUM * speed[name] - LEARNING_RATE * array.grad
            array += speed[name]
        total += loss.asscalar() * len(chosen)
    return total / len(order)


def draw(
    history: list[tuple[float, float]],
    pictures: np.ndarray,
    guesses: np.ndarray,
    path: pathlib.Path,
) -> None:
    """Draw the course of the training and the first test pictures with the guessed digits."""
    figure = plt.figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    losses, scores = zip(*history, strict=True)
    epochs = range(1, len(history) + 1)
    axes.plot(epochs, losses, color="tab:red", label="training loss")
    axes.plot(epochs, scores, color="tab:blue", label="test accuracy")
    axes.set_xlabel("epoch")
    axes.set_ylim(0, 1.05)
    axes.legend()
    for cell, picture, guess in zip(right.subplots(4, 6).flat, pictures, guesses, strict=False):
        cell.imshow(picture.reshape(8, 8), cmap="gray_r")
        cell.set_title(str(int(guess)), fontsize=9)
        cell.axis("off")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    """Train, test, save, load again, draw."""
    mx.random.seed(0)
    shuffle = np.random.default_rng(0)
    x_train, x_test, y_train, y_test = load_data()
    parameters = new_parameters()
    speed = {name: nd.zeros_like(array) for name, array in parameters.items()}
    test_pictures = nd.array(x_test)
    print(f"{len(x_train)} pictures to learn from, {len(x_test)} to be tested on")

    history, start = [], time.perf_counter()
    live = sys.stdout.isatty()
    for epoch in range(1, EPOCHS + 1):
        loss = train_epoch(parameters, speed, x_train, y_train, shuffle.permutation(len(x_train)))
        history.append((loss, accuracy(parameters, test_pictures, y_test)))
        if live or epoch % 5 == 0:
            bar = "#" * epoch + "." * (EPOCHS - epoch)
            text = f"[{bar}] epoch {epoch:2}  loss {loss:.4f}  test accuracy {history[-1][1]:.3f}"
            print(text, end="\r" if live and epoch < EPOCHS else "\n", flush=True)
    print(f"trained in {time.perf_counter() - start:.1f} s")

    OUTPUT.mkdir(exist_ok=True)
    checkpoint, picture = OUTPUT / "digits.params", OUTPUT / "training.png"
    nd.save(str(checkpoint), parameters)
    loaded = nd.load(str(checkpoint))
    final = accuracy(loaded, test_pictures, y_test)
    guesses = forward(loaded, test_pictures).argmax(axis=1).asnumpy()
    draw(history, x_test, guesses, picture)
    print(f"test accuracy of the saved and reloaded weights: {final:.3f}")
    print(f"weights: {checkpoint}\npicture: {picture}")
    return 0 if final > 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
