"""Output layers: label shapes, ignored head gradients, and the sparseness penalty."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.ops import registry
from tests.ops.nn.test_layers import infer


@pytest.mark.parametrize(
    ("options", "data", "label"),
    [
        ({}, (2, 4), (2,)),
        ({}, (-1, 4, 5), (-1, 4)),
        ({"preserve_shape": True}, (2, 4, 5, 6), (2, 4, 5)),
        ({"multi_output": True}, (2, 4, 5, 6), (2, 30)),
        ({"multi_output": True}, (2, 4, -1, 6), (2, -1)),
    ],
)
def test_infer_shape_of_softmax_label(options: dict, data: tuple, label: tuple) -> None:
    ins, outs = infer("SoftmaxOutput", data, **options)
    assert ins == [data, label]
    assert outs == [data]


@pytest.mark.parametrize(
    "name", ["LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"]
)
def test_infer_shape_of_regression_label(name: str) -> None:
    assert infer(name, (2, 4))[0][1] == (2, 4)
    assert infer(name, (2, 1))[0][1] == (2,)
    assert infer(name, (2, 3, 4))[0][1] == (2, 3, 4)


def test_wrong_label_shapes_raise() -> None:
    data = mx.nd.array([[1, 2], [3, 4]])
    with pytest.raises(MXNetError, match="SoftmaxOutput"):
        mx.nd.SoftmaxOutput(data, mx.nd.array([1, 2, 3]))
    with pytest.raises(MXNetError, match="LinearRegressionOutput"):
        mx.nd.LinearRegressionOutput(data, mx.nd.array([1, 2]))
    with pytest.raises(MXNetError, match="SVMOutput"):
        mx.nd.SVMOutput(data, mx.nd.array([1, 2, 3]))
    with pytest.raises(MXNetError, match="softmax_cross_entropy"):
        mx.nd.softmax_cross_entropy(data, mx.nd.array([1, 2, 3]))


def test_head_gradients_are_ignored() -> None:
    data = mx.nd.array([[1, 2]])
    data.attach_grad()
    found = []
    for head in (1.0, 100.0):
        with mx.autograd.record():
            out = mx.nd.SoftmaxOutput(data, mx.nd.array([0]))
        out.backward(mx.nd.array([[head, head]]))
        found.append(data.grad.asnumpy())
    np.testing.assert_array_equal(found[0], found[1])


def test_cross_entropy_gradient_is_softmax_minus_one_hot() -> None:
    data = mx.nd.array([[0, 0], [0, 0]])
    data.attach_grad()
    with mx.autograd.record():
        loss = mx.nd.softmax_cross_entropy(data, mx.nd.array([1, 5]))
    loss.backward(mx.nd.array([2]))
    assert data.grad.asnumpy().tolist() == [[1, -1], [1, 1]]


def test_kl_sparse_reg_gradient_has_the_sparseness_penalty() -> None:
    """Values of MXNet 1.9.1: the penalty is added to the head gradient."""
    op = registry.get("IdentityAttachKLSparseReg")
    x = torch.tensor([[0.2, 0.9], [0.4, 0.7]], requires_grad=True)
    moving = torch.tensor([0.3, 0.3])
    attrs = op.parse({"sparseness_target": 0.2, "penalty": 0.5, "momentum": 0.8})
    out = op(x, moving, **attrs, **op.context_for(True, torch.device("cpu")))
    out.backward(torch.ones(2, 2))
    mean = 0.8 * 0.3 + 0.2 * np.array([0.3, 0.8])
    np.testing.assert_allclose(moving, mean, rtol=1e-6)
    np.testing.assert_allclose(x.grad[0], 1 + 0.5 * (-0.2 / mean + 0.8 / (1 - mean)), rtol=1e-5)
    np.testing.assert_array_equal(x.grad[0], x.grad[1])


REGRESSIONS = ("LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput")


@pytest.mark.parametrize("name", REGRESSIONS)
@pytest.mark.parametrize(
    ("data", "label", "fits"),
    [
        ((4, 2), (4, 2), True),
        ((4, 1), (4,), True),
        ((4,), (4, 1), True),
        ((4, 2, 3), (4, 6), True),
        ((4, 2), (4,), False),
        ((4, 2), (8,), False),
        ((4, 2, 3), (4, 3), False),
    ],
)
def test_regression_label_shape_is_checked_in_infer_shape(name, data, label, fits):
    layer = getattr(mx.sym, name)(mx.sym.var("data"), mx.sym.var("label"))
    if fits:
        assert layer.infer_shape(data=data, label=label)[1] == [data]
        assert getattr(mx.nd, name)(mx.nd.ones(data), mx.nd.ones(label)).shape == data
        return
    with pytest.raises(mx.MXNetError, match=f"Shape inconsistent in {name}"):
        layer.infer_shape(data=data, label=label)
    with pytest.raises(mx.MXNetError, match=f"Shape inconsistent in {name}"):
        getattr(mx.nd, name)(mx.nd.ones(data), mx.nd.ones(label))


@pytest.mark.parametrize(("data", "label"), [((4, 2), (4, 2)), ((4,), (4,)), ((4, 2, 3), (4,))])
def test_svm_label_shape_is_checked_in_infer_shape(data, label):
    layer = mx.sym.SVMOutput(mx.sym.var("data"), mx.sym.var("label"))
    with pytest.raises(mx.MXNetError, match="Shape inconsistent in SVMOutput"):
        layer.infer_shape(data=data, label=label)


def test_softmax_output_of_a_vector_has_one_class_per_sample():
    x = mx.nd.array([1, 2, 3])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.SoftmaxOutput(x, mx.nd.array([0, 1, 2]))
    y.backward()
    assert y.asnumpy().tolist() == [1, 1, 1]
    assert x.grad.asnumpy().tolist() == [1, 0, -1]


SCORES = np.random.RandomState(0).standard_normal((6, 2, 5)).astype("float32")


def test_ctc_label_lengths_equal_padded_labels() -> None:
    scores = mx.nd.array(SCORES)
    padded = mx.nd.CTCLoss(scores, mx.nd.array([[1, 2, 0], [3, 0, 0]]))
    counted = mx.nd.CTCLoss(
        scores,
        mx.nd.array([[1, 2, 4], [3, 3, 3]]),
        label_lengths=mx.nd.array([2, 1]),
        use_label_lengths=True,
    )
    np.testing.assert_allclose(padded.asnumpy(), counted.asnumpy(), rtol=1e-5)


def test_ctc_steps_beyond_data_lengths_have_no_gradient() -> None:
    scores = mx.nd.array(SCORES)
    scores.attach_grad()
    with mx.autograd.record():
        loss = mx.nd.CTCLoss(
            scores, mx.nd.array([[1, 2], [3, 0]]), mx.nd.array([4, 6]), use_data_lengths=True
        )
    loss.backward()
    grad = np.abs(scores.grad.asnumpy()).max(-1)
    assert (grad[4:, 0] == 0).all()
    assert (grad[:, 1] > 0).all()


def test_ctc_loss_of_an_impossible_label_is_zero() -> None:
    loss = mx.nd.CTCLoss(mx.nd.array(SCORES[:3, :1]), mx.nd.array([[1, 1, 1]]))
    assert loss.asnumpy().tolist() == [0]


def test_infer_shape_of_ctc_loss() -> None:
    op = registry.get("CTCLoss")
    attrs = op.complete(op.parse({"use_data_lengths": True}))
    ins, outs = op.infer_shapes([(7, 2, 5), (2, 3), None], [None], attrs)
    assert ins == [(7, 2, 5), (2, 3), (2,)]
    assert outs == [(2,)]


def test_ctc_with_more_labels_than_steps_raises() -> None:
    with pytest.raises(MXNetError, match="CTCLoss"):
        mx.nd.CTCLoss(mx.nd.array(SCORES[:2]), mx.nd.array([[1, 2, 3], [1, 2, 3]]))


@pytest.mark.parametrize("padding", [np.nan, np.inf, 3.0])
def test_ctc_gradient_beyond_data_lengths_ignores_padding_values(padding: float) -> None:
    scores = np.array([[[0.5, -1, 2]], [[1, 0, -1]], [[padding] * 3]], "float32")
    data = mx.nd.array(scores)
    data.attach_grad()
    with mx.autograd.record():
        loss = mx.nd.CTCLoss(data, mx.nd.array([[1, 0]]), mx.nd.array([2]), use_data_lengths=True)
    loss.backward()
    of_mxnet = [[-0.3713, -0.4143, 0.7856], [0.3337, -0.4238, 0.09]]
    np.testing.assert_allclose(loss.asnumpy(), [2.5448], rtol=1e-4)
    np.testing.assert_allclose(data.grad.asnumpy()[:2, 0], of_mxnet, atol=1e-4)
    assert (data.grad.asnumpy()[2] == 0).all()
