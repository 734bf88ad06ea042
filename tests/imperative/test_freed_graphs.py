"""After backward, what was in its graph goes on as a constant."""

from __future__ import annotations

import gc

import pytest

import mxnet as mx
from mxnet import autograd, nd
from mxnet.imperative.state import Session
from tests.closeness import assert_equal_up_to_rounding


def leaf(values):
    x = nd.array(values)
    x.attach_grad()
    return x


def living_sessions():
    gc.collect()
    return sum(type(thing) is Session for thing in gc.get_objects())


def test_a_used_up_result_is_a_constant():
    x = leaf([1.0, 2.0])
    with autograd.record():
        h = x * x
        loss = h.sum()
    loss.backward()
    with autograd.record():
        again = (h * x).sum()
    again.backward()
    assert x.grad.asnumpy().tolist() == [1, 4]


def test_nodes_that_save_nothing_are_used_up_too():
    x, b = leaf([1.0, 2.0]), leaf([1.0, 1.0])
    with autograd.record():
        e = x + b
        loss = e.sum()
    loss.backward()
    with autograd.record():
        again = (e * x).sum()
    again.backward()
    assert x.grad.asnumpy().tolist() == [2, 3] and b.grad.asnumpy().tolist() == [1, 1]


def test_what_backward_did_not_reach_stays_in_its_graph():
    x, w = leaf([2.0]), leaf([3.0])
    with autograd.record():
        fake = w * x
        loss = (fake.detach() * x).sum()
        loss.backward()
        second = fake * fake
    second.backward()
    assert w.grad.asscalar() == 2 * 3 * 2 * 2


def test_results_without_saved_tensors_stay_too():
    x, w = leaf([2.0]), leaf([3.0])
    with autograd.record():
        moved = w + x
        loss = x + 1
    loss.backward()
    with autograd.record():
        second = moved * 5
    second.backward()
    assert w.grad.asscalar() == 5


def test_a_retained_graph_stays():
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


def test_backward_from_a_leaf_uses_nothing_up():
    x = leaf([3.0])
    with autograd.record():
        h, e = x * x, x + 1
    x.backward()
    assert x.grad.asscalar() == 1
    autograd.backward([h, e])
    assert x.grad.asscalar() == 7


def test_grad_uses_the_graph_up_as_well():
    x = leaf([3.0])
    with autograd.record():
        h = x * x
    assert autograd.grad(h, x)[0].asscalar() == 6
    with autograd.record():
        y = h * x
    y.backward()
    assert x.grad.asscalar() == 9


def test_used_up_results_may_be_written_inside_record():
    x = leaf([3.0])
    with autograd.record():
        h = x * 2
    h.backward()
    with autograd.record():
        h[:] = 7
    assert h.asscalar() == 7


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("layer", ["RNN", "GRU", "LSTM"])
def test_states_need_no_detach(layer, hybridize):
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


def test_inside_one_recording_too():
    x = leaf([3.0])
    with autograd.record():
        h = x * x
        loss = h * 1
        loss.backward()
        second = h * x
    second.backward()
    assert x.grad.asscalar() == 9


def test_inside_a_pause_of_the_recording_too():
    x = leaf([3.0])
    with autograd.record():
        h = x * x
        loss = h * 1
        with autograd.pause():
            loss.backward()
        second = h * x
    second.backward()
    assert x.grad.asscalar() == 9


def test_graphs_that_span_several_recordings_are_used_up_whole():
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


def test_a_carried_state_keeps_no_old_sessions():
    w, state = leaf([0.5]), nd.ones((1,))
    before = living_sessions()
    for _ in range(50):
        with autograd.record():
            state = state * w
            loss = state * 2
        loss.backward()
    assert living_sessions() - before < 10


def test_heads_let_their_graph_go():
    x = leaf([3.0])
    with autograd.record():
        loss = x * x
    loss.backward()
    assert loss._member is None and loss.asscalar() == 9


def test_a_constant_beside_a_head():
    x = leaf([1.0, 3.0])
    with autograd.record():
        heads = [x * 2, x.argmax(axis=0)]
    autograd.backward(heads, [nd.ones_like(h) for h in heads])
    assert x.grad.asnumpy().tolist() == [2, 2]


@pytest.mark.filterwarnings("ignore:Storage")
def test_a_sparse_result_of_a_used_graph_is_a_constant():
    x = mx.nd.array([[1, 2], [0, 0]]).tostype("row_sparse")
    x.attach_grad("write")
    with mx.autograd.record():
        y = mx.nd.sparse.abs(x)
        total = y.tostype("default").sum()
    total.backward()
    with pytest.raises(mx.MXNetError, match="not part of a computation graph"):
        mx.autograd.get_symbol(y)
