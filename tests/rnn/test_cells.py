"""Recurrent cells. Values are compared with MXNet in the golden tests."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx

rnn = mx.rnn


def outputs_of(cell, length=3, shape=(2, 3, 5), **params):
    out, _ = cell.unroll(length, mx.sym.Variable("data"), merge_outputs=True)
    exe = out.simple_bind(mx.cpu(), data=shape)
    exe.arg_dict["data"][:] = np.random.default_rng(0).normal(size=shape)
    for name, value in params.items():
        exe.arg_dict[name][:] = value
    return exe.forward()[0].asnumpy()


@pytest.mark.filterwarnings("ignore:NTC layout")
@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_fused_cell_equals_unfused_cells(mode, bidirectional):
    fused = rnn.FusedRNNCell(4, num_layers=2, mode=mode, bidirectional=bidirectional)
    out, _ = fused.unroll(3, mx.sym.Variable("data"), merge_outputs=True)
    size = out.infer_shape(data=(2, 3, 5))[0][1]
    name = out.list_arguments()[1]
    packed = {name: mx.nd.array(np.random.default_rng(1).normal(size=size, scale=0.5))}
    stack = fused.unfuse()
    parts = stack.pack_weights(fused.unpack_weights(packed))
    np.testing.assert_allclose(
        outputs_of(stack, **parts), outputs_of(fused, **packed), rtol=1e-4, atol=1e-5
    )


def test_stacked_lstm_shape_inference():
    audio = mx.sym.Variable("audio_data")
    rnn1 = rnn.LSTMCell(num_hidden=256, prefix="lstm1_")
    outs1, _ = rnn1.unroll(length=49, inputs=audio, merge_outputs=False)
    rnn2 = rnn.LSTMCell(num_hidden=256, prefix="lstm2_")
    outs2, _ = rnn2.unroll(length=49, inputs=outs1, merge_outputs=False)
    last1 = mx.sym.Reshape(data=outs1[-1], shape=(-1, 256), name="rnn1_last_out_reshape")
    last2 = mx.sym.Reshape(data=outs2[-1], shape=(-1, 256), name="rnn2_last_out_reshape")
    both = mx.sym.Concat(last1, last2, num_args=2, dim=1, name="rnn_outputs")
    args, outs, auxes = both.infer_shape(audio_data=(128, 49, 75))
    assert args == [(128, 49, 75), (1024, 75), (1024,), (1024, 256), (1024,),
                    (1024, 256), (1024,), (1024, 256), (1024,)]  # fmt: skip
    assert (outs, auxes) == ([(128, 512)], [])


def test_cells_with_shared_params_use_the_same_variables():
    params = rnn.RNNParams("s_")
    one, other = rnn.GRUCell(4, "s_", params), rnn.GRUCell(4, "s_", params)
    assert one._iW is other._iW


def test_zoneout_is_active_only_when_training():
    cell = rnn.ZoneoutCell(rnn.RNNCell(50, prefix="r_"), zoneout_states=0.5)
    out, _ = cell.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    exe = out.simple_bind(mx.cpu(), data=(4, 2, 3))
    for name, array in exe.arg_dict.items():
        array[:] = 1 if name == "data" else 0.1
    mx.random.seed(0)
    quiet, noisy = (exe.forward(is_train=t)[0].asnumpy() for t in (False, True))
    second = noisy[:, 1]
    fresh = np.isclose(second, quiet[:, 1])  # no old values were kept
    assert not fresh.all()
    np.testing.assert_allclose(noisy[:, 0], quiet[:, 0], rtol=1e-6)


def test_dropout_cell_is_active_only_when_training():
    row = rnn.SequentialRNNCell()
    row.add(rnn.DropoutCell(0.5))
    exe = row.unroll(2, mx.sym.Variable("data"))[0].simple_bind(mx.cpu(), data=(8, 2, 8))
    exe.arg_dict["data"][:] = 1
    assert set(np.unique(exe.forward(is_train=False)[0].asnumpy())) == {1.0}
    assert set(np.unique(exe.forward(is_train=True)[0].asnumpy())) == {0.0, 2.0}


@pytest.mark.parametrize("kind", [rnn.ConvRNNCell, rnn.ConvLSTMCell, rnn.ConvGRUCell])
def test_convolutional_cells_keep_the_image_size(kind):
    cell = kind((2, 3, 6, 6), num_hidden=4)
    out, states = cell.unroll(2, mx.sym.Variable("data"), merge_outputs=True)
    assert out.infer_shape(data=(2, 2, 3, 6, 6))[1] == [(2, 2, 4, 6, 6)]
    exe = mx.sym.Group([out, *states]).simple_bind(mx.cpu(), data=(2, 2, 3, 6, 6))
    exe.forward(is_train=True)
    exe.backward([mx.nd.ones(o.shape) for o in exe.outputs])
    gates = {rnn.ConvRNNCell: 1, rnn.ConvLSTMCell: 4, rnn.ConvGRUCell: 3}[kind]
    name = f"{kind.__name__[:-4]}_i2h_weight"
    assert exe.arg_dict[name].shape == (4 * gates, 3, 3, 3)


def test_convolutional_cells_with_strides_and_dilation():
    cell = rnn.ConvRNNCell((2, 3, 8, 8), 4, i2h_kernel=(5, 5), i2h_stride=(2, 2), h2h_dilate=(2, 2))
    assert cell.state_shape == [(0, 4, 3, 3)]
    with pytest.raises(AssertionError, match="odd number"):
        rnn.ConvRNNCell((2, 3, 8, 8), 4, h2h_kernel=(2, 2))


def test_begin_states_as_input_variables():
    cell = rnn.LSTMCell(4)
    first = cell.begin_state(func=mx.sym.Variable)
    out, _ = cell(mx.sym.Variable("x"), first)
    assert "lstm_begin_state_0" in out.list_arguments()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: rnn.LSTMCell(4).unroll(2, None), "create input variables"),
        (lambda: rnn.LSTMCell(4).unroll(2, [mx.sym.Variable("x")]), "2 steps got 1 inputs"),
        (
            lambda: rnn.LSTMCell(4).unroll(2, mx.sym.Group([mx.sym.var("x"), mx.sym.var("y")])),
            "grouped symbol",
        ),
        (lambda: rnn.ZoneoutCell(rnn.FusedRNNCell(4)), "unfuse first"),
        (
            lambda: rnn.ZoneoutCell(rnn.BidirectionalCell(rnn.RNNCell(2), rnn.RNNCell(2))),
            "doesn't support zoneout",
        ),
        (lambda: rnn.ResidualCell(rnn.RNNCell(2)).base_cell.begin_state(), "modifier cells"),
    ],
)
def test_invalid_calls_raise(wrong, message):
    with pytest.raises(AssertionError, match=message):
        wrong()


def test_stepping_fused_and_bidirectional_cells_raises():
    for cell in (rnn.FusedRNNCell(4), rnn.BidirectionalCell(rnn.RNNCell(2), rnn.RNNCell(2))):
        with pytest.raises(NotImplementedError, match="Please use unroll"):
            cell(mx.sym.Variable("x"), [])
    with pytest.raises(ValueError, match="Unknown mode 'lstmm'"):
        rnn.FusedRNNCell(4, mode="lstmm")


def test_checkpoints_store_unpacked_weights_of_fused_cells(tmp_path):
    cell = rnn.FusedRNNCell(4, prefix="f_")
    out, _ = cell.unroll(3, mx.sym.Variable("data"), layout="TNC", merge_outputs=True)
    args = {"f_parameters": mx.nd.arange(16 * 2 + 16 * 4 + 32)}
    prefix = str(tmp_path / "f")
    rnn.do_rnn_checkpoint(cell, prefix, period=2)(0, out, args, {})
    assert not list(tmp_path.iterdir())
    rnn.do_rnn_checkpoint(cell, prefix, period=2)(1, out, args, {})
    assert "f_l0_i2h_f_weight" in mx.model.load_params(prefix, 2)[0]
    _, back, _ = rnn.load_rnn_checkpoint(cell, prefix, 2)
    np.testing.assert_array_equal(back["f_parameters"].asnumpy(), args["f_parameters"].asnumpy())
    _, parts, _ = rnn.load_rnn_checkpoint([cell.unfuse()], prefix, 2)
    assert parts["f_l0_i2h_weight"].shape == (16, 2)


def test_rnn_unroll_is_deprecated():
    with pytest.warns(UserWarning, match="deprecated"):
        outs, _ = rnn.rnn_unroll(rnn.RNNCell(4), 2, input_prefix="q_")
    assert outs[0].list_arguments()[0] == "q_t0_data"
