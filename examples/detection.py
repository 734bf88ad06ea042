"""A single-shot detector (SSD) that finds circles and squares in generated images.

    python examples/detection.py --iterations 600

Anchors, training targets and final boxes come from the MultiBox operators.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

CLASSES = ("circle", "square")
SIZE = 32  # pixels
SIZES, RATIOS = (0.25, 0.4), (1.0,)  # of the anchors at each position


def make_batch(random: np.random.Generator, count: int) -> tuple[nd.NDArray, nd.NDArray]:
    """Return images, and labels (class, left, top, right, bottom) of the shape in each."""
    images = random.uniform(0, 0.3, (count, 1, SIZE, SIZE)).astype("float32")
    labels = np.zeros((count, 1, 5), dtype="float32")
    rows, columns = np.mgrid[:SIZE, :SIZE] + 0.5
    for image, label in zip(images, labels, strict=True):
        kind, radius = random.integers(2), random.uniform(3.5, 7)
        x, y = random.uniform(radius, SIZE - radius, size=2)
        across, down = abs(columns - x), abs(rows - y)
        distance = np.hypot(across, down) if kind == 0 else np.maximum(across, down)
        image[0, distance <= radius] += 0.7
        label[0] = [kind, *np.array([x - radius, y - radius, x + radius, y + radius]) / SIZE]
    return nd.array(images), nd.array(labels)


class Detector(gluon.HybridBlock):
    """Predicts a class and a box for each anchor of an 8x8 grid."""

    def __init__(self) -> None:
        super().__init__()
        self._anchors_per_cell = len(SIZES) + len(RATIOS) - 1
        with self.name_scope():
            self.body = nn.HybridSequential()
            for channels in (16, 32):
                self.body.add(nn.Conv2D(channels, 3, padding=1), nn.BatchNorm())
                self.body.add(nn.Activation("relu"), nn.MaxPool2D())
            self.body.add(nn.Conv2D(64, 5, padding=2, activation="relu"))
            self.classes = nn.Conv2D(self._anchors_per_cell * (len(CLASSES) + 1), 3, padding=1)
            self.boxes = nn.Conv2D(self._anchors_per_cell * 4, 3, padding=1)

    def hybrid_forward(self, F, images):
        """Return anchors, class scores (batch, class, anchor) and flat box offsets."""
        features = self.body(images)
        anchors = F.contrib.MultiBoxPrior(features, sizes=SIZES, ratios=RATIOS)
        scores = self.classes(features).transpose((0, 2, 3, 1)).reshape((0, -1, len(CLASSES) + 1))
        offsets = self.boxes(features).transpose((0, 2, 3, 1)).flatten()
        return anchors, scores.transpose((0, 2, 1)), offsets


def evaluate(
    net: Detector, random: np.random.Generator, count: int = 100, picture: str | None = None
) -> float:
    """Return the fraction of new images whose best box has the right class and IoU ≥ 0.5."""
    images, labels = make_batch(random, count)
    anchors, scores, offsets = net(images)
    result = nd.contrib.MultiBoxDetection(nd.softmax(scores, axis=1), offsets, anchors)[:, :1]
    overlap = nd.contrib.box_iou(result[:, :, 2:], labels[:, :, 1:])
    overlap = overlap.asnumpy()[np.arange(count), 0, np.arange(count), 0]
    for (kind, score, *box), iou in list(zip(result[:, 0].asnumpy(), overlap, strict=True))[:3]:
        corners = " ".join(f"{SIZE * value:.0f}" for value in box)
        name = CLASSES[int(kind)] if kind >= 0 else "nothing"
        print(f"  {name} at {corners}, score {score:.2f}, IoU {iou:.2f}")
    if picture:
        save_picture(images.asnumpy(), result[:, 0].asnumpy(), picture)
    right = (result[:, 0, 0] == labels[:, 0, 0]).asnumpy() * (overlap >= 0.5)
    return float(right.mean())


def save_picture(images: np.ndarray, boxes: np.ndarray, path: str, count: int = 6) -> None:
    """Draw some images with the best box of each to a file."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    figure = Figure(figsize=(1.7 * count, 2.1), layout="constrained")
    for axes, image, box in zip(figure.subplots(1, count), images, boxes, strict=False):
        kind, score, left, top, right, bottom = box * [1, 1, SIZE, SIZE, SIZE, SIZE]
        axes.imshow(image[0], cmap="gray", extent=(0, SIZE, SIZE, 0))
        axes.add_patch(
            Rectangle((left, top), right - left, bottom - top, fill=False, color="tab:orange")
        )
        name = CLASSES[int(kind)] if kind >= 0 else "nothing"
        axes.set(title=f"{name} {score:.2f}", xticks=[], yticks=[])
    figure.savefig(path, dpi=80)


def main(arguments: Sequence[str] | None = None) -> float:
    """Train on endless images and return the fraction of right detections on new ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--picture", help="a file to draw the result to, such as result.png")
    options = parser.parse_args(arguments)

    mx.random.seed(0)
    random = np.random.default_rng(0)
    net = Detector()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    class_loss, box_loss = gluon.loss.SoftmaxCrossEntropyLoss(axis=1), gluon.loss.L1Loss()
    for iteration in range(1, options.iterations + 1):
        images, labels = make_batch(random, options.batch_size)
        with autograd.record():
            anchors, scores, offsets = net(images)
            with autograd.pause():
                targets, mask, classes = nd.contrib.MultiBoxTarget(
                    anchors, labels, scores, negative_mining_ratio=3
                )
                is_used = (classes >= 0).expand_dims(1)  # -1: an easy negative, left out
            loss = class_loss(scores, nd.relu(classes), is_used.transpose((0, 2, 1)))
            loss = 30 * loss + 10 * box_loss(offsets * mask, targets * mask)
        loss.backward()
        trainer.step(options.batch_size)
        if iteration % 50 == 0:
            print(f"iteration {iteration}: loss {loss.mean().asscalar():.3f}")
    accuracy = evaluate(net, random, picture=options.picture)
    print(f"{accuracy:.0%} of the shapes found")
    return accuracy


if __name__ == "__main__":
    main()
