"""Programs whose results once depended on what another part of the program did.

The expected numbers are those of MXNet 1.9.1. The gradient of a recorded call is taken from the
memory of its arrays as it stands when backward runs.
"""

from __future__ import annotations

import collections
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn, rnn
from mxnet.ndarray.codegen import make_function
from mxnet.ops import families, registry
from mxnet.ops.fused import dense as prepared_dense


def check(array, expected):
    """Compare with a number, or with numbers in order; the shape is that of the array."""
    found = array.asnumpy()
    flat = np.broadcast_to(np.asarray(expected, "float64").reshape(-1), found.size)
    np.testing.assert_allclose(found.reshape(-1), flat, rtol=1e-5, atol=1e-5)


def leaf(values, req="write"):
    array = nd.array(np.asarray(values, "float32"))
    array.attach_grad(req)
    return array


def ones(*shape):
    return leaf(np.ones(shape))


def backward(function, *heads):
    with autograd.record():
        y = function()
    y.backward(*heads)
    return y


def formula_block(formula):
    class Formula(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return formula(F, x)

    return Formula()


# How gradients reach a leaf through torch's views: shape of the leaf, and what is recorded of it.
VIEWS = {
    "reshape": ((4,), lambda x: x.reshape((2, 2)) + 1),
    "reshape operator": ((4,), lambda x: nd.reshape(x, shape=(2, 2)) + 1),
    "reshape alone": ((4,), lambda x: x.reshape((2, 2))),
    "expand_dims": ((2, 2), lambda x: nd.expand_dims(x, axis=0)),
    "squeeze": ((1, 2, 2), lambda x: nd.squeeze(x, axis=0)),
    "stack": ((2, 2), lambda x: nd.stack(x, axis=0)),
    "reshape_like": ((4,), lambda x: nd.reshape_like(x, nd.zeros((2, 2)))),
    "transpose": ((1, 4), lambda x: nd.transpose(x)),
    "flatten": ((2, 1, 2), lambda x: nd.flatten(x)),
    "identity": ((2, 2), lambda x: nd.identity(x)),
    "plus": ((2, 2), lambda x: x + 1),
    "concat": ((2, 2), lambda x: nd.concat(x, dim=0)),
    "swapaxes": ((1, 4), lambda x: nd.swapaxes(x, 0, 1)),
    "broadcast_to": ((2, 2), lambda x: nd.broadcast_to(x, shape=(2, 2))),
    "slice": ((2, 2), lambda x: x[0:2]),
    "copy": ((2, 2), lambda x: x.copy()),
    "dropout": ((2, 2), lambda x: nd.Dropout(x, p=0)),
    "split": ((2, 2), lambda x: nd.split(x, num_outputs=1, axis=0)),
}
each_view = pytest.mark.parametrize(("shape", "function"), VIEWS.values(), ids=VIEWS)


@each_view
def test_clearing_a_gradient_leaves_unrelated_gradients(shape, function):
    x = ones(*shape)
    y = backward(lambda: function(x))
    x.grad[:] = 0
    for other in (ones(2, 2), ones(*shape), ones(*y.shape)):
        backward(lambda w=other: w * 3)
        check(other.grad, 3)


@each_view
def test_head_gradients_and_gradients_are_apart(shape, function):
    x = ones(*shape)
    with autograd.record():
        y = function(x)
    head = nd.ones(y.shape)
    y.backward(head)
    head[:] = 9
    check(x.grad, 1)
    x.grad[:] = 5
    check(head, 9)


@each_view
def test_views_of_a_gradient_see_the_next_one(shape, function):
    x = ones(*shape)
    kept, flat, first = x.grad, x.grad.reshape((-1,)), x.grad[0:1]
    backward(lambda: function(x) * 3)
    for view in (kept, flat, first):
        check(view, 3)
    flat[:] = 7
    check(x.grad, 7)
    backward(lambda: function(x))
    check(flat, 1)


@each_view
def test_sums_of_gradients_that_are_cleared(shape, function):
    x = ones(*shape)
    total = nd.zeros(shape)
    for _ in range(3):
        backward(lambda: function(x))
        total += x.grad
        x.grad[:] = 0
    check(total, 3)


@each_view
def test_gradients_of_two_leaves_are_apart(shape, function):
    x, w = ones(*shape), ones(*shape)
    backward(lambda: function(x) + function(w))
    x.grad[:] = 0
    check(w.grad, 1)
    first, second = ones(*shape), ones(*shape)
    with autograd.record():
        y = function(first) + function(second)
    found = autograd.grad(y, [first, second])
    found[0][:] = 0
    check(found[1], 1)
    backward(lambda: first * 2)
    check(first.grad, 2)


@each_view
def test_results_of_grad_and_head_gradients_are_apart(shape, function):
    x = ones(*shape)
    with autograd.record():
        y = function(x)
    head = nd.ones(y.shape)
    (found,) = autograd.grad(y, [x], head_grads=[head])
    head[:] = 9
    check(found, 1)
    found[:] = 5
    check(head, 9)
    check(x.grad, 0)


@each_view
def test_added_gradients_are_apart(shape, function):
    x, w = leaf(np.ones(shape), "add"), leaf(np.ones(shape), "add")
    for count in (1, 2, 3):
        backward(lambda: function(x * 1) + function(w * 1))
        check(x.grad, count)
        check(w.grad, 10 * (count - 1) + count)
        w.grad[:] += 10


def test_gradients_of_joined_arrays_and_their_head_are_apart():
    x, w, head = ones(2), ones(2), nd.ones((4,))
    backward(lambda: nd.concat(x, w, dim=0), head)
    x.grad[:] = 5
    check(head, 1)
    check(w.grad, 1)


class Views(gluon.HybridBlock):
    """Adds two parameters of different shapes to its input."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.a = self.params.get("a", shape=(2, 2), init="ones")
            self.b = self.params.get("b", shape=(4,), init="ones")

    def hybrid_forward(self, F, x, a, b):
        y = F.reshape(a, shape=(1, 4)) + F.expand_dims(b, axis=0)
        return F.broadcast_add(x, y)


def trained_views(hybridize):
    net = Views()
    net.initialize()
    if hybridize:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    backward(lambda: net(nd.zeros((1, 4))))
    return net, trainer


@pytest.mark.parametrize("hybridize", [False, True])
def test_clipping_by_the_global_norm_scales_every_gradient_once(hybridize):
    net, trainer = trained_views(hybridize)
    gluon.utils.clip_global_norm([net.a.grad(), net.b.grad()], 1.0)
    check(net.a.grad(), 0.3535534)
    check(net.b.grad(), 0.3535534)
    trainer.step(1)
    check(net.a.data(), 0.6464466)
    check(net.b.data(), 0.6464466)


@pytest.mark.parametrize("hybridize", [False, True])
def test_zero_grad_clears_one_parameter(hybridize):
    net, _ = trained_views(hybridize)
    net.a.zero_grad()
    check(net.a.grad(), 0)
    check(net.b.grad(), 1)


class TimesTen(autograd.Function):
    def forward(self, x):
        return x + 1

    def backward(self, dy):
        dy[:] = dy * 10
        return dy


class Square(autograd.Function):
    """Keeps the gradient that it was given."""

    given = None

    def forward(self, x):
        self.save_for_backward(x)
        return x * x

    def backward(self, dy):
        Square.given = dy
        return 2 * self.saved_tensors[0] * dy


def test_a_function_may_write_into_its_gradient():
    x, w, head = ones(4), ones(4), nd.ones((4,))
    backward(lambda: TimesTen()(x))
    check(x.grad, 10)
    backward(lambda: w * 2)
    check(w.grad, 2)
    backward(lambda: TimesTen()(x), head)
    check(head, 1)


def test_a_function_that_writes_leaves_the_other_branch():
    x = ones(4)

    def branches():
        a = x * 1
        return TimesTen()(a) + a

    backward(branches)
    check(x.grad, 11)


def test_the_gradient_that_a_function_keeps_is_its_own():
    x, w = ones(4), ones(4)
    backward(lambda: Square()(x) + w)
    Square.given[:] = 9
    check(x.grad, 2)
    check(w.grad, 1)
    backward(lambda: w * 2)
    check(w.grad, 2)
    check(Square.given, 9)


@mx.operator.register("state_times_ten")
class TimesTenProp(mx.operator.CustomOpProp):
    """A custom operator that writes into the gradient it is given."""

    def create_operator(self, ctx, shapes, dtypes):
        class Operator(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0] + 1)

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                out_grad[0][:] = out_grad[0] * 10
                self.assign(in_grad[0], req[0], out_grad[0])

        return Operator()


def test_a_custom_operator_may_write_into_its_gradient():
    x, w, head = ones(4), ones(4), nd.ones((4,))

    def branches():
        a = x * 1
        return nd.Custom(a, op_type="state_times_ten") + a

    backward(branches)
    check(x.grad, 11)
    backward(lambda: w * 2)
    check(w.grad, 2)
    with autograd.record():
        y = nd.Custom(x, op_type="state_times_ten") * 1
    y.backward(head)
    check(x.grad, 10)
    check(head, 1)


def test_the_gradient_of_a_custom_operator_keeps_its_memory():
    x = ones(4)
    view = x.grad.reshape((2, 2))
    backward(lambda: nd.Custom(x, op_type="state_times_ten") * 1)
    check(view, 10)
    view[:] = 0
    check(x.grad, 0)


def bound(symbol, req="write", **shapes):
    args = {name: nd.ones(shape) for name, shape in shapes.items()}
    grads = {name: nd.zeros(shape) for name, shape in shapes.items()}
    return symbol.bind(mx.cpu(), args, args_grad=grads, grad_req=req)


A, B = mx.sym.Variable("a"), mx.sym.Variable("b")
JOINED = {
    "sum": (A + B, (2, 2), (2, 2)),
    "elementwise": (mx.sym.elemwise_add(A, B), (2, 2), (2, 2)),
    "broadcast": (mx.sym.broadcast_add(A, B), (2, 2), (2, 2)),
    "concat": (mx.sym.concat(A, B, dim=0), (2, 2), (2, 2)),
    "stack": (mx.sym.stack(A, B), (2, 2), (2, 2)),
    "reshape": (mx.sym.reshape(A, shape=(2, 2)) + B, (4,), (2, 2)),
    "expand_dims": (mx.sym.expand_dims(A, axis=0) + B, (2, 2), (1, 2, 2)),
    "add_n": (mx.sym.add_n(A, B), (2, 2), (2, 2)),
}
each_joined = pytest.mark.parametrize(("symbol", "a", "b"), JOINED.values(), ids=JOINED)


@each_joined
def test_gradients_of_executors_are_apart(symbol, a, b):
    e = bound(symbol, a=a, b=b)
    (out,) = e.forward(is_train=True)
    head = nd.ones(out.shape)
    e.backward(head)
    for gradient in e.grad_arrays:
        gradient *= 0.5
    for gradient in e.grad_arrays:
        check(gradient, 0.5)
    head[:] = 9
    check(e.grad_arrays[0], 0.5)
    e.grad_arrays[1][:] = 3
    check(e.grad_arrays[0], 0.5)
    check(head, 9)


@each_joined
def test_views_of_executor_gradients_see_the_next_one(symbol, a, b):
    e = bound(symbol, a=a, b=b)
    views = [g.reshape((-1,)) for g in e.grad_arrays]
    (out,) = e.forward(is_train=True)
    for head in (2, 3):
        e.forward(is_train=True)
        e.backward(nd.ones(out.shape) * head)
        for view in views:
            check(view, head)


def module(symbol):
    """Return a module of data and one weight, both of shape (2, 2), that makes steps of 1."""
    m = mx.mod.Module(symbol, data_names=["a"], label_names=None)
    m.bind(data_shapes=[("a", (2, 2))], inputs_need_grad=True)
    m.init_params(mx.init.One())
    m.init_optimizer(optimizer_params={"learning_rate": 1.0, "rescale_grad": 1.0})
    return m


def test_clearing_input_gradients_of_a_module_keeps_the_step():
    m = module(A + mx.sym.Variable("b_weight", shape=(2, 2)))
    m.forward(mx.io.DataBatch([nd.ones((2, 2))]), is_train=True)
    head = nd.ones((2, 2)) * 2
    m.backward([head])
    m.get_input_grads()[0][:] = 0
    m.update()
    check(m.get_params()[0]["b_weight"], -1)
    check(head, 2)


def test_input_gradients_of_a_module_keep_their_memory():
    m = module(A * mx.sym.Variable("b_weight", shape=(2, 2)))
    for head in (2, 3):
        m.forward(mx.io.DataBatch([nd.ones((2, 2))]), is_train=True)
        m.backward([nd.ones((2, 2)) * head])
        if head == 2:
            (kept,) = m.get_input_grads()
            view = kept.reshape((-1,))
            check(view, 2)
    check(kept, 3)
    check(view, 3)


@pytest.fixture(autouse=True)
def packed_for_few_rows(monkeypatch):
    for name, value in {"MIN_WEIGHT": 1, "MIN_ROWS": 2}.items():
        monkeypatch.setattr(prepared_dense, name, value)


def wide_dense(hybridize=True):
    """Return a frozen layer that is large enough for its weight to be packed."""
    net = nn.Dense(512, in_units=512, use_bias=False)
    net.initialize(mx.init.One())
    net.collect_params().setattr("grad_req", "null")
    if hybridize:
        net.hybridize(static_alloc=True, static_shape=True)
    return net


def small_conv():
    net = nn.Conv2D(2, 1, in_channels=4, use_bias=False)
    net.initialize(mx.init.One())
    net.hybridize()
    return net


def small_norm():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 1, in_channels=4, use_bias=False), nn.BatchNorm(in_channels=2, epsilon=0))
    net.initialize(mx.init.One())
    net.hybridize()
    return net


def dlpack(array):
    return nd.from_dlpack(array.to_dlpack_for_write())


def read_dlpack(array):
    return nd.from_dlpack(array.to_dlpack_for_read())


ALIASES = {
    "row": lambda w: w[0:1],
    "reshape": lambda w: w.reshape((-1,)),
    "detach": lambda w: w.detach(),
    "dlpack": dlpack,
    "dlpack for reading": read_dlpack,
    "view of dlpack": lambda w: dlpack(w)[0:1],
    "dlpack of view": lambda w: dlpack(w[0:1]),
    "view of view": lambda w: w.reshape((-1,)).reshape(w.shape)[0:1],
    "numpy array": lambda w: w.as_np_ndarray().as_nd_ndarray(),
}
LAYERS = {
    "dense": (wide_dense, lambda net: net, (1, 512), 512),
    "conv": (small_conv, lambda net: net, (1, 4, 1, 1), 4),
    "conv and norm": (small_norm, lambda net: net[0], (1, 4, 1, 1), 4),
}


@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
@pytest.mark.parametrize(("make", "layer", "shape", "total"), LAYERS.values(), ids=LAYERS)
def test_hybridized_layers_see_writes_through_aliases(make, layer, shape, total, alias):
    net, x = make(), nd.ones(shape)
    weight = layer(net).weight
    view = alias(weight.data())
    for _ in range(3):
        net(x)
    for value in (0, 3):
        view[:] = value
        check(net(x)[0, 0], value * total)
        check(net(x)[0, 0], value * total)
    weight.set_data(nd.ones(weight.shape) * 2)
    check(net(x)[0, 0], 2 * total)
    net(x)
    view[:] = 5
    check(net(x)[0, 0], 5 * total)


@pytest.mark.parametrize("name", ["running_mean", "running_var", "gamma", "beta"])
@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
def test_folded_norms_see_writes_through_aliases(name, alias):
    net, x = small_norm(), nd.ones((1, 4, 1, 1))
    parameter = getattr(net[1], name)
    view = alias(parameter.data())
    parameter.set_data(nd.ones((2,)))
    expected = {"running_mean": (3, -1), "running_var": (4, 2), "gamma": (4, 20), "beta": (5, 9)}
    for _ in range(3):
        check(net(x)[0, 0], expected[name][0])
    view[:] = {"running_var": 4}.get(name, 5)
    check(net(x)[0, 0], expected[name][1])
    check(net(x)[0, 0], expected[name][1])


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
def test_bound_layers_see_writes_through_aliases(alias, train):
    symbol = mx.sym.FullyConnected(A, num_hidden=512, no_bias=True, name="f")
    weight = nd.ones((512, 512))
    e = symbol.bind(mx.cpu(), {"a": nd.ones((1, 512)), "f_weight": weight}, grad_req="null")
    view = alias(weight)
    for _ in range(3):
        check(e.forward(is_train=train)[0][0, 0], 512)
    view[:] = 0
    check(e.forward(is_train=train)[0][0, 0], 0)
    weight[:] = 2
    check(e.forward(is_train=train)[0][0, 0], 1024)
    view[:] = 3
    check(e.forward(is_train=train)[0][0, 0], 1536)


@pytest.mark.parametrize(("make", "layer", "shape", "total"), LAYERS.values(), ids=LAYERS)
def test_layers_see_writes_into_numpy_memory(make, layer, shape, total):
    net, x = make(), nd.ones(shape)
    weight = layer(net).weight
    symbol = net(mx.sym.Variable("data"))
    params = {p.name: p for p in net.collect_params().values()}
    numbers = np.ones(weight.shape, "float32")
    arrays = {name: p.data() for name, p in params.items()}
    arrays[weight.name] = nd.from_numpy(numbers, zero_copy=True)
    args = {n: arrays.get(n, x) for n in symbol.list_arguments()}
    aux = {n: arrays[n] for n in symbol.list_auxiliary_states()}
    e = symbol.bind(mx.cpu(), args, grad_req="null", aux_states=aux)
    shared = args[weight.name]
    for _ in range(3):
        check(e.forward()[0][0, 0], total)
    shared[:] = 0.5
    check(e.forward()[0][0, 0], total / 2)
    numbers.flags.writeable = True
    numbers[...] = 0
    check(e.forward()[0][0, 0], 0)


def test_int8_layers_see_writes_through_views():
    rng = np.random.RandomState(0)
    net = nn.HybridSequential()
    net.add(nn.Dense(16, in_units=8))
    net.initialize(mx.init.Xavier())
    x = nd.array(rng.uniform(-1, 1, (4, 8)).astype("float32"))
    quantized = mx.contrib.quantization.quantize_net_v2(
        net, quantized_dtype="int8", calib_mode="naive", calib_data=[x], num_calib_examples=4
    )
    for _ in range(3):
        before = quantized(x).asnumpy()
    (name,) = [n for n in quantized.collect_params() if n.endswith("weight_quantize")]
    weight = quantized.collect_params()[name].data()
    for view in (weight[0:8], dlpack(weight)[8:16]):
        view[:] = view * -1
    bias = next(p for n, p in quantized.collect_params().items() if n.endswith("bias_quantize"))
    flat = bias.data().reshape((-1,))
    flat[:] = flat * -1
    step = np.abs(before).max() / 50
    np.testing.assert_allclose(quantized(x).asnumpy(), -before, atol=step)
    assert np.abs(before).max() > 0.1


@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
def test_other_backends_see_writes_through_views(alias):
    pytest.importorskip("onnxruntime")
    net, x = nn.Dense(3, in_units=4, use_bias=False), nd.ones((1, 4))
    net.initialize(mx.init.One())
    net.hybridize(backend="onnxruntime")
    view = alias(net.weight.data())
    for _ in range(3):
        check(net(x)[0, 0], 4)
    for value in (0, 3):
        view[:] = value
        check(net(x)[0, 0], value * 4)
        check(net(x)[0, 0], value * 4)


@pytest.mark.parametrize("kind", [rnn.RNNCell, rnn.GRUCell])
@pytest.mark.parametrize("hybridize", [False, True])
def test_output_and_state_of_a_hybridized_cell_are_apart(kind, hybridize):
    cell = kind(2, input_size=2)
    cell.initialize(mx.init.One())
    if hybridize:
        cell.hybridize()
    for _ in range(3):
        out, states = cell(nd.ones((1, 2)), cell.begin_state(1))
    before = out.asnumpy()
    states[0][:] = 0
    if hybridize:  # without, they are one array
        check(out, before)
    assert before.min() > 0.1


def test_one_result_returned_twice_is_two_arrays_in_a_hybridized_block():
    def twice(F, x):
        y = F.tanh(x)
        return [y, y]

    net = formula_block(twice)
    net.hybridize()
    for _ in range(3):
        first, second = net(nd.zeros((2,)))
    first[:] = 5
    check(second, 0)


@pytest.mark.parametrize("static", [False, True])
def test_an_input_that_a_hybridized_block_returns(static):
    net = formula_block(lambda F, x: [x, F.reshape(x, shape=(-1,)), F.tanh(x)])
    net.hybridize(static_alloc=static, static_shape=static)
    x = nd.ones((2, 2))
    for _ in range(3):
        same, flat, _ = net(x)
    flat[:] = 5
    check(x, 1)
    same[:] = 7
    check(flat, 5)


def test_executors_take_gradients_at_the_values_of_backward():
    e = bound(A * B, a=(2,), b=(2,))
    e.forward(is_train=True)
    e.arg_dict["b"][:] = 5
    e.backward(nd.ones((2,)))
    check(e.outputs[0], 1)
    check(e.grad_dict["a"], 5)
    check(e.grad_dict["b"], 1)


def test_an_executor_does_not_run_forward_again_for_backward():
    e = bound(mx.sym.tanh(A) * B, a=(2,), b=(2,))
    e.forward(is_train=True)
    e.arg_dict["a"][:] = 0
    e.backward(nd.ones((2,)))
    check(e.outputs[0], np.tanh(1))
    check(e.grad_dict["a"], 1 - np.tanh(1) ** 2)
    check(e.grad_dict["b"], np.tanh(1))


def test_views_of_executor_outputs_see_the_next_forward():
    e = bound(A * 2, a=(3, 2))
    out = e.forward()[0]
    first, flat = out[0:1], out.reshape((-1,))
    e.forward(a=nd.ones((3, 2)) * 5)
    check(out, 10)
    check(first, 10)
    check(flat, 10)
    e.forward(is_train=True, a=nd.ones((3, 2)) * 6)
    check(e.outputs[0], 12)
    check(first, 12)


def test_views_of_gradients_of_a_reshaped_executor_see_the_next_backward():
    e = (A * 2 * B).simple_bind(mx.cpu(), a=(4, 2), b=(4, 2))
    f = e.reshape(a=(2, 2), b=(2, 2))
    views = [f.grad_dict[name].reshape((-1,)) for name in "ab"]
    for value in (1, 3):
        for array in f.arg_arrays:
            array[:] = value
        f.forward(is_train=True)
        f.backward(nd.ones((2, 2)))
        for view in views:
            check(view, 2 * value)


def test_tostype_default_is_a_copy():
    x = nd.ones((2,))
    y = x.tostype("default")
    y[:] = 5
    check(x, 1)


@pytest.mark.parametrize("mode", [autograd.train_mode, autograd.predict_mode, autograd.record])
def test_dropout_of_nothing_is_a_copy(mode):
    x = nd.ones((2,))
    with mode():
        y = nd.Dropout(x, p=0)
    y[:] = 5
    check(x, 1)
    x[:] = 3
    check(y, 5)


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_second_order_backward_writes_zeros_where_nothing_depends(hybridize):
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


def test_rows_shift_to_the_front():
    x = nd.array([1, 2, 3, 4])
    x[:-1] = x[1:]
    check(x, [2, 3, 4, 4])


def test_a_part_is_copied_over_another():
    x = nd.array([1, 2, 3, 4])
    x[1:].copyto(x[:-1])
    check(x, [2, 3, 4, 4])


@pytest.mark.parametrize("static", [False, True])
def test_a_block_that_is_only_dropout_of_nothing(static):
    net = nn.HybridSequential()
    net.add(nn.Dropout(0))
    net.hybridize(static_alloc=static, static_shape=static)
    x = ones(3)
    for _ in range(3):
        y = backward(lambda: net(x))
        check(x.grad, 1)
        y[:] = 9
        check(x, 1)


SLICES = [
    ((2, 2), lambda a: a[::2], [5, 5, 1, 1]),
    ((2, 2), lambda a: a[...], [5, 5, 5, 5]),
    ((2, 2), lambda a: a[..., 0:1], [1, 1, 1, 1]),
    ((1, 4), lambda a: a[:, 1:3], [1, 5, 5, 1]),
    ((2, 4), lambda a: a[0:1, 1:3], [1, 5, 5, 1, 1, 1, 1, 1]),
    ((2, 4), lambda a: a[1, 1:3], [1, 1, 1, 1, 1, 5, 5, 1]),
    ((2, 1), lambda a: a[:, None], [5, 5]),
    ((3, 2), lambda a: a[::-1], [1, 1, 1, 1, 1, 1]),
    ((1, 2), lambda a: a[::-1], [5, 5]),
    ((2, 1), lambda a: a[:, ::-1], [5, 5]),
    ((3, 2), lambda a: a[1::-3], [1, 1, 5, 5, 1, 1]),
]


@pytest.mark.parametrize(("shape", "part", "expected"), SLICES)
def test_slices_share_memory_where_they_are_contiguous(shape, part, expected):
    x = nd.ones(shape)
    part(x)[:] = 5
    check(x, expected)


def test_executors_leave_the_gradients_of_labels():
    symbol = mx.sym.SoftmaxOutput(A, B)
    e = bound(symbol, a=(2, 3), b=(2,))
    e.grad_dict["b"][:] = 7
    e.forward(is_train=True)
    e.backward()
    check(e.grad_dict["b"], 7)
    assert np.abs(e.grad_dict["a"].asnumpy()).max() > 0.1


def test_a_functions_result_may_be_written_and_then_recorded():
    x = leaf([-1, 1, 2, -2])
    with autograd.record():
        y = Square()(x)
    nd.relu(y, out=y)
    with autograd.record():
        z = y[0:2] * 3
    z.backward()
    check(z, [3, 3])


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
def test_gradients_are_taken_at_the_values_of_backward(edited, formula, of_x, of_w, way):
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


def test_threads_may_save_to_one_file(tmp_path):
    path, errors = str(tmp_path / "shared.params"), []
    start = threading.Barrier(8)

    def save(number):
        start.wait(timeout=60)
        try:
            for _ in range(5):
                nd.save(path, {"x": nd.ones((16,)) * number})
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not errors
    found = nd.load(path)["x"].asnumpy()
    assert found.shape == (16,)
    assert len(set(found.tolist())) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["shared.params"]


FAILING_IMPORT = """
import gc, sys
sys.modules["torch"] = None
try:
    import mxnet
except ImportError:
    assert gc.isenabled()
else:
    raise AssertionError("it was imported without torch")
"""


def test_a_failed_import_leaves_garbage_collection_on():
    ran = subprocess.run(
        [sys.executable, "-c", FAILING_IMPORT], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr


IMPORT = """
import gc, torch
before = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), torch.get_num_threads()
import mxnet
after = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), torch.get_num_threads()
assert before == after, (before, after)
"""


def test_an_import_leaves_the_process_as_it_was():
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr


@pytest.fixture
def clip(monkeypatch):
    """Return the operator, and a function of it, with empty caches."""
    op = registry.get("clip")
    monkeypatch.setattr(op, "parsed_attributes", {})
    monkeypatch.setattr(families, "known_numbers", collections.defaultdict(dict))
    return op, make_function(op, "clip", nd.NDArray)


def test_new_numbers_are_cached_when_many_are(clip):
    for value in range(5000):
        families.number(value + 0.125, torch.float32)
    assert families.number(0.375, torch.float32) is families.number(0.375, torch.float32)
    assert len(families.known_numbers[torch.float32]) <= families.MAX_KNOWN_NUMBERS


def test_nan_is_cached_once(clip):
    for _ in range(10):
        assert families.number(float("nan"), torch.float32).isnan()
    assert len(families.known_numbers[torch.float32]) <= 1


def test_new_attributes_are_cached_when_many_are(clip):
    op, _ = clip
    for value in range(5000):
        op.parse({"a_min": -value - 0.125, "a_max": 1.0})
    raw = {"a_min": -7000.5, "a_max": 1.0}
    assert op.parse(raw) is op.parse(raw)


def test_results_are_right_when_caches_are_full(clip):
    _, function = clip
    x = nd.ones((2,))
    for value in range(5000):
        function(x, a_min=-1.0, a_max=value / 8 + 2)
        if value % 50 == 0:
            check(function(x, a_min=-1.0, a_max=value / 50), min(1, value / 50))
