"""Unrolled recurrent cells are fused to one kernel with equal results."""

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import rnn

STEPS, BATCH, WIDTH = 5, 3, 6


class Unrolled(gluon.HybridBlock):
    def __init__(self, cell, layout="NTC", merge=True, use=lambda F, outputs, states: outputs):
        super().__init__()
        self.cell, self._layout, self._merge, self._use = cell, layout, merge, use

    def hybrid_forward(self, F, x):
        options = {"layout": self._layout, "merge_outputs": self._merge}
        outputs, states = self.cell.unroll(STEPS, x, **options)
        return self._use(F, outputs, states)


def stacked(*cells):
    stack = rnn.HybridSequentialRNNCell()
    for cell in cells:
        stack.add(cell)
    return stack


def both_ways(left, right):
    return rnn.BidirectionalCell(left, right)


CELLS = {
    "LSTM": (1, lambda: rnn.LSTMCell(4)),
    "GRU": (1, lambda: rnn.GRUCell(4)),
    "tanh": (1, lambda: rnn.RNNCell(4)),
    "relu": (1, lambda: rnn.RNNCell(4, activation="relu")),
    "stacked": (2, lambda: stacked(rnn.LSTMCell(4), rnn.GRUCell(3))),
    "bidirectional": (2, lambda: both_ways(rnn.LSTMCell(4), rnn.LSTMCell(4))),
    "residual": (2, lambda: stacked(rnn.ResidualCell(rnn.LSTMCell(6)), rnn.GRUCell(6))),
    "stacked both ways": (
        4,
        lambda: stacked(
            both_ways(rnn.LSTMCell(4), rnn.GRUCell(4)), both_ways(rnn.LSTMCell(4), rnn.RNNCell(2))
        ),
    ),
}


def ready(net, layout="NTC"):
    mx.random.seed(3)
    net.initialize(mx.init.Normal(0.5))
    shape = (BATCH, STEPS, WIDTH) if layout == "NTC" else (STEPS, BATCH, WIDTH)
    x = nd.random.normal(shape=shape)
    x.attach_grad()
    return net, x


def as_list(outputs):
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def everything(net, x):
    """Return outputs of training and of inference, and all gradients."""
    with autograd.record():
        trained = as_list(net(x))
        total = sum(((out * out).sum() * (i + 1) for i, out in enumerate(trained)), nd.zeros(1))
    total.backward()
    grads = [p.grad() for p in net.collect_params().values() if p.grad_req != "null"]
    return [a.asnumpy() for a in [*trained, *as_list(net(x)), x.grad, *grads]]


def agree(left, right):
    for one, other in zip(left, right, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def rules(net, x):
    return net.compiled(x).rules


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("layout", ["NTC", "TNC"])
@pytest.mark.parametrize("name", CELLS)
def test_fused_cells_equal_unfused_results_and_gradients(name, layout, merge):
    count, make = CELLS[name]

    def use(F, outputs, states):
        return [outputs, *states] if merge else [*outputs, *states]

    net, x = ready(Unrolled(make(), layout, merge, use), layout)
    plain = everything(net, x)
    net.hybridize()
    for _ in range(3):
        agree(plain, everything(net, x))
    assert rules(net, x)["fuse_recurrent"] == count


def test_stacked_cells_are_fused_without_splitting_sequences():
    net, x = ready(Unrolled(CELLS["stacked both ways"][1](), "TNC"), "TNC")
    net.hybridize()
    operators = [n.op.name for n in net.compiled(x).after.nodes if n.op is not None]
    assert operators.count("_rnn_steps") == 4
    assert "SliceChannel" not in operators and "stack" not in operators


def test_fuse_recurrent_can_be_disabled(monkeypatch):
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "batch_projections")
    net, x = ready(Unrolled(rnn.LSTMCell(4)))
    net.hybridize()
    off = everything(net, x)
    assert "fuse_recurrent" not in rules(net, x)
    monkeypatch.setenv("MXNET_GRAPH_PASSES", "1")
    net.hybridize()
    agree(off, everything(net, x))
    assert rules(net, x)["fuse_recurrent"] == 1


@pytest.mark.parametrize("which", ["LSTMCell", "GRUCell", "RNNCell"])
def test_fused_symbolic_cells_train_equally_with_an_executor(which, monkeypatch):
    cell = mx.rnn.SequentialRNNCell()
    cell.add(getattr(mx.rnn, which)(4, prefix="a_"))
    left, right = (getattr(mx.rnn, which)(4, prefix=p) for p in ("l_", "r_"))
    cell.add(mx.rnn.BidirectionalCell(left, right))
    out = cell.unroll(STEPS, mx.sym.var("data"), merge_outputs=True)[0]

    def run(passes):
        monkeypatch.setenv("MXNET_GRAPH_PASSES", passes)
        exe = out.simple_bind(mx.cpu(), data=(BATCH, STEPS, WIDTH))
        mx.random.seed(0)
        for _, array in sorted(exe.arg_dict.items()):
            array[:] = nd.random.normal(0, 0.5, shape=array.shape)
        exe.forward(is_train=True)
        exe.backward(nd.ones(exe.outputs[0].shape))
        found = [exe.outputs[0], *(g for _, g in sorted(exe.grad_dict.items()))]
        return [a.asnumpy() for a in found], exe.compiled.rules

    plain, _ = run("0")
    fused, applied = run("1")
    agree(plain, fused)
    assert applied["fuse_recurrent"] == 3


def test_steps_fed_by_their_own_output_are_not_fused():
    class Decoder(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = rnn.LSTMCell(WIDTH)

        def hybrid_forward(self, F, x):
            out, states, outs = x, [F.zeros_like(x), F.zeros_like(x)], []
            for _ in range(4):
                out, states = self.cell(out, states)
                outs.append(out)
            return F.stack(*outs)

    net, _ = ready(Decoder())
    x = nd.random.normal(shape=(BATCH, WIDTH))
    x.attach_grad()
    plain = everything(net, x)
    net.hybridize()
    agree(plain, everything(net, x))
    assert "fuse_recurrent" not in rules(net, x)


def test_cells_with_consumed_intermediate_states_are_not_fused():
    class Collects(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = rnn.LSTMCell(4)

        def hybrid_forward(self, F, x):
            zeros = F.zeros((BATCH, 4))
            states, cells = [zeros, zeros], []
            for step in F.split(x, num_outputs=STEPS, axis=1, squeeze_axis=True):
                _, states = self.cell(step, states)
                cells.append(states[1])
            return F.stack(*cells)

    net, x = ready(Collects())
    plain = everything(net, x)
    net.hybridize()
    agree(plain, everything(net, x))
    assert "fuse_recurrent" not in rules(net, x)


def test_dropout_between_fused_cells_draws_the_same_numbers(monkeypatch):
    cells = [rnn.LSTMCell(4), rnn.DropoutCell(0.5), rnn.LSTMCell(4), rnn.DropoutCell(0.5)]
    net, x = ready(Unrolled(stacked(*cells, rnn.GRUCell(4)), merge=False))
    net(x)  # which draws the parameters

    def trained(passes):
        monkeypatch.setenv("MXNET_GRAPH_PASSES", passes)
        net.hybridize()
        mx.random.seed(5)
        with autograd.record():
            out = nd.stack(*net(x))
        return out.asnumpy()

    plain = trained("0")
    np.testing.assert_allclose(trained("1"), plain, rtol=1e-5, atol=1e-6)


def test_second_order_gradients_of_fused_cells():
    net, x = ready(Unrolled(rnn.LSTMCell(4)))

    def second():
        with autograd.record():
            total = (net(x) ** 2).sum()
            first = autograd.grad(total, [x], create_graph=True, retain_graph=True)[0]
            squared = (first**2).sum()
        squared.backward()
        return x.grad.asnumpy()

    plain = second()
    net.hybridize()
    np.testing.assert_allclose(second(), plain, rtol=1e-4, atol=1e-5)


def test_monitor_receives_every_step_of_fused_cells():
    out = mx.rnn.LSTMCell(4, prefix="a_").unroll(3, mx.sym.var("data"), merge_outputs=True)[0]
    exe = out.simple_bind(mx.cpu(), data=(BATCH, 3, WIDTH))
    seen = []
    exe.set_monitor_callback(lambda name, array: seen.append(name.decode()))
    exe.forward(is_train=True)
    assert {"a_t0_out_output", "a_t1_slice_output0", "a_t2_state_output"} <= set(seen)


def test_sequence_of_a_different_length_raises():
    net, x = ready(Unrolled(rnn.LSTMCell(4, input_size=WIDTH), "TNC"), "TNC")
    net.hybridize()
    net(x)
    with pytest.raises(mx.MXNetError):
        net(nd.ones((2 * STEPS, BATCH, WIDTH))).asnumpy()
