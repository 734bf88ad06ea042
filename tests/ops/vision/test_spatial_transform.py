"""Resizing and deformable convolution: every algorithm equals the plain one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.ops.vision.spatial_transform import _Repeat


def _interpolated(x: np.ndarray, new: tuple[int, int], align_corners: bool) -> np.ndarray:
    """Interpolate one axis after the other, with NumPy."""
    for axis, size in zip((2, 3), new, strict=True):
        old = x.shape[axis]
        place = np.arange(size)
        if align_corners:
            place = place * (old - 1) / max(size - 1, 1)
        else:
            place = ((place + 0.5) * old / size - 0.5).clip(0, old - 1)
        low = np.floor(place).astype(int)
        part = (place - low).reshape(-1, *[1] * (3 - axis))
        high = np.minimum(low + 1, old - 1)
        x = x.take(low, axis) * (1 - part) + x.take(high, axis) * part
    return x


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize(
    "shape, new",
    [
        ((2, 4, 1, 1), (5, 6)),  # small: by matrices
        ((2, 4, 7, 5), (14, 9)),
        ((1, 2, 30, 20), (6, 40)),
        ((2, 3, 90, 70), (80, 60)),  # three channels, with and without a batch
        ((1, 3, 90, 70), (80, 60)),
        ((1, 4, 9, 7), (80, 60)),
    ],
    ids=str,
)
def test_bilinear_resize_equals_plain_interpolation(
    shape: tuple[int, ...], new: tuple[int, int], align_corners: bool
) -> None:
    x = np.random.RandomState(0).randn(*shape).astype("float32")
    out = mx.nd.contrib.BilinearResize2D(
        mx.nd.array(x), height=new[0], width=new[1], align_corners=align_corners
    )
    assert np.allclose(out.asnumpy(), _interpolated(x, new, align_corners), atol=1e-4)


def test_infinite_pixels_affect_only_their_neighbors() -> None:
    x = mx.nd.zeros((1, 1, 8, 8))
    x[0, 0, 2, 2] = np.inf
    out = mx.nd.contrib.BilinearResize2D(x, height=16, width=16).asnumpy()[0, 0]
    assert np.isinf(out[4, 4])
    assert (out[8:] == 0).all()
    assert (out[:, 8:] == 0).all()


@pytest.mark.parametrize("scale", [2, 3])
def test_nearest_upsampling_repeats_and_sums_gradients(scale: int) -> None:
    x = mx.nd.arange(24).reshape((2, 2, 2, 3))
    x.attach_grad()
    with mx.autograd.record():
        out = mx.nd.UpSampling(x, scale=scale, sample_type="nearest")
    wanted = x.asnumpy().repeat(scale, 2).repeat(scale, 3)
    assert np.array_equal(out.asnumpy(), wanted)
    head = np.random.RandomState(0).rand(*wanted.shape).astype("float32")
    out.backward(mx.nd.array(head))
    summed = head.reshape(2, 2, 2, scale, 3, scale).sum((3, 5))
    assert np.allclose(x.grad.asnumpy(), summed, rtol=1e-5)


def test_second_order_gradient_of_nearest_upsampling() -> None:
    x = torch.randn(1, 2, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: _Repeat.apply(x, 2) ** 2, x)


def test_upsampling_of_several_symbols():
    inputs = [mx.sym.Variable(name) for name in "abc"]
    net = mx.sym.UpSampling(*inputs, scale=2, sample_type="nearest")
    shapes = {"a": (1, 2, 4, 4), "b": (1, 3, 2, 2), "c": (1, 1, 1, 1)}
    assert net.infer_shape(**shapes)[1] == [(1, 6, 8, 8)]


WINDOW = {"kernel": (3, 3), "stride": (2, 1), "pad": (1, 1), "num_filter": 4, "num_group": 2}


def _inputs() -> tuple:
    mx.random.seed(0)
    data, weight = mx.nd.random.normal(shape=(2, 4, 7, 6)), mx.nd.random.normal(shape=(4, 2, 3, 3))
    return data, weight, mx.nd.random.normal(shape=(4,))


def test_deformable_convolution_with_zero_offsets_is_convolution() -> None:
    data, weight, bias = _inputs()
    plain = mx.nd.Convolution(data, weight, bias, **WINDOW).asnumpy()
    rest, whole = mx.nd.zeros((2, 18, 4, 6)), mx.nd.ones((2, 9, 4, 6))
    moved = mx.nd.contrib.DeformableConvolution(data, rest, weight, bias, **WINDOW)
    masked = mx.nd.contrib.ModulatedDeformableConvolution(data, rest, whole, weight, bias, **WINDOW)
    np.testing.assert_allclose(moved.asnumpy(), plain, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(masked.asnumpy(), plain, rtol=1e-4, atol=1e-4)


def test_modulated_deformable_convolution_mask_scales_the_output() -> None:
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


def test_wrong_offset_shape_raises() -> None:
    data, weight, bias = _inputs()
    with pytest.raises(MXNetError, match="offset is"):
        mx.nd.contrib.DeformableConvolution(data, mx.nd.zeros((2, 9, 4, 6)), weight, bias, **WINDOW)
