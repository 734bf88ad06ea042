"""Losses answer, learn, print and name things as those of MXNet 1.9.1 do."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mxnet as mx
from mxnet.ops.interpreters import Interpreter
from tests.gluon.layer_answers import cases, check_answer, check_description, name_of

CASES = cases("loss")


@pytest.mark.parametrize("hybridize", [False, True], ids=["eager", "hybrid"])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_outputs_and_gradients_are_those_of_mxnet(case, hybridize):
    check_answer(case, hybridize)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_printed_form_parameters_and_graph_are_those_of_mxnet(case):
    check_description(case)


class Watch(Interpreter):
    """Notes the operators of eager calls."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def run(self, op, tensors, attrs, proceed):
        self.names.append(op.name)
        return proceed(tensors, attrs)


def entropy_and_gradients(labels: mx.nd.NDArray) -> list[np.ndarray]:
    """Return the loss of fixed scores, and its first and second gradient."""
    pred = mx.nd.array(np.linspace(-2, 3, 12).reshape(4, 3))
    pred.attach_grad()
    with mx.autograd.record():
        loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()(pred, labels)
        slope = mx.autograd.grad(loss, pred, create_graph=True)[0]
        (slope * slope).sum().backward()
    return [loss.asnumpy(), slope.asnumpy(), pred.grad.asnumpy()]


@pytest.mark.parametrize(
    "labels", [[0, 1, 2, 1], [[0], [1], [2], [1]], [-1, 1, 7, 2], [0.4, 1.6, 2, 0]]
)
def test_eager_entropy_in_one_kernel_is_that_of_its_operators(labels: list) -> None:
    fused = entropy_and_gradients(mx.nd.array(labels))
    with Watch() as watch:  # watched operators run one by one
        watched = entropy_and_gradients(mx.nd.array(labels))
    assert "pick" in watch.names
    assert "_likelihood_loss" not in watch.names
    for one, other in zip(fused, watched, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 2)])
def test_entropy_of_labels_that_do_not_fit_names_pick(shape: tuple) -> None:
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    with pytest.raises(mx.base.MXNetError, match="pick"):
        loss(mx.nd.ones((4, 3)), mx.nd.zeros(shape))


def test_recorded_entropy_in_one_kernel_shows_its_operators() -> None:
    pred, label = mx.nd.ones((4, 3)), mx.nd.zeros(4)
    pred.attach_grad()
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    with mx.autograd.record():
        fused = mx.autograd.get_symbol(loss(pred, label))
        with Watch():
            watched = mx.autograd.get_symbol(loss(pred, label))
    operators = [
        [(node["op"], node.get("attrs")) for node in json.loads(shown.tojson())["nodes"]]
        for shown in (fused, watched)
    ]
    assert operators[0] == operators[1]
    assert "pick" in [name for name, _ in operators[0]]


def test_the_gradient_of_labels_is_zero():
    """Also where the loss of rows runs in one kernel, in a first call and in a known one."""
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    pred, label = mx.nd.ones((2, 3)), mx.nd.array([0, 1])
    pred.attach_grad()
    label.attach_grad()
    for _ in range(2):
        label.grad[:] = 7
        with mx.autograd.record():
            value = loss(pred, label)
        value.backward()
        assert label.grad.asnumpy().tolist() == [0, 0]
