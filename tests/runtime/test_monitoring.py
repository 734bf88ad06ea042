"""Monitors of executors receive the names and values of MXNet 1.9.1, in its order."""

from __future__ import annotations

import ctypes
import json

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.base import NDArrayHandle, py_str
from mxnet.contrib.amp.amp import mixed_precision
from tests.batches import check_each
from tests.golden import HERE
from tests.grammar.calling import arrays_of, compose
from tests.grammar.sampling import families, rows_of

sym = mx.sym

FORWARD = [
    "fc1_output",
    "bn_output",
    "bn_mean",
    "bn_var",
    "relu1_output",
    "drop_output",
    "drop_mask",
    "sp_output0",
    "sp_output1",
    "mul_output",
    "fc2_output",
    "softmax_output",
]
INPUTS_TOO = [
    "data",
    "fc1_data",
    "fc1_weight",
    "fc1_weight",
    "fc1_bias",
    "fc1_bias",
    "fc1_output",
    "bn_data",
    "bn_gamma",
    "bn_gamma",
    "bn_beta",
    "bn_beta",
    "bn_moving_mean",
    "bn_moving_mean",
    "bn_moving_var",
    "bn_moving_var",
    "bn_output",
    "bn_mean",
    "bn_var",
    "relu1_input0",
    "relu1_output",
    "drop_data",
    "drop_output",
    "drop_mask",
    "sp_data",
    "sp_output0",
    "sp_output1",
    "mul_lhs",
    "mul_rhs",
    "mul_output",
    "fc2_data",
    "fc2_weight",
    "fc2_weight",
    "fc2_bias",
    "fc2_bias",
    "fc2_output",
    "softmax_data",
    "softmax_label",
    "softmax_label",
    "softmax_output",
]
BACKWARD = [
    "softmax_backward_output0",
    "softmax_backward_output1",
    "fc2_backward_output0",
    "fc2_backward_output1",
    "fc2_backward_output2",
    "mul_backward_output0",
    "mul_backward_output1",
    "sp_backward_data",
    "drop_backward_output",
    "relu1_backward_output",
    "bn_backward_output0",
    "bn_backward_output1",
    "bn_backward_output2",
    "fc1_backward_output0",
    "fc1_backward_output1",
    "fc1_backward_output2",
]


def net():
    made = sym.FullyConnected(sym.var("data"), num_hidden=4, name="fc1")
    made = sym.Activation(sym.BatchNorm(made, name="bn"), act_type="relu", name="relu1")
    a, b = sym.split(sym.Dropout(made, name="drop"), num_outputs=2, name="sp")
    made = sym.FullyConnected(sym.elemwise_mul(a, b, name="mul"), num_hidden=3, name="fc2")
    return sym.SoftmaxOutput(made, name="softmax")


def watched(symbol, inputs_too=False, **shapes):
    exe = symbol.simple_bind(mx.cpu(), **shapes)
    for i, array in enumerate(exe.arg_arrays):
        array[:] = nd.array(np.arange(array.size).reshape(array.shape) % 5) + i
    rows = []
    exe.set_monitor_callback(lambda name, array: rows.append((name.decode(), array)), inputs_too)
    return exe, rows


def names(rows):
    found = [name for name, _ in rows]
    rows.clear()
    return found


@pytest.mark.parametrize("training", [True, False])
def test_monitored_names_of_forward(training):
    exe, rows = watched(net(), data=(8, 5))
    exe.forward(is_train=training)
    assert names(rows) == FORWARD
    exe, rows = watched(net(), True, data=(8, 5))
    exe.forward(is_train=training)
    assert names(rows) == INPUTS_TOO


def test_monitored_names_of_backward():
    exe, rows = watched(net(), data=(8, 5))
    exe.forward(is_train=True)
    rows.clear()
    exe.backward()
    for name, array in rows:
        if name == "fc1_backward_output1":
            wanted = exe.grad_dict["fc1_weight"].asnumpy()
            np.testing.assert_allclose(array.asnumpy(), wanted, rtol=1e-5)
    assert names(rows) == BACKWARD
    exe.backward()  # again: it reruns forward, without calling the monitor
    assert names(rows) == BACKWARD


def test_hidden_outputs_are_monitored():
    data = nd.array([[1, 2], [3, 6]])
    for training, mean in ((True, [2, 4]), (False, [0, 0])):
        exe, rows = watched(sym.BatchNorm(sym.var("x"), name="bn"), x=(2, 2))
        out = exe.forward(is_train=training, x=data)[0]
        shown = dict(rows)
        np.testing.assert_array_equal(shown["bn_mean"].asnumpy(), mean)
        np.testing.assert_array_equal(shown["bn_output"].asnumpy(), out.asnumpy())


NORMS = {
    "instance": ((2, 1, 3), [3.7416575, 8.774965]),
    "channel": ((1, 2, 3), [[[4.1231055, 5.3851647, 6.708204]]]),
    "spatial": ((1, 2, 3), [[3.7416575, 8.774965]]),
}


@pytest.mark.parametrize("mode", NORMS)
def test_l2_normalization_norm_is_monitored(mode):
    shape, norms = NORMS[mode]
    net = sym.L2Normalization(sym.var("x"), mode=mode, name="l2")
    exe, rows = watched(net, x=shape)
    exe.forward(x=nd.arange(1, 7).reshape(shape))
    assert [name for name, _ in rows] == ["l2_output", "l2_norm"]
    np.testing.assert_allclose(rows[1][1].asnumpy(), norms, rtol=1e-6)


def test_instance_norm_moments_are_monitored():
    exe, rows = watched(sym.InstanceNorm(sym.var("x"), name="in"), x=(1, 2, 3))
    exe.forward(x=nd.arange(6).reshape((1, 2, 3)))
    shown = dict(rows)
    assert list(shown) == ["in_output", "in_mean", "in_var"]
    np.testing.assert_allclose(shown["in_mean"].asnumpy(), [[1, 4]], rtol=1e-6)
    np.testing.assert_allclose(shown["in_var"].asnumpy(), [[2 / 3, 2 / 3]], rtol=1e-6)


@pytest.mark.parametrize(("axes", "shape"), [((), (20, 30)), ((0,), (1, 30)), ((-1,), (20, 1))])
def test_dropout_mask_is_monitored(axes, shape):
    """The mask contains the factors of the data and of the gradient."""
    x = sym.var("x")
    exe, rows = watched(sym.Dropout(x, p=0.75, axes=axes, name="drop"), x=(20, 30))
    exe.arg_dict["x"][:] = 2
    out = exe.forward(is_train=True)[0].asnumpy()
    mask = dict(rows)["drop_mask"].asnumpy()
    assert mask.shape == shape and set(np.unique(mask)) == {0, 4}
    np.testing.assert_array_equal(out, 2 * np.broadcast_to(mask, out.shape))
    exe.backward(nd.ones((20, 30)))
    np.testing.assert_array_equal(exe.grad_dict["x"].asnumpy(), out / 2)
    exe.forward(is_train=False)
    assert (rows[-1][1].asnumpy() == 1).all() and rows[-1][0] == "drop_mask"


x, q = sym.var("x"), sym.var("q")
PROGRAMS = {
    "sums": (
        sym.exp(sym.elemwise_mul(x, q, name="mul") + (x + q), name="exp"),
        "_head_grad_0_id_output exp_backward_output mul_backward_output0 mul_backward_output1 "
        "sum_grad_output sum_grad_output",
    ),
    "heads": (
        sym.Group([sym.tanh(x, name="tanh"), sym.elemwise_mul(x + q, q, name="mul")]),
        "_head_grad_1_id_output mul_backward_output0 mul_backward_output1 _head_grad_0_id_output "
        "tanh_backward_output sum_grad_output sum_grad_output",
    ),
    "older": (sym.L2Normalization(x, name="l2"), "_head_grad_0_id_output l2_backward_data"),
    "loss": (sym.MakeLoss(x, name="loss"), "loss_backward_data"),
    "added": (
        sym.add_n(x, x, name="add"),
        "_head_grad_0_id_output output output sum_grad_output",
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_monitored_names_of_small_programs(program):
    symbol, wanted = PROGRAMS[program]
    exe, rows = watched(symbol, **dict.fromkeys(symbol.list_arguments(), (2, 2)))
    exe.forward(is_train=True)
    rows.clear()
    exe.backward([nd.ones(o.shape) for o in exe.outputs])
    assert names(rows) == wanted.split()


def test_monitored_sums_equal_the_gradients():
    exe, rows = watched(PROGRAMS["sums"][0], x=(2, 2), q=(2, 2))
    exe.forward(is_train=True)
    exe.backward(nd.ones((2, 2)))
    sums = [array.asnumpy() for name, array in rows if name == "sum_grad_output"]
    for array, name in zip(sums, exe._symbol.list_arguments(), strict=True):
        np.testing.assert_allclose(array, exe.grad_dict[name].asnumpy(), rtol=1e-6)


def test_monitoring_does_not_change_results():
    plain = net().simple_bind(mx.cpu(), data=(8, 5))
    seen, rows = watched(net(), True, data=(8, 5))
    for name, array in seen.arg_dict.items():
        array.copyto(plain.arg_dict[name])
    for exe in (plain, seen):
        mx.random.seed(7)
        exe.forward(is_train=True)
        exe.backward()
    for name, grad in plain.grad_dict.items():
        np.testing.assert_allclose(
            grad.asnumpy(), seen.grad_dict[name].asnumpy(), rtol=1e-5, atol=1e-6
        )
    assert len(rows) == len(INPUTS_TOO) + len(BACKWARD)


def test_callback_errors_keep_their_type():
    exe, _ = watched(x * 2, x=(2,))

    def fail(name, array):
        raise KeyError(name)

    exe.set_monitor_callback(fail)
    with pytest.raises(KeyError, match="_mulscalar"):
        exe.forward()


def test_callback_errors_do_not_name_an_operator():
    exe, _ = watched(sym.exp(x, name="exp"), x=(2,))

    def fail(name, array):
        raise ValueError(name.decode())

    exe.set_monitor_callback(fail)
    with pytest.raises(ValueError, match=r"^exp_output$"):
        exe.forward()


def test_errors_of_monitored_operators_name_the_node():
    net = mx.gluon.SymbolBlock(sym.reshape(x, shape=(3, -1), name="bad"), x)
    net.hybridize()
    net(nd.ones((3, 2)))
    net.register_op_hook(lambda name, op, array: None)
    with pytest.raises(mx.MXNetError, match="bad"):
        net(nd.ones((2, 2)))


def test_other_interpreters_run_while_monitored():
    from mxnet.ops.interpreters import Interpreter

    class Count(Interpreter):
        calls = 0

        def run(self, op, tensors, attrs, proceed):
            self.calls += 1
            return proceed(tensors, attrs)

    exe, rows = watched(sym.exp(sym.elemwise_add(x, q, name="add"), name="exp"), x=(2,), q=(2,))
    with Count() as count:
        exe.forward()
    assert count.calls == 2 and names(rows) == ["add_output", "exp_output"]


def test_unrequested_gradients_are_monitored_as_zeros():
    fc = sym.FullyConnected(sym.Variable("data"), num_hidden=2, name="fc")
    out = sym.LinearRegressionOutput(fc, name="out")
    rows = {}
    wanted = {"data": "null", "out_label": "null", "fc_weight": "write", "fc_bias": "write"}
    exe = out.simple_bind(mx.cpu(), grad_req=wanted, data=(3, 4))
    exe.set_monitor_callback(lambda name, value: rows.update({name.decode(): value}))
    for array in exe.arg_arrays:
        array[:] = 1
    exe.forward(is_train=True)
    exe.backward()
    assert list(rows)[2:] == [
        *("out_backward_output0", "out_backward_output1"),
        *("fc_backward_output0", "fc_backward_output1", "fc_backward_output2"),
    ]
    assert rows["fc_backward_output0"].shape == (3, 4)
    assert not rows["fc_backward_output0"].asnumpy().any()
    assert rows["fc_backward_output1"].asnumpy().all()


def test_separate_gradient_nodes_are_monitored_only_if_requested():
    a, b = sym.Variable("a"), sym.Variable("b")
    out = sym.batch_dot(a, b, name="dot") + sym.reshape_like(b, a, name="like")
    exe = out.simple_bind(mx.cpu(), grad_req={"a": "null", "b": "write"}, a=(1, 2, 2), b=(1, 2, 2))
    rows = []
    exe.set_monitor_callback(lambda name, value: rows.append(name.decode()))
    exe.forward(is_train=True)
    exe.backward([nd.ones((1, 2, 2))])
    found = {r for r in rows if "backward" in r}
    assert found == {"dot_backward_rhs_output", "like_backward_output"}


# MXNet calls their inputs data0 or ary0, here arg0 as everywhere.
NAMED_OTHERWISE = [f"_npi_{name}" for name in ("concatenate", "hstack", "dstack")]
NAMED_OTHERWISE += [f"_np_atleast_{n}d" for n in (1, 2, 3)]


def test_op_hook_names_match_mxnet():
    rows = {row.key: row for family in families() for row in rows_of(family)}

    def check(case):
        row, expected = case
        arrays = arrays_of(row)
        variables = [sym.var(f"v{i}") for i in range(len(arrays))]
        graph = compose(row, variables, name="node")
        names = []
        cached = nd.CachedOp(graph)
        cached._register_op_hook(lambda name, op, array: names.append(name.decode()), True)
        cached(*[arrays[int(name[1:])] for name in graph.list_inputs()])
        if row.op in NAMED_OTHERWISE:
            names, expected = names[-1:], expected[-1:]
        assert names == expected

    recorded = json.loads((HERE / "hook_names.json").read_text())
    check_each({key: (rows[key], names) for key, names in recorded.items()}, check)


def test_monitor_callback_accepts_handles_and_survives_reshape():
    seen = []

    def callback(name, handle):  # as programs for MXNet write it
        array = nd.NDArray(ctypes.cast(handle, NDArrayHandle), writable=False)
        seen.append((py_str(name), array.shape))

    net = sym.FullyConnected(sym.Variable("x"), num_hidden=2, name="fc")
    executor = net.simple_bind(mx.cpu(), x=(2, 3))
    executor.set_monitor_callback(callback)
    executor.forward()
    executor.reshape(x=(4, 3), allow_up_sizing=True).forward()
    executor.forward()
    assert seen == [("fc_output", (2, 2)), ("fc_output", (4, 2)), ("fc_output", (2, 2))]
    seen.clear()
    executor.set_monitor_callback(callback, monitor_all=True)
    executor.reshape(x=(1, 3)).forward()
    assert [name for name, _ in seen] == [
        *("x", "fc_data", "fc_weight", "fc_weight", "fc_bias", "fc_bias", "fc_output")
    ]

    def hook(name, op, handle):
        callback(name, handle)
        assert py_str(op) == "FullyConnected"

    dense = mx.gluon.nn.Dense(2, in_units=3, prefix="dense0_")
    dense.initialize()
    dense.hybridize()
    dense.register_op_hook(hook)
    seen.clear()
    for size in (2, 4):
        dense(nd.ones((size, 3)))
    assert seen == [("dense0_fwd_output", (2, 2)), ("dense0_fwd_output", (4, 2))]


def test_array_handles_are_valid_while_their_array_is_alive():
    array = nd.ones(2)
    pointer = ctypes.cast(array, NDArrayHandle)
    shared = nd.NDArray(pointer)
    shared[:] = 3
    assert array.asnumpy().tolist() == [3, 3]
    del array
    with pytest.raises(mx.MXNetError, match="does not point at a living array"):
        nd.NDArray(pointer)


def test_monitors_remain_installed_after_module_reshape():
    net = sym.FullyConnected(sym.Variable("x"), num_hidden=2, name="fc")
    module = mx.mod.Module(net, data_names=["x"], label_names=None)
    module.bind([("x", (2, 3))])
    module.init_params()
    monitor = mx.mon.Monitor(1, stat_func=lambda array: array.sum())
    module.install_monitor(monitor)
    for step, size in enumerate((2, 4, 2, 3), 1):
        monitor.tic()
        module.forward(mx.io.DataBatch([nd.ones((size, 3))]), is_train=False)
        names = ["fc_output", "x", "fc_weight", "fc_bias"]
        assert [row[:2] for row in monitor.toc()] == [(step, name) for name in names]


def test_monitor_of_graphs_with_casts():
    """Casts are inserted after the nodes that use them were created; the run must reorder them."""
    with mixed_precision("float16"):
        symbol = sym.FullyConnected(sym.var("data"), num_hidden=3, no_bias=True, name="fc")
    arrays = {"data": nd.ones((2, 4)), "fc_weight": nd.ones((3, 4))}
    executor = symbol.bind(mx.cpu(), arrays, {n: a.copy() for n, a in arrays.items()})
    monitor = mx.mon.Monitor(1, lambda x: x.max(), pattern="fc_.*")
    monitor.install(executor)
    monitor.tic()
    executor.forward(is_train=True)
    executor.backward(nd.ones((2, 3)))
    assert ("fc_output", "4.0\t") in [row[1:] for row in monitor.toc()]


def test_monitor_of_empty_arrays():
    with mx.np_shape(True), mx.name.NameManager():
        executor = (sym.var("x") > 0).bind(mx.cpu(), {"x": nd.zeros((0, 2), dtype="int32")})
        monitor = mx.mon.Monitor(1)
        monitor.install(executor)
        monitor.tic()
        executor.forward()
        assert [name for _, name, _ in monitor.toc()] == ["_greater_scalar0_output", "x"]
