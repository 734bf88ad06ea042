"""Gluon blocks as torch modules and torch modules as Gluon blocks, on the same memory."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
import torch
from torch.nn import functional

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


def small_resnet() -> nn.HybridSequential:
    """Return a Gluon ResNet of two residual units, initialized."""
    unit = gluon.model_zoo.vision.BasicBlockV1
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, padding=1, use_bias=False, in_channels=2), nn.BatchNorm(in_channels=4))
    net.add(nn.Activation("relu"), unit(4, 1, False, in_channels=4))
    net.add(unit(8, 2, True, in_channels=4), nn.GlobalAvgPool2D(), nn.Flatten())
    net.add(nn.Dense(3, in_units=8))
    mx.random.seed(7)
    net.initialize(mx.init.Xavier())
    net(nd.ones((1, 2, 8, 8)))
    return net


class Unit(torch.nn.Module):
    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(channels)
        self.conv2 = torch.nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(channels)
        self.shortcut = torch.nn.Identity()
        if stride > 1:
            conv = torch.nn.Conv2d(inputs, channels, 1, stride, bias=False)
            self.shortcut = torch.nn.Sequential(conv, torch.nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + self.shortcut(x)).relu()


def small_torch_resnet() -> torch.nn.Module:
    """Return a torch ResNet of two residual units."""
    torch.manual_seed(7)
    layers = torch.nn
    return layers.Sequential(
        layers.Conv2d(2, 4, 3, padding=1, bias=False),
        layers.BatchNorm2d(4),
        layers.ReLU(),
        Unit(4, 4, 1),
        Unit(4, 8, 2),
        layers.AdaptiveAvgPool2d(1),
        layers.Flatten(),
        layers.Linear(8, 3),
    )


def batches(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    rng = torch.Generator().manual_seed(3)
    return [
        (torch.randn(4, 2, 8, 8, generator=rng), torch.randint(3, (4,), generator=rng))
        for _ in range(count)
    ]


def train_by_torch(module: torch.nn.Module, steps: int, lr: float = 0.02) -> list[float]:
    optimizer = torch.optim.SGD(module.parameters(), lr=lr, momentum=0.9, weight_decay=1e-3)
    losses = []
    module.train()
    for x, label in batches(steps):
        loss = functional.cross_entropy(module(x), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_by_gluon(net: gluon.Block, steps: int, lr: float = 0.02) -> list[float]:
    options = {"learning_rate": lr, "momentum": 0.9, "wd": 1e-3}
    trainer = gluon.Trainer(net.collect_params(), "sgd", options)
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    losses = []
    for x, label in batches(steps):
        with autograd.record():
            loss = criterion(net(nd.from_torch(x)), nd.from_torch(label))
        loss.backward()
        trainer.step(4)
        losses.append(loss.mean().asscalar())
    return losses


def largest_difference(one, other) -> float:
    return max(
        (a.detach().double() - b.detach().double()).abs().max().item()
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_gluon_resnet_under_torch_optim_follows_its_twin_under_trainer(hybrid):
    by_torch, by_gluon = small_resnet(), small_resnet()
    by_torch.hybridize(hybrid)
    by_gluon.hybridize(hybrid)
    module = by_torch.as_torch()
    losses = train_by_torch(module, 50), train_by_gluon(by_gluon, 50)
    np.testing.assert_allclose(*losses, atol=1e-6)
    twin = by_gluon.as_torch().state_dict()
    assert list(twin) == list(module.state_dict())
    assert largest_difference(module.state_dict().values(), twin.values()) < 1e-6
    assert losses[0][-1] != losses[0][0]


def test_a_torch_resnet_under_trainer_follows_its_twin_under_torch_optim():
    block = nn.TorchBlock(small_torch_resnet())
    block.initialize()
    twin = small_torch_resnet()
    losses = train_by_gluon(block, 50), train_by_torch(twin, 50)
    np.testing.assert_allclose(*losses, atol=1e-6)
    state = block.module.state_dict()
    assert largest_difference(state.values(), twin.state_dict().values()) < 1e-6
    assert state["1.num_batches_tracked"] == 50
