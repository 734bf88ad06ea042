"""Operators on arrays without elements, under NumPy's meaning of shapes."""

import pytest

import mxnet as mx
from mxnet import autograd, nd

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


def test_an_empty_batch_leaves_moving_statistics_alone():
    with mx.np_shape(True):
        mean, var = nd.array([1, 2]), nd.array([3, 4])
        with autograd.record():
            nd.BatchNorm(nd.zeros((0, 2)), nd.ones(2), nd.zeros(2), mean, var)
    assert mean.asnumpy().tolist() == [1, 2]
    assert var.asnumpy().tolist() == [3, 4]
