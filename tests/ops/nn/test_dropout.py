"""Dropout: how much it drops, how it scales, and what it shares."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError

ONES = np.ones((1000, 10), dtype="float32")


def test_it_drops_a_fraction_and_scales_the_rest() -> None:
    data = mx.nd.array(ONES)
    data.attach_grad()
    with mx.autograd.record():
        out = mx.nd.Dropout(data, p=0.3)
    out.backward()
    values = out.asnumpy()
    assert abs((values == 0).mean() - 0.3) < 0.03
    np.testing.assert_allclose(values[values != 0], 1 / 0.7, rtol=1e-5)
    np.testing.assert_allclose(data.grad.asnumpy(), values)


def test_one_decision_holds_along_axes() -> None:
    with mx.autograd.record():
        out = mx.nd.Dropout(mx.nd.array(ONES), p=0.5, axes=(1,)).asnumpy()
    assert (out == out[:, :1]).all()
    assert abs((out[:, 0] == 0).mean() - 0.5) < 0.08


def test_outside_training_only_always_drops() -> None:
    data = mx.nd.array(ONES)
    assert (mx.nd.Dropout(data, p=0.5).asnumpy() == 1).all()
    assert (mx.nd.Dropout(data, p=0.5, mode="always").asnumpy() == 0).any()


def test_the_result_is_an_array_of_its_own() -> None:
    data = mx.nd.array([1, 2])
    out = mx.nd.Dropout(data)
    out[:] = 0
    assert data.asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize("p", [-0.1, 1.5])
def test_a_fraction_outside_0_and_1_is_refused(p: float) -> None:
    with pytest.raises(MXNetError, match="Dropout"):
        mx.nd.Dropout(mx.nd.array([1]), p=p)
