"""Backward of executors: repeated, after prediction, without head gradients."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mxnet as mx
from mxnet import autograd, gluon, nd, sym
from mxnet.gluon import nn

ONES = [[1.0, 1.0]]


def square(req="write", start=(1, 2)):
    x = sym.var("x")
    return (x * x).bind(mx.cpu(), [nd.array(start)], [nd.zeros(2)], req)


def classifier():
    net = sym.FullyConnected(sym.var("x"), num_hidden=2, name="fc")
    exe = sym.SoftmaxOutput(net, name="softmax").simple_bind(mx.cpu(), x=(2, 2))
    exe.arg_dict["x"][:] = 1
    return exe


# -- repeated backward ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("req", "wanted"),
    [("write", [[2, 4], [6, 12], [20, 20]]), ("add", [[2, 4], [8, 16], [28, 36]])],
)
def test_repeated_backward_after_one_forward(req, wanted):
    exe = square(req)
    exe.forward(is_train=True)
    found = []
    for scale, value in ((1, None), (3, None), (1, 10)):
        if value is not None:
            exe.arg_arrays[0][:] = value  # MXNet's backward reads the arguments as they are now
        exe.backward(nd.ones(2) * scale)
        found.append(exe.grad_arrays[0].asnumpy().tolist())
    assert found == wanted


def test_repeated_backward_uses_the_same_random_numbers():
    net = sym.Dropout(sym.var("x"), p=0.5)
    exe = net.bind(mx.cpu(), [nd.ones(40)], [nd.zeros(40)])
    out = exe.forward(is_train=True)[0].asnumpy()
    after = nd.random.uniform(shape=(3,)).asnumpy()
    for _ in range(3):
        exe.backward(nd.ones(40))
        np.testing.assert_array_equal(exe.grad_arrays[0].asnumpy(), out)
    # and they do not advance the global random state
    mx.random.seed(1)
    exe.forward(is_train=True)
    exe.backward(nd.ones(40))
    exe.backward(nd.ones(40))
    first = nd.random.uniform(shape=(3,)).asnumpy()
    mx.random.seed(1)
    exe.forward(is_train=True)
    np.testing.assert_array_equal(nd.random.uniform(shape=(3,)).asnumpy(), first)
    assert after.shape == (3,)


def test_repeated_backward_does_not_update_auxiliary_states():
    exe = sym.BatchNorm(sym.var("x"), momentum=0.5, name="bn").simple_bind(mx.cpu(), x=(4, 2))
    exe.arg_dict["x"][:] = nd.array([[1, 2], [3, 4], [5, 6], [7, 8]])
    exe.forward(is_train=True)
    for _ in range(3):
        exe.backward(nd.ones((4, 2)))
    np.testing.assert_allclose(exe.aux_dict["bn_moving_mean"].asnumpy(), [2, 2.5], rtol=1e-6)


def test_repeated_backward_does_not_change_outputs():
    exe = square()
    out = exe.forward(is_train=True)[0]
    exe.backward(nd.ones(2))
    exe.arg_arrays[0][:] = 7
    exe.backward(nd.ones(2))
    assert out.asnumpy().tolist() == [1, 4]


def test_label_can_be_set_after_forward():
    exe = classifier()
    exe.forward(is_train=True)
    exe.arg_dict["softmax_label"][:] = 1
    exe.backward()
    assert exe.grad_dict["fc_weight"].asnumpy().tolist() == [[1, 1], [-1, -1]]
    exe.arg_dict["softmax_label"][:] = 0
    exe.backward()
    assert exe.grad_dict["fc_weight"].asnumpy().tolist() == [[-1, -1], [1, 1]]


def test_backward_uses_changed_arguments():
    exe = square()
    exe.forward(is_train=True)
    exe.arg_arrays[0][:] = 10
    exe.backward(nd.ones(2))
    assert exe.grad_arrays[0].asnumpy().tolist() == [20, 20]


# -- other orders ---------------------------------------------------------------------------------


def test_backward_after_prediction_or_without_forward():
    exe = square()
    exe.backward(nd.ones(2))
    assert exe.grad_arrays[0].asnumpy().tolist() == [2, 4]
    exe.grad_arrays[0][:] = 7
    exe.forward(is_train=False)
    exe.backward(nd.ones(2))
    assert exe.grad_arrays[0].asnumpy().tolist() == [2, 4]
    exe = classifier()
    exe.forward(is_train=False)
    exe.backward()
    assert exe.grad_dict["fc_weight"].asnumpy().tolist() == [[-1, -1], [1, 1]]


@pytest.mark.parametrize("training", [True, False])
def test_gradients_in_prediction_mode(training):
    net = sym.BatchNorm(sym.var("x"), name="bn", fix_gamma=False, eps=1e-3)
    exe = net.simple_bind(mx.cpu(), x=(4, 2))
    exe.arg_dict["x"][:] = nd.array([[1, 2], [3, 4], [5, 6], [7, 9]])
    exe.arg_dict["bn_gamma"][:] = 1
    exe.aux_dict["bn_moving_var"][:] = 4
    exe.forward(is_train=False)
    if training:
        moving = exe.aux_dict["bn_moving_var"].copy()
        exe.forward(is_train=True)
        moving.copyto(exe.aux_dict["bn_moving_var"])
    exe.backward(nd.array([[1, 2], [3, 4], [5, 6], [7, 8]]), is_train=False)
    wanted = np.array([[1, 2], [3, 4], [5, 6], [7, 8]]) / np.sqrt(4.001)
    np.testing.assert_allclose(exe.grad_dict["x"].asnumpy(), wanted, rtol=1e-5)


def test_backward_without_gradients_does_nothing():
    x = sym.var("x")
    for options in ({}, {"grad_req": "null"}):
        exe = (x * x).bind(mx.cpu(), [nd.ones(2)], **options)
        for training in (True, False):
            exe.forward(is_train=training)
            exe.backward()
    exe = (x * x).simple_bind(mx.cpu(), grad_req=None, x=(2,))
    assert exe.grad_dict == {"x": None}


def test_integer_arguments_have_no_gradient():
    net = sym.Embedding(sym.var("x"), input_dim=4, output_dim=2, name="emb")
    exe = net.simple_bind(mx.cpu(), type_dict={"x": "int32"}, x=(3,))
    exe.forward(is_train=True, x=nd.array([1, 2, 1], dtype="int32"))
    exe.backward(nd.ones((3, 2)))
    assert exe.grad_dict["emb_weight"].asnumpy()[:, 0].tolist() == [0, 2, 1, 0]
    assert exe.grad_dict["x"].asnumpy().tolist() == [0, 0, 0]


# -- gradients of outputs -------------------------------------------------------------------------

x, label = sym.var("x"), sym.var("label")
NEEDS = {
    "mul": x * x,
    "sum": sym.sum(x),
    "variable": x,
    "sign": sym.sign(x),
    "softmax": sym.softmax(x),
    "cross entropy": sym.softmax_cross_entropy(x, label),
    "one of two": sym.Group([sym.MakeLoss(x), x * 2]),
}
NEEDS_NOT = {
    "MakeLoss": (sym.MakeLoss(x), ONES),
    "make_loss": (sym.make_loss(x), ONES),
    "SoftmaxOutput": (sym.SoftmaxOutput(x, label), [[-0.5, 0.5]]),
    "SVMOutput": (sym.SVMOutput(x, label), [[-2.0, 2.0]]),
    "LinearRegressionOutput": (sym.LinearRegressionOutput(x, x * 0 - 2), [[1.0, 1.0]]),
    "BlockGrad": (sym.BlockGrad(x), [[0.0, 0.0]]),
    "argmax": (sym.argmax(x, axis=1), [[0.0, 0.0]]),
    "floor": (sym.floor(x), [[0.0, 0.0]]),
    "group": (sym.Group([sym.MakeLoss(x), sym.BlockGrad(x * 2)]), ONES),
}


def trained(net):
    shapes = {"x": (1, 2), "label": (1,)}
    exe = net.simple_bind(mx.cpu(), **{n: shapes[n] for n in net.list_arguments()})
    exe.grad_dict["x"][:] = 9
    exe.forward(is_train=True)
    return exe


@pytest.mark.parametrize("name", NEEDS)
def test_non_loss_outputs_require_head_gradients(name):
    exe = trained(NEEDS[name])
    with pytest.raises(mx.MXNetError, match="head_gradient is required"):
        exe.backward()
    exe.backward([nd.ones(o.shape) for o in exe.outputs])  # the failed call has no effect


@pytest.mark.parametrize("name", NEEDS_NOT)
def test_losses_and_constants_need_no_head_gradients(name):
    net, wanted = NEEDS_NOT[name]
    exe = trained(net)
    exe.backward()
    assert exe.grad_dict["x"].asnumpy().tolist() == wanted


class Threes(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], in_data[0] * 0 + 3)


def test_need_top_grad_of_custom_operators():
    for name, need in (("threes_loss", False), ("threes", True)):

        @mx.operator.register(name)
        class Prop(mx.operator.CustomOpProp):
            def __init__(self, need=need):
                super().__init__(need_top_grad=need)

            def create_operator(self, ctx, shapes, dtypes):
                return Threes()

    exe = trained(sym.Custom(x, op_type="threes_loss"))
    exe.backward()
    assert exe.grad_dict["x"].asnumpy().tolist() == [[3, 3]]
    with pytest.raises(mx.MXNetError, match="head_gradient is required"):
        trained(sym.Custom(x, op_type="threes")).backward()


def test_number_and_shape_of_head_gradients():
    z = x * x

    def backward(heads, grads):
        exe = sym.Group(heads).simple_bind(mx.cpu(), x=(2,))
        exe.arg_dict["x"][:] = nd.array([1, 2])
        exe.forward(is_train=True)
        exe.backward(grads)
        return exe.grad_dict["x"].asnumpy().tolist()

    one, ten = nd.ones(2), nd.ones(2) * 10
    assert backward([z], one) == backward([z], (one,)) == backward([z], [one, ten]) == [2, 4]
    assert backward([z], {z.list_outputs()[0]: one}) == [2, 4]
    assert backward([z, sym.MakeLoss(x)], [ten]) == [21, 41]
    with pytest.raises(mx.MXNetError, match="head_gradient"):
        backward([sym.MakeLoss(x), z], [ten])
    with pytest.raises(mx.MXNetError, match="head_gradient"):
        backward([z], [])
    with pytest.raises(KeyError):
        backward([z], {"foo": one})
    with pytest.raises(TypeError):
        backward([z], 3)
    with pytest.raises(mx.MXNetError, match="shape"):
        backward([z], [nd.ones(3)])


def test_last_head_gradient_of_a_repeated_output_is_used():
    def backward(heads, *grads):
        exe = sym.Group(heads).simple_bind(mx.cpu(), x=(2,))
        exe.arg_dict["x"][:] = nd.array([1, 2])
        exe.forward(is_train=True)
        exe.backward([nd.ones(2) * g for g in grads] or None)
        return exe.grad_dict["x"].asnumpy().tolist()

    z, loss = x * x, sym.MakeLoss(x)
    assert backward([z, z], 1, 10) == [20, 40]
    assert backward([z, z, z], 1, 10, 100) == [200, 400]
    assert backward([x, x], 1, 10) == [10, 10]
    assert backward([x, z], 1, 10) == [21, 41]
    assert backward([loss, loss]) == [1, 1]


@pytest.mark.parametrize("req", ["foo", ["foo"], {"x": "foo"}])
def test_unknown_grad_req_raises(req):
    net = sym.var("x") * 2
    for error in (ValueError, mx.MXNetError):
        with pytest.raises(error, match="must be one of write, add, null, got 'foo'"):
            net.bind(mx.cpu(), [nd.ones(2)], [nd.ones(2)], req)
        with pytest.raises(error, match="'foo'"):
            net.simple_bind(mx.cpu(), grad_req=req, x=(2,))


def test_invalid_reshape_raises():
    net = sym.SoftmaxOutput(sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc"))
    exe = net.simple_bind(mx.cpu(), data=(8, 5))
    for shapes, said in (
        ({"data": (16, 5), net.list_arguments()[-1]: (16,)}, "allow_up_sizing"),
        ({"data": (8, 4)}, "fc_weight"),
        ({}, "data"),
        ({net.list_arguments()[-1]: (2,)}, "data"),
    ):
        with pytest.raises(mx.MXNetError, match=said):
            exe.reshape(**shapes)


def _gradient_of(head):
    executor = head.simple_bind(mx.cpu(), x=(2, 3), l=(2,))
    executor.arg_dict["x"][:] = [[0, 1, 2], [0, 1, 2]]
    executor.arg_dict["l"][:] = [0, 1]
    executor.forward(is_train=True)
    executor.backward()
    return executor.grad_dict["x"].asnumpy()


@pytest.mark.parametrize(
    "over",
    [
        lambda loss, x: mx.sym.Reshape(loss, shape=(-1,)),
        lambda loss, x: mx.sym.transpose(loss) * 2,
        lambda loss, x: mx.sym.Concat(loss, mx.sym.BlockGrad(x), dim=1),
        lambda loss, x: mx.sym.Group([mx.sym.exp(loss), mx.sym.BlockGrad(x * 2)]),
    ],
    ids=["reshaped", "scaled", "joined with a blocked one", "grouped with a blocked one"],
)
def test_operators_above_a_loss_need_no_head_gradient(over):
    x = mx.sym.Variable("x")
    loss = mx.sym.SoftmaxOutput(x, mx.sym.Variable("l"))
    expected = [[-0.91, 0.2447, 0.6652], [0.09, -0.7553, 0.6652]]  # from MXNet 1.9.1
    np.testing.assert_allclose(_gradient_of(over(loss, x)), expected, atol=1e-4)


def test_missing_head_gradient_of_a_variable_raises():
    x = mx.sym.Variable("x")
    loss = mx.sym.SoftmaxOutput(x, mx.sym.Variable("l"))
    with pytest.raises(mx.MXNetError, match="no out_grad was given for output 0"):
        _gradient_of(mx.sym.Concat(loss, x, dim=1))


# -- integers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["int32", "int64", "float16", "float32"])
@pytest.mark.parametrize("target", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("req", ["write", "add"])
def test_cast_gradient_has_the_input_dtype(source, target, req):
    cast = sym.Cast(sym.var("x", dtype=source), dtype=target)
    exe = cast.simple_bind(mx.cpu(), x=(4,), grad_req=req)
    exe.grad_arrays[0][:] = start = 7 if req == "add" else 0
    exe.forward(is_train=True, x=nd.array([1, 2, 3, 4], dtype=source))
    given = np.array([3.7, 2.2, 0, 5]).astype(target)
    exe.backward(nd.array(given, dtype=target))
    assert exe.outputs[0].dtype == np.dtype(target)
    assert exe.grad_arrays[0].dtype == np.dtype(source)
    np.testing.assert_allclose(exe.grad_arrays[0].asnumpy(), given.astype(source) + start, 1e-3)


def test_gradients_of_integers_used_by_casts_and_other_operators():
    x = sym.var("x", dtype="int32")
    total = sym.Cast(x, dtype="float32") * sym.var("y") + sym.Cast(x * 2, dtype="float32")
    exe = total.simple_bind(mx.cpu(), x=(2,), y=(2,), type_dict={"x": "int32"})
    exe.forward(is_train=True, x=nd.array([1, 2], dtype="int32"), y=nd.array([3, 4]))
    exe.backward(nd.ones(2))
    assert exe.grad_dict["x"].asnumpy().tolist() == [5, 6]
    assert exe.grad_dict["y"].asnumpy().tolist() == [1, 2]


class Forked(gluon.HybridBlock):
    """Two outputs, each of a separate parameter; `depth` operators follow each."""

    def __init__(self, depth):
        super().__init__()
        self.depth = depth
        self.left, self.right = nn.Dense(2, in_units=3), nn.Dense(2, in_units=3)

    def hybrid_forward(self, F, x):
        left, right = self.left(x), self.right(x)
        for _ in range(self.depth):
            left, right = F.sigmoid(left), F.sigmoid(right)
        return left, right


def forked(depth=1, **hints):
    net = Forked(depth)
    net.initialize(mx.init.One())
    net.hybridize(**hints)
    return net


def run_left(net, x=None):
    """Run backward from the left output only; return whether the right gradient was written."""
    weight = net.right.weight
    weight.grad()[:] = 7
    weight.data()._fresh_grad = False
    with autograd.record():
        left, _ = net(nd.ones((1, 3)) if x is None else x)
    left.backward()
    assert net.left.weight.data()._fresh_grad
    return weight.data()._fresh_grad


@pytest.mark.parametrize("times", [1, 3])
def test_parameters_of_unused_outputs_have_zero_gradients(times):
    net = forked()
    for _ in range(times):
        assert run_left(net)
    np.testing.assert_array_equal(net.right.weight.grad().asnumpy(), np.zeros((2, 3)))
    assert np.all(net.left.weight.grad().asnumpy() != 0)


def test_gradients_of_unused_outputs_are_not_stale():
    net = forked()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    run_left(net)
    trainer.step(1)
    np.testing.assert_array_equal(net.right.weight.data().asnumpy(), np.ones((2, 3)))


def test_gradients_of_unused_outputs_are_stale_without_hybridize():
    net = forked()
    net.hybridize(active=False)
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    assert not run_left(net)
    assert np.all(net.right.weight.grad().asnumpy() == 7)
    with pytest.raises(UserWarning, match="ignore_stale_grad"):
        trainer.step(1)


def test_small_graphs_are_inlined_when_recording():
    assert not run_left(forked(depth=0))
    assert run_left(forked(depth=0, inline_limit=0))
    assert not run_left(forked(depth=1, inline_limit=4))


def test_unused_outputs_add_zero_with_grad_req_add():
    net = forked()
    net.collect_params().setattr("grad_req", "add")
    assert run_left(net)
    assert np.all(net.right.weight.grad().asnumpy() == 7)


def test_zero_gradients_propagate_to_inputs_of_the_graph():
    class Twins(gluon.HybridBlock):
        def hybrid_forward(self, F, x, y):
            return F.exp(x * 2), F.exp(y * 2)

    net, x, y = Twins(), nd.ones(2), nd.ones(2)
    net.hybridize()
    x.attach_grad()
    y.attach_grad()
    y.grad[:] = 7
    with autograd.record():
        out = net(x, y * 5)
    out[0].backward()
    assert y.grad.asnumpy().tolist() == [0, 0]


def test_outputs_without_gradients_do_not_change_input_gradients():
    class Counted(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.exp(x * 2), F.shape_array(x), F.BlockGrad(F.exp(x) + 1)

    net, x = Counted(), nd.array([0.0, 1.0])
    net.hybridize()
    x.attach_grad()
    with autograd.record():
        out, size, _ = net(x)
    out.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * np.exp([0, 2]), rtol=1e-6)
    assert size.asnumpy().tolist() == [2]


def test_cached_ops_compute_gradients_through_integer_casts():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    whole = mx.sym.cast(x, dtype="int32") * 2
    run = nd.CachedOp(mx.sym.Group([whole + 1, mx.sym.cast(whole, dtype="float32") * y, y * 3]))
    a, b = nd.array([1.5, 2.5]), nd.array([3.0, 4.0])
    a.attach_grad()
    b.attach_grad()
    with autograd.record():
        outputs = run(a, b)
        outputs[1].backward()
    np.testing.assert_array_equal(outputs[0].asnumpy(), [3, 5])
    np.testing.assert_array_equal(a.grad.asnumpy(), [6, 8])
    np.testing.assert_array_equal(b.grad.asnumpy(), [2, 4])


X, LABEL = [[1, 2, 3], [3, 2, 1]], [0, 2]
SOFTMAX = [[-0.90997, 0.24473, 0.66524], [0.66524, 0.24473, -0.90997]]  # p - one_hot(label)


def loss(F, x, label):
    """Return a loss as in Sockeye 2: it gives the value, the output layer gives the gradient."""
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


@pytest.mark.filterwarnings("ignore:.*not used:UserWarning")  # some layers write it
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", ["eager", "hybridized", "executor"])
def test_loss_layers_below_non_differentiable_operators_train(case, mode):
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


def test_custom_losses_below_non_differentiable_operators_train():
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = nd.BlockGrad(nd.Custom(x, op_type="doubling_loss")) * 3
    y.backward()
    assert_allclose(x.grad.asnumpy(), [6, 7])


@pytest.mark.filterwarnings("ignore:.*not used:UserWarning")
def test_backward_from_a_non_differentiable_hybridized_block():
    x = nd.array(X)
    x.attach_grad()
    network = Network(lambda F, x, label: F.BlockGrad(x))
    network.hybridize()
    with autograd.record():
        y = network(x, nd.array(LABEL))
    y.backward()
    assert_allclose(x.grad.asnumpy(), 0)


def test_shapes_of_ignored_head_gradients_are_not_checked():
    loss = mx.sym.SoftmaxOutput(mx.sym.var("x"), mx.sym.var("label"))
    executor = loss.simple_bind(mx.cpu(), x=(1, 2), label=(1,))
    executor.forward(is_train=True, x=mx.nd.ones((1, 2)), label=mx.nd.zeros((1,)))
    executor.backward(mx.nd.ones((7,)))
    assert executor.grad_dict["x"].asnumpy().tolist() == [[-0.5, 0.5]]


@pytest.mark.parametrize("hybridize", [False, True])
def test_gradients_of_labels_are_not_written(hybridize):
    """As in MXNet 1.9.1, also where backward writes zeros for other inputs."""

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x, label, blocked):
            return F.broadcast_add(F.SoftmaxOutput(x * 1, label), F.BlockGrad(blocked))

    net = Net()
    if hybridize:
        net.hybridize()
    x, label, blocked = nd.array([[1, 2]]), nd.array([1]), nd.array([3])
    for array in (x, label, blocked):
        array.attach_grad()
        array.grad[:] = 7
    with mx.autograd.record():
        out = net(x, label, blocked)
    out.backward()
    assert label.grad.asnumpy() == [7]
    assert blocked.grad.asnumpy() == [0]
    assert (x.grad.asnumpy() != 7).all()
