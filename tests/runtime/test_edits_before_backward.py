"""Backward uses the values that arrays have when it runs, as in MXNet 1.9.1."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from tests.arrays import bound, check, leaf


def edit(name, edited, formula, of_x, of_w):
    return pytest.param(edited, formula, of_x, of_w, id=f"{name}-{edited}")


# The array that is edited between forward and backward, the formula, the gradients of x and w.
EDITS = [
    edit("square", "x", lambda F, x, w: x * x, [2.5, 1.5, 1, 4], 0),
    edit("square", "y", lambda F, x, w: x * x, [1, 2, 4, 3], 0),
    edit("product", "x", lambda F, x, w: x * w, [1, 2, 3, 0.5], [1.25, 0.75, 0.5, 2]),
    edit("product", "w", lambda F, x, w: x * w, [2, 1, 0.5, 3], [0.5, 1, 2, 1.5]),
    edit("tanh", "x", lambda F, x, w: F.tanh(x), [0.78645, 0.41997, 0.07065, 0.18071], 0),
    edit("tanh", "y", lambda F, x, w: F.tanh(x), 0.9375, 0),
    edit("sigmoid", "y", lambda F, x, w: F.sigmoid(x), 0.1875, 0),
    edit("exp", "x", lambda F, x, w: F.exp(x), [1.64872, 2.71828, 7.38906, 4.48169], 0),
    edit("exp", "y", lambda F, x, w: F.exp(x), 0.25, 0),
    edit("log", "x", lambda F, x, w: F.log(x), [0.8, 1.33333, 2, 0.5], 0),
    edit("sqrt", "y", lambda F, x, w: F.sqrt(x), 2, 0),
    edit(
        "divide", "x", lambda F, x, w: x / w, [1, 0.5, 0.33333, 2], [-1.25, -0.1875, -0.05556, -8]
    ),
    edit("divide", "w", lambda F, x, w: x / w, [0.5, 1, 2, 0.33333], [-0.125, -1, -8, -0.16667]),
    edit("power", "x", lambda F, x, w: x**3, [4.6875, 1.6875, 0.75, 12], 0),
    edit("softmax", "y", lambda F, x, w: F.softmax(x), 0.125, 0),
    edit("log_softmax", "y", lambda F, x, w: F.log_softmax(x), -1.56805, 0),
    edit("dot", "x", lambda F, x, w: F.dot(x, w), [3, 3.5, 3, 3.5], [1.75, 1.75, 2.75, 2.75]),
    edit(
        "dense",
        "x",
        lambda F, x, w: F.FullyConnected(x, w, no_bias=True, num_hidden=2),
        [4, 2.5, 4, 2.5],
        [1.75, 2.75, 1.75, 2.75],
    ),
    edit(
        "dense",
        "w",
        lambda F, x, w: F.FullyConnected(x, w, no_bias=True, num_hidden=2),
        [2.5, 4, 2.5, 4],
        2.5,
    ),
    edit("norm", "x", lambda F, x, w: F.norm(x), [0.45644, 0.27386, 0.18257, 0.7303], 0),
    edit("norm", "y", lambda F, x, w: F.norm(x), [2, 4, 8, 6], 0),
    edit("max", "x", lambda F, x, w: F.max(x, axis=1), [0, 0, 0, 1], 0),
    edit("max", "y", lambda F, x, w: F.max(x, axis=1), 0, 0),
    edit("erf", "x", lambda F, x, w: F.erf(x), [0.23652, 0.64293, 0.87878, 0.02067], 0),
    edit(
        "softrelu",
        "x",
        lambda F, x, w: F.Activation(x, act_type="softrelu"),
        [0.7773, 0.67918, 0.62246, 0.8808],
        0,
    ),
]


class Formula(gluon.HybridBlock):
    def __init__(self, formula):
        super().__init__()
        self._formula = formula

    def hybrid_forward(self, F, x, w):
        return F.identity(w), self._formula(F, x, w)


@pytest.mark.parametrize("way", ["eager", "hybridized", "static", "bound"])
@pytest.mark.parametrize(("edited", "formula", "of_x", "of_w"), EDITS)
def test_gradients_use_the_values_at_backward(edited, formula, of_x, of_w, way):
    arrays = {"x": leaf([[0.5, 1], [2, 1.5]]), "w": leaf([[1, 2], [3, 0.5]])}
    x, w = arrays.values()
    net = Formula(formula)
    if way == "bound":
        symbol = mx.sym.Group(list(net(mx.sym.Variable("x"), mx.sym.Variable("w"))))
        e = symbol.bind(mx.cpu(), arrays, args_grad={"x": x.grad, "w": w.grad})
        arrays["y"] = e.forward(is_train=True)[1]
    else:
        if way != "eager":
            net.hybridize(static_alloc=way == "static", static_shape=way == "static")
        with autograd.record():
            arrays["y"] = net(x, w)[1]
    values = {"x": [[1.25, 0.75], [0.5, 2]], "w": [[2, 1], [0.5, 3]], "y": 0.25}
    arrays[edited][:] = np.array(values[edited], "float32") if edited != "y" else 0.25
    if way == "bound":
        e.backward([nd.zeros((2, 2)), nd.ones(arrays["y"].shape)])
    else:
        arrays["y"].backward()
    check(x.grad, of_x)
    check(w.grad, of_w)


def test_executor_gradients_use_the_arguments_at_backward():
    e = bound(mx.sym.var("a") * mx.sym.var("b"), a=(2,), b=(2,))
    e.forward(is_train=True)
    e.arg_dict["b"][:] = 5
    e.backward(nd.ones((2,)))
    check(e.outputs[0], 1)
    check(e.grad_dict["a"], 5)
    check(e.grad_dict["b"], 1)


def test_executor_backward_does_not_rerun_forward():
    e = bound(mx.sym.tanh(mx.sym.var("a")) * mx.sym.var("b"), a=(2,), b=(2,))
    e.forward(is_train=True)
    e.arg_dict["a"][:] = 0
    e.backward(nd.ones((2,)))
    check(e.outputs[0], np.tanh(1))
    check(e.grad_dict["a"], 1 - np.tanh(1) ** 2)
    check(e.grad_dict["b"], np.tanh(1))
