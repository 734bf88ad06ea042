"""Gluon networks of users: attention, recurrent layers, shared parameters, own classes."""

from __future__ import annotations

import math
from typing import Any

import mxnet as mx
from mxnet.gluon import nn, rnn


class SelfAttention(nn.HybridBlock):
    """Attention of a sequence to itself."""

    def __init__(self, units: int, heads: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._units, self._heads = units, heads
        with self.name_scope():
            self.query = nn.Dense(units, flatten=False, in_units=units)
            self.key = nn.Dense(units, flatten=False, in_units=units)
            self.value = nn.Dense(units, flatten=False, in_units=units)
            self.output = nn.Dense(units, flatten=False, in_units=units)
            self.dropout = nn.Dropout(0.1)

    def _split(self, F: Any, x: Any) -> Any:
        x = F.reshape(x, shape=(0, 0, self._heads, -1))
        x = F.transpose(x, axes=(0, 2, 1, 3))
        return F.reshape(x, shape=(-1, 0, 0), reverse=True)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        query, key, value = (self._split(F, f(x)) for f in (self.query, self.key, self.value))
        scores = F.batch_dot(query, key, transpose_b=True) / math.sqrt(self._units / self._heads)
        weights = self.dropout(F.softmax(scores, axis=-1))
        context = F.batch_dot(weights, value)
        context = F.reshape(context, shape=(-1, self._heads, 0, 0), reverse=True)
        context = F.transpose(context, axes=(0, 2, 1, 3))
        return self.output(F.reshape(context, shape=(0, 0, -1)))


class EncoderLayer(nn.HybridBlock):
    """Attention and two dense layers, each added to its input and normalized."""

    def __init__(self, units: int, hidden: int, heads: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.attention = SelfAttention(units, heads)
            self.norm1 = nn.LayerNorm(in_channels=units)
            self.ffn1 = nn.Dense(hidden, flatten=False, in_units=units)
            self.act = nn.GELU()
            self.ffn2 = nn.Dense(units, flatten=False, in_units=hidden)
            self.norm2 = nn.LayerNorm(in_channels=units)
            self.dropout = nn.Dropout(0.1)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        x = self.norm1(x + self.dropout(self.attention(x)))
        return self.norm2(x + self.dropout(self.ffn2(self.act(self.ffn1(x)))))


class Bert(nn.HybridBlock):
    """Word, type and position embeddings, and an encoder."""

    def __init__(
        self, vocabulary: int = 30, units: int = 16, layers: int = 2, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.word_embed = nn.Embedding(vocabulary, units)
            self.token_type_embed = nn.Embedding(2, units)
            self.position_weight = self.params.get("position_weight", shape=(6, units))
            self.norm = nn.LayerNorm(in_channels=units)
            self.layers = nn.HybridSequential()
            for _ in range(layers):
                self.layers.add(EncoderLayer(units, 4 * units, 4))
            self.pooler = nn.Dense(units, activation="tanh", in_units=units)

    def hybrid_forward(self, F: Any, inputs: Any, token_types: Any, position_weight: Any) -> Any:
        x = self.word_embed(inputs) + self.token_type_embed(token_types)
        x = F.broadcast_add(x, F.expand_dims(position_weight, axis=0))
        x = self.layers(self.norm(x))
        first = F.slice_axis(x, axis=1, begin=0, end=1)
        return x, self.pooler(first)


class LanguageModel(nn.HybridBlock):
    """An embedding, two recurrent layers, and scores by the embedding's own weights."""

    def __init__(self, vocabulary: int = 20, units: int = 8, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.embedding = nn.Embedding(vocabulary, units)
            self.encoder = rnn.LSTM(units, num_layers=2, dropout=0.2, input_size=units)
            self.decoder = nn.Dense(
                vocabulary, flatten=False, in_units=units, params=self.embedding.params
            )

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.decoder(self.encoder(self.embedding(x)))


class SqueezeExcitation(nn.HybridBlock):
    """Scales channels by what a small network makes of their means."""

    def __init__(self, channels: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.down = nn.Dense(channels // 4, in_units=channels)
        self.up = nn.Dense(channels, in_units=channels // 4)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        w = F.contrib.AdaptiveAvgPooling2D(x, output_size=1)
        w = F.Activation(self.down(w), act_type="relu")
        w = F.sigmoid(self.up(w))
        return F.broadcast_mul(x, F.expand_dims(F.expand_dims(w, axis=2), axis=2))


class Mixed(nn.HybridBlock):
    """Layers of many kinds, a block that is called twice, and a parameter of its own."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.stem = nn.HybridSequential()
            self.stem.add(nn.Conv2D(8, 3, padding=1, in_channels=3), nn.PReLU(in_channels=1))
            self.stem.add(nn.InstanceNorm(in_channels=8, scale=True), nn.Swish())
            self.shared = nn.Conv2D(8, 3, padding=1, in_channels=8, activation="relu")
            self.se = SqueezeExcitation(8)
            self.norm = nn.GroupNorm(num_groups=2)
            self.up = nn.Conv2DTranspose(4, 4, strides=2, padding=1, in_channels=8)
            self.scale = self.params.get("scale", shape=(1, 4, 1, 1))
            self.flat = nn.HybridLambda("flatten")

    def hybrid_forward(self, F: Any, x: Any, scale: Any) -> Any:
        x = self.stem(x)
        x = self.shared(self.shared(x))
        x = self.norm(self.se(x) + x)
        x = F.broadcast_mul(self.up(x), scale)
        low, high = F.split(x, num_outputs=2, axis=1)
        return self.flat(F.concat(low, F.stop_gradient(high), dim=1))


BLOCKS = {
    "bert": (Bert, [(2, 6), (2, 6)]),
    "language_model": (LanguageModel, [(5, 2)]),
    "mixed": (Mixed, [(2, 3, 8, 8)]),
}


def initialized(build: Any, seed: int = 0) -> Any:
    """Return a network with random parameters, none of them zero."""
    mx.random.seed(seed)
    net = build()
    net.initialize(mx.init.Normal(0.3))
    for name, parameter in net.collect_params().items():
        if name.endswith(("gamma", "running_var")) and parameter.shape and min(parameter.shape) > 0:
            parameter.set_data(mx.nd.random.uniform(0.5, 1.5, parameter.shape))
    return net
