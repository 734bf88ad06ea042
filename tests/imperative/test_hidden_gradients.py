"""Backward writes zeros to arrays that only operators without gradients read, as MXNet 1.9.1."""

import pytest
from numpy.testing import assert_array_equal

import mxnet as mx
from mxnet import autograd, gluon, nd


def leaves(req="write"):
    x, w = nd.array([1, 2, 3]), nd.ones(3)
    for array in (x, w):
        array.attach_grad(req)
        array.grad[:] = 7
    return x, w


HIDING = {
    "BlockGrad": (lambda x, w: nd.BlockGrad(x) * w, [1, 2, 3]),
    "comparison": (lambda x, w: (x > 1) * w, [0, 1, 1]),
    "argmax": (lambda x, w: nd.argmax(x, axis=0) * nd.sum(w), [2, 2, 2]),
    "one_hot": (lambda x, w: nd.one_hot(x - 1, 3).sum(axis=0) * w, [1, 1, 1]),
    "zeros_like": (lambda x, w: nd.zeros_like(x) * w, [0, 0, 0]),
    "topk": (lambda x, w: nd.topk(x, k=1, ret_typ="both")[1] * nd.sum(w), [2, 2, 2]),
    "take": (lambda x, w: nd.take(w, x - 1), [1, 1, 1]),
    "pick": (lambda x, w: nd.pick(w.reshape((3, 1)), x), [1, 1, 1]),
    "where": (lambda x, w: nd.where(x - 1, w, w * 2), [2, 1, 1]),
    "gather_nd": (lambda x, w: nd.gather_nd(w, (x - 1).reshape((1, 3))), [1, 1, 1]),
    "shape": (lambda x, w: nd.reshape_like(w * 2, x), [2, 2, 2]),
    "index": (lambda x, w: w[x - 1], [1, 1, 1]),
    "index beside others": (lambda x, w: w.reshape((1, 3))[0, x - 1], [1, 1, 1]),
    "index beside slices": (lambda x, w: w.reshape((3, 1))[x - 1, 0:], [1, 1, 1]),
    "index of np": (lambda x, w: (w.as_np_ndarray()[(x - 1).as_np_ndarray()]).sum(), [1, 1, 1]),
    "head": (lambda x, w: nd.BlockGrad(x * w), [0, 0, 0]),
    "comparison as head": (lambda x, w: x > w, [0, 0, 0]),
    "through several": (lambda x, w: nd.BlockGrad(nd.exp(x) * 2) * w * w, None),
}


@pytest.mark.parametrize("name", HIDING)
@pytest.mark.parametrize("req", ["write", "add"])
def test_hidden_arrays_get_zeros(name, req):
    function, expected = HIDING[name]
    for _ in range(2):  # a first call, and one that is known
        x, w = leaves(req)
        with autograd.record():
            y = function(x, w)
        y.backward()
        before = 7 if req == "add" else 0
        assert_array_equal(x.grad.asnumpy(), [before] * 3)
        if expected is not None:
            assert_array_equal(w.grad.asnumpy(), [before + n for n in expected])
        assert x._fresh_grad


@pytest.mark.parametrize(
    "function", [lambda x, w: x.detach() * w, lambda x, w: w * 2], ids=["detach", "unused"]
)
def test_arrays_outside_the_graph_keep_their_gradients(function):
    x, w = leaves()
    with autograd.record():
        _unused = x > 1
        y = function(x, w)
    y.backward()
    assert_array_equal(x.grad.asnumpy(), [7, 7, 7])


def test_what_torch_reaches_by_another_way_is_not_cleared():
    x, w = leaves()
    with autograd.record():
        y = (x > 1) * x * w
    y.backward()
    assert_array_equal(x.grad.asnumpy(), [0, 1, 1])


def test_a_graph_of_an_earlier_recording():
    x, w = leaves()
    with autograd.record():
        y = nd.BlockGrad(x) * w
    with autograd.record():
        z = y * 2
    z.backward()
    assert_array_equal(x.grad.asnumpy(), [0, 0, 0])


def test_a_constant_that_a_recorded_result_is_written_into():
    x, w = leaves()
    with autograd.record():
        y = x > 1
        nd.exp(w, out=y)
        z = y * 2
    assert len(autograd.get_symbol(z)._graph.nodes) == 3
    z.backward()
    assert_array_equal(x.grad.asnumpy(), [7, 7, 7])


class Frozen(gluon.HybridBlock):
    """A layer whose own parameters get no gradients, before one that is trained."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.body, self.head = gluon.nn.Dense(3), gluon.nn.Dense(2)

    def hybrid_forward(self, F, x):
        return self.head(F.BlockGrad(self.body(x)))


@pytest.mark.parametrize("hybridized", [False, True])
def test_a_trainer_steps_over_hidden_parameters(hybridized):
    net = Frozen()
    net.initialize(mx.init.One())
    if hybridized:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "wd": 0.1})
    for _ in range(4):  # hybridized blocks change their ways after some calls
        with autograd.record():
            loss = net(nd.ones((1, 2))).sum()
        loss.backward()
        trainer.step(1)
    # Without gradients weight decay is all that changes them: 0.99 ** 4.
    assert net.body.weight.data().asnumpy() == pytest.approx(0.99**4)


def test_row_sparse_gradients_are_emptied():
    weight, w = nd.ones((3, 2)), nd.ones((1, 2))
    weight.attach_grad(stype="row_sparse")
    w.attach_grad()
    with autograd.record():
        nd.sparse.Embedding(nd.array([1]), weight, 3, 2, sparse_grad=True).sum().backward()
    assert weight.grad.indices.asnumpy().tolist() == [1]
    with autograd.record():
        y = nd.BlockGrad(nd.sparse.Embedding(nd.array([1]), weight, 3, 2, sparse_grad=True)) * w
    y.backward()
    assert weight.grad.indices.shape == (0,)
