"""The optimizer of SVRG: who updates what."""

from __future__ import annotations

import mxnet as mx


def test_mean_gradients_are_assigned_and_weights_updated():
    optimizer = mx.optimizer.create(
        "_SVRGOptimizer",
        default_optimizer="sgd",
        learning_rate=0.5,
        param_idx2name={0: "a", 1: "a_full"},
    )
    weight, mean = mx.nd.ones(2), mx.nd.ones(2)
    for index, array in enumerate([weight, mean]):
        state = optimizer.create_state(index, array)
        optimizer.update(index, array, mx.nd.array([3, 4]), state)
    assert weight.asnumpy().tolist() == [-0.5, -1]
    assert mean.asnumpy().tolist() == [3, 4]
    assert type(optimizer.aux_opt).__name__ == "_AssignmentOptimizer"
