"""The same work at 1, 10 and 100 times the size: cost should grow no faster than the work."""

from __future__ import annotations

from benchmarks.rows import Row

_POINTWISE = """
import mxnet as mx
from mxnet import nd
x, y = nd.random.normal(shape=({size},)), nd.random.normal(shape=({size},))
"""
_POINTWISE_TORCH = """
import torch
x, y = torch.randn({size}), torch.randn({size})
"""
_TRAINING = """
import mxnet as mx
from mxnet import nd, autograd, gluon
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(128, activation="relu"), gluon.nn.Dense(10))
net.initialize()
net.hybridize()
loss = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {{"learning_rate": 0.01}})
x, y = nd.random.normal(shape=({size}, 64)), nd.zeros(({size},))
def step():
    with autograd.record():
        value = loss(net(x), y)
    value.backward()
    trainer.step({size})
    nd.waitall()
step()
"""
_TRAINING_TORCH = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn({size}, 64), torch.zeros({size}, dtype=torch.long)
def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
step()
"""
_PREDICTION = """
import mxnet as mx
from mxnet.gluon.model_zoo import vision
net = vision.mobilenet_v2_0_25(classes=10)
net.initialize()
net.hybridize(static_alloc=True, static_shape=True)
x = mx.nd.random.normal(shape=({size}, 3, 64, 64))
net(x).wait_to_read()
"""
_GRAPH = """
import mxnet as mx
def build(n):
    x = mx.sym.Variable("data")
    for i in range(n):
        x = mx.sym.FullyConnected(x, num_hidden=8, name="layer%d" % i)
    return x.simple_bind(mx.cpu(), data=(4, 8))
build(2)
"""


def _rows(
    family: str, sizes: tuple[int, ...], ours: str, statement: str, other: str = "", by: str = ""
) -> list[Row]:
    rows = []
    for size in sizes:
        peers: dict = {"mxnet": None}
        if other:
            peers["torch"] = (other.format(size=size), by or statement)
        program = (ours.format(size=size), statement.format(size=size))
        number = max(1, min(100, 100_000 // size))  # threads that slept make the first steps slow
        rows.append(
            Row(f"{family} {size:,}", program, peers, 1.0, number=number, family=family, size=size)
        )
    return rows


ROWS = [
    *_rows(
        "pointwise, elements",
        (1_000, 10_000, 100_000, 1_000_000),
        _POINTWISE,
        "z = nd.relu(x * y + x); nd.waitall()",
        _POINTWISE_TORCH,
        "z = torch.relu(x * y + x)",
    ),
    *_rows("training, batch", (10, 100, 1_000), _TRAINING, "step()", _TRAINING_TORCH),
    *_rows("MobileNetV2 0.25, batch", (1, 10, 100), _PREDICTION, "net(x).wait_to_read()"),
    *_rows("bind, layers", (10, 100, 1_000), _GRAPH, "build({size})"),
]
