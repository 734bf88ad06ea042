"""Reductions of millions of float32 elements are exact to five digits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.ops.tensor.products import vector_norm

ROWS, COLUMNS = 2050, 2100  # not a power of two, so that there is an incomplete block
SIZE = ROWS * COLUMNS
VALUE = float(np.float32(0.003))
NORM = VALUE * SIZE**0.5
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def x():
    return nd.full((ROWS, COLUMNS), VALUE)


def assert_exact(array, expected, tolerance=TOLERANCE):
    values = array.asnumpy() if isinstance(array, nd.NDArray) else array
    np.testing.assert_allclose(np.float64(values), expected, rtol=tolerance)


REDUCTIONS = {
    "norm": (lambda x: x.norm(), NORM),
    "norm_of_reshaped": (lambda x: x.reshape((50, -1, 2)).norm(axis=(0, 1)), NORM / 2**0.5),
    "norm_keepdims": (lambda x: x.norm(keepdims=True), [[NORM]]),
    "norm_axis_0": (lambda x: x.reshape((-1, 2)).norm(axis=0), [NORM / 2**0.5] * 2),
    "norm_axis_1": (lambda x: x.reshape((2, -1)).norm(axis=1), [NORM / 2**0.5] * 2),
    "norm_of_a_transposed": (lambda x: x.T.norm(axis=(0, 1)), NORM),
    "sum": (lambda x: x.sum(), VALUE * SIZE),
    "mean": (lambda x: x.mean(), VALUE),
    "multi_sum_sq": (lambda x: nd.multi_sum_sq(x, x, num_arrays=2), [NORM**2] * 2),
    "L2Normalization": (
        lambda x: nd.L2Normalization(x.reshape((1, -1)))[0, :3],
        [VALUE / NORM] * 3,
    ),
    "moments": (lambda x: nd.moments(x, axes=(0, 1))[0], VALUE),
    "np_norm": (lambda x: mx.np.linalg.norm(x.as_np_ndarray()).as_nd_ndarray(), NORM),
    "np_sum": (lambda x: mx.np.sum(x.as_np_ndarray()).as_nd_ndarray(), VALUE * SIZE),
    "norm_of_row_sparse": (lambda x: x.tostype("row_sparse").norm(), NORM),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_large_arrays_are_exact(x, name):
    reduce, expected = REDUCTIONS[name]
    assert_exact(reduce(x).squeeze() if np.ndim(expected) == 0 else reduce(x), expected)


def test_l1_norm_of_a_large_array_is_exact(x):
    assert_exact(x.norm(ord=1).squeeze(), VALUE * SIZE, 5e-5)  # blocks of 2048 are summed in order


def test_variance_of_a_large_array_is_exact():
    x = nd.concat(nd.full((SIZE // 2,), 1), nd.full((SIZE // 2,), 3), dim=0)
    mean, variance = nd.moments(x, axes=(0,))
    assert_exact(mean.squeeze(), 2)
    assert_exact(variance.squeeze(), 1)


def test_gradient_of_a_large_norm_is_exact(x):
    x = x.copy()
    x.attach_grad()
    with autograd.record():
        norm = x.norm()
    norm.backward()
    assert_exact(x.grad[::97, ::97], VALUE / NORM)


def test_gradient_of_a_large_norm_of_zeros_is_zero():
    x = nd.zeros((ROWS, COLUMNS))
    x.attach_grad()
    with autograd.record():
        norm = x.norm()
    norm.backward()
    assert not x.grad.asnumpy().any()


@pytest.mark.parametrize(
    ("scale", "expected"), [(1e30, 1e30 * SIZE**0.5), (1e-30, 1e-30 * SIZE**0.5)]
)
def test_large_norms_of_extreme_numbers_do_not_overflow(scale, expected):
    assert_exact(nd.full((ROWS, COLUMNS), scale).norm().squeeze(), expected)


def test_clip_global_norm_scales_by_the_exact_norm(x):
    arrays = [x.copy(), nd.array([3.0])]
    total = (NORM**2 + 9) ** 0.5
    assert_exact(gluon.utils.clip_global_norm(arrays, 1.0), total)
    assert_exact(arrays[0][0, 0].squeeze(), VALUE / total)


def test_lars_scales_by_exact_norms(x):
    lars = mx.optimizer.LARS(learning_rate=1.0, eta=0.5)
    weight, grad = nd.ones(SIZE), nd.full(SIZE, VALUE)
    lars.update(0, weight, grad, None)
    assert_exact(1 - np.float64(weight[0].asscalar()), 0.5)  # |w| / |g| times g is 1


def test_lamb_scales_by_exact_norms():
    lamb = mx.optimizer.LAMB(learning_rate=0.5, epsilon=0)
    weight, small = nd.full(SIZE, VALUE), nd.full(4, VALUE)
    for index, w in enumerate((weight, small)):
        lamb.update(index, w, nd.ones(w.shape), lamb.create_state(index, w))
    assert_exact(weight[:4], VALUE / 2)  # the direction is 1, so a step is half of the weight
    assert_exact(small, VALUE / 2)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2), None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_blockwise_norms_equal_torch(monkeypatch, axes, keepdims):
    monkeypatch.setattr("mxnet.ops.tensor.products.MIN_SPLIT", 10)
    monkeypatch.setattr("mxnet.ops.tensor.products.BLOCK", {1: 4, 2: 4})
    data = torch.rand(5, 6, 7, generator=torch.Generator().manual_seed(1))
    for x in (data, data.transpose(0, 2)):
        for ord in (1, 2):
            split = vector_norm(x, ord, axes, keepdims)
            torch.testing.assert_close(split, torch.linalg.vector_norm(x, ord, axes, keepdims))
