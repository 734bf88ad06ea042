"""`autograd.get_symbol`: recorded computations as graphs, as MXNet 1.9.1 shows them."""

import json

import pytest
from numpy.testing import assert_array_equal

import mxnet as mx
from mxnet import autograd, nd


def leaf(*values):
    x = nd.array(values)
    x.attach_grad()
    return x


def test_a_recorded_computation_becomes_a_symbol():
    x = leaf(1, 2, 3)
    with autograd.trace_operators(), autograd.record():
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


def test_constants_are_arguments_once_each():
    x, z = leaf(1, 2), nd.ones(2)
    with autograd.trace_operators(), autograd.record():
        y = nd.Dropout(x * z + z, p=0.5)
    assert autograd.get_symbol(y).list_arguments() == ["var0", "null0"]


def test_results_of_one_call_share_a_node():
    x = leaf(1, 2, 3, 4)
    with autograd.trace_operators(), autograd.record():
        first, second = nd.split(x, num_outputs=2, axis=0)
        y = first * second
    symbol = autograd.get_symbol(y)
    assert [n.op.name for n in symbol._graph.nodes if n.op] == ["SliceChannel", "broadcast_mul"]
    assert autograd.get_symbol(second).list_outputs() == ["node_0_output1"]


def test_states_stay_states():
    x = leaf(1, 2, 3)
    with autograd.trace_operators(), autograd.record():
        y = nd.BatchNorm(nd.ones((2, 3)), x, x * 2, nd.zeros(3), nd.ones(3))
    symbol = autograd.get_symbol(y)
    assert symbol.list_auxiliary_states() == ["null1", "null2"]


def test_deep_recordings_are_no_problem():
    x = total = leaf(1)
    with autograd.trace_operators(), autograd.record():
        for _ in range(2000):
            total = total + x
    assert len(autograd.get_symbol(total)._graph.nodes) == 2001


@pytest.mark.parametrize(
    ("read", "operators"),
    [
        (lambda x: x[1], ["slice", "Reshape"]),
        (lambda x: x[0:1], ["slice"]),
        (lambda x: x[:, 1], ["slice", "Reshape", "_copyto"]),
        (lambda x: x[:, ::2], ["slice", "_copyto"]),
        (lambda x: x[None], ["Reshape"]),
        (lambda x: x.reshape((3, 2)), ["Reshape"]),
        (lambda x: x.copy(), ["_copyto"]),
    ],
)
def test_indexing_and_reshaping_are_shown(read, operators):
    x = leaf([1, 2, 3], [4, 5, 6])
    with autograd.trace_operators(), autograd.record():
        y = read(x) * 2
    symbol = autograd.get_symbol(y)
    assert [n.op.name for n in symbol._graph.nodes if n.op] == [*operators, "_mul_scalar"]
    (again,) = symbol.bind(mx.cpu(), {"var0": x}).forward()
    assert_array_equal(again.asnumpy(), y.asnumpy())


def test_hybridized_blocks_are_shown():
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    net.hybridize()
    with autograd.trace_operators(), autograd.record():
        y = net(nd.ones((1, 3)))
    symbol = autograd.get_symbol(y)
    assert [n.op.name for n in symbol._graph.nodes if n.op] == ["FullyConnected"]


def test_what_was_not_traced_is_explained():
    x = leaf(1, 2)
    with autograd.record():
        y = x * 2
    with pytest.raises(mx.MXNetError, match="trace_operators"):
        autograd.get_symbol(y)
    with pytest.raises(mx.MXNetError, match="not part of a computation graph"):
        autograd.get_symbol(nd.ones(2))
    with pytest.raises(TypeError, match="NDArray"):
        autograd.get_symbol(3)
    assert autograd.get_symbol(x).list_arguments() == ["var0"]
