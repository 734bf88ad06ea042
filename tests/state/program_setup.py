"""Definitions for the random programs of `programs.py`; read as source, not imported by tests."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd, sym
from mxnet.gluon import nn


def numbers(seed, *shape):
    return nd.array(np.random.RandomState(seed).uniform(-1, 1, shape).astype("float32"))


class Triple(autograd.Function):
    def forward(self, x):
        return x * 3

    def backward(self, dy):
        dy[:] = dy * 3
        return dy


class Square(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * x

    def backward(self, dy):
        return 2 * self.saved_tensors[0] * dy


class Views(gluon.HybridBlock):
    def __init__(self, prefix):
        super().__init__(prefix=prefix)
        self.a = self.params.get("a", shape=(2, 2))
        self.b = self.params.get("b", shape=(4,))

    def hybrid_forward(self, F, x, a, b):
        y = F.reshape(a, shape=(1, 4)) + F.expand_dims(b, axis=0)
        return F.broadcast_add(x, y)


class Cell(gluon.HybridBlock):
    def __init__(self, prefix):
        super().__init__(prefix=prefix)
        with self.name_scope():
            self.cell = gluon.rnn.GRUCell(4, input_size=4)

    def hybrid_forward(self, F, x):
        out, states = self.cell(x, [F.tanh(x)])
        out, _ = self.cell(x, states)
        return out


def make_net(kind, seed, prefix):
    if kind in ("views", "gru"):
        net = (Views if kind == "views" else Cell)(prefix)
    else:
        net = nn.HybridSequential(prefix=prefix)
        with net.name_scope():
            if kind == "mlp":
                net.add(nn.Dense(5, in_units=4, activation="tanh"))
            if kind == "norm":
                net.add(nn.Dense(4, in_units=4, use_bias=False), nn.BatchNorm(in_channels=4))
            net.add(nn.Dense(4, in_units=5 if kind == "mlp" else 4))
    net.initialize(mx.init.Constant(0.1))
    for i, (name, p) in enumerate(sorted(net.collect_params().items())):
        if not name.endswith(("gamma", "running_var")):
            p.set_data(numbers(seed + i, *p.shape) * 0.5)
    return net


def trained(net):
    return [p for _, p in sorted(net.collect_params().items()) if p.grad_req != "null"]


def train(net, x, head):
    with autograd.record():
        y = net(x)
    y.backward(head)
    return y


def make_symbol(kind):
    x, w = sym.Variable("x"), sym.Variable("w")
    if kind == "dense":
        return sym.tanh(sym.FullyConnected(x, w, no_bias=True, num_hidden=4))
    if kind == "sum":
        return x * 1 + w * 1
    if kind == "product":
        return x * w + x
    if kind == "join":
        return sym.concat(x * 1, w * 1, dim=0)
    return sym.reshape(x * 2, shape=(-1,)) * sym.reshape(w, shape=(-1,))


def run(executor, head):
    executor.forward(is_train=True)
    executor.backward(head)
