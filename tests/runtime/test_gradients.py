"""Gradients of integer arrays and of unreached inputs, as in MXNet 1.9.1."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from mxnet.util import use_np
from tests.arrays import backward, check, leaf
from tests.batches import check_each
from tests.closeness import assert_equal_up_to_rounding

INTEGERS = ("int8", "int32", "int64", "uint8")
X, Y = [[3, 1, 2], [6, 5, 7]], [[2, 2, 4], [3, 1, 1]]
ONES = [[1, 1, 1], [1, 1, 1]]

# Recorded from MXNet 1.9.1: function, gradient of the first operand, of the second.
UNARY = {
    "index": (lambda x: x[0], [[1, 1, 1], [0, 0, 0]]),
    "slice": (lambda x: x[:, 1:], [[0, 1, 1], [0, 1, 1]]),
    "lists": (lambda x: x[[0, 1], [1, 1]], [[0, 1, 0], [0, 1, 0]]),
    "topk": (lambda x: nd.topk(x, k=2, ret_typ="value"), [[1, 0, 1], [1, 0, 1]]),
    "square": (lambda x: x**2, [[6, 2, 4], [12, 10, 14]]),
    "half": (lambda x: x / 2, [[0, 0, 0], [0, 0, 0]]),
    "exp": (lambda x: nd.exp(x[0]), [[20, 2, 7], [0, 0, 0]]),
    "mean": (lambda x: x.mean(), [[0, 0, 0], [0, 0, 0]]),
    "max": (lambda x: x.max(axis=0), [[0, 0, 0], [1, 1, 1]]),
    "take": (lambda x: nd.take(x, nd.array([0, 1, 1])), [[1, 1, 1], [2, 2, 2]]),
    "clip": (lambda x: nd.clip(x, 2, 5) * 3, [[3, 0, 3], [0, 3, 0]]),
    "reshape": (lambda x: x.reshape((3, -1)).T * 3, [[3, 3, 3], [3, 3, 3]]),
    "cast": (lambda x: x.astype("float32") * 1.7, ONES),
    "scalar": (lambda x: x * 2.5, [[2, 2, 2], [2, 2, 2]]),
    "copy": (lambda x: x.copy().expand_dims(0, inplace=True) * 2, [[2, 2, 2], [2, 2, 2]]),
    "mask": (
        lambda x: nd.contrib.boolean_mask(x, nd.array([0, 1], dtype="int32")),
        [[0, 0, 0], [1, 1, 1]],
    ),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", UNARY)
def test_integer_functions_have_integer_gradients(name, dtype):
    function, expected = UNARY[name]
    x = nd.array(X, dtype=dtype)
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    assert x.grad.dtype == x.dtype
    assert_array_equal(x.grad.asnumpy(), expected)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_gradients_of_both_integer_operands(dtype):
    answers = {
        "mul": (lambda x, y: x * y, Y, X),
        "div": (lambda x, y: x / y, [[0, 0, 0], [0, 1, 1]], [[0, 0, 0], [0, -5, -7]]),
        "pow": (lambda x, y: x**y, [[6, 2, 32], [108, 1, 1]], [[9, 0, 11], [387, 8, 13]]),
        "maximum": (nd.maximum, [[1, 0, 0], [1, 1, 1]], [[0, 1, 1], [0, 0, 0]]),
    }
    for function, of_x, of_y in answers.values():
        x, y = nd.array(X, dtype=dtype), nd.array(Y, dtype=dtype)
        x.attach_grad()
        y.attach_grad()
        with autograd.record():
            z = function(x, y)
        z.backward()
        assert_array_equal(x.grad.asnumpy(), of_x)
        assert_array_equal(y.grad.asnumpy(), of_y)


REMAINDERS = {
    "_mod": lambda F, a, b: F._internal._mod(a, b),
    "broadcast_mod": lambda F, a, b: F.broadcast_mod(a, b),
    "numbers": lambda F, a, b: (a % 3) * (20 % b),
}


class Remainder(gluon.HybridBlock):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.function = REMAINDERS[name]

    def hybrid_forward(self, F, a, b):
        return self.function(F, a, b)


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", REMAINDERS)
def test_integer_remainders_have_zero_gradients(name, hybridize):
    net = Remainder(name)
    net.hybridize(hybridize)
    for dtype in INTEGERS:
        a, b = nd.array(X, dtype=dtype), nd.array(Y, dtype=dtype)
        for operand in (a, b):
            operand.attach_grad()
            operand.grad[:] = 5
        with autograd.record():
            out = net(a, b)
        out.backward()
        assert not a.grad.asnumpy().any() and not b.grad.asnumpy().any(), dtype


@use_np
def test_remainders_have_gradients_only_for_float_operands():
    a, b = mx.np.array([7, 8, 9], dtype="int32"), mx.np.array([3.0, 3, 4])
    a.attach_grad()
    b.attach_grad()
    with autograd.record():
        out = a % b
    out.backward()
    assert a.grad.tolist() == [0, 0, 0]
    assert b.grad.tolist() == [-2, -2, -2]
    with autograd.record():
        out = b % a
    out.backward()
    assert a.grad.tolist() == [0, 0, 0]
    assert b.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("dtype", "factor", "expected"),
    [("int32", 1.7, 1.0), ("uint8", -1.7, 255.0), ("int8", 300.7, 44.0), ("bool", -1.7, 1.0)],
)
def test_gradients_through_casts_to_integers_are_integers(dtype, factor, expected):
    x = nd.array([1.5, 2.7])
    x.attach_grad()
    for _ in range(2):  # the second call is a cached one
        with autograd.record():
            y = x.astype(dtype).astype("float32") * factor
        y.backward()
        assert_array_equal(x.grad.asnumpy(), [expected, expected])


def test_integer_np_arrays_have_gradients():
    x = mx.np.array([[3, 1], [2, 4]], dtype="int32")
    x.attach_grad()
    with autograd.record():
        y = 3 * x[mx.np.array([0, 0])] + x[1] * x[1]
    y.backward()
    assert_array_equal(x.grad.asnumpy(), [[6, 6], [8, 16]])


class Cut(gluon.HybridBlock):
    """Multiplies integer parts."""

    def hybrid_forward(self, F, x):
        return F.cast(F.cast(x, "int32") * 3, "float32") * 1.7 + x


@pytest.mark.parametrize("train_mode", [True, False])
def test_gradients_through_integers_in_hybridized_blocks(train_mode):
    found = []
    for hybridize in (False, True):
        net = Cut()
        net.hybridize(hybridize)
        x = nd.array([1.5, 2.7])
        x.attach_grad()
        for _ in range(3):
            with autograd.record(train_mode):
                y = net(x)
            y.backward()
        found.append((y.asnumpy(), x.grad.asnumpy()))
        assert_array_equal(x.grad.asnumpy(), [4, 4])  # 3 * int(1.7) + 1
    assert_equal_up_to_rounding(found[0][0], found[1][0])


def test_hybridized_blocks_with_integer_inputs_and_gradients():
    net = gluon.nn.HybridLambda(lambda F, x: F.square(x) * 3)
    net.hybridize()
    x = nd.array([1, 2], dtype="int64")
    x.attach_grad("add")
    for _ in range(3):
        with autograd.record():
            y = net(x)
        y.backward()
    assert_array_equal(x.grad.asnumpy(), [18, 36])


def test_gradients_through_integers_in_executors():
    x = mx.sym.var("x")
    y = mx.sym.cast(mx.sym.cast(x, "int32") * 3, "float32") * 1.7
    executor = y.simple_bind(mx.cpu(), x=(2,))
    executor.forward(is_train=True, x=nd.array([1.5, 2.7]))
    executor.backward(nd.ones(2))
    assert_array_equal(executor.grad_dict["x"].asnumpy(), [3, 3])


def test_grad_of_integers_is_an_integer_array():
    x = nd.array([1, 2], dtype="int32")
    x.attach_grad()
    with autograd.record():
        y = (x * x).astype("float32").sum()
    (found,) = autograd.grad(y, [x])
    assert found.dtype == x.dtype
    assert_array_equal(found.asnumpy(), [2, 4])


def test_integer_results_of_a_freed_graph_are_constants():
    x = nd.array([1, 2], dtype="int32")
    x.attach_grad()
    with autograd.record():
        y = x * 2
    y.backward()
    with autograd.record():
        z = y * x
    z.backward()
    assert_array_equal(x.grad.asnumpy(), [2, 4])
    with pytest.raises(mx.MXNetError, match="not in a computational graph"):
        y.backward()


def test_integer_parameters_have_gradients():
    weight = gluon.Parameter("weight", shape=(2,), dtype="int32")
    weight.initialize(init="ones")
    with autograd.record():
        y = weight.data() * weight.data() * 2
    y.backward()
    assert_array_equal(weight.grad().asnumpy(), [4, 4])


def test_one_hot_has_zero_gradient():
    x = nd.array([1, 2], dtype="int32")
    x.attach_grad()
    with autograd.record():
        y = nd.one_hot(x, 3)
    y.backward()
    assert_array_equal(x.grad.asnumpy(), [0, 0])


def test_integer_inputs_do_not_stop_gradients_of_other_inputs():
    """Sockeye computes lengths of a softmax from recorded data; the scores are trained."""
    x = mx.nd.array([[1, 2, 3], [3, 1, 2]])
    x.attach_grad()
    with mx.autograd.record():
        scores = x * 2
        lengths = mx.nd.cast(mx.nd.broadcast_like(mx.nd.array([2, 3]), scores[:, 0]), "int32")
        lengths = lengths + mx.nd.cast(scores.sum(axis=1) * 0, "int32")
        y = mx.nd.softmax(scores, axis=-1, length=lengths, use_length=True)
        loss = (y * y).sum()
    loss.backward()
    wanted = [[-0.31985, 0.31985, 0], [0.351698, -0.047597, -0.304101]]  # of MXNet 1.9.1
    np.testing.assert_allclose(x.grad.asnumpy(), wanted, atol=1e-5)


# -- backward writes zeros to inputs that only non-differentiable operators use -----------------


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
def test_unreached_inputs_have_zero_gradients(name, req):
    function, expected = HIDING[name]
    for _ in range(2):  # a first call and a cached one
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
def test_gradients_of_arrays_outside_the_graph_are_not_written(function):
    x, w = leaves()
    with autograd.record():
        _unused = x > 1
        y = function(x, w)
    y.backward()
    assert_array_equal(x.grad.asnumpy(), [7, 7, 7])


def test_unreached_path_does_not_clear_gradients_of_other_paths():
    x, w = leaves()
    with autograd.record():
        y = (x > 1) * x * w
    y.backward()
    assert_array_equal(x.grad.asnumpy(), [0, 1, 1])


def test_unreached_inputs_of_an_earlier_recording_have_zero_gradients():
    x, w = leaves()
    with autograd.record():
        y = nd.BlockGrad(x) * w
    with autograd.record():
        z = y * 2
    z.backward()
    assert_array_equal(x.grad.asnumpy(), [0, 0, 0])


def test_writing_a_recorded_result_into_a_constant():
    x, w = leaves()
    with autograd.record():
        y = x > 1
        nd.exp(w, out=y)
        z = y * 2
    assert len(autograd.get_symbol(z)._graph.nodes) == 3
    z.backward()
    assert_array_equal(x.grad.asnumpy(), [7, 7, 7])


class Frozen(gluon.HybridBlock):
    """A layer whose parameters get no gradients, before one that is trained."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.body, self.head = gluon.nn.Dense(3), gluon.nn.Dense(2)

    def hybrid_forward(self, F, x):
        return self.head(F.BlockGrad(self.body(x)))


@pytest.mark.parametrize("hybridized", [False, True])
def test_trainer_step_with_unreached_parameters(hybridized):
    net = Frozen()
    net.initialize(mx.init.One())
    if hybridized:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "wd": 0.1})
    for _ in range(4):  # hybridized blocks are optimized after some calls
        with autograd.record():
            loss = net(nd.ones((1, 2))).sum()
        loss.backward()
        trainer.step(1)
    # Only weight decay changes them: 0.99 ** 4.
    assert net.body.weight.data().asnumpy() == pytest.approx(0.99**4)


def test_unreached_row_sparse_gradients_become_empty():
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


@use_np
def test_gradients_through_integer_reductions():
    expected = {
        "mean": [0.25, 0.25, 0.25, 0.25],
        "sum": [1, 1, 1, 1],
        "prod": [24, 12, 8, 6],
        "cumsum": [4, 3, 2, 1],
    }

    class Reduced(gluon.HybridBlock):
        def __init__(self, name, dtype):
            super().__init__()
            self.call = name, dtype

        def hybrid_forward(self, F, x):
            name, dtype = self.call
            return getattr(F.np, name)(x, dtype=dtype)

    def check(case):
        name, dtype, result, hybrid = case
        x = mx.np.array([1, 2, 3, 4], dtype=dtype)
        x.attach_grad()
        net = Reduced(name, result)
        if hybrid:
            net.hybridize()
        for _ in range(2):
            with autograd.record():
                y = net(x)
            y.backward()
            assert y.dtype == result
            assert x.grad.tolist() == expected[name]

    floats, integers = ("float16", "float32", "float64"), ("int8", "int32", "int64")
    cases = itertools.product(expected, floats, integers, (False, True))
    check_each({str(case): case for case in cases}, check)

    rows = mx.np.array([[1, 2.5], [3, 4]])
    rows.attach_grad()
    with autograd.record():
        y = mx.np.mean(rows, axis=1, dtype="int32") * mx.np.array([2, 4], dtype="int32")
    y.backward()
    assert rows.grad.tolist() == [[1, 1], [2, 2]]


@use_np
def test_integer_mean_is_wrapped_sum_with_truncating_division():
    def check(case):
        values, dtype, result, expected = case
        mean = mx.np.mean(mx.np.array(values, dtype=dtype), dtype=result)
        assert mean.dtype == result and mean.item() == expected

    cases = [
        ([100, 100, 100, 3], "float32", "int8", 11),
        ([300.0, 1.0], "float32", "int8", 22),
        ([2**53 + 1] * 3, "int64", "int64", 2**53 + 1),
        ([1000000007] * 3, "int32", "int64", 1000000007),
        ([1000000007] * 3, "int32", "int32", -431655758),
        ([2**40, 1], "int64", "int32", 0),
        ([-7, 0], "int64", "int32", -3),
        ([-1.9] * 5, "float64", "int64", -1),
        ([0.5, 0.5, 2], "float32", "int32", 1),
        ([0.3, 0], "float32", "bool", True),
    ]
    check_each({str(case): case for case in cases}, check)


@pytest.mark.parametrize("hybridize", [False, True])
def test_second_order_backward_zeroes_independent_gradients(hybridize):
    net = nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(mx.init.One())
    if hybridize:
        net.hybridize()
    x = leaf([[1, 2]])
    backward(lambda: net(x) * 7)
    check(x.grad, 7)
    with autograd.record():
        y = net(x)
        g = autograd.grad(y, [x], create_graph=True, retain_graph=True)[0]
        z = (g * g).sum()
    z.backward()
    check(x.grad, 0)
    check(net.weight.grad(), 2)
