"""Softmax over parts of rows."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError
from tests.ops.nn.test_dense import infer


def test_what_lies_beyond_the_length_is_zero() -> None:
    out = mx.nd.softmax(
        mx.nd.array([[0, 0, 9], [0, 0, 9]]), mx.nd.array([2, 0], dtype="int32"), use_length=True
    )
    assert out.asnumpy().tolist() == [[0.5, 0.5, 0], [0, 0, 0]]


def test_lengths_have_the_shape_of_data_without_the_axis() -> None:
    assert infer("softmax", (2, -1, 5), use_length=True, axis=1)[0][1] == (2, 5)
    with pytest.raises(MXNetError, match="softmax"):
        mx.nd.softmax(mx.nd.array([[1, 2]]), mx.nd.array([1, 2]), use_length=True)


def test_the_result_takes_the_type_that_is_asked_for() -> None:
    for name in ("softmax", "log_softmax", "softmin"):
        out = getattr(mx.nd, name)(mx.nd.array([[1, 2]]), dtype="float64")
        assert out.dtype == np.float64
