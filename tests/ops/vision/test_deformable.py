"""Deformable convolution with points at rest is a convolution, and masks weigh its points."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError

WINDOW = {"kernel": (3, 3), "stride": (2, 1), "pad": (1, 1), "num_filter": 4, "num_group": 2}


def _inputs() -> tuple:
    mx.random.seed(0)
    data, weight = mx.nd.random.normal(shape=(2, 4, 7, 6)), mx.nd.random.normal(shape=(4, 2, 3, 3))
    return data, weight, mx.nd.random.normal(shape=(4,))


def test_points_at_rest_make_a_convolution() -> None:
    data, weight, bias = _inputs()
    plain = mx.nd.Convolution(data, weight, bias, **WINDOW).asnumpy()
    rest, whole = mx.nd.zeros((2, 18, 4, 6)), mx.nd.ones((2, 9, 4, 6))
    moved = mx.nd.contrib.DeformableConvolution(data, rest, weight, bias, **WINDOW)
    masked = mx.nd.contrib.ModulatedDeformableConvolution(data, rest, whole, weight, bias, **WINDOW)
    np.testing.assert_allclose(moved.asnumpy(), plain, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(masked.asnumpy(), plain, rtol=1e-4, atol=1e-4)


def test_masks_scale_and_have_gradients() -> None:
    data, weight, _ = _inputs()
    offset = mx.nd.random.uniform(-1, 1, shape=(2, 18, 4, 6))
    mask = mx.nd.ones((2, 9, 4, 6))
    for array in (offset, mask):
        array.attach_grad()
    call = mx.nd.contrib.ModulatedDeformableConvolution
    whole = call(data, offset, mask, weight, **WINDOW, no_bias=True).asnumpy()
    half = call(data, offset, mask / 2, weight, **WINDOW, no_bias=True).asnumpy()
    np.testing.assert_allclose(half, whole / 2, rtol=1e-5, atol=1e-5)
    with mx.autograd.record():
        total = call(data, offset, mask, weight, **WINDOW, no_bias=True).sum()
    total.backward()
    # The result is linear in the mask.
    np.testing.assert_allclose(mask.grad.asnumpy().sum(), whole.sum(), rtol=1e-3)
    assert np.abs(offset.grad.asnumpy()).max() > 0


def test_a_wrong_offset_is_told() -> None:
    data, weight, bias = _inputs()
    with pytest.raises(MXNetError, match="offset is"):
        mx.nd.contrib.DeformableConvolution(data, mx.nd.zeros((2, 9, 4, 6)), weight, bias, **WINDOW)
