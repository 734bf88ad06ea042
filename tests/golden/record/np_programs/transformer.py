"""A transformer encoder that classifies sequences, hybridized, with multi-head attention."""

from __future__ import annotations

import math
from typing import Any

from . import fill, numbers, values


def make_net(mx: Any) -> Any:
    """Return the network for this MXNet."""
    gluon = mx.gluon
    nn = gluon.nn

    class MultiHead(gluon.HybridBlock):
        def __init__(self, hidden: int, heads: int) -> None:
            super().__init__()
            self.heads, self.scale = heads, 1 / math.sqrt(hidden // heads)
            self.q, self.k, self.v, self.o = (
                nn.Dense(hidden, use_bias=False, flatten=False) for _ in range(4)
            )

        def split(self, F: Any, x: Any) -> Any:
            x = F.npx.reshape(x, (-2, -2, self.heads, -1))
            return F.npx.reshape(F.np.transpose(x, (0, 2, 1, 3)), (-1, -2, -2), reverse=True)

        def hybrid_forward(self, F: Any, x: Any, mask: Any) -> Any:
            q, k, v = (self.split(F, layer(x)) for layer in (self.q, self.k, self.v))
            scores = F.npx.batch_dot(q, k, transpose_b=True) * self.scale
            mask = F.np.repeat(mask, self.heads, axis=0)
            weights = F.npx.softmax(F.np.where(mask, scores, -1e9 * F.np.ones_like(scores)))
            out = F.npx.reshape(F.npx.batch_dot(weights, v), (-1, self.heads, -2, -2), reverse=True)
            return self.o(F.npx.reshape(F.np.transpose(out, (0, 2, 1, 3)), (-2, -2, -1)))

    class Encoder(gluon.HybridBlock):
        def __init__(self, vocab: int, hidden: int, heads: int, classes: int) -> None:
            super().__init__()
            self.hidden = hidden
            self.embedding = nn.Embedding(vocab, hidden)
            self.attention = MultiHead(hidden, heads)
            self.ln1, self.ln2 = nn.LayerNorm(), nn.LayerNorm()
            self.ffn = nn.HybridSequential()
            self.ffn.add(nn.Dense(16, flatten=False, activation="relu"))
            self.ffn.add(nn.Dense(hidden, flatten=False))
            self.out = nn.Dense(classes)

        def hybrid_forward(self, F: Any, tokens: Any, positions: Any, mask: Any) -> Any:
            x = self.embedding(tokens) * math.sqrt(self.hidden) + positions
            x = self.ln1(x + self.attention(x, mask))
            x = self.ln2(x + self.ffn(x))
            return self.out(x.mean(axis=1))

    return Encoder(11, 8, 2, 3)


def train(mx: Any) -> list[list[float]]:
    """Return the loss of every step, eagerly and then hybridized, and the last outputs."""
    np, gluon = mx.np, mx.gluon
    tokens = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 0, 0], [9, 10, 1, 2, 0]], dtype="int32")
    lens = [5, 3, 4]
    mask = np.array([[[float(j < n) for j in range(5)]] * 5 for n in lens])
    labels = np.array([0, 2, 1])
    positions = np.array(values((1, 5, 8), 2, 1.0))
    history = []
    for hybridize in (False, True):
        net = make_net(mx)
        net.initialize(mx.init.Xavier())
        net(tokens, positions, mask)
        fill(mx, net)
        if hybridize:
            net.hybridize()
        loss = gluon.loss.SoftmaxCELoss()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
        for _ in range(4):
            with mx.autograd.record():
                scores = net(tokens, positions, mask)
                l = loss(scores, labels)  # noqa: E741 (as the book has it)
            l.backward()
            trainer.step(len(lens))
            history.append(numbers(l))
        history.append(numbers(mx.npx.softmax(scores)))
    return history
