"""Results of MXNet 1.9.1 where torch differs by default."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, nd


def test_potrf_and_potri_with_upper_matrices():
    a = nd.array([[4.0, 2.0], [2.0, 3.0]])
    upper = nd.linalg.potrf(a, lower=False).asnumpy()
    np.testing.assert_allclose(upper, [[2, 1], [0, 1.4142135]], rtol=1e-6)
    inverse = nd.linalg.potri(nd.array([[2.0, 1.0], [9.0, 3.0]]), lower=False).asnumpy()
    np.testing.assert_allclose(inverse, [[0.2778, -0.0556], [-0.0556, 0.1111]], atol=1e-4)
    assert "lower" in mx.sym.linalg.potrf(mx.sym.var("a"), lower=False).tojson()


def test_correlation_of_differences_gradient_at_ties():
    x, y = nd.ones((1, 1, 1, 2)), nd.ones((1, 1, 1, 2))
    x.attach_grad()
    y.attach_grad()
    with autograd.record():
        out = nd.Correlation(x, y, kernel_size=1, max_displacement=0, is_multiply=False)
    out.backward()
    assert x.grad.asnumpy().ravel().tolist() == [1, 1]
    assert y.grad.asnumpy().ravel().tolist() == [-1, -1]


def test_resize_of_uint8_matches_opencv():
    image = nd.array(np.random.RandomState(0).randint(0, 255, (6, 7, 3)), dtype="uint8")
    for interp, size, total in ((1, (9, 11), None), (2, (9, 11), None), (5, (4, 3), 4410)):
        made = nd.image.resize(image, size=size, interp=interp)
        again = mx.image.imresize(image, *size, interp=interp if interp != 5 else 1)
        assert made.dtype == np.uint8
        if total is not None:
            assert int(made.astype("int32").sum().asscalar()) == total
        else:
            assert (made.asnumpy() == again.asnumpy()).all()


@pytest.mark.filterwarnings("ignore:Storage type fallback")
def test_fully_connected_accepts_a_column_bias():
    x, weight = nd.array([[1.0, 0, 2], [0, 0, 3]]), nd.array([[1.0, 2, 3], [4, 5, 6]])
    column = nd.array([[1.0], [2.0]])
    for data in (x, x.tostype("csr")):
        made = nd.FullyConnected(data, weight, column, num_hidden=2)
        assert made.asnumpy().tolist() == [[8, 18], [10, 20]]
    with pytest.raises(mx.MXNetError, match="Unexpected shape for bias"):
        nd.FullyConnected(x, weight, column.T, num_hidden=2)


@pytest.mark.filterwarnings("ignore:Storage type fallback")
def test_quadratic_of_csr_without_constant_is_csr():
    x = nd.array([[1.0, 0, 2]]).tostype("csr")
    kept = nd.contrib.quadratic(x, a=1, b=2, c=0)
    assert (kept.stype, kept.asnumpy().tolist()) == ("csr", [[3, 0, 8]])
    filled = nd.contrib.quadratic(x, a=1, b=2, c=3)
    assert (filled.stype, filled.asnumpy().tolist()) == ("default", [[6, 3, 11]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nd.tile(nd.ones(2), reps=(0,)), "must be positive"),
        (lambda: nd.tile(nd.ones(2), reps=(-1,)), "must be positive"),
        (
            lambda: nd.Pooling(nd.ones((1, 1, 4, 4)), kernel=(2, 2), pooling_convention="same"),
            "3 axes",
        ),
        (lambda: nd.depth_to_space(nd.ones((1, 4, 2, 2)), 0), "not a multiple"),
    ],
)
def test_invalid_calls_raise_as_in_mxnet(call, message):
    with pytest.raises(mx.MXNetError, match=message):
        call()


def test_scalars_and_empty_arrays_are_saved_with_np_shape(tmp_path):
    path = tmp_path / "x.params"
    with mx.util.np_shape(True):
        nd.save(path, [nd.ones(()), nd.ones((0, 3)), nd.ones(2)])
        assert [a.shape for a in nd.load(path)] == [(), (0, 3), (2,)]
    assert path.read_bytes()[24:28] == bytes.fromhex("cafa93f9")  # MXNet 1.9.1's V3


EMPTY = {
    "dot": (lambda a, b: nd.dot(a, b), [(2, 0), (0,)], [(2,)]),
    "dot_wide": (lambda a, b: nd.dot(a, b), [(2, 0, 3), (3, 4)], [(2, 0, 4)]),
    "SoftmaxOutput": (
        lambda a, b: nd.SoftmaxOutput(a, b, normalization="batch"),
        [(0, 3), (0,)],
        [(0, 3)],
    ),
    "MakeLoss": (lambda a: nd.MakeLoss(a, normalization="batch"), [(0, 3)], [(0, 3)]),
    "BatchNorm": (nd.BatchNorm, [(0, 2, 4, 4), (2,), (2,), (2,), (2,)], [(0, 2, 4, 4)]),
    "CTCLoss": (nd.CTCLoss, [(5, 0, 4), (0, 2)], [(0,)]),
    "box_nms": (nd.contrib.box_nms, [(0, 6)], [(0, 6)]),
    "bipartite_matching": (
        lambda a: nd.contrib.bipartite_matching(a, threshold=0.5),
        [(0, 3)],
        [(0,), (3,)],
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_batches_have_empty_results_and_gradients(name):
    function, shapes, expected = EMPTY[name]
    with mx.np_shape(True):
        arrays = [nd.ones(shape) for shape in shapes]
        for array in arrays:
            array.attach_grad()
        with autograd.record():
            made = function(*arrays)
        made = made if isinstance(made, list) else [made]
        autograd.backward(made)
        assert [m.shape for m in made] == expected
        assert [a.grad.shape for a in arrays] == shapes


def test_empty_batch_does_not_change_moving_statistics():
    with mx.np_shape(True):
        mean, var = nd.array([1, 2]), nd.array([3, 4])
        with autograd.record():
            nd.BatchNorm(nd.zeros((0, 2)), nd.ones(2), nd.zeros(2), mean, var)
    assert mean.asnumpy().tolist() == [1, 2]
    assert var.asnumpy().tolist() == [3, 4]
