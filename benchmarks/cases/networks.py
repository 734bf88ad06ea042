"""Hybridized Gluon networks compared with torch modules: training steps and prediction."""

# ruff: noqa: E501 (programs as text)

from __future__ import annotations

from benchmarks.cases import Case

MX = """
import warnings, numpy as np, mxnet as mx
warnings.filterwarnings("ignore")
from mxnet import nd, autograd, gluon
from mxnet.gluon import nn, rnn

def ready(net, *shape):
    net.initialize(mx.init.Xavier())
    net.hybridize()
    x = nd.random.normal(shape=shape)
    predict(net, x)
    return net, x

def predict(net, x):
    out = net(x)
    nd.waitall()
    return out

def trained(net, x, classes=10):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
    y = nd.array(np.arange(x.shape[0]) % classes)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    loss_of.hybridize()
    def step():
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(x.shape[0])
        nd.waitall()
    return step

def lenet():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(20, 5, activation="tanh"), nn.MaxPool2D(2, 2),
            nn.Conv2D(50, 5, activation="tanh"), nn.MaxPool2D(2, 2),
            nn.Dense(500, activation="tanh"), nn.Dense(10))
    return net

zoo = gluon.model_zoo.vision
"""

TORCH = """
import torch, torch.nn.functional as F
from torch import nn

def ready(net, *shape):
    return net.eval(), torch.randn(shape)

def predict(net, x):
    with torch.no_grad():
        return net(x)

def trained(net, x, classes=10):
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), 0.01, 0.9)
    y = torch.arange(x.shape[0]) % classes
    def step():
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    return step

def lenet():
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5),
                         nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 500), nn.Tanh(),
                         nn.Linear(500, 10))

def conv_bn(before, after, kernel, stride=1, groups=1):
    return [nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(after)]

class Residual(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.body = nn.Sequential(*conv_bn(before, after, 3, stride), nn.ReLU(), *conv_bn(after, after, 3))
        self.short = nn.Sequential(*conv_bn(before, after, 1, stride)) if before != after else nn.Identity()
    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))

def resnet18():
    layers = [*conv_bn(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for after in (64, 128, 256, 512):
        layers += [Residual(before, after, 1 if after == 64 else 2), Residual(after, after, 1)]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))

class Inverted(nn.Module):
    def __init__(self, before, after, stride, factor):
        super().__init__()
        wide = before * factor
        first = [] if factor == 1 else [*conv_bn(before, wide, 1), nn.ReLU6()]
        self.body = nn.Sequential(*first, *conv_bn(wide, wide, 3, stride, wide), nn.ReLU6(),
                                  *conv_bn(wide, after, 1))
        self.adds = stride == 1 and before == after
    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)

def mobilenet_v2():
    layers, before = [*conv_bn(3, 32, 3, 2), nn.ReLU6()], 32
    for factor, after, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                         (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            layers.append(Inverted(before, after, stride if i == 0 else 1, factor))
            before = after
    return nn.Sequential(*layers, *conv_bn(320, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(1280, 1000))
"""

_LSTM_MX = (
    MX
    + """
net, x = ready(rnn.LSTM(200), 35, 32, 200)
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
def step():
    with autograd.record():
        loss = (net(x) ** 2).mean()
    loss.backward()
    trainer.step(1)
    nd.waitall()
"""
)
_LSTM_TORCH = (
    TORCH
    + """
net, x = ready(nn.LSTM(200, 200), 35, 32, 200)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
def step():
    optimizer.zero_grad()
    (net(x)[0] ** 2).mean().backward()
    optimizer.step()
"""
)
_GOALS = "torch 1, mxnet 1"


def prediction(name: str, mx: str, torch: str, shape: tuple[int, ...], number: int) -> Case:
    """Return a case that runs a network forward."""
    return Case(
        name,
        (MX + f"net, x = ready({mx}, *{shape})", "o = predict(net, x)"),
        (TORCH + f"net, x = ready({torch}, *{shape})", "o = predict(net, x)"),
        number,
        _GOALS,
    )


def training(name: str, mx: str, torch: str, shape: tuple[int, ...], number: int) -> Case:
    """Return a case that runs forward, backward and the optimizer."""
    return Case(
        name,
        (MX + f"step = trained(*ready({mx}, *{shape}))", "step()"),
        (TORCH + f"step = trained(*ready({torch}, *{shape}))", "step()"),
        number,
        _GOALS,
    )


CASES = [
    training("LeNet b64 training", "lenet()", "lenet()", (64, 1, 28, 28), 5),
    prediction("LeNet b64", "lenet()", "lenet()", (64, 1, 28, 28), 10),
    training("ResNet-18 b8 64x64 training", "zoo.resnet18_v1()", "resnet18()", (8, 3, 64, 64), 1),
    prediction("ResNet-18 b8 64x64", "zoo.resnet18_v1()", "resnet18()", (8, 3, 64, 64), 3),
    prediction("ResNet-18 b16 224x224", "zoo.resnet18_v1()", "resnet18()", (16, 3, 224, 224), 1),
    prediction("ResNet-18 b1 224x224", "zoo.resnet18_v1()", "resnet18()", (1, 3, 224, 224), 3),
    prediction(
        "MobileNetV2 b1 224x224", "zoo.mobilenet_v2_1_0()", "mobilenet_v2()", (1, 3, 224, 224), 3
    ),
    Case("LSTM layer training", (_LSTM_MX, "step()"), (_LSTM_TORCH, "step()"), 2, _GOALS),
    Case(
        "LSTM layer",
        (_LSTM_MX, "o = predict(net, x)"),
        (_LSTM_TORCH, "o = predict(net, x)"),
        3,
        _GOALS,
    ),
]
