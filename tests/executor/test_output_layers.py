"""Output layers make their gradients also behind operators that have none, as in MXNet 1.9.1."""

import pytest
from numpy.testing import assert_allclose

import mxnet as mx
from mxnet import autograd, gluon, nd, sym

X, LABEL = [[1, 2, 3], [3, 2, 1]], [0, 2]
SOFTMAX = [[-0.90997, 0.24473, 0.66524], [0.66524, 0.24473, -0.90997]]  # p - one_hot(label)


def loss(F, x, label):
    """Return a loss as Sockeye 2 computes it: for its value only, trained by the output layer."""
    p = F.BlockGrad(F.SoftmaxOutput(x, label))
    return -F.sum(F.log(F.pick(p, label)))


CASES = {
    "block": (lambda F, x, label: F.BlockGrad(F.SoftmaxOutput(x, label)), SOFTMAX),
    "loss": (loss, SOFTMAX),
    "argmax": (lambda F, x, label: F.argmax(F.SoftmaxOutput(x, label), axis=1), SOFTMAX),
    "greater": (lambda F, x, label: F.SoftmaxOutput(x, label) > 0.5, SOFTMAX),
    "topk": (lambda F, x, label: F.topk(F.SoftmaxOutput(x, label), k=1), SOFTMAX),
    "one_hot": (lambda F, x, label: F.one_hot(F.SoftmaxOutput(x, label), depth=2), SOFTMAX),
    "zeros": (lambda F, x, label: F.zeros_like(F.SoftmaxOutput(x, label)), SOFTMAX),
    "beside": (lambda F, x, label: F.BlockGrad(F.SoftmaxOutput(x, label)) + x * 0, SOFTMAX),
    "make_loss": (lambda F, x, label: F.BlockGrad(F.MakeLoss(x * x)), [[2, 4, 6], [6, 4, 2]]),
    "blocked": (lambda F, x, label: F.BlockGrad(x * x) + x, [[1, 1, 1], [1, 1, 1]]),
}


class Network(gluon.HybridBlock):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, x, label):
        return self.function(F, x, label)


def executor_gradient(function):
    gradient = nd.zeros((2, 3))
    executor = function(sym, sym.var("x"), sym.var("label")).bind(
        mx.cpu(), {"x": nd.array(X), "label": nd.array(LABEL)}, args_grad={"x": gradient}
    )
    executor.forward(is_train=True)
    executor.backward([nd.ones(o.shape) for o in executor.outputs])
    return gradient


def block_gradient(function, hybridized):
    x = nd.array(X)
    x.attach_grad()
    network = Network(function)
    network.hybridize(hybridized)
    with autograd.record():
        y = network(x, nd.array(LABEL))
    y.backward()
    return x.grad


@pytest.mark.filterwarnings("ignore:.*not used:UserWarning")  # the label, by some
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", ["eager", "hybridized", "executor"])
def test_output_layers_train_behind_operators_without_gradients(case, mode):
    function, wanted = CASES[case]
    if mode == "executor":
        gradient = executor_gradient(function)
    else:
        gradient = block_gradient(function, mode == "hybridized")
    assert_allclose(gradient.asnumpy(), wanted, rtol=1e-4)


class _Doubling(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], in_data[0] + 5)


@mx.operator.register("doubling_loss")
class _DoublingProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return _Doubling()


def test_custom_losses_train_behind_operators_without_gradients():
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = nd.BlockGrad(nd.Custom(x, op_type="doubling_loss")) * 3
    y.backward()
    assert_allclose(x.grad.asnumpy(), [6, 7])


@pytest.mark.filterwarnings("ignore:.*not used:UserWarning")
def test_a_hybridized_block_without_gradients_may_start_backward():
    x = nd.array(X)
    x.attach_grad()
    network = Network(lambda F, x, label: F.BlockGrad(x))
    network.hybridize()
    with autograd.record():
        y = network(x, nd.array(LABEL))
    y.backward()
    assert_allclose(x.grad.asnumpy(), 0)
