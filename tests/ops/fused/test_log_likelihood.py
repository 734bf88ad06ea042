"""Fused softmax cross-entropy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.ops.declare import Op
from mxnet.ops.interpreters import Interpreter


def test_labels_as_a_column() -> None:
    x = nd.array([[1, 2], [3, 4]])
    loss = mx.nd._internal._likelihood_loss
    assert loss(x, nd.array([[0], [1]])).asnumpy().tolist() == [-1, -4]


def test_wrong_number_of_labels_raises() -> None:
    with pytest.raises(mx.MXNetError, match="index is"):
        mx.nd._internal._likelihood_loss(nd.ones((2, 3)), nd.ones((1, 2)))


def test_interpreters_receive_the_unfused_operators() -> None:
    class Names(Interpreter):
        def run(self, op: Op, tensors: Any, attrs: Any, proceed: Any) -> Any:
            seen.append(op.name)
            return proceed(tensors, attrs)

    seen: list[str] = []
    x, label = nd.array([[1, 2, 4], [3, 2, 1]]), nd.array([0, 9])
    wanted = mx.nd._internal._likelihood_loss(x, label, scale=-0.5).asnumpy()
    with Names():
        made = mx.nd._internal._likelihood_loss(x, label, scale=-0.5)
        gluon.loss.SoftmaxCrossEntropyLoss()(x, label)
    assert seen == ["pick", "_mul_scalar", "mean", "log_softmax", "pick", "negative", "mean"]
    np.testing.assert_array_equal(made.asnumpy(), wanted)


def test_softmax_cross_entropy_loss_is_fused_in_training() -> None:
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    x, label = nd.array([[1, 2, 4], [3, 2, 1]]), nd.array([0, 9])
    x.attach_grad()
    results = []
    for hybrid in (False, True):
        if hybrid:
            loss.hybridize()
        for _ in range(4):
            with autograd.record():
                made = loss(x, label)
            made.backward()
        results.append((made.asnumpy(), x.grad.asnumpy()))
    for eager, hybrid in zip(*results, strict=True):
        np.testing.assert_allclose(hybrid, eager, rtol=1e-6)
    assert "likelihood" in str(loss.compiled(x, label, training=True))
