"""Train on handwritten digits with several workers; run it with `mx launch`.

    mx launch -n 4 python examples/distributed/train_digits.py

The data are the 1,797 images that scikit-learn ships. Each worker takes its part of every epoch;
gradients are summed by a ``dist_sync`` store, and rank 0 shows the progress of all workers.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


class SplitSampler(gluon.data.sampler.Sampler):
    """Gives each worker its part of the samples, in a new order each epoch.

    Parameters
    ----------
    length : int
        Number of samples of all workers.
    num_parts, part_index : int
        Number of workers, and which of them this is.
    """

    def __init__(self, length: int, num_parts: int, part_index: int) -> None:
        self._part = length // num_parts  # the same number of batches for every worker
        self._start = self._part * part_index
        self._random = np.random.RandomState(part_index)

    def __iter__(self):
        return iter((self._start + self._random.permutation(self._part)).tolist())

    def __len__(self) -> int:
        return self._part


def digits() -> tuple[gluon.data.ArrayDataset, gluon.data.ArrayDataset]:
    """Return training and validation sets of 8x8 images and their labels."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(7).permutation(len(images))
    images = (images[order] / 16.0).reshape(-1, 1, 8, 8).astype("float32")
    labels = labels[order].astype("float32")
    return (
        gluon.data.ArrayDataset(images[:1400], labels[:1400]),
        gluon.data.ArrayDataset(images[1400:], labels[1400:]),
    )


def lenet() -> nn.HybridSequential:
    """Return a small convolutional network."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(32, kernel_size=3, padding=1, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Flatten(),
        nn.Dense(128, activation="relu"),
        nn.Dense(10),
    )
    return net


def main() -> None:
    """Train, and print the accuracy over all workers after each epoch."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kv-store", default="dist_sync")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=25, help="of each worker")
    options = parser.parse_args()

    store = mx.kvstore.create(options.kv_store)
    train, validation = digits()
    sampler = SplitSampler(len(train), store.num_workers, store.rank)
    batches = gluon.data.DataLoader(train, options.batch_size, sampler=sampler)
    net = lenet()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    settings = {"learning_rate": 2e-3}
    trainer = gluon.Trainer(net.collect_params(), "adam", settings, kvstore=store)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    metric = mx.metric.Accuracy()
    for epoch in range(options.epochs):
        start, seen = time.time(), 0
        metric.reset()
        for number, (images, labels) in enumerate(batches, 1):
            with autograd.record():
                scores = net(images)
                loss = loss_of(scores, labels)
            loss.backward()
            trainer.step(len(images) * store.num_workers)
            metric.update([labels], [scores])
            seen += len(images) * store.num_workers
            if store.rank == 0 and number % 5 == 0:
                rate = seen / (time.time() - start)
                print(f"epoch {epoch} batch {number}/{len(batches)}: {rate:.0f} images/s")
        mx.distributed.reduce_metric(metric)
        if store.rank == 0:
            images, labels = (nd.array(part) for part in validation[:])
            right = float((net(images).argmax(axis=1) == labels).mean().asscalar())
            trained = metric.get()[1]
            print(f"epoch {epoch}: training accuracy {trained:.3f}, validation {right:.3f}")


if __name__ == "__main__":
    main()
