"""Freed graphs, and `autograd.get_symbol`."""

from __future__ import annotations

import gc
import json
import weakref

import pytest
from numpy.testing import assert_array_equal

import mxnet as mx
from mxnet import autograd, nd
from mxnet.runtime.recording import Session
from tests.closeness import assert_equal_up_to_rounding


def leaf(values):
    x = nd.array(values)
    x.attach_grad()
    return x


def living_sessions():
    gc.collect()
    return sum(type(thing) is Session for thing in gc.get_objects())


def test_results_of_a_freed_graph_are_constants():
    x = leaf([1.0, 2.0])
    with autograd.record():
        h = x * x
        loss = h.sum()
    loss.backward()
    with autograd.record():
        again = (h * x).sum()
    again.backward()
    assert x.grad.asnumpy().tolist() == [1, 4]


def test_nodes_without_saved_tensors_are_freed_by_backward():
    x, b = leaf([1.0, 2.0]), leaf([1.0, 1.0])
    with autograd.record():
        e = x + b
        loss = e.sum()
    loss.backward()
    with autograd.record():
        again = (e * x).sum()
    again.backward()
    assert x.grad.asnumpy().tolist() == [2, 3] and b.grad.asnumpy().tolist() == [1, 1]


def test_backward_keeps_unreached_graphs():
    x, w = leaf([2.0]), leaf([3.0])
    with autograd.record():
        fake = w * x
        loss = (fake.detach() * x).sum()
        loss.backward()
        second = fake * fake
    second.backward()
    assert w.grad.asscalar() == 2 * 3 * 2 * 2


def test_results_without_saved_tensors_are_constants_after_backward():
    x, w = leaf([2.0]), leaf([3.0])
    with autograd.record():
        moved = w + x
        loss = x + 1
    loss.backward()
    with autograd.record():
        second = moved * 5
    second.backward()
    assert w.grad.asscalar() == 5


def test_retain_graph_keeps_the_graph():
    x = leaf([3.0])
    with autograd.record():
        h = x * x
    h.backward(retain_graph=True)
    with autograd.record():
        cube = h * x
    cube.backward()
    assert x.grad.asscalar() == 27
    with pytest.raises(mx.base.MXNetError, match="Cannot differentiate node"):
        h.backward()


def test_backward_from_a_leaf_frees_no_graph():
    x = leaf([3.0])
    with autograd.record():
        h, e = x * x, x + 1
    x.backward()
    assert x.grad.asscalar() == 1
    autograd.backward([h, e])
    assert x.grad.asscalar() == 7


def test_grad_frees_the_graph():
    x = leaf([3.0])
    with autograd.record():
        h = x * x
    assert autograd.grad(h, x)[0].asscalar() == 6
    with autograd.record():
        y = h * x
    y.backward()
    assert x.grad.asscalar() == 9


def test_results_of_a_freed_graph_are_writable_when_recording():
    x = leaf([3.0])
    with autograd.record():
        h = x * 2
    h.backward()
    with autograd.record():
        h[:] = 7
    assert h.asscalar() == 7


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("layer", ["RNN", "GRU", "LSTM"])
def test_recurrent_states_need_no_detach(layer, hybridize):
    def gradients(detach):
        net = getattr(mx.gluon.rnn, layer)(3, num_layers=2, input_size=2)
        net.initialize(mx.init.Constant(0.1))
        if hybridize:
            net.hybridize()
        states, found = net.begin_state(batch_size=2), []
        for _ in range(3):
            states = [s.detach() for s in states] if detach else states
            with autograd.record():
                output, states = net(nd.ones((4, 2, 2)), states)
                loss = output.mean()
            loss.backward()
            found.append(net.l0_h2h_weight.grad().asnumpy())
        return found

    assert_equal_up_to_rounding(gradients(detach=False), gradients(detach=True))


def test_results_are_constants_after_backward_inside_one_recording():
    x = leaf([3.0])
    with autograd.record():
        h = x * x
        loss = h * 1
        loss.backward()
        second = h * x
    second.backward()
    assert x.grad.asscalar() == 9


def test_results_are_constants_after_backward_inside_a_pause():
    x = leaf([3.0])
    with autograd.record():
        h = x * x
        loss = h * 1
        with autograd.pause():
            loss.backward()
        second = h * x
    second.backward()
    assert x.grad.asscalar() == 9


def test_backward_frees_graphs_over_several_recordings():
    x = leaf([3.0])
    with autograd.record():
        h = x * x
    with autograd.record():
        loss = h * x
    loss.backward()
    assert x.grad.asscalar() == 27
    with autograd.record():
        again = h * x
    again.backward()
    assert x.grad.asscalar() == 9


def test_carried_state_keeps_no_old_recordings_alive():
    w, state = leaf([0.5]), nd.ones((1,))
    before = living_sessions()
    for _ in range(50):
        with autograd.record():
            state = state * w
            loss = state * 2
        loss.backward()
    assert living_sessions() - before < 10


def test_backward_detaches_heads_from_their_graph():
    x = leaf([3.0])
    with autograd.record():
        loss = x * x
    loss.backward()
    assert loss._member is None and loss.asscalar() == 9


def test_backward_with_a_constant_output():
    x = leaf([1.0, 3.0])
    with autograd.record():
        heads = [x * 2, x.argmax(axis=0)]
    autograd.backward(heads, [nd.ones_like(h) for h in heads])
    assert x.grad.asnumpy().tolist() == [2, 2]


@pytest.mark.filterwarnings("ignore:Storage")
def test_sparse_result_of_a_freed_graph_is_a_constant():
    x = mx.nd.array([[1, 2], [0, 0]]).tostype("row_sparse")
    x.attach_grad("write")
    with mx.autograd.record():
        y = mx.nd.sparse.abs(x)
        total = y.tostype("default").sum()
    total.backward()
    with pytest.raises(mx.MXNetError, match="not part of a computation graph"):
        mx.autograd.get_symbol(y)


# -- `autograd.get_symbol` ----------------------------------------------------------------------


def traced_leaf(*values):
    x = nd.array(values)
    x.attach_grad()
    return x


def test_get_symbol_of_a_recorded_computation():
    x = traced_leaf(1, 2, 3)
    with autograd.record():
        y = x * x + 2 * x - 1
    symbol = autograd.get_symbol(y)
    nodes = json.loads(symbol.tojson())["nodes"]
    assert [n["op"] for n in nodes] == [
        *("null", "broadcast_mul", "_mul_scalar", "broadcast_add", "_minus_scalar"),
    ]
    assert nodes[2]["attrs"] == {"scalar": "2.0"}
    assert symbol.list_arguments() == ["var0"]
    (again,) = symbol.bind(mx.cpu(), {"var0": x}).forward()
    assert_array_equal(again.asnumpy(), y.asnumpy())


def test_a_reused_constant_is_listed_once_as_argument():
    x, z = traced_leaf(1, 2), nd.ones(2)
    with autograd.record():
        y = nd.Dropout(x * z + z, p=0.5)
    assert autograd.get_symbol(y).list_arguments() == ["var0", "null0"]


def test_outputs_of_one_call_share_a_node():
    x = traced_leaf(1, 2, 3, 4)
    with autograd.record():
        first, second = nd.split(x, num_outputs=2, axis=0)
        y = first * second
    symbol = autograd.get_symbol(y)
    assert [n.op.name for n in symbol._graph.nodes if n.op] == ["SliceChannel", "broadcast_mul"]
    assert autograd.get_symbol(second).list_outputs() == ["node_0_output1"]


def test_get_symbol_keeps_auxiliary_states():
    x = traced_leaf(1, 2, 3)
    with autograd.record():
        y = nd.BatchNorm(nd.ones((2, 3)), x, x * 2, nd.zeros(3), nd.ones(3))
    symbol = autograd.get_symbol(y)
    assert symbol.list_auxiliary_states() == ["null1", "null2"]


def test_get_symbol_of_a_deep_recording():
    x = total = traced_leaf(1)
    with autograd.record():
        for _ in range(2000):
            total = total + x
    assert len(autograd.get_symbol(total)._graph.nodes) == 2001


@pytest.mark.parametrize(
    ("read", "operators"),
    [
        (lambda x: x[1], ["slice", "Reshape"]),
        (lambda x: x[0:1], ["slice"]),
        (lambda x: x[-1], ["slice", "Reshape"]),
        (lambda x: x[0, 1], ["slice", "Reshape"]),
        (lambda x: x[..., 1], ["slice", "Reshape"]),
        (lambda x: x[:, 1], ["slice", "Reshape"]),
        (lambda x: x[:, ::2], ["slice"]),
        (lambda x: x[::-1], ["slice"]),
        (lambda x: x[None], ["Reshape"]),
        (lambda x: x.reshape((3, 2)), ["Reshape"]),
        (lambda x: x.copy(), ["_copyto"]),
        (lambda x: x.flatten(inplace=True), ["Reshape"]),
        (lambda x: x.astype("float64"), ["Cast"]),
    ],
)
def test_get_symbol_includes_indexing_and_reshaping(read, operators):
    x = traced_leaf([1, 2, 3], [4, 5, 6])
    with autograd.record():
        y = read(x) * 2
    symbol = autograd.get_symbol(y)
    assert [n.op.name for n in symbol._graph.nodes if n.op] == [*operators, "_mul_scalar"]
    (again,) = symbol.bind(mx.cpu(), {"var0": x}).forward()
    assert_array_equal(again.asnumpy(), y.asnumpy())


def test_index_lists_are_arguments_in_get_symbol():
    x = traced_leaf(1, 2, 3)
    with autograd.record():
        y = x[[2, 0]] * 2
    symbol = autograd.get_symbol(y)
    assert symbol.list_arguments() == ["var0", "null0"]
    (again,) = symbol.bind(mx.cpu(), {"var0": x, "null0": nd.array([[2, 0]])}).forward()
    assert_array_equal(again.asnumpy(), y.asnumpy())


def test_get_symbol_includes_operators_of_hybridized_blocks():
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(3, in_units=3, activation="tanh"), mx.gluon.nn.Dense(2, in_units=3))
    net.initialize()
    net.hybridize()
    data = nd.ones((1, 3))
    with autograd.record():
        y = net(data * 2)
    symbol = autograd.get_symbol(y)
    operators = [n.op.name for n in symbol._graph.nodes if n.op]
    assert operators == ["FullyConnected", "Activation", "FullyConnected"]
    assert symbol.list_arguments() == ["null0", "var0", "var1", "var2", "var3"]


@pytest.mark.parametrize(
    ("function", "operators"),
    [
        (lambda x: nd.BlockGrad(x * 2) + x, ["_mul_scalar", "BlockGrad", "broadcast_add"]),
        (lambda x: (x > 2) * x, ["_greater_scalar", "broadcast_mul"]),
        (lambda x: (x > x) * x, ["broadcast_greater", "broadcast_mul"]),
        (lambda x: nd.one_hot(nd.argmax(x, axis=0), 3), ["argmax", "one_hot"]),
        (lambda x: (x * 2).detach() * x, ["broadcast_mul"]),
        (lambda x: nd.exp(x, out=nd.zeros(3)), ["exp"]),
        (lambda x: nd.concat(x, x * 2, dim=0), ["_mul_scalar", "Concat"]),
        (lambda x: nd.dot(nd.ones((1, 3)).tostype("csr"), x.reshape((3, 1))), ["Reshape", "dot"]),
    ],
)
def test_get_symbol_includes_every_kind_of_call(function, operators):
    x = traced_leaf(1, 2, 3)
    for _ in range(2):  # a first call and a cached one
        with autograd.record():
            y = function(x)
        symbol = autograd.get_symbol(y)
        assert [n.op.name for n in symbol._graph.nodes if n.op] == operators


def test_get_symbol_of_np_arrays():
    x = mx.np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = mx.np.exp(x[1]) * 2
    symbol = autograd.get_symbol(y)
    names = [n.op.name for n in symbol._graph.nodes if n.op]
    assert names == ["slice", "_np_reshape", "_npi_exp", "_npi_multiply_scalar"]


def test_get_symbol_of_a_freed_graph_raises():
    x = traced_leaf(1, 2)
    with autograd.record():
        y = x * x
        z = y * 2
    z.backward()
    for array in (y, z):
        with pytest.raises(mx.MXNetError, match="not part of a computation graph"):
            autograd.get_symbol(array)
    with autograd.record():
        again = y * x
    assert autograd.get_symbol(again).list_arguments() == ["null0", "var0"]


def test_recorded_history_does_not_keep_data_alive():
    x = traced_leaf(1, 2)
    with autograd.record():
        y = x + 1
        kept = weakref.ref(y._member.tensor)
        z = y * 2  # its gradient does not need y
    del y
    assert kept() is None
    assert len(autograd.get_symbol(z)._graph.nodes) == 3


@pytest.mark.parametrize("step", [lambda h, x: h * x, lambda h, x: nd.BlockGrad(h * x) + x])
def test_carried_state_keeps_no_history(step):
    x, h = traced_leaf(1, 2), nd.ones(2)
    for _ in range(5):
        with autograd.record():
            h = step(h, x)
            loss = h * 2
        loss.backward()
    with autograd.record():
        y = step(h, x)
    assert len(autograd.get_symbol(y)._graph.nodes) <= 5


def test_get_symbol_includes_custom_functions():
    """As in MXNet they have shapes, but cannot be run."""

    class Both(autograd.Function):
        def forward(self, x, y):
            return x * y, nd.concat(x, y, dim=0)

        def backward(self, product, joined):
            return product, product

    x, y = traced_leaf(1, 2), nd.ones(2)
    with autograd.record():
        product, joined = Both()(x, y)
        z = product.sum() + joined.sum()
    symbol = autograd.get_symbol(z)
    nodes = json.loads(symbol.tojson())["nodes"]
    assert nodes[2] == {"op": "_CustomFunction", "name": "node_0", "inputs": [[0, 0, 0], [1, 0, 0]]}
    outputs = symbol.get_internals()
    assert outputs.list_outputs()[2:4] == ["node_0_output0", "node_0_output1"]
    assert outputs.infer_shape(var0=(2,), null0=(2,))[1][2:4] == [(2,), (4,)]
    executor = symbol.bind(mx.cpu(), {"var0": x, "null0": y})
    with pytest.raises(mx.MXNetError, match=r"cannot run them.*CustomOp"):
        executor.forward()[0].wait_to_read()


def test_get_symbol_includes_advanced_indexing():
    x = traced_leaf(1, 2).reshape((2, 1))
    x.attach_grad()
    with autograd.record():
        y = x[[0, 1], 0] * 2
    nodes = json.loads(autograd.get_symbol(y).tojson())["nodes"]
    assert [n["op"] for n in nodes] == ["null", "null", "gather_nd", "_mul_scalar"]


def test_get_symbol_of_unsupported_graphs_raises():
    x = traced_leaf(1, 2)
    with autograd.record():
        y = autograd.grad(nd.exp(x).sum(), x, create_graph=True)[0] + 1
    with pytest.raises(mx.MXNetError, match=r"autograd\.grad"):
        autograd.get_symbol(y)
    with pytest.raises(mx.MXNetError, match="not part of a computation graph"):
        autograd.get_symbol(nd.ones(2))
    with pytest.raises(TypeError, match="NDArray"):
        autograd.get_symbol(3)
    assert autograd.get_symbol(x).list_arguments() == ["var0"]
