"""Recurrent layers and cells. Values are in the golden tests."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mxnet as mx
from mxnet import autograd, nd
from mxnet.gluon import contrib, nn, rnn
from tests.arrays import check
from tests.closeness import assert_equal_up_to_rounding


def started(block):
    block.initialize(mx.init.Uniform(0.5))
    return block


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", [rnn.RNN, rnn.LSTM, rnn.GRU])
def test_fused_layer_equals_unfused_cells(kind, bidirectional):
    layer = started(kind(3, 2, bidirectional=bidirectional, input_size=4))
    x = nd.random.normal(shape=(5, 2, 4))
    cells = layer._unfuse()
    found, _ = cells.unroll(5, x, layout="TNC", merge_outputs=True)
    assert_allclose(found.asnumpy(), layer(x).asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hybridize", [False, True])
def test_layer_returns_states_only_if_states_are_passed(hybridize):
    layer = started(rnn.LSTM(3))
    if hybridize:
        layer.hybridize()
    x = nd.random.normal(shape=(5, 2, 4))
    alone = layer(x)
    both, states = layer(x, layer.begin_state(2))
    assert_allclose(alone.asnumpy(), both.asnumpy(), rtol=1e-6)
    assert [s.shape for s in states] == [(1, 2, 3), (1, 2, 3)]


@pytest.mark.parametrize("kind", [rnn.RNN, rnn.LSTM, rnn.GRU])
def test_steps_beyond_sequence_length_are_ignored(kind):
    layer = started(kind(3, use_sequence_length=True))
    x = nd.random.normal(shape=(5, 2, 4))
    state = layer.begin_state(2)
    whole, states = layer(x, state, sequence_length=nd.array([3, 5]))
    short, short_states = layer(x[:3], state, sequence_length=nd.array([3, 3]))
    assert_allclose(whole[:3, 0].asnumpy(), short[:, 0].asnumpy(), rtol=1e-5, atol=1e-6)
    for a, b in zip(states, short_states, strict=True):
        assert_allclose(a[:, 0].asnumpy(), b[:, 0].asnumpy(), rtol=1e-5, atol=1e-6)
    assert_array_equal(whole[3:, 0].asnumpy(), np.zeros((2, 3)))


def test_layer_in_a_hybrid_net_infers_its_input_size():
    net = nn.HybridSequential()
    net.add(nn.Dense(6, flatten=False), rnn.LSTM(3), nn.Dense(2, flatten=False))
    net.initialize()
    net.hybridize()
    assert net(nd.ones((5, 2, 4))).shape == (5, 2, 2)
    assert net[1].l0_i2h_weight.shape == (12, 6)


def test_bidirectional_layer_in_a_hybrid_net_infers_its_input_size():
    net = nn.HybridSequential()
    net.add(rnn.LSTM(3, bidirectional=True), nn.Dense(2, flatten=False))
    net.initialize()
    net.hybridize()
    assert net(nd.ones((5, 2, 4))).shape == (5, 2, 2)


def test_wrong_state_shape_raises():
    layer = started(rnn.GRU(3, input_size=4))
    with pytest.raises(ValueError, match=r"Invalid recurrent state shape. Expecting \(1, 2, 3\)"):
        layer(nd.ones((5, 2, 4)), nd.zeros((1, 3, 3)))


def test_saved_file_uses_the_names_of_unfused_cells(tmp_path):
    layer = started(rnn.LSTM(3, 2, bidirectional=True, input_size=4))
    file = str(tmp_path / "layer.params")
    layer.save_parameters(file)
    names = list(nd.load(file))
    assert names[0] == "_unfused.0.l_cell.i2h_weight"
    assert names[-1] == "_unfused.1.r_cell.h2h_bias"
    other = rnn.LSTM(3, 2, bidirectional=True)
    other.load_parameters(file)
    x = nd.random.normal(shape=(5, 2, 4))
    assert_allclose(other(x).asnumpy(), layer(x).asnumpy(), rtol=1e-6)


def test_calling_the_base_of_a_modifier_cell_raises():
    cell = rnn.RNNCell(3)
    outer = rnn.ZoneoutCell(cell)
    with pytest.raises(AssertionError, match="the base cell cannot be called directly"):
        cell.begin_state(2)
    assert [s.shape for s in outer.begin_state(batch_size=2)] == [(2, 3)]
    with pytest.raises(AssertionError, match="already modified"):
        rnn.ResidualCell(cell)


def test_stepping_a_bidirectional_cell_raises():
    cell = rnn.BidirectionalCell(rnn.RNNCell(3), rnn.RNNCell(3))
    with pytest.raises(NotImplementedError, match="Bidirectional cannot be stepped"):
        cell(nd.ones((2, 4)), [nd.zeros((2, 3))] * 2)
    with pytest.raises(AssertionError, match="doesn't support zoneout"):
        rnn.ZoneoutCell(cell)


def test_unroll_with_a_wrong_length_raises():
    cell = started(rnn.RNNCell(3))
    with pytest.raises(AssertionError, match="length 4 was given a sequence of 5"):
        cell.unroll(4, nd.ones((2, 5, 4)))


def test_zoneout_keeps_old_states_when_training():
    cell = started(rnn.ZoneoutCell(rnn.RNNCell(200), zoneout_states=0.5))
    old = nd.full((1, 200), 7.0)
    with autograd.record():
        _, (state,) = cell(nd.ones((1, 4)), [old])
    kept = (state.asnumpy() == 7).mean()
    assert 0.3 < kept < 0.7
    assert not (cell(nd.ones((1, 4)), [old])[1][0].asnumpy() == 7).any()


def test_variational_dropout_uses_one_mask_for_all_steps():
    cell = contrib.rnn.VariationalDropoutCell(rnn.RNNCell(50), drop_outputs=0.5)
    cell.initialize(mx.init.One())
    with autograd.record():
        outputs, _ = cell.unroll(4, nd.ones((1, 4, 3)), merge_outputs=True)
        again, _ = cell.unroll(4, nd.ones((1, 4, 3)), merge_outputs=True)
    dropped = outputs.asnumpy()[0] == 0
    assert (dropped == dropped[:1]).all()
    assert 0 < dropped[0].sum() < 50
    assert (dropped != (again.asnumpy()[0] == 0)).any()


def test_cells_compute_in_the_dtype_of_their_input():
    cell = rnn.LSTMCell(3, input_size=4)
    cell.cast("float64")
    cell.initialize()
    outputs, states = cell.unroll(2, nd.ones((1, 2, 4), dtype="float64"), merge_outputs=True)
    assert outputs.dtype == states[1].dtype == np.float64


@pytest.mark.parametrize("hybridize", [False, True])
def test_layer_called_without_states_returns_output_only(hybridize, tmp_path):
    layer = started(rnn.LSTM(3, prefix="l_"))
    x, seen = nd.ones((4, 2, 3)), []
    layer(x)
    if hybridize:
        layer.hybridize()
    layer.register_forward_hook(lambda block, inputs, output: seen.append(output))
    alone = layer(x)
    both = layer(x, layer.begin_state(batch_size=2))
    again = layer(x)
    assert seen[0] is alone and len(seen[1]) == 2 and seen[2] is again
    assert_equal_up_to_rounding(both[0].asnumpy(), alone.asnumpy())
    if hybridize:
        layer.export(str(tmp_path / "l"))
        assert mx.sym.load(str(tmp_path / "l-symbol.json")).list_outputs() == ["l_rnn0_output"]


@pytest.mark.parametrize("func", [nd.zeros, nd.ones, nd.random.uniform, nd.random.normal])
def test_begin_state_accepts_functions_of_a_shape(func):
    """``__layout__`` is passed too; operators ignore it."""
    for cell in (rnn.LSTM(3), rnn.LSTMCell(3)):
        states = cell.begin_state(batch_size=2, func=func)
        assert [s.shape[-2:] for s in states] == [(2, 3), (2, 3)]


@pytest.mark.parametrize("as_list", [False, True])
def test_variational_dropout_unroll_merges_outputs_by_default(as_list):
    cell = contrib.rnn.VariationalDropoutCell(rnn.RNNCell(3), drop_inputs=0.5, drop_outputs=0.5)
    cell.initialize()
    steps = [mx.nd.ones((2, 3))] * 4 if as_list else mx.nd.ones((2, 4, 3))
    outputs, _ = cell.unroll(4, steps)
    assert outputs.shape == (2, 4, 3)
    outputs, _ = cell.unroll(4, steps, merge_outputs=False)
    assert [step.shape for step in outputs] == [(2, 3)] * 4
    valid, _ = cell.unroll(4, steps, valid_length=mx.nd.array([1, 4]))
    assert not valid[0, 1:].asnumpy().any()
    assert valid[1].asnumpy().any()


def test_variational_dropout_of_merged_sequences_is_one_node():
    cell = contrib.rnn.VariationalDropoutCell(rnn.RNNCell(3, prefix="r_"), 0.3, 0, 0.2)
    outputs, _ = cell.unroll(2, mx.sym.Variable("d"), layout="TNC")
    nodes = json.loads(outputs.tojson())["nodes"]
    dropped = [n["attrs"] for n in nodes if n["op"] == "Dropout"]
    assert dropped == [{"axes": "(0,)", "p": "0.3"}, {"axes": "(0,)", "p": "0.2"}]


def test_variational_dropout_wraps_a_bidirectional_cell():
    both = rnn.BidirectionalCell(rnn.GRUCell(3), rnn.GRUCell(3))
    cell = contrib.rnn.VariationalDropoutCell(both, drop_inputs=0.5)
    cell.initialize()
    outputs, states = cell.unroll(4, mx.nd.ones((2, 4, 5)))
    assert outputs.shape == (2, 4, 6)
    assert [state.shape for state in states] == [(2, 3), (2, 3)]
    again, _ = cell.unroll(4, mx.nd.ones((2, 4, 5)))
    assert_array_equal(again.asnumpy(), outputs.asnumpy())


@pytest.mark.parametrize("kind", [rnn.RNNCell, rnn.GRUCell])
@pytest.mark.parametrize("hybridize", [False, True])
def test_output_and_state_of_a_hybridized_cell_do_not_share_memory(kind, hybridize):
    cell = kind(2, input_size=2)
    cell.initialize(mx.init.One())
    if hybridize:
        cell.hybridize()
    for _ in range(3):
        out, states = cell(nd.ones((1, 2)), cell.begin_state(1))
    before = out.asnumpy()
    states[0][:] = 0
    if hybridize:  # otherwise, they are one array
        check(out, before)
    assert before.min() > 0.1
