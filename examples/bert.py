"""A small BERT: masked words are guessed from both sides, then a classifier is tuned on top.

    python examples/bert.py --iterations 400

The language is generated: a subject, its verb in the right number, an object. The network must
look at the whole sentence to fill a gap, which is what self-attention is for.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

WORDS = ["[mask]", "[cls]", "a", "the", "many", "few", "big", "."]
WORDS += ["cat", "cats", "dog", "dogs", "bird", "birds"]
WORDS += ["sees", "see", "hears", "hear", "likes", "like"]
INDEX = {word: i for i, word in enumerate(WORDS)}
LENGTH = 9


def make_sentence(rng: np.random.Generator) -> tuple[list[str], int]:
    """Return a sentence of `LENGTH` words, and whether its subject is plural."""
    nouns, verbs = ("cat", "dog", "bird"), ("see", "hear", "like")
    plural = int(rng.integers(2))

    def phrase(plural: int) -> list[str]:
        article = rng.choice(["many", "few", "the"] if plural else ["a", "the"])
        return [str(article), "big", str(rng.choice(nouns)) + "s" * plural]

    verb = str(rng.choice(verbs)) + "s" * (1 - plural)
    return ["[cls]", *phrase(plural), verb, *phrase(int(rng.integers(2))), "."], plural


def make_batch(rng: np.random.Generator, count: int) -> tuple[nd.NDArray, nd.NDArray]:
    """Return sentences as numbers, and for each whether the subject is plural."""
    rows = [make_sentence(rng) for _ in range(count)]
    tokens = nd.array([[INDEX[word] for word in words] for words, _ in rows])
    return tokens, nd.array([plural for _, plural in rows])


class Layer(gluon.HybridBlock):
    """Self-attention and a feed-forward network, each added to its input and normalized."""

    def __init__(self, units: int, heads: int) -> None:
        super().__init__()
        self._heads, self._size = heads, units // heads
        with self.name_scope():
            self.qkv = nn.Dense(3 * units, flatten=False)
            self.join = nn.Dense(units, flatten=False)
            self.widen = nn.Dense(4 * units, flatten=False)
            self.narrow = nn.Dense(units, flatten=False)
            self.first_norm, self.second_norm = nn.LayerNorm(), nn.LayerNorm()

    def hybrid_forward(self, F, x):
        """Return the new representation of each word."""
        q, k, v = F.split(self.qkv(x), num_outputs=3, axis=2)
        q, k, v = (self._split_heads(F, part) for part in (q, k, v))
        scores = F.batch_dot(q, k, transpose_b=True) / math.sqrt(self._size)
        mixed = F.batch_dot(F.softmax(scores), v)
        mixed = F.reshape(mixed, shape=(-1, self._heads, LENGTH, self._size))
        mixed = F.reshape(F.transpose(mixed, axes=(0, 2, 1, 3)), shape=(0, 0, -1))
        x = self.first_norm(x + self.join(mixed))
        return self.second_norm(x + self.narrow(F.LeakyReLU(self.widen(x), act_type="gelu")))

    def _split_heads(self, F, part):
        part = F.reshape(part, shape=(0, 0, self._heads, self._size))
        return F.reshape(F.transpose(part, axes=(0, 2, 1, 3)), shape=(-1, LENGTH, self._size))


class BERT(gluon.HybridBlock):
    """An encoder with two heads: the word at each place, and the class of the sentence."""

    def __init__(self, units: int = 32, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        with self.name_scope():
            self.words = nn.Embedding(len(WORDS), units)
            self.places = self.params.get("places", shape=(1, LENGTH, units))
            self.layers = nn.HybridSequential()
            for _ in range(layers):
                self.layers.add(Layer(units, heads))
            self.guess = nn.Dense(len(WORDS), flatten=False)
            self.classify = nn.Dense(2)

    def hybrid_forward(self, F, tokens, places):
        """Return scores of words at each place, and scores of the sentence's class."""
        x = self.layers(F.broadcast_add(self.words(tokens), places))
        first = F.slice_axis(x, axis=1, begin=0, end=1)
        return self.guess(x), self.classify(first)


def mask(rng: np.random.Generator, tokens: nd.NDArray) -> tuple[nd.NDArray, nd.NDArray]:
    """Return the tokens with one in six hidden, and 1 where that is."""
    hidden = nd.array(rng.random(tokens.shape) < 1 / 6)
    hidden[:, 0] = 0
    return nd.where(hidden, nd.zeros_like(tokens), tokens), hidden


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Pretrain and tune; return the accuracy of hidden verbs' numbers and of the classifier."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=32)
    options = parser.parse_args(arguments)

    mx.random.seed(0)
    rng = np.random.default_rng(0)
    net = BERT()
    net.initialize(mx.init.Xavier(magnitude=2))
    net.hybridize()
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 2e-3})
    for i in range(1, options.iterations + 1):
        tokens, _ = make_batch(rng, options.batch_size)
        masked, hidden = mask(rng, tokens)
        with autograd.record():
            loss = loss_function(net(masked)[0], tokens, hidden.expand_dims(2))
        loss.backward()
        trainer.step(options.batch_size, ignore_stale_grad=True)
        if i % 100 == 0:
            print(f"iteration {i}: loss {loss.mean().asscalar() * 6:.3f} per hidden word")

    tokens, _ = make_batch(rng, 200)
    hidden = tokens.copy()
    hidden[:, 4] = INDEX["[mask]"]
    guesses = net(hidden)[0][:, 4].argmax(axis=1).asnumpy().astype(int)
    verbs = tokens[:, 4].asnumpy().astype(int)
    agreement = np.mean(
        [
            WORDS[g].endswith("s") == WORDS[v].endswith("s")
            for g, v in zip(guesses, verbs, strict=True)
        ]
    )
    sentence = " ".join(WORDS[int(t)] for t in hidden[0].asnumpy())
    print(f"{sentence}  ->  {WORDS[guesses[0]]}")
    print(f"hidden verbs of the right number: {agreement:.3f}")

    tuner = gluon.Trainer(net.classify.collect_params(), "adam", {"learning_rate": 1e-2})
    for _ in range(options.iterations // 4):
        tokens, plural = make_batch(rng, options.batch_size)
        with autograd.record():
            loss = loss_function(net(tokens)[1], plural)
        loss.backward()
        tuner.step(options.batch_size)
    tokens, plural = make_batch(rng, 200)
    right = (net(tokens)[1].argmax(axis=1) == plural).mean().asscalar()
    print(f"singular or plural subject, by a tuned output layer: accuracy {right:.3f}")
    return float(agreement), float(right)


if __name__ == "__main__":
    main()
