"""Gluon programs from books and courses run unchanged."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


def test_rnn_from_scratch_that_discards_detach():
    """The program calls ``s.detach()`` without using the result, and still trains."""
    rs = np.random.RandomState(0)
    corpus, vocab_size, num_hiddens = rs.randint(0, 5, 40), 5, 4

    def parameter(shape):
        return nd.array(rs.normal(scale=0.1, size=shape))

    params = [
        parameter((vocab_size, num_hiddens)),
        parameter((num_hiddens, num_hiddens)),
        nd.zeros(num_hiddens),
        parameter((num_hiddens, vocab_size)),
        nd.zeros(vocab_size),
    ]
    for param in params:
        param.attach_grad()
    W_xh, W_hh, b_h, W_hq, b_q = params

    def batches():
        indices = nd.array(corpus).reshape((2, 20))
        for i in range(0, 18, 6):
            yield indices[:, i : i + 6], indices[:, i + 1 : i + 7]

    def rnn(inputs, state):
        (H,) = state
        outputs = []
        for X in inputs:
            H = nd.tanh(nd.dot(X, W_xh) + nd.dot(H, W_hh) + b_h)
            outputs.append(nd.dot(H, W_hq) + b_q)
        return outputs, (H,)

    loss, perplexities = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for _ in range(8):
        state, l_sum, n = (nd.zeros((2, num_hiddens)),), 0.0, 0
        for X, Y in batches():
            for s in state:
                s.detach()
            with autograd.record():
                outputs, state = rnn([nd.one_hot(x, vocab_size) for x in X.T], state)
                y = Y.T.reshape((-1,))
                l = loss(nd.concat(*outputs, dim=0), y).mean()  # noqa: E741
            l.backward()
            norm = sum((p.grad**2).sum() for p in params).sqrt().asscalar()
            for p in params:
                p[:] = p - 2 * p.grad * min(1, 0.5 / norm)
            l_sum, n = l_sum + l.asscalar() * y.size, n + y.size
        perplexities.append(math.exp(l_sum / n))
    assert perplexities[-1] < perplexities[0]


def test_second_derivative_by_grad_and_backward():
    x = nd.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = nd.sin(x)
        gx = autograd.grad(y, x, create_graph=True, retain_graph=True)[0]
    gx.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), -np.sin([1, 2, 3]), rtol=1e-6)


def test_pooling_after_flatten_raises():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 3), nn.Flatten(), nn.GlobalAvgPool2D(), nn.Dense(2))
    net.initialize()
    with pytest.raises(mx.base.MXNetError, match="Input data should be 3D, 4D or 5D"):
        net(nd.ones((1, 1, 5, 5)))
    net.hybridize()
    with pytest.raises(ValueError, match="Input data should be 3D, 4D or 5D"):
        net(nd.ones((1, 1, 5, 5)))
