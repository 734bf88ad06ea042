"""Record small recurrent models as MXNet 1.9.1 exports them: symbols, parameters, data, results.

Run it with MXNet 1.9.1: ``python tests/golden/record/record_recurrent_models.py``.
"""

from pathlib import Path

import numpy as np

import mxnet as mx

DATA = Path(__file__).resolve().parents[1] / "data" / "recurrent_models"


def networks():
    """Return networks by name, each with the shape of its data."""
    rnn, nn = mx.gluon.rnn, mx.gluon.nn
    dense = lambda: nn.Dense(3, prefix="out_")  # noqa: E731
    stack = rnn.HybridSequentialRNNCell(prefix="stack_")
    with stack.name_scope():
        stack.add(rnn.LSTMCell(4, prefix="a_"))
        stack.add(rnn.ResidualCell(rnn.GRUCell(4, prefix="b_")))
    return {
        "lstm": ([rnn.LSTM(6, prefix="lstm_"), dense()], (5, 2, 4)),
        "gru": ([rnn.GRU(4, 2, bidirectional=True, prefix="gru_"), dense()], (5, 2, 4)),
        "rnn": ([rnn.RNN(4, activation="tanh", layout="NTC", prefix="rnn_"), dense()], (2, 5, 4)),
        "cells": ([Unroll(stack, 3)], (2, 3, 4)),
    }


class Unroll(mx.gluon.HybridBlock):
    """A cell over all steps."""

    def __init__(self, cell, length):
        super().__init__(prefix="unroll_")
        self.cell, self.length = cell, length

    def hybrid_forward(self, F, x):
        """Return the outputs of all steps."""
        return self.cell.unroll(self.length, x, merge_outputs=True)[0]


def main():
    """Export each network."""
    DATA.mkdir(exist_ok=True)
    mx.random.seed(0)
    rng = np.random.RandomState(0)
    for name, (layers, shape) in networks().items():
        net = mx.gluon.nn.HybridSequential(prefix="")
        net.add(*layers)
        net.initialize(mx.init.Uniform(0.5))
        net.hybridize()
        data = mx.nd.array(rng.standard_normal(shape))
        result = net(data)
        prefix = str(DATA / name)
        net.export(prefix)
        np.savez(prefix + ".npz", data=data.asnumpy(), result=result.asnumpy())


if __name__ == "__main__":
    main()
