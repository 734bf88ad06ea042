"""CTCLoss: lengths, labels that cannot fit, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.ops import registry

SCORES = np.random.RandomState(0).standard_normal((6, 2, 5)).astype("float32")


def test_given_lengths_equal_padded_labels() -> None:
    scores = mx.nd.array(SCORES)
    padded = mx.nd.CTCLoss(scores, mx.nd.array([[1, 2, 0], [3, 0, 0]]))
    counted = mx.nd.CTCLoss(
        scores,
        mx.nd.array([[1, 2, 4], [3, 3, 3]]),
        label_lengths=mx.nd.array([2, 1]),
        use_label_lengths=True,
    )
    np.testing.assert_allclose(padded.asnumpy(), counted.asnumpy(), rtol=1e-5)


def test_steps_beyond_the_length_get_no_gradient() -> None:
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


def test_a_label_that_cannot_fit_has_no_loss() -> None:
    loss = mx.nd.CTCLoss(mx.nd.array(SCORES[:3, :1]), mx.nd.array([[1, 1, 1]]))
    assert loss.asnumpy().tolist() == [0]


def test_one_loss_for_each_sequence() -> None:
    op = registry.get("CTCLoss")
    attrs = op.complete(op.parse({"use_data_lengths": True}))
    ins, outs = op.infer_shapes([(7, 2, 5), (2, 3), None], [None], attrs)
    assert ins == [(7, 2, 5), (2, 3), (2,)]
    assert outs == [(2,)]


def test_more_labels_than_steps_are_refused() -> None:
    with pytest.raises(MXNetError, match="CTCLoss"):
        mx.nd.CTCLoss(mx.nd.array(SCORES[:2]), mx.nd.array([[1, 2, 3], [1, 2, 3]]))
