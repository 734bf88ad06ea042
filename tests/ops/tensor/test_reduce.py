"""Reductions and running sums beyond the sample rows."""

from __future__ import annotations

import mxnet as mx
from mxnet import autograd


def test_cumsum_counts_in_integers_while_recording() -> None:
    x = mx.nd.array([[1.6, 2.6], [3.6, 4.6]])
    x.attach_grad()
    with autograd.record():
        made = mx.nd.cumsum(x, axis=1, dtype="int32")
    assert made.asnumpy().tolist() == [[1, 3], [3, 7]]
