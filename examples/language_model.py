"""An LSTM language model: learn the letters of a text, then write new text.

    python examples/language_model.py --epochs 30
    python examples/language_model.py --text my_book.txt

Without a file, the text is made up from a small grammar, so that errors are easy to see.
"""

from __future__ import annotations

import argparse
import math
import pathlib
from collections.abc import Sequence

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn, rnn


def make_text(sentences: int = 2000) -> str:
    """Return sentences such as "the old cat sees one bird."."""
    random = np.random.default_rng(0)
    words = ["the one", "old red big", "cat dog bird", "sees hears", "the one", "cat dog bird"]
    choices = [group.split() for group in words]
    return " ".join(" ".join(map(random.choice, choices)) + "." for _ in range(sentences))


class LanguageModel(gluon.Block):
    """Predicts the next letter from the letters before it."""

    def __init__(self, vocabulary: int, hidden: int) -> None:
        super().__init__()
        with self.name_scope():
            self.embedding = nn.Embedding(vocabulary, 32)
            self.lstm = rnn.LSTM(hidden, input_size=32)
            self.decoder = nn.Dense(vocabulary, in_units=hidden, flatten=False)

    def forward(self, letters: nd.NDArray, state: list[nd.NDArray]):
        """Return scores of shape (time, batch, vocabulary), and the state after the last step."""
        output, state = self.lstm(self.embedding(letters), state)
        return self.decoder(output), state


def generate(net: LanguageModel, alphabet: list[str], length: int) -> str:
    """Sample `length` letters, each from the distribution after the letters before it."""
    state, letter, text = net.lstm.begin_state(1), nd.zeros((1, 1)), []
    for _ in range(length):
        scores, state = net(letter, state)
        letter = nd.random.multinomial(nd.softmax(scores[0])).reshape((1, 1))
        text.append(alphabet[int(letter.asscalar())])
    return "".join(text)


def main(arguments: Sequence[str] | None = None) -> float:
    """Train by truncated backpropagation through time; return the final perplexity."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--text", type=pathlib.Path, help="a text file to learn from")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--steps", type=int, default=35, help="letters per backward pass")
    options = parser.parse_args(arguments)

    mx.random.seed(0)
    text = options.text.read_text("utf-8") if options.text else make_text()
    alphabet = sorted(set(text))
    codes = np.array([alphabet.index(letter) for letter in text], dtype="float32")
    streams = nd.array(codes[: len(codes) // 32 * 32].reshape(32, -1).T)  # (time, batch)

    net = LanguageModel(len(alphabet), options.hidden)
    net.initialize(mx.init.Xavier())
    parameters = net.collect_params()
    trainer = gluon.Trainer(parameters, "adam", {"learning_rate": 0.01})
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    perplexity = math.inf
    for epoch in range(1, options.epochs + 1):
        state, mean_loss = net.lstm.begin_state(32), mx.metric.Loss()
        for start in range(0, len(streams) - options.steps - 1, options.steps):
            inputs = streams[start : start + options.steps]
            targets = streams[start + 1 : start + options.steps + 1]
            state = [part.detach() for part in state]
            with autograd.record():
                scores, state = net(inputs, state)
                loss = loss_fn(scores.reshape((-3, 0)), targets.reshape((-1,))).mean()
            loss.backward()
            gluon.utils.clip_global_norm([p.grad() for p in parameters.values()], 1.0)
            trainer.step(1)
            mean_loss.update(None, loss)
        perplexity = math.exp(mean_loss.get()[1])
        print(f"epoch {epoch}: perplexity {perplexity:.2f}")
    print(generate(net, alphabet, 200))
    return perplexity


if __name__ == "__main__":
    main()
