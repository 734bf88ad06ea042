"""Resizing: every road gives what plain interpolation gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.ops.vision.spatial_transform import _Repeat


def _interpolated(x: np.ndarray, new: tuple[int, int], align_corners: bool) -> np.ndarray:
    """Take one axis after the other, by NumPy."""
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
        ((2, 3, 90, 70), (80, 60)),  # three channels, in a batch and alone
        ((1, 3, 90, 70), (80, 60)),
        ((1, 4, 9, 7), (80, 60)),
    ],
    ids=str,
)
def test_bilinear_resizing_interpolates(
    shape: tuple[int, ...], new: tuple[int, int], align_corners: bool
) -> None:
    x = np.random.RandomState(0).randn(*shape).astype("float32")
    out = mx.nd.contrib.BilinearResize2D(
        mx.nd.array(x), height=new[0], width=new[1], align_corners=align_corners
    )
    assert np.allclose(out.asnumpy(), _interpolated(x, new, align_corners), atol=1e-4)


def test_infinite_pixels_reach_only_their_neighbours() -> None:
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


def test_gradients_of_repetition_have_gradients() -> None:
    x = torch.randn(1, 2, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: _Repeat.apply(x, 2) ** 2, x)


def test_upsampling_of_symbols_counts_its_inputs():
    inputs = [mx.sym.Variable(name) for name in "abc"]
    net = mx.sym.UpSampling(*inputs, scale=2, sample_type="nearest")
    shapes = {"a": (1, 2, 4, 4), "b": (1, 3, 2, 2), "c": (1, 1, 1, 1)}
    assert net.infer_shape(**shapes)[1] == [(1, 6, 8, 8)]
