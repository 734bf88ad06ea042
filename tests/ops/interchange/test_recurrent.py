"""Recurrent layers with ONNX's options, compared with torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx

RNG = np.random.RandomState(0)
step_by_step = mx.nd._internal._onnx_rnn


def _normal(*shape: int) -> mx.nd.NDArray:
    return mx.nd.array(RNG.standard_normal(shape))


def test_lstm_equals_torch_in_both_directions() -> None:
    """Gates are in order i, o, f, c in ONNX, and i, f, c, o in torch."""
    layer = torch.nn.LSTM(3, 4, bidirectional=True)
    order = [0, 3, 1, 2]

    def stacked(name: str) -> mx.nd.NDArray:
        parts = [getattr(layer, f"{name}_l0{end}").detach() for end in ("", "_reverse")]
        rows = [p.reshape(4, 4, -1)[order].reshape(16, -1) for p in parts]
        return mx.nd.array(torch.stack(rows).numpy())

    bias = mx.nd.concat(stacked("bias_ih"), stacked("bias_hh"), dim=1).reshape((2, -1))
    data = _normal(5, 2, 3)
    out, last, cell = step_by_step(
        data,
        stacked("weight_ih"),
        stacked("weight_hh"),
        bias=bias,
        kind="lstm",
        activations="sigmoid,tanh,tanh,sigmoid,tanh,tanh",
        direction="bidirectional",
        given="bias",
    )
    wanted, (h, c) = layer(torch.from_numpy(data.asnumpy()))
    found = out.transpose((0, 2, 1, 3)).reshape((5, 2, 8)).asnumpy()
    np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last.asnumpy(), h.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(cell.asnumpy(), c.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_states_do_not_change_beyond_sequence_lengths() -> None:
    """Outputs beyond the sequence length are 0."""
    data, weight, again = _normal(3, 2, 2), _normal(1, 4, 2), _normal(1, 4, 4)
    lengths = mx.nd.array([1, 3], dtype="int32")
    out, last = step_by_step(
        data, weight, again, lengths=lengths, kind="rnn", activations="tanh", given="lengths"
    )
    np.testing.assert_array_equal(last[0, 0].asnumpy(), out[0, 0, 0].asnumpy())
    assert not out[1:, 0, 0].asnumpy().any()
    np.testing.assert_array_equal(last[0, 1].asnumpy(), out[2, 0, 1].asnumpy())


def test_gru_linear_before_reset() -> None:
    """Both forms give different results, and both have gradients."""
    data, weight, again, state = (
        _normal(2, 1, 2),
        _normal(1, 9, 2),
        _normal(1, 9, 3),
        _normal(1, 1, 3),
    )
    results = []
    for linear in (False, True):
        data.attach_grad()
        with mx.autograd.record():
            out, _ = step_by_step(
                data,
                weight,
                again,
                state=state,
                kind="gru",
                activations="sigmoid,tanh",
                linear_before_reset=linear,
                given="state",
            )
        out.backward()
        assert data.grad.norm().asscalar() > 0
        results.append(out.asnumpy())
    assert np.abs(results[0] - results[1]).max() > 1e-3


def test_unknown_activation_raises() -> None:
    """The error lists the valid ones."""
    with pytest.raises(mx.MXNetError, match=r"'swish'.*relu"):
        step_by_step(
            _normal(1, 1, 1), _normal(1, 1, 1), _normal(1, 1, 1), kind="rnn", activations="swish"
        )
