"""The gradient of `clip` at the limits, between them, and for NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mxnet import autograd, nd

INF, NAN = math.inf, math.nan


def gradient(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the gradient that `clip` gives back for a gradient of 3."""
    x = nd.array(values, dtype=values.dtype)
    x.attach_grad()
    with autograd.record():
        y = nd.clip(x, low, high)
    y.backward(nd.full(x.shape, 3, dtype=values.dtype))
    return x.grad.asnumpy()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 6), (-1, 1), (0.1, 0.7), (0, 0), (-INF, 2), (-2, INF), (-INF, INF)],
)
@pytest.mark.parametrize("size", [1, 200])
def test_gradient_is_zero_only_for_clipped_values(
    dtype: str, low: float, high: float, size: int
) -> None:
    kind = np.dtype(dtype).type
    with np.errstate(over="ignore"):
        limits = kind(low), kind(high)
    near = [np.nextafter(limit, kind(end)) for limit in limits for end in (-INF, INF)]
    values = np.array([*limits, *near, NAN, INF, -INF, 0, -0.0, 3], dtype).repeat(size)
    cut = (values < limits[0]) | (values > limits[1])
    np.testing.assert_array_equal(gradient(values, low, high), np.where(cut, 0, 3))


def test_clip_gradient_in_bfloat16() -> None:
    x = nd.array([-0.1, 0, 3, 6, 6.0625, NAN], dtype="bfloat16")
    x.attach_grad()
    with autograd.record():
        y = nd.clip(x, 0, 6)
    y.backward()
    assert x.grad.astype("float32").asnumpy().tolist() == [0, 1, 1, 1, 0, 1]


def test_clip_of_integers() -> None:
    x = nd.array([-3, 0, 6, 9], dtype="int32")
    assert nd.clip(x, 0, 6).asnumpy().tolist() == [0, 0, 6, 6]


def test_clip_second_order_gradient() -> None:
    x = nd.array([-1, 1, 2, 3])
    x.attach_grad()
    with autograd.record():
        first = autograd.grad((nd.clip(x, 1, 2) ** 2).sum(), x, create_graph=True)[0]
        total = (first * first).sum()
    total.backward()
    assert x.grad.asnumpy().tolist() == [0, 8, 16, 0]
