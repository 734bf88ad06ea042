"""More steps that `counts` looks at: BERT, SSD, GAN, sparse gradients, half precision, buckets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch import nn as tn

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.contrib import amp
from mxnet.gluon import nn

from .counted import (
    BATCH,
    LENGTH,
    UNITS,
    WORDS,
    Language,
    LanguageTorch,
    Row,
    Step,
    classes,
    classes_torch,
    pictures,
    pictures_torch,
    predict,
    predict_torch,
    text,
    text_torch,
    train,
    train_torch,
    vectors,
    vectors_torch,
)

SGD = {"learning_rate": 0.01, "momentum": 0.9}
SGD_TORCH = {"lr": 0.01, "momentum": 0.9, "foreach": True}

# -- BERT -----------------------------------------------------------------------------------------

WIDTH, HEADS, TOKENS, LAYERS, DROPOUT = 16, 2, 6, 2, 0.1


class Encoder(gluon.HybridBlock):
    """A layer of BERT: attention and two dense layers, each with dropout, added and normalized."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Dense(3 * WIDTH, flatten=False, in_units=WIDTH)
        self.out = nn.Dense(WIDTH, flatten=False, in_units=WIDTH)
        self.first, self.second = nn.LayerNorm(), nn.LayerNorm()
        self.wide = nn.Dense(4 * WIDTH, flatten=False, in_units=WIDTH)
        self.narrow = nn.Dense(WIDTH, flatten=False, in_units=4 * WIDTH)
        self.drop = nn.Dropout(DROPOUT)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the encoded sequence, (batch, tokens, width)."""
        parts = F.reshape(self.project(x), (0, 0, 3, HEADS, -1))
        parts = F.split(F.transpose(parts, (2, 0, 3, 1, 4)), 3, axis=0, squeeze_axis=True)
        q, k, v = (F.reshape(part, (-3, 0, 0)) for part in parts)
        weights = F.softmax(F.batch_dot(q, k, transpose_b=True) * (WIDTH // HEADS) ** -0.5)
        seen = F.batch_dot(self.drop(weights), v)
        seen = F.transpose(F.reshape(seen, (-4, -1, HEADS, 0, 0)), (0, 2, 1, 3))
        x = self.first(x + self.drop(self.out(F.reshape(seen, (0, 0, -3)))))
        y = self.narrow(F.LeakyReLU(self.wide(x), act_type="gelu"))
        return self.second(x + self.drop(y))


class Bert(gluon.HybridBlock):
    """Embeddings of words and positions, encoders, and classes from the first word."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(WORDS, WIDTH), nn.LayerNorm()
        self.places = self.params.get("places", shape=(1, TOKENS, WIDTH))
        self.drop, self.layers = nn.Dropout(DROPOUT), nn.HybridSequential()
        self.layers.add(*(Encoder() for _ in range(LAYERS)))
        self.pool = nn.Dense(WIDTH, activation="tanh", in_units=WIDTH)
        self.head = nn.Dense(BATCH, in_units=WIDTH)

    def hybrid_forward(self, F: Any, x: Any, places: Any) -> Any:
        """Return scores of classes."""
        x = self.drop(self.norm(F.broadcast_add(self.words(x), places)))
        x = self.layers(x)
        return self.head(self.pool(F.squeeze(F.slice_axis(x, axis=1, begin=0, end=1), axis=1)))


class EncoderTorch(tn.Module):
    """The same in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.out = tn.Linear(WIDTH, 3 * WIDTH), tn.Linear(WIDTH, WIDTH)
        self.first, self.second = tn.LayerNorm(WIDTH), tn.LayerNorm(WIDTH)
        self.wide, self.narrow = tn.Linear(WIDTH, 4 * WIDTH), tn.Linear(4 * WIDTH, WIDTH)
        self.drop = tn.Dropout(DROPOUT)

    def forward(self, x: Tensor) -> Tensor:
        """Return the encoded sequence, (batch, tokens, width)."""
        q, k, v = self.project(x).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5).softmax(-1)
        seen = (self.drop(weights) @ v).transpose(1, 2).flatten(2)
        x = self.first(x + self.drop(self.out(seen)))
        return self.second(x + self.drop(self.narrow(F.gelu(self.wide(x)))))


class BertTorch(tn.Module):
    """The same in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = tn.Embedding(WORDS, WIDTH), tn.LayerNorm(WIDTH)
        self.places, self.drop = tn.Parameter(torch.zeros(1, TOKENS, WIDTH)), tn.Dropout(DROPOUT)
        self.layers = tn.Sequential(*(EncoderTorch() for _ in range(LAYERS)))
        self.pool = tn.Sequential(tn.Linear(WIDTH, WIDTH), tn.Tanh())
        self.head = tn.Linear(WIDTH, BATCH)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of classes."""
        x = self.layers(self.drop(self.norm(self.words(x) + self.places)))
        return self.head(self.pool(x[:, 0]))


def tokens() -> list[Any]:
    """Return a batch of sentences, (batch, tokens)."""
    return [mx.nd.arange(BATCH * TOKENS).reshape((BATCH, TOKENS))]


def tokens_torch() -> list[Tensor]:
    """Return a batch of sentences, (batch, tokens)."""
    return [torch.arange(BATCH * TOKENS).view(BATCH, TOKENS)]


# -- SSD ------------------------------------------------------------------------------------------

ANCHORS, CLASSES = 4, 3  # anchors of each position, and classes with the background


class Detector(gluon.HybridBlock):
    """Two convolutions, and a convolution each for classes and boxes of the anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.HybridSequential()
        for _ in range(2):
            self.body.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"))
            self.body.add(nn.MaxPool2D())
        self.classes = nn.Conv2D(ANCHORS * CLASSES, 3, padding=1)
        self.boxes = nn.Conv2D(ANCHORS * 4, 3, padding=1)

    def hybrid_forward(self, F: Any, x: Any) -> tuple[Any, Any]:
        """Return scores of classes, (batch, anchors, classes), and boxes, (batch, numbers)."""
        x = self.body(x)
        scores = F.transpose(self.classes(x), (0, 2, 3, 1))
        boxes = F.flatten(F.transpose(self.boxes(x), (0, 2, 3, 1)))
        return F.reshape(scores, (0, -1, CLASSES)), boxes


class DetectorTorch(tn.Module):
    """The same in torch."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[tn.Module] = []
        for before in (3, 8):
            layers += [tn.Conv2d(before, 8, 3, padding=1), tn.BatchNorm2d(8), tn.ReLU()]
            layers += [tn.MaxPool2d(2)]
        self.body = tn.Sequential(*layers)
        self.classes = tn.Conv2d(8, ANCHORS * CLASSES, 3, padding=1)
        self.boxes = tn.Conv2d(8, ANCHORS * 4, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of classes, (batch, anchors, classes), and boxes, (batch, numbers)."""
        x = self.body(x)
        scores = self.classes(x).permute(0, 2, 3, 1).reshape(len(x), -1, CLASSES)
        return scores, self.boxes(x).permute(0, 2, 3, 1).flatten(1)


class DetectionLoss(gluon.HybridBlock):
    """Cross-entropy of classes, and the absolute error of boxes that are not background."""

    def __init__(self) -> None:
        super().__init__()
        self.of_classes = gluon.loss.SoftmaxCrossEntropyLoss()
        self.of_boxes = gluon.loss.L1Loss()

    def hybrid_forward(
        self, F: Any, scores: Any, boxes: Any, labels: Any, targets: Any, mask: Any
    ) -> Any:
        """Return the loss of each sample."""
        return self.of_classes(scores, labels) + self.of_boxes(boxes * mask, targets * mask)


POSITIONS = 8 * 8 * ANCHORS


def train_ssd() -> Step:
    """Return a training step of the detector on given targets."""
    net, loss = Detector(), DetectionLoss()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    loss.hybridize()
    (x,), labels = pictures(), mx.nd.ones((BATCH, POSITIONS))
    targets, mask = mx.nd.ones((BATCH, POSITIONS * 4)), mx.nd.ones((BATCH, POSITIONS * 4))
    net(x)
    trainer = gluon.Trainer(net.collect_params(), "sgd", SGD)

    def step() -> None:
        with autograd.record():
            value = loss(*net(x), labels, targets, mask)
        value.backward()
        trainer.step(BATCH)

    return step


def train_ssd_torch() -> Step:
    """Return a training step of the detector on given targets."""
    net, (x,) = DetectorTorch(), pictures_torch()
    labels = torch.ones(BATCH, POSITIONS, dtype=torch.long)
    targets, mask = torch.ones(BATCH, POSITIONS * 4), torch.ones(BATCH, POSITIONS * 4)
    update = torch.optim.SGD(net.parameters(), **SGD_TORCH)

    def step() -> None:
        update.zero_grad()
        scores, boxes = net(x)
        entropy = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none")
        error = F.l1_loss(boxes * mask, targets * mask, reduction="none")
        (entropy.view(BATCH, -1).mean(1) + error.mean(1)).sum().backward()
        update.step()

    return step


# -- GAN ------------------------------------------------------------------------------------------

NOISE, POINTS = 8, 20


def generator() -> Any:
    """Return two dense layers that make samples of noise."""
    net = nn.HybridSequential()
    net.add(nn.Dense(32, activation="relu", in_units=NOISE), nn.Dense(POINTS, in_units=32))
    return net


def generator_torch() -> tn.Module:
    """Return two dense layers that make samples of noise."""
    return tn.Sequential(tn.Linear(NOISE, 32), tn.ReLU(), tn.Linear(32, POINTS))


def noise() -> list[Any]:
    """Return a batch of noise."""
    return [mx.nd.random.normal(shape=(BATCH, NOISE))]


def noise_torch() -> list[Tensor]:
    """Return a batch of noise."""
    return [torch.randn(BATCH, NOISE)]


def train_gan() -> Step:
    """Return a step of both networks: the discriminator's, then the generator's."""
    make, judge = generator(), nn.HybridSequential()
    judge.add(nn.Dense(32, in_units=POINTS), nn.LeakyReLU(0.2), nn.Dense(1, in_units=32))
    loss = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    for block in (make, judge, loss):
        block.initialize(mx.init.Xavier())
        block.hybridize()
    (z,), (real,) = noise(), vectors()
    yes, no = mx.nd.ones((BATCH, 1)), mx.nd.zeros((BATCH, 1))
    makers = gluon.Trainer(make.collect_params(), "adam", {"learning_rate": 0.001})
    judges = gluon.Trainer(judge.collect_params(), "adam", {"learning_rate": 0.001})

    def step() -> None:
        with autograd.record():
            value = loss(judge(real), yes) + loss(judge(make(z).detach()), no)
        value.backward()
        judges.step(BATCH)
        with autograd.record():
            value = loss(judge(make(z)), yes)
        value.backward()
        makers.step(BATCH)

    return step


def train_gan_torch() -> Step:
    """Return a step of both networks: the discriminator's, then the generator's."""
    make = generator_torch()
    judge = tn.Sequential(tn.Linear(POINTS, 32), tn.LeakyReLU(0.2), tn.Linear(32, 1))
    (z,), (real,) = noise_torch(), vectors_torch()
    yes, no = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)
    makers = torch.optim.Adam(make.parameters(), lr=0.001, foreach=True)
    judges = torch.optim.Adam(judge.parameters(), lr=0.001, foreach=True)
    loss = F.binary_cross_entropy_with_logits

    def step() -> None:
        judges.zero_grad()
        (loss(judge(real), yes) + loss(judge(make(z).detach()), no)).backward()
        judges.step()
        makers.zero_grad()
        loss(judge(make(z)), yes).backward()
        makers.step()

    return step


# -- matrix factorization -------------------------------------------------------------------------

USERS, ITEMS, FACTORS = 40, 30, 8


class Factorization(gluon.HybridBlock):
    """The product of vectors of a user and an item; gradients have the rows that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(USERS, FACTORS, sparse_grad=True)
        self.items = nn.Embedding(ITEMS, FACTORS, sparse_grad=True)

    def hybrid_forward(self, F: Any, user: Any, item: Any) -> Any:
        """Return a score for each pair."""
        return F.sum(self.users(user) * self.items(item), axis=1)


class FactorizationTorch(tn.Module):
    """The same in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.users = tn.Embedding(USERS, FACTORS, sparse=True)
        self.items = tn.Embedding(ITEMS, FACTORS, sparse=True)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        """Return a score for each pair."""
        return (self.users(user) * self.items(item)).sum(1)


def pairs() -> list[Any]:
    """Return users and items."""
    return [mx.nd.array(range(BATCH)), mx.nd.array(range(BATCH))]


def pairs_torch() -> list[Tensor]:
    """Return users and items."""
    return [torch.arange(BATCH), torch.arange(BATCH)]


# -- half precision -------------------------------------------------------------------------------


def mixed(prepare: Callable[[], Step]) -> Callable[[], Step]:
    """Return what makes a step in mixed precision, with bfloat16."""

    def prepare_mixed() -> Step:
        with amp.amp.mixed_precision("bfloat16"):
            inner = prepare()

        def step() -> Any:
            with amp.amp.mixed_precision("bfloat16"):
                return inner()

        return step

    return prepare_mixed


def mixed_torch(prepare: Callable[[], Step]) -> Callable[[], Step]:
    """Return what makes a step in mixed precision, with bfloat16."""

    def prepare_mixed() -> Step:
        inner, device = prepare(), torch.get_default_device().type

        def step() -> Any:
            with torch.autocast(device, torch.bfloat16):
                return inner()

        return step

    return prepare_mixed


def convolutions() -> Any:
    """Return two convolutions with normalization, and a dense layer."""
    net = nn.HybridSequential()
    for _ in range(2):
        net.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(10))
    return net


def convolutions_torch() -> tn.Module:
    """Return the network of `convolutions`."""
    layers: list[tn.Module] = []
    for before in (3, 8):
        layers += [tn.Conv2d(before, 8, 3, padding=1), tn.BatchNorm2d(8), tn.ReLU()]
    return tn.Sequential(*layers, tn.AdaptiveAvgPool2d(1), tn.Flatten(), tn.Linear(8, 10))


# -- buckets --------------------------------------------------------------------------------------

BUCKETS = (3, LENGTH)


def bucket_symbol(length: int) -> tuple[Any, Sequence[str], Sequence[str]]:
    """Return the symbol of one length: embedding, LSTM and scores of the next words."""
    words = mx.sym.Embedding(mx.sym.var("data"), input_dim=WORDS, output_dim=UNITS, name="words")
    cell = mx.rnn.FusedRNNCell(UNITS, mode="lstm", prefix="lstm_")
    outputs, _ = cell.unroll(length, words, layout="TNC", merge_outputs=True)
    rows = mx.sym.reshape(outputs, shape=(-1, UNITS))
    scores = mx.sym.FullyConnected(rows, num_hidden=WORDS, name="head")
    label = mx.sym.reshape(mx.sym.var("softmax_label"), shape=(-1,))
    return mx.sym.SoftmaxOutput(scores, label, name="softmax"), ("data",), ("softmax_label",)


def train_buckets() -> Step:
    """Return a step of each length of a `BucketingModule`."""
    module = mx.mod.BucketingModule(
        bucket_symbol, default_bucket_key=max(BUCKETS), context=mx.current_context()
    )
    batches = []
    for length in BUCKETS:
        words = mx.nd.arange(length * BATCH).reshape((length, BATCH))
        batches.append(
            mx.io.DataBatch(
                [words],
                [words],
                bucket_key=length,
                provide_data=[mx.io.DataDesc("data", words.shape, layout="TN")],
                provide_label=[mx.io.DataDesc("softmax_label", words.shape, layout="TN")],
            )
        )
    module.bind(batches[-1].provide_data, batches[-1].provide_label)
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer_params=dict(SGD))

    def step() -> None:
        for batch in batches:
            module.forward_backward(batch)
            module.update()

    return step


def train_buckets_torch() -> Step:
    """Return a step of each length."""
    net = LanguageTorch(tn.LSTM)
    batches = [torch.arange(length * BATCH).view(length, BATCH) for length in BUCKETS]
    update = torch.optim.SGD(net.parameters(), **SGD_TORCH)

    def step() -> None:
        for words in batches:
            update.zero_grad()
            F.cross_entropy(net(words), words.flatten()).backward()
            update.step()

    return step


ROWS = (
    Row("Bucketing, LSTM of two lengths", train_buckets, train_buckets_torch),
    Row(
        "LSTM language model, prediction",
        predict(lambda: Language(gluon.rnn.LSTM), text),
        predict_torch(lambda: LanguageTorch(tn.LSTM), text_torch),
    ),
    Row(
        "BERT, Adam, hybridized",
        train(Bert, tokens, classes, optimizer="adam", learning_rate=0.001),
        train_torch(BertTorch, tokens_torch, classes_torch, optimizer=torch.optim.Adam, lr=0.001),
    ),
    Row("BERT, prediction", predict(Bert, tokens), predict_torch(BertTorch, tokens_torch)),
    Row("SSD loss, hybridized", train_ssd, train_ssd_torch),
    Row(
        "SSD, prediction",
        predict(Detector, pictures),
        predict_torch(DetectorTorch, pictures_torch),
    ),
    Row("GAN, Adam, hybridized", train_gan, train_gan_torch),
    Row(
        "GAN, prediction",
        predict(generator, noise),
        predict_torch(generator_torch, noise_torch),
    ),
    Row(
        "Matrix factorization, sparse gradients",
        train(
            Factorization,
            pairs,
            lambda: mx.nd.ones(BATCH),
            loss=gluon.loss.L2Loss,
            learning_rate=0.01,
        ),
        train_torch(
            FactorizationTorch, pairs_torch, lambda: torch.ones(BATCH), loss=F.mse_loss, lr=0.01
        ),
    ),
    Row(
        "Matrix factorization, prediction",
        predict(Factorization, pairs),
        predict_torch(FactorizationTorch, pairs_torch),
    ),
    Row(
        "2 x (conv, BatchNorm, relu), bfloat16 AMP",
        mixed(train(convolutions, pictures, classes)),
        mixed_torch(train_torch(convolutions_torch, pictures_torch, classes_torch)),
    ),
    Row(
        "2 x (conv, BatchNorm, relu), bfloat16 AMP, prediction",
        mixed(predict(convolutions, pictures)),
        mixed_torch(predict_torch(convolutions_torch, pictures_torch)),
    ),
)
