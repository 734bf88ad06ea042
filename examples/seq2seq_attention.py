"""Sequence to sequence with attention: learn to reverse sequences of digits.

    python examples/seq2seq_attention.py --iterations 800

A GRU encodes the digits, another one writes them backwards; attention weights show where it looks.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn, rnn

START, VOCABULARY = 10, 11  # digits 0 to 9, and the sign that starts an answer


class Seq2Seq(gluon.Block):
    """An encoder, a decoder cell, and dot-product attention between them."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        with self.name_scope():
            self.embedding = nn.Embedding(VOCABULARY, hidden)
            self.encoder = rnn.GRU(hidden // 2, layout="NTC", bidirectional=True)
            self.query = nn.Dense(hidden, use_bias=False)
            self.cell = rnn.GRUCell(hidden)
            self.output = nn.Dense(VOCABULARY)

    def forward(self, source: nd.NDArray, target: nd.NDArray | None = None):
        """Return scores and attention weights of each step.

        With `target` each step sees the right previous digit, otherwise the one it predicted.
        """
        memory = self.encoder(self.embedding(source))  # (batch, time, hidden)
        state = self.cell.begin_state(len(source))
        previous = nd.full((len(source),), START)
        scores, weights = [], []
        for step in range(source.shape[1]):
            query = self.query(state[0]).expand_dims(2)
            weight = nd.softmax(nd.batch_dot(memory, query), axis=1)
            context = nd.batch_dot(weight, memory, transpose_a=True).flatten()
            inputs = nd.concat(self.embedding(previous), context)
            output, state = self.cell(inputs, state)
            scores.append(self.output(nd.concat(output, context)))
            weights.append(weight[:, :, 0])
            previous = scores[-1].argmax(axis=1) if target is None else target[:, step]
        return nd.stack(*scores, axis=1), nd.stack(*weights, axis=1)


def main(arguments: Sequence[str] | None = None) -> float:
    """Train with teacher forcing; return the fraction of new sequences reversed correctly."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--length", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=64)
    options = parser.parse_args(arguments)

    mx.random.seed(0)
    random = np.random.default_rng(0)
    net = Seq2Seq(options.hidden)
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 5e-3})
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    for iteration in range(1, options.iterations + 1):
        digits = random.integers(10, size=(options.batch_size, options.length))
        source, target = nd.array(digits), nd.array(digits[:, ::-1])
        with autograd.record():
            scores, _ = net(source, target)
            loss = loss_fn(scores, target)
        loss.backward()
        trainer.step(options.batch_size)
        if iteration % 50 == 0:
            print(f"iteration {iteration}: loss {loss.mean().asscalar():.4f}")

    digits = random.integers(10, size=(200, options.length))
    scores, weights = net(nd.array(digits))
    answers = scores.argmax(axis=2).asnumpy().astype(int)
    accuracy = float((answers == digits[:, ::-1]).all(axis=1).mean())
    print("read ", *digits[0])
    print("wrote", *answers[0])
    for step, row in enumerate(weights[0].asnumpy()):
        print(
            f"  {answers[0, step]} looks at", "".join(" .:*#"[int(value * 4.99)] for value in row)
        )
    print(f"{accuracy:.1%} of new sequences reversed without a mistake")
    return accuracy


if __name__ == "__main__":
    main()
