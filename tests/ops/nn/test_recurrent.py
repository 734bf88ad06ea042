"""RNN options that MXNet lacks on the CPU: lengths, clipping, projection."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.ops.nn.recurrent import GATES
from tests.ops.nn.test_layers import infer

TIME, BATCH, FEATURES, HIDDEN = 5, 3, 2, 4


def _inputs(mode: str, layers: int, directions: int) -> list:
    count = 0
    for layer in range(layers):
        width = FEATURES if layer == 0 else HIDDEN * directions
        count += directions * GATES[mode] * HIDDEN * (width + HIDDEN + 2)
    rng = np.random.RandomState(0)
    shapes = [(TIME, BATCH, FEATURES), (count,), (layers * directions, BATCH, HIDDEN)]
    shapes += shapes[2:] * (mode == "lstm")
    return [mx.nd.array(rng.uniform(-1, 1, s)) for s in shapes]


@pytest.mark.parametrize(("mode", "clip"), [*((m, None) for m in sorted(GATES)), ("lstm", 100.0)])
def test_use_sequence_length_equals_shortened_sequences(mode: str, clip: float | None) -> None:
    lengths = [2, 5, 1]
    options = {"mode": mode, "num_layers": 2, "bidirectional": True, "state_size": HIDDEN}
    data, weights, *states = _inputs(mode, 2, 2)
    more = {} if clip is None else {"lstm_state_clip_min": -clip, "lstm_state_clip_max": clip}
    together = mx.nd.RNN(
        data, weights, *states, mx.nd.array(lengths), state_outputs=True,
        use_sequence_length=True, **options, **more,
    )  # fmt: skip
    for i, length in enumerate(lengths):
        own = [s[:, i : i + 1] for s in states]
        alone = mx.nd.RNN(data[:length, i : i + 1], weights, *own, state_outputs=True, **options)
        found = together[0].asnumpy()[:, i]
        np.testing.assert_allclose(found[:length], alone[0].asnumpy()[:, 0], rtol=1e-4, atol=1e-5)
        assert (found[length:] == 0).all()
        for part, whole in zip(alone[1:], together[1:], strict=True):
            np.testing.assert_allclose(
                whole.asnumpy()[:, i], part.asnumpy()[:, 0], rtol=1e-4, atol=1e-5
            )


def test_lstm_state_clipping_bounds_the_cell_state() -> None:
    bounds = {"lstm_state_clip_min": -0.1, "lstm_state_clip_max": 0.05}
    cell = mx.nd.RNN(
        *_inputs("lstm", 1, 1), mode="lstm", num_layers=1, state_size=HIDDEN, state_outputs=True,
        **bounds,
    )[2].asnumpy()  # fmt: skip
    assert cell.min() >= np.float32(-0.1) and cell.max() <= np.float32(0.05)


def test_lstm_projection() -> None:
    ones = mx.nd.ones((1, 1, 1))
    # Four gates of two units: 8 input and 8 state weights, 2 of the projection, 16 biases.
    out = mx.nd.RNN(
        ones, mx.nd.ones((34,)), mx.nd.zeros((1, 1, 1)), mx.nd.zeros((1, 1, 2)), mode="lstm",
        num_layers=1, state_size=2, projection_size=1,
    )  # fmt: skip
    gate = 1 / (1 + np.exp(-3.0))
    assert out.asscalar() == pytest.approx(2 * gate * np.tanh(gate * np.tanh(3.0)), rel=1e-5)


def test_infer_shape_of_rnn() -> None:
    options = {"mode": "lstm", "num_layers": 2, "state_size": 5, "bidirectional": True}
    ins, outs = infer("RNN", (3, -1, 4), [None] * 3, state_outputs=True, **options)
    assert ins[1:] == [(1120,), (4, -1, 5), (4, -1, 5)]
    assert outs == [(3, -1, 10), (4, -1, 5), (4, -1, 5)]


def test_wrong_parameter_vector_raises() -> None:
    with pytest.raises(MXNetError, match="need"):
        mx.nd.RNN(
            mx.nd.ones((1, 1, 1)), mx.nd.ones((5,)), mx.nd.ones((1, 1, 1)), mode="gru",
            num_layers=1, state_size=1,
        )  # fmt: skip
