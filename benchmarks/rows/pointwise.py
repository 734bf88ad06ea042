"""Ten million elements: chains of pointwise operators, and sums into a given array."""

from __future__ import annotations

from benchmarks.rows import Row

_MX = """
import mxnet as mx
from mxnet import nd, autograd, gluon
class Chain(gluon.HybridBlock):
    def hybrid_forward(self, F, x, y):
        h = F.tanh(x * y + x)
        h = h * F.sigmoid(y) - 0.5 * x
        return F.exp(-h * h) + F.relu(h)
net = Chain()
net.hybridize()
x, y = nd.random.normal(shape=(10000, 1000)), nd.random.normal(shape=(10000, 1000))
out = nd.zeros((10000, 1000))
def predict():
    made = net(x, y)
    nd.waitall()
    return made
def train():
    x.attach_grad(); y.attach_grad()
    def step():
        with autograd.record():
            made = net(x, y)
        made.backward()
        nd.waitall()
    return step
"""
_TORCH = """
import torch
def chain(x, y):
    h = torch.tanh(x * y + x)
    h = h * torch.sigmoid(y) - 0.5 * x
    return torch.exp(-h * h) + torch.relu(h)
x, y = torch.randn(10000, 1000), torch.randn(10000, 1000)
out = torch.zeros(10000, 1000)
def predict():
    with torch.no_grad():
        return chain(x, y)
ones = torch.ones(10000, 1000)
def train():
    x.requires_grad_(); y.requires_grad_()
    def step():
        x.grad = y.grad = None
        chain(x, y).backward(ones)
    return step
"""
_COMPILED = _TORCH + "chain = torch.compile(chain)\n"
_JAX = """
import jax, jax.numpy as jnp, numpy as np
def chain(x, y):
    h = jnp.tanh(x * y + x)
    h = h * jax.nn.sigmoid(y) - 0.5 * x
    return jnp.exp(-h * h) + jax.nn.relu(h)
x, y = (jnp.asarray(np.random.randn(10000, 1000).astype("float32")) for _ in range(2))
compiled = jax.jit(chain)
def predict():
    return compiled(x, y).block_until_ready()
def train():
    gradient = jax.jit(jax.grad(lambda x, y: chain(x, y).sum(), (0, 1)))
    return lambda: gradient(x, y)[0].block_until_ready()
"""
_AGAINST = ("torch", "torch.compile")
ROWS = [
    Row(
        "pointwise chain 10M",
        (_MX, "o = predict()"),
        {
            "torch": (_TORCH, "o = predict()"),
            "torch.compile": (_COMPILED, "o = predict()"),
            "jax.jit": (_JAX, "o = predict()"),
            "mxnet": None,
        },
        1.0,
        _AGAINST,
        2,
        rounds=7,
    ),
    Row(
        "pointwise chain 10M, training",
        (_MX + "step = train()", "step()"),
        {
            "torch": (_TORCH + "step = train()", "step()"),
            "torch.compile": (_COMPILED + "step = train()", "step()"),
            "jax.jit": (_JAX + "step = train()", "step()"),
            "mxnet": None,
        },
        1.0,
        _AGAINST,
        2,
        rounds=7,
    ),
    Row(
        "add(out=) 10M",
        (_MX, "nd.elemwise_add(x, y, out=out); nd.waitall()"),
        {"torch": (_TORCH, "torch.add(x, y, out=out)"), "mxnet": None},
        1.0,
        number=5,
        rounds=7,
    ),
]
