"""Gradients of integer arrays, as MXNet 1.9.1 computes them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import mxnet as mx
from mxnet import autograd, gluon, nd
from tests.closeness import assert_equal_up_to_rounding

INTEGERS = ("int8", "int32", "int64", "uint8")
X, Y = [[3, 1, 2], [6, 5, 7]], [[2, 2, 4], [3, 1, 1]]
ONES = [[1, 1, 1], [1, 1, 1]]

# Answers of MXNet 1.9.1: function, gradient of the first operand, of the second.
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
def test_functions_of_integers_have_integer_gradients(name, dtype):
    function, expected = UNARY[name]
    x = nd.array(X, dtype=dtype)
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    assert x.grad.dtype == x.dtype
    assert_array_equal(x.grad.asnumpy(), expected)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_both_operands_of_integers_have_gradients(dtype):
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


@pytest.mark.parametrize(
    ("dtype", "factor", "expected"),
    [("int32", 1.7, 1.0), ("uint8", -1.7, 255.0), ("int8", 300.7, 44.0), ("bool", -1.7, 1.0)],
)
def test_casts_to_integers_pass_gradients_as_integers(dtype, factor, expected):
    x = nd.array([1.5, 2.7])
    x.attach_grad()
    for _ in range(2):  # the second call is a cached one
        with autograd.record():
            y = x.astype(dtype).astype("float32") * factor
        y.backward()
        assert_array_equal(x.grad.asnumpy(), [expected, expected])


def test_numpy_arrays_of_integers_have_gradients():
    x = mx.np.array([[3, 1], [2, 4]], dtype="int32")
    x.attach_grad()
    with autograd.record():
        y = 3 * x[mx.np.array([0, 0])] + x[1] * x[1]
    y.backward()
    assert_array_equal(x.grad.asnumpy(), [[6, 6], [8, 16]])


class Cut(gluon.HybridBlock):
    """Multiplies the integer parts."""

    def hybrid_forward(self, F, x):
        return F.cast(F.cast(x, "int32") * 3, "float32") * 1.7 + x


@pytest.mark.parametrize("train_mode", [True, False])
def test_hybridized_blocks_pass_gradients_through_integers(train_mode):
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


def test_hybridized_blocks_take_integers_with_gradients():
    net = gluon.nn.HybridLambda(lambda F, x: F.square(x) * 3)
    net.hybridize()
    x = nd.array([1, 2], dtype="int64")
    x.attach_grad("add")
    for _ in range(3):
        with autograd.record():
            y = net(x)
        y.backward()
    assert_array_equal(x.grad.asnumpy(), [18, 36])


def test_executors_pass_gradients_through_integers():
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


def test_integers_of_a_graph_that_is_used_up_go_on_as_constants():
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


def test_integers_without_a_derivative_have_zero_gradients():
    x = nd.array([1, 2], dtype="int32")
    x.attach_grad()
    with autograd.record():
        y = nd.one_hot(x, 3)
    y.backward()
    assert_array_equal(x.grad.asnumpy(), [0, 0])


def test_kernels_that_need_integers_keep_the_gradients_of_other_inputs():
    """Sockeye makes lengths of a softmax from recorded data; the scores are trained."""
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
