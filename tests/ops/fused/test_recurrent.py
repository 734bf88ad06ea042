"""Recurrent operators on separate weights equal those on packed weights."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd

MODES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_steps_with_separate_weights_equal_rnn(mode, bidirectional):
    mx.random.seed(0)
    directions, rows = (2 if bidirectional else 1), MODES[mode] * 4
    matrices = [(rows, 3), (rows, 4)] * directions
    weights = [nd.random.normal(shape=s) for s in [*matrices, *[(rows,)] * (2 * directions)]]
    x = nd.random.normal(shape=(5, 2, 3))
    states = [nd.random.normal(shape=(directions, 2, 4)) for _ in range(1 + (mode == "lstm"))]
    sizes = {"state_size": 4, "num_layers": 1, "mode": mode, "bidirectional": bidirectional}
    sizes["state_outputs"] = True
    packed = nd.concat(*(w.reshape((-1,)) for w in weights), dim=0)
    wanted = nd.RNN(x, packed, *states, **sizes)
    made = nd._internal._rnn_unpacked(x, *states, *weights, num_states=len(states), **sizes)
    for first, second in zip(wanted, made, strict=True):
        np.testing.assert_allclose(first.asnumpy(), second.asnumpy(), rtol=1e-5, atol=1e-6)
