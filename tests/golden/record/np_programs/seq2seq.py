"""Sequence to sequence with a GRU and additive attention, masked by valid lengths."""

from __future__ import annotations

import math
from typing import Any

from . import fill, numbers


def masked_softmax(mx: Any, X: Any, valid_lens: Any) -> Any:
    """Return a softmax over the last axis that gives padding no weight."""
    npx, shape = mx.npx, X.shape
    lens = valid_lens.repeat(shape[1])
    flat = X.reshape(-1, shape[-1])
    masked = npx.sequence_mask(flat, lens, True, value=-1e6, axis=1)
    return npx.softmax(masked).reshape(shape)


def make_classes(mx: Any) -> tuple[Any, Any, Any]:
    """Return encoder, attention and decoder for this MXNet."""
    np, npx, gluon = mx.np, mx.npx, mx.gluon
    nn, rnn = gluon.nn, gluon.rnn

    class Encoder(gluon.Block):
        def __init__(self, vocab: int, size: int, hidden: int) -> None:
            super().__init__()
            self.embedding = nn.Embedding(vocab, size)
            self.rnn = rnn.GRU(hidden, 2)

        def forward(self, X: Any) -> Any:
            X = self.embedding(X).swapaxes(0, 1)
            state = self.rnn.begin_state(batch_size=X.shape[1], ctx=X.ctx)
            return self.rnn(X, state)

    class Attention(gluon.Block):
        def __init__(self, hidden: int) -> None:
            super().__init__()
            self.W_k = nn.Dense(hidden, use_bias=False, flatten=False)
            self.W_q = nn.Dense(hidden, use_bias=False, flatten=False)
            self.w_v = nn.Dense(1, use_bias=False, flatten=False)

        def forward(self, queries: Any, keys: Any, lens: Any) -> Any:
            queries, projected = self.W_q(queries), self.W_k(keys)
            features = np.tanh(np.expand_dims(queries, axis=2) + np.expand_dims(projected, axis=1))
            scores = np.squeeze(self.w_v(features), axis=-1)
            return npx.batch_dot(masked_softmax(mx, scores, lens), keys)

    class Decoder(gluon.Block):
        def __init__(self, vocab: int, size: int, hidden: int) -> None:
            super().__init__()
            self.attention = Attention(hidden)
            self.embedding = nn.Embedding(vocab, size)
            self.rnn = rnn.GRU(hidden, 2)
            self.dense = nn.Dense(vocab, flatten=False)

        def forward(self, X: Any, memory: Any, state: Any, lens: Any) -> Any:
            outputs = []
            for x in self.embedding(X).swapaxes(0, 1):
                query = np.expand_dims(state[0][-1], axis=1)
                context = self.attention(query, memory, lens)
                x = np.concatenate((context, np.expand_dims(x, axis=1)), axis=-1)
                out, state = self.rnn(x.swapaxes(0, 1), state)
                outputs.append(out)
            return self.dense(np.concatenate(outputs, axis=0)).swapaxes(0, 1), state

    return Encoder, Attention, Decoder


def clip(params: list, theta: float) -> float:
    """Scale gradients down to a common norm; return the norm that they had."""
    norm = math.sqrt(sum((p.grad() ** 2).sum() for p in params))
    if norm > theta:
        for param in params:
            param.grad()[:] *= theta / norm
    return norm


def train(mx: Any) -> list[list[float]]:
    """Return the loss and the clipped gradient norm of every step."""
    np, npx, gluon = mx.np, mx.npx, mx.gluon
    Encoder, _, Decoder = make_classes(mx)
    encoder, decoder = Encoder(9, 4, 6), Decoder(8, 4, 6)
    X = np.array([[1, 2, 3, 4], [5, 6, 0, 0], [7, 8, 3, 0]], dtype="int32")
    Y = np.array([[2, 3, 4, 5], [6, 7, 1, 0], [3, 1, 0, 0]], dtype="int32")
    X_lens, Y_lens = np.array([4, 2, 3]), np.array([4, 3, 2])
    decoder_in = np.concatenate([np.full((3, 1), 1, dtype="int32"), Y[:, :-1]], axis=1)
    for net in (encoder, decoder):
        net.initialize(mx.init.Xavier())
    memory, state = encoder(X)
    decoder(decoder_in, memory.swapaxes(0, 1), state, X_lens)
    fill(mx, encoder)
    fill(mx, decoder)
    loss = gluon.loss.SoftmaxCELoss()
    params = [*encoder.collect_params().values(), *decoder.collect_params().values()]
    trainer = gluon.Trainer(params, "adam", {"learning_rate": 0.02})
    history = []
    for _ in range(5):
        with mx.autograd.record():
            memory, state = encoder(X)
            y_hat, _ = decoder(decoder_in, memory.swapaxes(0, 1), state, X_lens)
            weights = npx.sequence_mask(np.ones((3, 4, 1)), Y_lens, True, axis=1)
            l = loss(y_hat, Y, weights)  # noqa: E741 (as the book has it)
        l.backward()
        norm = clip(params, 1.0)
        trainer.step(3)
        history.append(numbers(l, norm))
    return history
