"""Executors: binding, running, gradients, sharing, reshaping, monitoring."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd


def mlp():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc1")
    net = mx.sym.Activation(net, act_type="relu", name="relu1")
    net = mx.sym.FullyConnected(net, num_hidden=3, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def test_bind_by_name_and_by_list():
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    arrays = [nd.array([2.0]), nd.array([5.0])]
    for args in (arrays, dict(zip("xy", arrays, strict=True))):
        executor = (x * y + x).bind(mx.cpu(), args, [nd.zeros(1), nd.zeros(1)])
        assert executor.forward(is_train=True)[0].asscalar() == 12
        executor.backward(nd.ones(1))
        assert [g.asscalar() for g in executor.grad_arrays] == [6, 2]


def test_grad_req_write_add_and_null():
    x = mx.sym.Variable("x")
    for req, wanted in (("write", 2), ("add", 6), ("null", 0)):
        grad = nd.zeros(1)
        executor = (x * 2).bind(mx.cpu(), [nd.ones(1)], [grad], req)
        for _ in range(3):
            executor.forward(is_train=True)
            executor.backward(nd.ones(1))
        assert grad.asscalar() == wanted


def test_unreached_arguments_have_zero_gradients():
    net = mx.sym.Group([mx.sym.BlockGrad(mx.sym.var("x")), mx.sym.var("y") * 2])
    executor = net.simple_bind(mx.cpu(), x=(2,), y=(2,))
    executor.grad_dict["x"][:] = 9
    executor.forward(is_train=True)
    executor.backward([nd.ones(2), nd.ones(2)])
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), [0, 0])


def test_simple_bind_infers_and_allocates():
    executor = mlp().simple_bind(mx.cpu(), data=(8, 5))
    assert executor.arg_dict["fc1_weight"].shape == (4, 5)
    assert executor.arg_dict["softmax_label"].shape == (8,)
    assert executor.grad_dict["fc2_bias"].shape == (3,)
    assert executor.output_dict["softmax_output"].shape == (8, 3)
    with pytest.raises(mx.MXNetError, match="fc1_weight"):
        mlp().simple_bind(mx.cpu(), softmax_label=(8,))


def test_output_arrays_are_reused_by_every_forward():
    executor = mlp().simple_bind(mx.cpu(), data=(2, 5))
    held = executor.outputs[0]
    executor.arg_dict["fc2_bias"][:] = nd.array([0.0, 0.0, 50.0])
    executor.forward()
    assert held is executor.outputs[0] and held.asnumpy()[0, 2] > 0.99


def test_forward_accepts_inputs_as_keywords():
    executor = (mx.sym.var("x") * 2).simple_bind(mx.cpu(), x=(2,))
    assert executor.forward(x=nd.array([1, 2]))[0].asnumpy().tolist() == [2, 4]
    with pytest.raises(ValueError, match="Shape not match"):
        executor.forward(x=nd.ones(3))
    with pytest.raises(TypeError, match="Unknown argument xx"):
        executor.forward(xx=nd.ones(2))


def test_bind_with_wrong_arrays_raises():
    net = mlp()
    with pytest.raises(ValueError, match="`fc1_weight` is missing"):
        net.bind(mx.cpu(), {"data": nd.ones((2, 5)), "fc1_weigth": nd.ones((4, 5))})
    with pytest.raises(ValueError, match="1 arrays for 6 names"):
        net.bind(mx.cpu(), [nd.ones((2, 5))])
    args = {n: nd.ones((2, 2)) for n in net.list_arguments()}
    with pytest.raises(mx.MXNetError, match="fc1"):
        net.bind(mx.cpu(), args)
    with pytest.raises(TypeError, match="Context"):
        net.simple_bind([mx.cpu()], data=(2, 5))


def test_kernel_errors_name_the_node_and_source_line():
    x = mx.sym.Variable("x")
    y = mx.sym.take(x, mx.sym.Variable("i"), mode="raise", name="picking")
    executor = y.bind(mx.cpu(), {"x": nd.ones(3), "i": nd.array([9])})
    with pytest.raises(mx.MXNetError, match=r"operator picking:.*test_executor\.py"):
        executor.forward()


def test_copy_params_from():
    executor = mlp().simple_bind(mx.cpu(), data=(2, 5))
    executor.copy_params_from({"fc1_bias": nd.full(4, 3)})
    assert executor.arg_dict["fc1_bias"].asnumpy().tolist() == [3] * 4
    with pytest.raises(ValueError, match="fc1_bia"):
        executor.copy_params_from({"fc1_bia": nd.ones(4)})
    executor.copy_params_from({"fc1_bia": nd.ones(4)}, allow_extra_params=True)


def test_reshape_to_sizes_of_zero():
    with mx.np_shape(True):
        executor = (mx.sym.var("x") * 2).bind(mx.cpu(), {"x": mx.nd.ones((2, 3))})
        empty = executor.reshape(partial_shaping=True, x=(0, 3))
        assert empty.forward()[0].shape == (0, 3)


def test_reshape_shares_parameters():
    executor = mlp().simple_bind(mx.cpu(), data=(8, 5))
    small = executor.reshape(data=(2, 5), softmax_label=(2,))
    small.arg_dict["fc1_weight"][:] = 7
    assert executor.arg_dict["fc1_weight"].asnumpy().min() == 7
    assert small.forward()[0].shape == (2, 3)
    with pytest.raises(mx.MXNetError, match="allow_up_sizing"):
        executor.reshape(data=(16, 5), softmax_label=(16,))
    wide = executor.reshape(data=(16, 5), softmax_label=(16,), allow_up_sizing=True)
    assert wide.forward()[0].shape == (16, 3)
    with pytest.raises(mx.MXNetError, match="fc1_weight"):
        executor.reshape(data=(8, 4))


def test_shared_exec_and_shared_buffer():
    buffers = {}
    big = mlp().simple_bind(mx.cpu(), data=(8, 5), shared_buffer=buffers)
    small = mlp().simple_bind(mx.cpu(), data=(2, 5), shared_exec=big, shared_buffer=buffers)
    assert small.arg_dict["fc1_weight"] is big.arg_dict["fc1_weight"]
    small.arg_dict["data"][:] = 3
    assert big.arg_dict["data"].asnumpy()[:2].min() == 3


def test_monitor_callback_receives_every_result():
    executor = mlp().simple_bind(mx.cpu(), data=(2, 5))
    seen = []
    executor.set_monitor_callback(lambda name, array: seen.append((name.decode(), array.shape)))
    executor.forward()
    assert [n for n, _ in seen] == ["fc1_output", "relu1_output", "fc2_output", "softmax_output"]
    seen.clear()
    executor.set_monitor_callback(lambda name, array: seen.append(name.decode()), monitor_all=True)
    executor.forward()
    assert {"data", "fc1_weight", "fc2_output"} <= set(seen)


def test_context_groups():
    with mx.AttrScope(ctx_group="stage1"):
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1")
    first = set(net.list_arguments())
    with mx.AttrScope(ctx_group="stage2"):
        net = mx.sym.BatchNorm(mx.sym.FullyConnected(net, num_hidden=4, name="fc2"))
        net = mx.sym.SoftmaxOutput(net, name="softmax")
    group2ctx = {"stage1": mx.cpu(0), "stage2": mx.cpu(1)}
    executor = net.simple_bind(mx.cpu(0), group2ctx=group2ctx, data=(1, 20))
    for array, name in zip(executor.arg_arrays, net.list_arguments(), strict=True):
        assert array.context == group2ctx["stage1" if name in first else "stage2"]
    executor.forward(is_train=True)
    executor.backward()
    assert executor.outputs[0].context == mx.cpu(1)


def test_training_updates_auxiliary_states():
    net = mx.sym.BatchNorm(mx.sym.var("x"), momentum=0.5, name="bn")
    executor = net.simple_bind(mx.cpu(), x=(4, 2))
    executor.arg_dict["x"][:] = nd.array([[1, 2], [3, 4], [5, 6], [7, 8]])
    executor.forward(is_train=False)
    assert executor.aux_dict["bn_moving_mean"].asnumpy().tolist() == [0, 0]
    executor.forward(is_train=True)
    np.testing.assert_allclose(executor.aux_dict["bn_moving_mean"].asnumpy(), [2, 2.5], rtol=1e-6)


def test_unknown_sizes_of_zeros_are_inferred():
    total = mx.sym.zeros((0, 3)) + mx.sym.var("q")
    assert total.bind(mx.cpu(), {"q": nd.ones((2, 3))}).forward()[0].shape == (2, 3)


def test_debug_str_contains_memory_use():
    executor = mlp().simple_bind(mx.cpu(), data=(2, 5))
    text = executor.debug_str()
    assert "Total" in text and "MB allocated" in text and "fc1" in text


def test_eval_returns_outputs():
    found = (mx.sym.var("x") + mx.sym.var("y")).eval(x=nd.ones(2), y=nd.ones(2))
    assert found[0].asnumpy().tolist() == [2, 2]


def test_graph_with_unused_outputs():
    x = mx.sym.var("x")
    parts = mx.sym.split(x, num_outputs=3, axis=0)
    net = parts[2] * 2
    assert net.bind(mx.cpu(), {"x": nd.array([1, 2, 3])}).forward()[0].asscalar() == 6


def test_shared_buffer_contains_arguments_and_gradients_by_name():
    net = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    names = ["x", "fc_weight", "fc_bias"]
    buffers = {}
    executor = net.simple_bind(mx.cpu(), x=(2, 3), shared_buffer=buffers)
    assert sorted(buffers) == sorted([*names, *(f"grad of {n}" for n in names)])
    executor.arg_dict["x"][:] = 5
    assert buffers["x"].asnumpy().min() == 5
    buffers = {}
    net.simple_bind(mx.cpu(), x=(2, 3), shared_buffer=buffers, shared_arg_names=names[1:])
    assert sorted(buffers) == ["grad of x", "x"]


def test_wrong_length_of_grad_req_raises():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2)
    with pytest.raises(mx.MXNetError, match="grad_req has 2 entries, but there are 3 arguments"):
        net.simple_bind(mx.cpu(), grad_req=["write", "null"], data=(2, 3))
