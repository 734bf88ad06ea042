"""Training loops and optimizers."""

# ruff: noqa: E501 (programs as text)

from __future__ import annotations

from benchmarks.cases import Case

_OPTIMIZER_MX = """
import mxnet as mx
from mxnet import nd
shapes = [(64, 64), (64,)] * 80
weights = [nd.ones(s) for s in shapes]
grads = [nd.ones(s) * 0.01 for s in shapes]
optimizer = mx.optimizer.create({name!r}, {options})
update = mx.optimizer.get_updater(optimizer)
numbers = list(range(len(weights)))
update(numbers, grads, weights)
"""
_OPTIMIZER_TORCH = """
import torch
shapes = [(64, 64), (64,)] * 80
weights = [torch.ones(s, requires_grad=True) for s in shapes]
for w in weights:
    w.grad = torch.full_like(w, 0.01)
optimizer = torch.optim.{call}
optimizer.step()
"""


def optimizer(title: str, name: str, options: str, call: str, goals: str = "torch 1.0") -> Case:
    """Return a case that updates 160 parameters."""
    return Case(
        title,
        (
            _OPTIMIZER_MX.format(name=name, options=options),
            "update(numbers, grads, weights); nd.waitall()",
        ),
        (_OPTIMIZER_TORCH.format(call=call), "optimizer.step()"),
        50,
        goals,
    )


_FIT_MX = """
import logging, numpy as np, mxnet as mx
logging.disable(logging.CRITICAL)
data = mx.sym.Variable("data")
net = mx.sym.Convolution(data, kernel=(5, 5), num_filter=20)
net = mx.sym.Pooling(mx.sym.Activation(net, act_type="tanh"), pool_type="max", kernel=(2, 2), stride=(2, 2))
net = mx.sym.Convolution(net, kernel=(5, 5), num_filter=50)
net = mx.sym.Pooling(mx.sym.Activation(net, act_type="tanh"), pool_type="max", kernel=(2, 2), stride=(2, 2))
net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=500)
net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="tanh"), num_hidden=10)
net = mx.sym.SoftmaxOutput(net, name="softmax")
images = np.random.rand(640, 1, 28, 28).astype("float32")
labels = np.random.randint(0, 10, 640).astype("float32")
batches = mx.io.NDArrayIter(images, labels, 64)
module = mx.mod.Module(net, context=mx.cpu())
module.fit(batches, num_epoch=1, optimizer_params={"learning_rate": 0.01})
def epoch():
    batches.reset()
    module.fit(batches, num_epoch=1, optimizer_params={"learning_rate": 0.01})
    mx.nd.waitall()
"""
_FIT_TORCH = """
import torch
from torch import nn
net = nn.Sequential(
    nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.Tanh(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(800, 500), nn.Tanh(), nn.Linear(500, 10))
loss_of, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.01)
images, labels = torch.rand(640, 1, 28, 28), torch.randint(0, 10, (640,))
def epoch():
    right = 0
    for i in range(0, 640, 64):
        x, y = images[i : i + 64], labels[i : i + 64]
        optimizer.zero_grad()
        out = net(x)
        loss_of(out, y).backward()
        optimizer.step()
        right += int((out.argmax(1) == y).sum())
"""

CASES = [
    optimizer("SGD over 160 parameters", "sgd", "learning_rate=0.1", "SGD(weights, lr=0.1)"),
    optimizer(
        "SGD with momentum over 160",
        "sgd",
        "learning_rate=0.1, momentum=0.9",
        "SGD(weights, lr=0.1, momentum=0.9)",
    ),
    optimizer("Adam over 160 parameters", "adam", "learning_rate=0.1", "Adam(weights, lr=0.1)"),
    Case(
        "Module.fit, an epoch of LeNet",
        (_FIT_MX, "epoch()"),
        (_FIT_TORCH, "epoch()"),
        1,
        "torch 1.05, mxnet 0.67",
    ),
]
