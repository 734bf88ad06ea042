"""Small steps, optimizers and small operators, compared with torch, jax and MXNet."""

# ruff: noqa: E501 (programs as text)

from __future__ import annotations

from benchmarks.cases.arrays import _MX as _SMALL_MX
from benchmarks.cases.arrays import _MX_LINEAR, _TORCH_LINEAR
from benchmarks.cases.arrays import _TORCH as _SMALL_TORCH
from benchmarks.cases.training import _OPTIMIZER_MX, _OPTIMIZER_TORCH
from benchmarks.rows import Row

_LINEAR_JAX = """
import jax, jax.numpy as jnp
X, Y = jnp.ones((10, 2)), jnp.ones(10)
w, b = jnp.ones((2, 1)) * 0.01, jnp.zeros(1)
def loss(w, b):
    y = X @ w + b
    return ((y - Y.reshape(y.shape)) ** 2 / 2).sum()
@jax.jit
def update(w, b):
    dw, db = jax.grad(loss, (0, 1))(w, b)
    return w - 0.003 * dw, b - 0.003 * db
def step():
    global w, b
    w, b = update(w, b)
    b.block_until_ready()
"""
_MLP_MX = """
import numpy as np, mxnet as mx
from mxnet import nd, autograd, gluon
from mxnet.gluon import nn
net = nn.HybridSequential()
net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(10))
net.initialize(mx.init.Xavier())
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
if {hybrid}:
    net.hybridize(); loss_of.hybridize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {{"learning_rate": 0.01}})
x, y = nd.random.normal(shape=(64, 784)), nd.array(np.arange(64) % 10)
def step():
    with autograd.record():
        loss = loss_of(net(x), y)
    loss.backward()
    trainer.step(64)
    nd.waitall()
"""
_MLP_TORCH = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
loss_of, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(64, 784), torch.arange(64) % 10
def step():
    optimizer.zero_grad()
    loss_of(net(x), y).backward()
    optimizer.step()
"""
_MLP_JAX = """
import jax, jax.numpy as jnp, numpy as np
sizes = (784, 256, 128, 10)
keys = jax.random.split(jax.random.PRNGKey(0), 3)
params = [(jax.random.normal(k, (m, n)) * 0.05, jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]
x, y = jnp.asarray(np.random.randn(64, 784).astype("float32")), jnp.arange(64) % 10
def loss(params):
    h = x
    for w, b in params[:-1]:
        h = jax.nn.relu(h @ w + b)
    h = h @ params[-1][0] + params[-1][1]
    return -jnp.take_along_axis(jax.nn.log_softmax(h), y[:, None], 1).mean()
@jax.jit
def update(params):
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, jax.grad(loss)(params))
def step():
    global params
    params = update(params)
    params[0][1].block_until_ready()
"""
_SGD_TORCH = _OPTIMIZER_TORCH.format(call="SGD(weights, lr=0.1, fused=True)")
_SGD_MX = _OPTIMIZER_MX.format(name="sgd", options="learning_rate=0.1")


def small(name: str, mx: str, torch: str, goal: float) -> Row:
    """Return a row of twenty calls on 10 x 10 arrays."""
    peers = {"torch": (_SMALL_TORCH, "; ".join([torch] * 20)), "mxnet": None}
    ours = (_SMALL_MX, "; ".join([mx] * 20) + "; nd.waitall()")
    return Row(name, ours, peers, goal, ("torch",), 300, "us", rounds=7)


ROWS = [
    Row(
        "SGD over 160 parameters",
        (_SGD_MX, "update(numbers, grads, weights); nd.waitall()"),
        {"torch fused": (_SGD_TORCH, "optimizer.step()"), "mxnet": None},
        0.9,
        number=100,
        unit="us",
        rounds=7,
    ),
    Row(
        "MLP step, eager",
        (_MLP_MX.format(hybrid=False), "step()"),
        {"torch": (_MLP_TORCH, "step()"), "jax.jit": (_MLP_JAX, "step()"), "mxnet": None},
        1.0,
        ("torch",),
        100,
        "us",
        rounds=7,
    ),
    Row(
        "MLP step, hybridized",
        (_MLP_MX.format(hybrid=True), "step()"),
        {"torch": (_MLP_TORCH, "step()"), "jax.jit": (_MLP_JAX, "step()"), "mxnet": None},
        0.7,
        ("torch",),
        100,
        "us",
        rounds=7,
    ),
    Row(
        "linear-regression step",
        (_MX_LINEAR, "step(); nd.waitall()"),
        {"torch": (_TORCH_LINEAR, "step()"), "jax.jit": (_LINEAR_JAX, "step()"), "mxnet": None},
        0.6,
        ("torch",),
        300,
        "us",
        rounds=7,
    ),
    small("20 x add", "a + b", "a + b", 1.3),
    small("20 x sum(axis)", "nd.sum(a, axis=1)", "torch.sum(a, 1)", 1.6),
    small("20 x reshape", "a.reshape((5, 20))", "a.reshape(5, 20)", 1.6),
    small("20 x slice", "a[2:5]", "a[2:5]", 1.5),
    small("20 x x[i] = v", "a[3] = 2.0", "a[3] = 2.0", 1.5),
    small("20 x dot", "nd.dot(a, b)", "torch.mm(a, b)", 1.3),
]
