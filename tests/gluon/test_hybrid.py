"""Hybridized blocks compute the same as eager blocks."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from tests.arrays import backward, check, formula_block, ones


def network():
    net = nn.HybridSequential()
    with net.name_scope():
        net.add(nn.Dense(8, activation="tanh"), nn.BatchNorm(), nn.Dropout(0.5), nn.Dense(3))
    net.initialize(mx.init.Normal(0.5))
    return net


def batch(size):
    return mx.nd.array(np.sin(np.arange(size * 4)).reshape(size, 4))


def answers(net, training):
    """Return outputs, gradients and running statistics of two batches."""
    found = []
    for size in (5, 3):
        mx.random.seed(7)
        with autograd.record(train_mode=training):
            out = net(batch(size))
            loss = (out * out).sum()
        loss.backward()
        found.append(out.asnumpy())
        for param in net.collect_params().values():
            held = param.data() if param.grad_req == "null" else param.grad()
            found.append(held.asnumpy())
    return found


@pytest.mark.parametrize("training", [False, True])
def test_hybrid_equals_eager(training, tmp_path):
    net = network()
    net(batch(2))
    path = str(tmp_path / "start.params")
    net.save_parameters(path)
    eager = answers(net, training)
    net.load_parameters(path)
    net.hybridize()
    for mine, theirs in zip(answers(net, training), eager, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_deferred_shapes_are_inferred_through_the_graph():
    net = network()
    net.hybridize()
    net(batch(2))
    assert net[0].weight.shape == (8, 4)
    assert net[1].gamma.shape == (8,)


def test_error_names_a_parameter_whose_shape_cannot_be_inferred():
    class Open(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.w = self.params.get("w", shape=(0, 2), allow_deferred_init=True)

        def hybrid_forward(self, F, x, w):
            return F.broadcast_add(x, w)

    net = Open(prefix="open_")
    net.initialize()
    with pytest.raises(ValueError, match=r"shape cannot be inferred(.|\n)*open_w: \(0, 2\)"):
        net(mx.nd.ones((1, 2)))


def test_infer_shape_does_not_initialize_values():
    net = nn.Dense(4)
    net.initialize()
    net.infer_shape(mx.nd.ones((1, 7)))
    assert net.weight.shape == (4, 7)
    with pytest.raises(gluon.DeferredInitializationError):
        net.weight.data()


def test_infer_type_sets_parameter_dtypes_from_the_input():
    net = nn.Dense(4, in_units=2, dtype=None)
    net.infer_type(mx.nd.ones((1, 2), dtype="float16"))
    assert net.weight.dtype == np.float16


class Nested(gluon.HybridBlock):
    def hybrid_forward(self, F, x, pair, extra=None):
        total = x + pair[0]
        return [total if extra is None else total * extra, [pair[1] * 2]]


@pytest.mark.parametrize("hybridize", [False, True])
def test_nested_list_inputs_and_outputs(hybridize):
    net = Nested()
    if hybridize:
        net.hybridize()
    x = mx.nd.ones((1, 2))
    for arguments in ((x, [x, x]), (x, [x, x], None)):
        first, (second,) = net(*arguments)
        assert first.asnumpy().tolist() == second.asnumpy().tolist() == [[2, 2]]


def test_changed_input_structure_after_tracing_raises():
    net = Nested()
    net.hybridize()
    x = mx.nd.ones((1, 2))
    net(x, [x, x])
    with pytest.raises(ValueError, match="does not match the cached version"):
        net(x, [x, x], x)
    net.hybridize()
    assert net(x, [x, x], x * 3)[0].asnumpy().tolist() == [[6, 6]]


def test_multi_output_operator_returns_a_list():
    class Halves(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.split(x, num_outputs=2)

    net = Halves()
    net.hybridize()
    assert [part.shape for part in net(mx.nd.ones((1, 4)))] == [(1, 2), (1, 2)]


def test_returned_input_is_the_same_array():
    class Same(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x

    net = Same()
    net.hybridize()
    x = mx.nd.ones((2,))
    net(x)[:] = 5
    assert x.asnumpy().tolist() == [5, 5]


def test_unknown_size_of_zeros_is_inferred_for_each_batch():
    class Start(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x + F.zeros((0, 2)) + 1 if F is mx.sym else x + 1

    net = Start()
    net.hybridize()
    for size in (3, 5):
        assert net(mx.nd.ones((size, 2))).asnumpy().tolist() == [[2, 2]] * size


def test_unused_inputs_and_parameters_warn():
    class Half(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.w = self.params.get("w", shape=(1,))

        def hybrid_forward(self, F, x, y, w):
            return x * 2

    net = Half(prefix="half_")
    net.initialize()
    net.hybridize()
    with pytest.warns(UserWarning) as caught:
        net(mx.nd.ones((1,)), mx.nd.ones((1,)))
    messages = [str(w.message) for w in caught]
    assert any("1-th input" in text for text in messages)
    assert any("Parameter half_w is not used" in text for text in messages)


def test_calling_a_block_on_symbols_returns_its_graph():
    net = nn.Dense(2, prefix="fc_")
    out = net(mx.sym.var("x"))
    assert out.name == "fc_fwd"
    assert out.list_arguments() == ["x", "fc_weight", "fc_bias"]


def test_invalid_inputs_raise():
    net = nn.Dense(2)
    with pytest.raises(ValueError, match="there must be one NDArray or one Symbol"):
        net(3)
    with pytest.raises(ValueError, match="mixed NDArrays and Symbols"):
        Nested()(mx.nd.ones((1,)), [mx.sym.var("x")])


def test_non_hybrid_children_raise():
    class Plain(gluon.Block):
        pass

    with pytest.raises(ValueError, match="must also be HybridBlock"):
        nn.HybridSequential().add(Plain())


def test_outputs_are_on_the_context_of_the_input():
    net = nn.Dense(2, in_units=2)
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    net.hybridize()
    assert net(mx.nd.ones((1, 2), ctx=mx.cpu(1))).context == mx.cpu(1)
    assert net(mx.nd.ones((1, 2))).context == mx.cpu(0)
    with pytest.raises(RuntimeError, match=r"not initialized on context cpu\(3\)"):
        net(mx.nd.ones((1, 2), ctx=mx.cpu(3)))


def test_hybridized_block_uses_updated_parameters():
    net = nn.Dense(1, in_units=1, use_bias=False)
    net.initialize("ones")
    net.hybridize()
    x = mx.nd.array([[2]])
    assert net(x).asscalar() == 2
    net.weight.set_data(mx.nd.array([[5]]))
    assert net(x).asscalar() == 10
    net.initialize("zeros", force_reinit=True)
    assert net(x).asscalar() == 0
    net.cast("float64")
    assert net(x.astype("float64")).dtype == np.float64


def test_frozen_parameters_have_no_gradient_when_hybridized():
    net = nn.Dense(1, in_units=1)
    net.initialize("ones")
    net.hybridize()
    x = mx.nd.ones((1, 1))
    net(x)
    net.weight.grad_req = "null"
    with autograd.record():
        loss = net(x).sum()
    loss.backward()
    assert net.bias.grad().asscalar() == 1
    with pytest.raises(RuntimeError):
        net.weight.grad()


def test_higher_order_gradients_of_hybridized_blocks():
    class Cube(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x * x * x

    net = Cube()
    net.hybridize()
    x = mx.nd.array([2.0])
    x.attach_grad()
    with autograd.record():
        slope = autograd.grad(net(x), x, create_graph=True)[0]
    slope.backward()
    assert x.grad.asscalar() == 12


def test_op_hook_is_called_for_each_operator():
    net = nn.Dense(3, in_units=2, activation="relu", prefix="fc_")
    net.initialize()
    seen = []
    net.register_op_hook(lambda name, op, array: seen.append((name, op, array.shape)))
    net.hybridize()
    net(mx.nd.ones((1, 2)))
    assert seen == [
        (b"fc_fwd_output", b"FullyConnected", (1, 3)),
        (b"fc_relu_fwd_output", b"Activation", (1, 3)),
    ]


def test_hybridize_flags_are_passed_to_children():
    net = network()
    net.hybridize(static_alloc=True, static_shape=True, forward_bulk_size=3)
    wanted = {"static_alloc": True, "static_shape": True, "inline_limit": 2, "forward_bulk_size": 3}
    assert dict(net._flags) == dict(net[0]._flags) == wanted


def test_unknown_backend_warns():
    net = network()
    with pytest.warns(UserWarning, match=r"backend 'TensorRT' cannot be found.*MKLDNN"):
        net.hybridize(backend="TensorRT")
    with pytest.warns(UserWarning, match="cannot be found"):
        net.optimize_for(batch(1), backend="foo")
    net.optimize_for(batch(1), backend="MKLDNN")
    assert net[0].weight.shape == (8, 4)
    assert net(batch(2)).shape == (2, 3)


def test_export_before_forward_raises():
    with pytest.raises(RuntimeError, match=r"first call block\.hybridize"):
        network().export("nowhere")


def test_cached_op_is_callable_on_arrays():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    op = mx.nd.CachedOp(mx.sym.Group([x + y, x * y]))
    first, second = op(mx.nd.array([2]), mx.nd.array([3]))
    assert (first.asscalar(), second.asscalar()) == (5, 6)
    with pytest.raises(mx.MXNetError, match=r"expects 2 inputs \(x, y\)"):
        op(mx.nd.array([2]))
    out = mx.nd.zeros((1,))
    assert mx.nd.CachedOp(x + y)(mx.nd.array([2]), mx.nd.array([3]), out=out) is out
    assert out.asscalar() == 5


def test_loops_inside_blocks_hybridize_and_export(tmp_path):
    class Loop(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.dense = nn.Dense(3)

        def hybrid_forward(self, F, x):
            def step(row, states):
                state = F.tanh(self.dense(row) + states[0])
                return state, [state]

            start = F.zeros_like(F.slice_axis(x, axis=0, begin=0, end=1).reshape((-3, -2)))
            return F.contrib.foreach(step, x, [start])[0]

    net = Loop()
    net.initialize()
    x = mx.nd.array(np.sin(np.arange(24)).reshape(4, 2, 3))

    def run():
        with autograd.record():
            out = net(x)
        out.backward()
        return out.asnumpy(), net.dense.weight.grad().asnumpy()

    eager = run()
    net.hybridize()
    for mine, theirs in zip(run(), eager, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    path = str(tmp_path / "loop")
    net.export(path)
    other = gluon.SymbolBlock.imports(f"{path}-symbol.json", "data", f"{path}-0000.params")
    np.testing.assert_allclose(other(x).asnumpy(), eager[0], rtol=1e-6)


class Thinned(gluon.Parameter):
    """A parameter subclass whose `data` returns a new array each time."""

    asked = 0

    def data(self, ctx=None):
        self.asked += 1
        return super().data(ctx) * self.asked


def test_data_of_a_parameter_subclass_is_read_at_each_call():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.w = Thinned("w", shape=(2,), init="ones")
            self.params._params["w"] = self.w

        def hybrid_forward(self, F, x, w):
            return x * w

    net = Net()
    net.initialize()
    net.hybridize()
    x = mx.nd.ones(2)
    answers = []
    for _ in range(3):
        with mx.autograd.record():
            y = net(x)
        y.backward()
        answers.append((y.asnumpy().tolist(), net.w.grad().asnumpy().tolist()))
    assert net.w.asked >= 3
    for before, (value, grad) in zip([None, *answers], answers, strict=False):
        assert value == grad
        assert before is None or value[0] > before[0][0]


@pytest.mark.parametrize("answer", [lambda x: None, lambda x: (x, None, [x, x])])
def test_returning_none_from_a_hybridized_block_raises(answer):
    net = nn.HybridLambda(lambda F, x: answer(x))
    net(mx.nd.ones((2, 2)))  # eager blocks may return anything
    net.hybridize()
    with pytest.raises(TypeError, match="Expected a list of symbols"):
        net(mx.nd.ones((2, 2)))


def test_a_result_returned_twice_becomes_two_arrays():
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
def test_returned_input_and_its_view_do_not_share_memory(static):
    net = formula_block(lambda F, x: [x, F.reshape(x, shape=(-1,)), F.tanh(x)])
    net.hybridize(static_alloc=static, static_shape=static)
    x = nd.ones((2, 2))
    for _ in range(3):
        same, flat, _ = net(x)
    flat[:] = 5
    check(x, 1)
    same[:] = 7
    check(flat, 5)


@pytest.mark.parametrize("static", [False, True])
def test_dropout_with_p_0_returns_a_copy(static):
    net = nn.HybridSequential()
    net.add(nn.Dropout(0))
    net.hybridize(static_alloc=static, static_shape=static)
    x = ones(3)
    for _ in range(3):
        y = backward(lambda: net(x))
        check(x.grad, 1)
        y[:] = 9
        check(x, 1)
