"""Semantic segmentation: a small U-Net finds circles and squares, pixel by pixel.

    python examples/segmentation.py --iterations 300

The images are generated; one is shown as text beside what the network says about it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

SIZE = 32
CLASSES = ("background", "circle", "square")


def make_batch(rng: np.random.Generator, count: int) -> tuple[nd.NDArray, nd.NDArray]:
    """Return noisy images with a circle and a square, and the class of each pixel."""
    rows, columns = np.mgrid[:SIZE, :SIZE]
    masks = np.zeros((count, SIZE, SIZE), dtype="float32")
    for mask in masks:
        for kind in (1, 2):
            y, x, r = rng.integers(6, SIZE - 6), rng.integers(6, SIZE - 6), rng.integers(4, 7)
            distance = np.hypot(rows - y, columns - x)
            if kind == 2:
                distance = np.maximum(abs(rows - y), abs(columns - x))
            mask[distance <= r] = kind
    images = (masks[:, None] > 0) + 0.4 * rng.standard_normal((count, 1, SIZE, SIZE))
    return nd.array(images), nd.array(masks)


def double(channels: int) -> nn.HybridSequential:
    """Return two convolutions with batch normalization."""
    layers = nn.HybridSequential()
    for _ in range(2):
        layers.add(nn.Conv2D(channels, 3, padding=1, use_bias=False), nn.BatchNorm())
        layers.add(nn.Activation("relu"))
    return layers


class UNet(gluon.HybridBlock):
    """Down twice and up again, with the finer features joined on the way up."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        with self.name_scope():
            self.fine, self.middle, self.coarse = double(16), double(32), double(64)
            self.pool = nn.MaxPool2D(2)
            self.up_middle = nn.Conv2DTranspose(32, 2, strides=2)
            self.up_fine = nn.Conv2DTranspose(16, 2, strides=2)
            self.join_middle, self.join_fine = double(32), double(16)
            self.output = nn.Conv2D(classes, 1)

    def hybrid_forward(self, F, x):
        """Return the scores of each class at each pixel."""
        fine = self.fine(x)
        middle = self.middle(self.pool(fine))
        coarse = self.coarse(self.pool(middle))
        middle = self.join_middle(F.concat(self.up_middle(coarse), middle, dim=1))
        return self.output(self.join_fine(F.concat(self.up_fine(middle), fine, dim=1)))


def mean_overlap(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return intersection over union, averaged over the classes."""
    pairs = [(found == k, wanted == k) for k in range(len(CLASSES))]
    return float(np.mean([(a & b).sum() / max((a | b).sum(), 1) for a, b in pairs]))


def show(found: np.ndarray, wanted: np.ndarray) -> str:
    """Return two maps of classes side by side, every second row."""
    letters = np.array([".", "o", "#"])
    rows = zip(letters[wanted.astype(int)], letters[found.astype(int)], strict=True)
    return "\n".join(f"{''.join(a)}   {''.join(b)}" for a, b in list(rows)[::2])


def save_picture(
    images: np.ndarray, masks: np.ndarray, results: np.ndarray, path: str, count: int = 5
) -> None:
    """Draw some images, what is there and what the network finds, to a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.7 * count, 5.2), layout="constrained")
    kinds = {"image": images[:, 0], "truth": masks, "found": results}
    for row, (kind, arrays) in zip(figure.subplots(3, count), kinds.items(), strict=True):
        for axes, array in zip(row, arrays, strict=False):
            axes.imshow(array, cmap="gray" if kind == "image" else "viridis")
            axes.set(title=kind, xticks=[], yticks=[])
    figure.savefig(path, dpi=80)


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, show one image, and return the mean overlap on new images."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--picture", help="a file to draw the result to, such as result.png")
    options = parser.parse_args(arguments)

    mx.random.seed(0)
    rng = np.random.default_rng(0)
    net = UNet(len(CLASSES))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss(axis=1)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    for i in range(1, options.iterations + 1):
        images, masks = make_batch(rng, options.batch_size)
        with autograd.record():
            loss = loss_function(net(images), masks)
        loss.backward()
        trainer.step(options.batch_size)
        if i % 50 == 0:
            print(f"iteration {i}: loss {loss.mean().asscalar():.3f}")

    images, masks = make_batch(rng, 32)
    result = net(images).argmax(axis=1).asnumpy()
    overlap = mean_overlap(result, masks.asnumpy())
    print("what is there                      what the network finds")
    print(show(result[0], masks[0].asnumpy()))
    if options.picture:
        save_picture(images.asnumpy(), masks.asnumpy(), result, options.picture)
    print(f"mean overlap of {', '.join(CLASSES)}: {overlap:.3f}")
    return overlap


if __name__ == "__main__":
    main()
