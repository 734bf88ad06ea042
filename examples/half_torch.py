"""One network, half Gluon and half torch, trained from either side on the same memory.

    python examples/half_torch.py --epochs 3

Convolutions are Gluon's, the classifier is a torch module inside a `TorchBlock`. First a Gluon
Trainer trains the whole; then the whole becomes a torch module and AdamW continues.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from sklearn.datasets import load_digits

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


def load_data(batch_size: int) -> tuple[gluon.data.DataLoader, torch.Tensor, torch.Tensor]:
    """Return batches to train on, and images and labels to test on."""
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels.reshape(-1, 1, 8, 8) / 16).astype("float32")
    train = gluon.data.ArrayDataset(images[:1500], labels[:1500])
    loader = gluon.data.DataLoader(train, batch_size, shuffle=True)
    return loader, torch.from_numpy(images[1500:]), torch.from_numpy(labels[1500:])


def build() -> nn.HybridSequential:
    """Return Gluon convolutions followed by a classifier of torch's."""
    classifier = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(256, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)
    )
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, padding=1, in_channels=1), nn.BatchNorm(), nn.Activation("relu"))
    net.add(nn.MaxPool2D(), nn.TorchBlock(classifier))
    net.initialize(mx.init.Xavier())
    net(nd.zeros((1, 1, 8, 8)))
    return net


def train_by_gluon(net: gluon.Block, batches: gluon.data.DataLoader, epochs: int) -> None:
    """Train as in any Gluon program: torch's part is under the same Trainer."""
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(epochs):
        for images, labels in batches:
            with autograd.record():
                loss = criterion(net(images), labels)
            loss.backward()
            trainer.step(len(images))


def train_by_torch(module: torch.nn.Module, batches: gluon.data.DataLoader, epochs: int) -> None:
    """Train as in any torch program: Gluon's part has its parameters in the same optimizer."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=3e-3)
    module.train()
    for _ in range(epochs):
        for images, labels in batches:
            outputs = module(images.as_torch())
            loss = torch.nn.functional.cross_entropy(outputs, labels.as_torch().long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train; return the accuracy after Gluon's epochs and after torch's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=50)
    options = parser.parse_args(arguments)
    mx.random.seed(0)
    torch.manual_seed(0)
    batches, images, labels = load_data(options.batch_size)
    net = build()
    module = net.as_torch()

    def accuracy() -> float:
        module.eval()
        with torch.no_grad():
            return (module(images).argmax(1) == labels).float().mean().item()

    train_by_gluon(net, batches, options.epochs)
    first = accuracy()
    print(f"{options.epochs} epochs by gluon.Trainer: accuracy {first:.4f}")
    train_by_torch(module, batches, options.epochs)
    second = accuracy()
    print(f"{options.epochs} epochs by torch.optim.AdamW: accuracy {second:.4f}")
    answers = net(nd.from_torch(images)).argmax(axis=1).as_torch()
    agreement = (answers == module(images).argmax(1)).float().mean().item()
    print(f"both sides of the same network give the same answers: {agreement:.0%}")
    return first, second


if __name__ == "__main__":
    main()
