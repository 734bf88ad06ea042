"""Gluon networks of users: attention, recurrent layers, shared parameters, own classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import mxnet as mx
from mxnet import gluon
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


class FusedAttention(nn.HybridBlock):
    """Attention of interleaved heads, whose three projections are one product."""

    def __init__(self, units: int, heads: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._heads = heads
        shapes = {"weight": (units, units), "bias": (units,)}
        for kind, shape in shapes.items():
            for name in ("query", "key", "value"):
                setattr(self, f"{name}_{kind}", self.params.get(f"{name}_{kind}", shape=shape))

    def _interleave(self, F: Any, parts: Any) -> Any:
        heads = [F.reshape(p, shape=(self._heads, -1, 0), reverse=True) for p in parts]
        return F.reshape(F.concat(*heads, dim=1), shape=(-1, 0), reverse=True)

    def hybrid_forward(self, F: Any, x: Any, lengths: Any, **p: Any) -> Any:
        names = ("query", "key", "value")
        weight = self._interleave(F, [p[f"{n}_weight"] for n in names])
        bias = self._interleave(F, [F.expand_dims(p[f"{n}_bias"], axis=1) for n in names])
        units = 3 * self.query_bias.shape[0]
        qkv = F.FullyConnected(
            x, weight, F.reshape(bias, shape=(-1,)), num_hidden=units, flatten=False
        )
        scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=self._heads)
        lengths = F.broadcast_axis(F.expand_dims(lengths, axis=1), axis=1, size=self._heads)
        lengths = F.reshape(lengths, shape=(-1, 0), reverse=True)
        weights = F.softmax(scores, lengths, axis=-1, use_length=True)
        return F.contrib.interleaved_matmul_selfatt_valatt(qkv, weights, heads=self._heads)


class Encoder(nn.HybridBlock):
    """Words and their positions, and a list of cells for sequences of several lengths."""

    def __init__(self, vocabulary: int = 12, units: int = 8, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.words = nn.HybridSequential()
            self.words.add(nn.Embedding(vocabulary, units))
            self.positions = nn.Embedding(20, units)
            self.cells = nn.HybridSequential()
            for _ in range(3):
                self.cells.add(FusedAttention(units, 2))

    def hybrid_forward(self, F: Any, words: Any, lengths: Any) -> Any:
        x = F.transpose(self.words(words), axes=(1, 0, 2))
        steps = F.contrib.arange_like(x, axis=0)
        x = F.broadcast_add(x, F.expand_dims(self.positions(steps), axis=1))
        rows = F.broadcast_add(F.reshape(lengths, shape=(-1, 1)), F.reshape(steps * 0, (1, -1)))
        rows = F.cast(rows, dtype="int32")
        for cell in self.cells:
            x = cell(x, rows)
        return F.SequenceMask(x, lengths, use_sequence_length=True)


class Predictor(nn.HybridBlock):
    """One convolution."""

    def __init__(self, channels: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.predictor = nn.Conv2D(channels, 3, padding=1)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.predictor(x)


class Anchors(nn.HybridBlock):
    """Boxes for a feature map of up to 16 by 16."""

    def __init__(self, stride: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        y, x = np.mgrid[:16, :16]
        size = np.full_like(x, 2 * stride)
        boxes = np.stack([stride * x, stride * y, size, size], -1)[None].astype("float32")
        self.anchors = self.params.get_constant("anchors", boxes)

    def hybrid_forward(self, F: Any, x: Any, anchors: Any) -> Any:
        return F.reshape(F.slice_like(anchors, F.slice_axis(
            F.transpose(x * 0, axes=(0, 2, 3, 1)), axis=3, begin=0, end=1) * 0, axes=(1, 2)
        ), shape=(1, -1, 4))  # fmt: skip


class Detector(nn.HybridBlock):
    """Three feature maps of a symbol, lists of predictors, and a suppression for each class."""

    def __init__(self, classes: int = 3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        data, outputs = mx.sym.var("data"), []
        x = data
        for i in range(3):
            for j in range(2):
                name = f"stage{i + 1}_conv{j + 1}"
                step = {"stride": (2, 2)} if j else {}
                x = mx.sym.Convolution(x, num_filter=4 + 2 * i, kernel=(3, 3), pad=(1, 1),
                                       name=name, **step)  # fmt: skip
                x = mx.sym.Activation(x, act_type="relu", name=f"stage{i + 1}_relu{j + 1}")
            outputs.append(x)
        self._classes = classes
        with self.name_scope():
            self.features = gluon.SymbolBlock(mx.sym.Group(outputs), data)
            self.scores, self.boxes, self.anchors = (nn.HybridSequential() for _ in range(3))
            for i in range(3):
                self.scores.add(Predictor(classes + 1))
                self.boxes.add(Predictor(4))
                self.anchors.add(Anchors(2 << i))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        features = self.features(x)

        def collect(blocks: Any) -> list[Any]:
            maps = [
                F.transpose(b(f), axes=(0, 2, 3, 1)) for b, f in zip(blocks, features, strict=True)
            ]
            return [F.flatten(m) for m in maps]

        scores = F.reshape(F.concat(*collect(self.scores), dim=1), (0, -1, self._classes + 1))
        offsets = F.reshape(F.concat(*collect(self.boxes), dim=1), (0, -1, 4))
        anchors = F.concat(*[a(f) for a, f in zip(self.anchors, features, strict=True)], dim=1)
        boxes = F.contrib.box_decode(offsets, anchors, 0.1, 0.1, 0.2, 0.2)
        scores = F.slice_axis(F.softmax(scores, axis=-1), axis=-1, begin=1, end=None)
        ids = F.broadcast_add(F.zeros_like(F.slice_axis(scores, axis=-1, begin=0, end=1)),
                              F.reshape(F.arange(self._classes), (1, 1, -1)))  # fmt: skip
        ids = F.where(scores > 0.01, ids, F.ones_like(ids) * -1)
        rows = [
            F.concat(*[F.slice_axis(t, axis=-1, begin=i, end=i + 1) for t in (ids, scores)], boxes,
                     dim=-1)
            for i in range(self._classes)
        ]  # fmt: skip
        rows = F.contrib.box_nms(F.concat(*rows, dim=1), overlap_thresh=0.45, valid_thresh=0.01,
                                 topk=30, id_index=0)  # fmt: skip
        return [F.slice_axis(rows, axis=2, begin=a, end=b) for a, b in ((0, 1), (1, 2), (2, 6))]


class Crossed(nn.HybridBlock):
    """An attribute with the name that the first block of a list would have beside it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.layer0 = nn.Dense(3, in_units=3)
            self.layer = nn.HybridSequential()
            self.layer.add(nn.Dense(3, in_units=3), nn.Dense(3, in_units=3))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.layer[1](self.layer0(x)) + x


def inception(width: int) -> Any:
    """Return branches of which two have the same structure."""
    block = nn.HybridConcurrent(axis=1) if hasattr(nn, "HybridConcurrent") else None
    block = block or gluon.contrib.nn.HybridConcurrent(axis=1)
    for first, last in ((width, None), (width + 2, width), (width + 1, 2 * width)):
        branch = nn.HybridSequential(prefix="")
        for i, channels in enumerate(filter(None, (first, last))):
            branch.add(nn.Conv2D(channels, 1 + 2 * i, padding=i, use_bias=False), nn.BatchNorm())
            branch.add(nn.Activation("relu"))
        block.add(branch)
    return block


class Inception(nn.HybridBlock):
    """Several blocks of branches."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.body = nn.HybridSequential()
            for width in (3, 4, 6, 8):
                self.body.add(inception(width))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.body(x)


class LockedLanguageModel(nn.HybridBlock):
    """Recurrent layers in a list, dropout of whole sequences, and states among the outputs."""

    def __init__(self, vocabulary: int = 20, units: int = 8, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.embedding = nn.HybridSequential()
            self.embedding.add(nn.Embedding(vocabulary, units), nn.Dropout(0.4, axes=(0,)))
            self.encoder = nn.HybridSequential()
            for _ in range(2):
                self.encoder.add(rnn.LSTM(units, input_size=units))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        x = self.embedding(x)
        states = []
        for layer in self.encoder:
            begin = layer.begin_state(0, func=F.zeros)
            x, state = layer(x, begin)
            x = F.Dropout(x, p=0.2, axes=(0,))
            states.append(state)
        return x, states


BLOCKS = {
    "crossed": (Crossed, [(2, 3)]),
    "detector": (Detector, [(2, 3, 32, 32)]),
    "encoder": (Encoder, [(2, 6), (2,)]),
    "inception": (Inception, [(2, 3, 8, 8)]),
    "locked_language_model": (LockedLanguageModel, [(5, 2)]),
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
