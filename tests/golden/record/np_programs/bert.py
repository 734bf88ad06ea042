"""Pretraining steps of a small BERT: masked words and next sentences."""

from __future__ import annotations

import math
from typing import Any

from . import fill, numbers, values

VOCABULARY, HIDDENS, HEADS, LENGTH = 23, 8, 2, 7


def make_net(mx: Any) -> Any:
    """Return the model with both of its heads."""
    np, npx, nn = mx.np, mx.npx, mx.gluon.nn

    def masked_softmax(X: Any, valid_lens: Any) -> Any:
        shape = X.shape
        lengths = valid_lens.repeat(shape[1])
        X = npx.sequence_mask(
            X.reshape(-1, shape[-1]), lengths, use_sequence_length=True, value=-1e6, axis=1
        )
        return npx.softmax(X).reshape(shape)

    class MultiHeadAttention(nn.Block):
        def __init__(self, num_hiddens: int, num_heads: int, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.num_heads = num_heads
            self.W_q = nn.Dense(num_hiddens, use_bias=True, flatten=False)
            self.W_k = nn.Dense(num_hiddens, use_bias=True, flatten=False)
            self.W_v = nn.Dense(num_hiddens, use_bias=True, flatten=False)
            self.W_o = nn.Dense(num_hiddens, use_bias=True, flatten=False)

        def transpose_qkv(self, X: Any) -> Any:
            X = X.reshape(X.shape[0], X.shape[1], self.num_heads, -1)
            X = X.transpose(0, 2, 1, 3)
            return X.reshape(-1, X.shape[2], X.shape[3])

        def transpose_output(self, X: Any) -> Any:
            X = X.reshape(-1, self.num_heads, X.shape[1], X.shape[2])
            X = X.transpose(0, 2, 1, 3)
            return X.reshape(X.shape[0], X.shape[1], -1)

        def forward(self, X: Any, valid_lens: Any) -> Any:
            q, k, v = (self.transpose_qkv(w(X)) for w in (self.W_q, self.W_k, self.W_v))
            scores = npx.batch_dot(q, k, transpose_b=True) / math.sqrt(q.shape[-1])
            weights = masked_softmax(scores, valid_lens.repeat(self.num_heads, axis=0))
            return self.W_o(self.transpose_output(npx.batch_dot(weights, v)))

    class EncoderBlock(nn.Block):
        def __init__(self, num_hiddens: int, num_heads: int, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.attention = MultiHeadAttention(num_hiddens, num_heads)
            self.norm1 = nn.LayerNorm()
            self.ffn = nn.Sequential()
            self.ffn.add(
                nn.Dense(2 * num_hiddens, flatten=False, activation="relu"),
                nn.Dense(num_hiddens, flatten=False),
            )
            self.norm2 = nn.LayerNorm()

        def forward(self, X: Any, valid_lens: Any) -> Any:
            Y = self.norm1(X + self.attention(X, valid_lens))
            return self.norm2(Y + self.ffn(Y))

    class BERTModel(nn.Block):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.token_embedding = nn.Embedding(VOCABULARY, HIDDENS)
            self.segment_embedding = nn.Embedding(2, HIDDENS)
            self.pos_embedding = self.params.get("pos_embedding", shape=(1, LENGTH, HIDDENS))
            self.blks = nn.Sequential()
            for _ in range(2):
                self.blks.add(EncoderBlock(HIDDENS, HEADS))
            self.mlm = nn.Sequential()
            self.mlm.add(
                nn.Dense(HIDDENS, flatten=False, activation="relu"),
                nn.LayerNorm(),
                nn.Dense(VOCABULARY, flatten=False),
            )
            self.hidden = nn.Dense(HIDDENS, activation="tanh")
            self.nsp = nn.Dense(2)

        def forward(self, tokens: Any, segments: Any, valid_lens: Any, positions: Any) -> tuple:
            X = self.token_embedding(tokens) + self.segment_embedding(segments)
            X = X + self.pos_embedding.data(ctx=X.ctx)[:, : X.shape[1], :]
            for block in self.blks:
                X = block(X, valid_lens)
            count = positions.shape[1]
            batch = np.repeat(np.arange(0, X.shape[0]), count)
            masked = X[batch.astype("int32"), positions.reshape(-1).astype("int32")]
            masked = masked.reshape((X.shape[0], count, -1))
            return X, self.mlm(masked), self.nsp(self.hidden(X[:, 0, :]))

    return BERTModel()


def train(mx: Any) -> list[list[float]]:
    """Train a few steps; return both losses, and some of the encoded words at the end."""
    np, gluon = mx.np, mx.gluon
    net = make_net(mx)
    net.initialize(mx.init.Xavier())
    tokens = np.array(abs(values((3, LENGTH), 1, VOCABULARY - 1)).astype("int32"))
    segments = np.array([[0, 0, 0, 1, 1, 1, 1]] * 3)
    valid_lens = np.array([7, 5, 6])
    positions = np.array([[1, 5], [2, 3], [4, 0]])
    labels = np.array([[7, 3], [11, 20], [1, 0]])
    weights = np.array([[1, 1], [1, 1], [1, 0]])
    is_next = np.array([0, 1, 0])
    net(tokens, segments, valid_lens, positions)
    fill(mx, net)
    loss = gluon.loss.SoftmaxCELoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    history = []
    for _ in range(5):
        with mx.autograd.record():
            _, mlm_hat, nsp_hat = net(tokens, segments, valid_lens, positions)
            mlm = loss(
                mlm_hat.reshape((-1, VOCABULARY)), labels.reshape(-1), weights.reshape((-1, 1))
            )
            mlm_loss = mlm.sum() / (weights.sum() + 1e-8)
            nsp_loss = loss(nsp_hat, is_next).mean()
            step = mlm_loss + nsp_loss
        step.backward()
        trainer.step(1)
        history.append(numbers(mlm_loss, nsp_loss, step))
    encoded, _, _ = net(tokens, segments, valid_lens, positions)
    history.append(numbers(encoded[:, 0, :3], np.linalg.norm(encoded)))
    return history
