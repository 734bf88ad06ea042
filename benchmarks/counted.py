"""The steps that `counts` looks at: each in MXNext and in idiomatic PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch import nn as tn

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn

Step = Callable[[], Any]
SIZE = 32  # of pictures
BATCH = 2


class Row(NamedTuple):
    """One step on both sides; calling a side makes network, data and optimizer."""

    name: str
    ours: Callable[[], Step]
    torch: Callable[[], Step] | None


# -- steps ----------------------------------------------------------------------------------------


def train(
    make: Callable[[], Any],
    data: Callable[[], Sequence[Any]],
    label: Callable[[], Any],
    *,
    hybrid: bool = True,
    loss: Callable[[], Any] = gluon.loss.SoftmaxCrossEntropyLoss,
    optimizer: str = "sgd",
    **options: Any,
) -> Callable[[], Step]:
    """Return what makes a training step of Gluon."""

    def prepare() -> Step:
        net, criterion = make(), loss()
        net.initialize(mx.init.Xavier())
        if hybrid:
            net.hybridize()
            criterion.hybridize()
        inputs, target = data(), label()
        net(*inputs)
        settings = options or {"learning_rate": 0.01, "momentum": 0.9}
        trainer = gluon.Trainer(net.collect_params(), optimizer, settings)

        def step() -> None:
            with autograd.record():
                value = criterion(net(*inputs), target)
            value.backward()
            trainer.step(BATCH)

        return step

    return prepare


def train_torch(
    make: Callable[[], tn.Module],
    data: Callable[[], Sequence[Tensor]],
    label: Callable[[], Tensor],
    *,
    loss: Callable[..., Tensor] = F.cross_entropy,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
    **options: Any,
) -> Callable[[], Step]:
    """Return what makes a training step of torch."""

    def prepare() -> Step:
        net, inputs, target = make().train(), data(), label()
        settings = options or {"lr": 0.01, "momentum": 0.9}
        update = optimizer(net.parameters(), foreach=True, **settings)

        def step() -> None:
            update.zero_grad()
            loss(net(*inputs), target).backward()
            update.step()

        return step

    return prepare


def predict(make: Callable[[], Any], data: Callable[[], Sequence[Any]]) -> Callable[[], Step]:
    """Return what makes a prediction of a hybridized block."""

    def prepare() -> Step:
        net, inputs = make(), data()
        net.initialize(mx.init.Xavier())
        net.hybridize()
        return lambda: net(*inputs)

    return prepare


def predict_torch(
    make: Callable[[], tn.Module], data: Callable[[], Sequence[Tensor]]
) -> Callable[[], Step]:
    """Return what makes a prediction of torch."""

    def prepare() -> Step:
        net, inputs = make().eval(), data()

        def step() -> Any:
            with torch.no_grad():
                return net(*inputs)

        return step

    return prepare


# -- data -----------------------------------------------------------------------------------------


def pictures() -> list[Any]:
    """Return a batch of pictures."""
    return [mx.nd.random.normal(shape=(BATCH, 3, SIZE, SIZE))]


def pictures_torch() -> list[Tensor]:
    """Return a batch of pictures."""
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def classes() -> Any:
    """Return a label for each sample."""
    return mx.nd.array(range(BATCH))


def classes_torch() -> Tensor:
    """Return a label for each sample."""
    return torch.arange(BATCH)


# -- networks of pictures -------------------------------------------------------------------------


def conv_bn(before: int, after: int, kernel: int, stride: int = 1, groups: int = 1) -> list:
    """Return a convolution and its normalization."""
    convolution = tn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [convolution, tn.BatchNorm2d(after)]


class Residual(tn.Module):
    """The block of ResNet-18."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        first, second = conv_bn(before, after, 3, stride), conv_bn(after, after, 3)
        self.body = tn.Sequential(*first, tn.ReLU(), *second)
        short = conv_bn(before, after, 1, stride) if before != after else [tn.Identity()]
        self.short = tn.Sequential(*short)

    def forward(self, x: Tensor) -> Tensor:
        """Add what the two ways give."""
        return F.relu(self.body(x) + self.short(x))


def resnet18() -> tn.Module:
    """Return ResNet-18."""
    layers: list[tn.Module] = [*conv_bn(3, 64, 7, 2), tn.ReLU(), tn.MaxPool2d(3, 2, 1)]
    before = 64
    for after in (64, 128, 256, 512):
        layers += [Residual(before, after, 1 + (after > before)), Residual(after, after, 1)]
        before = after
    head = (tn.AdaptiveAvgPool2d(1), tn.Flatten(), tn.Linear(512, 1000))
    return tn.Sequential(*layers, *head)


class Inverted(tn.Module):
    """The block of MobileNetV2."""

    def __init__(self, before: int, after: int, factor: int, stride: int) -> None:
        super().__init__()
        wide = before * factor
        first, middle = conv_bn(before, wide, 1), conv_bn(wide, wide, 3, stride, wide)
        self.body = tn.Sequential(*first, tn.ReLU6(), *middle, tn.ReLU6(), *conv_bn(wide, after, 1))
        self.adds = stride == 1 and before == after

    def forward(self, x: Tensor) -> Tensor:
        """Add the input where it fits."""
        return x + self.body(x) if self.adds else self.body(x)


def mobilenet_v2() -> tn.Module:
    """Return MobileNetV2 of a quarter of the channels, as the model zoo has it."""
    widths = [32, 16, *[24] * 2, *[32] * 3, *[64] * 4, *[96] * 3, *[160] * 3, 320]
    channels = [int(n * 0.25) for n in widths]
    strides = {1: 1, 2: 2, 4: 2, 7: 2, 14: 2}
    layers: list[tn.Module] = [*conv_bn(3, channels[0], 3, 2), tn.ReLU6()]
    for i in range(1, len(channels)):
        factor = 1 if i == 1 else 6
        layers.append(Inverted(channels[i - 1], channels[i], factor, strides.get(i, 1)))
    layers += [*conv_bn(channels[-1], 1280, 1), tn.ReLU6(), tn.AdaptiveAvgPool2d(1)]
    return tn.Sequential(*layers, tn.Conv2d(1280, 1000, 1, bias=False), tn.Flatten())


def module_steps() -> Step:
    """Return a step of `Module`: four convolutions, each normalized and cut at 0."""
    net = mx.sym.Variable("data")
    for i in range(4):
        net = mx.sym.Convolution(
            net, num_filter=8, kernel=(3, 3), pad=(1, 1), no_bias=True, name=f"conv{i}"
        )
        net = mx.sym.Activation(
            mx.sym.BatchNorm(net, fix_gamma=False, name=f"bn{i}"), act_type="relu"
        )
    net = mx.sym.Pooling(net, global_pool=True, pool_type="avg", kernel=(1, 1))
    net = mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=10), name="softmax"
    )
    module = mx.mod.Module(net, context=mx.current_context())
    module.bind([("data", (BATCH, 3, SIZE, SIZE))], [("softmax_label", (BATCH,))])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer_params={"learning_rate": 0.01, "momentum": 0.9})
    batch = mx.io.DataBatch(pictures(), [classes()])

    def step() -> None:
        module.forward_backward(batch)
        module.update()

    return step


def four_convolutions() -> tn.Module:
    """Return the network of `module_steps`."""
    layers: list[tn.Module] = []
    for i in range(4):
        layers += [*conv_bn(8 if i else 3, 8, 3), tn.ReLU()]
    return tn.Sequential(*layers, tn.AdaptiveAvgPool2d(1), tn.Flatten(), tn.Linear(8, 10))


def small_relu6() -> Any:
    """Return two convolutions with normalization and relu6."""
    net = nn.HybridSequential()
    for _ in range(2):
        net.add(nn.Conv2D(8, 3, padding=1, use_bias=False), nn.BatchNorm())
        net.add(nn.HybridLambda(lambda F, x: F.clip(x, 0, 6)))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(10))
    return net


def small_relu6_torch() -> tn.Module:
    """Return the network of `small_relu6`."""
    layers: list[tn.Module] = []
    for i in range(2):
        layers += [*conv_bn(8 if i else 3, 8, 3), tn.ReLU6()]
    return tn.Sequential(*layers, tn.AdaptiveAvgPool2d(1), tn.Flatten(), tn.Linear(8, 10))


# -- dense and recurrent networks -----------------------------------------------------------------

WORDS, UNITS, LENGTH = 50, 16, 5


def vectors() -> list[Any]:
    """Return a batch of vectors."""
    return [mx.nd.random.normal(shape=(BATCH, 20))]


def vectors_torch() -> list[Tensor]:
    """Return a batch of vectors."""
    return [torch.randn(BATCH, 20)]


def mlp() -> Any:
    """Return three dense layers."""
    net = nn.HybridSequential()
    net.add(nn.Dense(32, activation="relu"), nn.Dense(16, activation="relu"), nn.Dense(10))
    return net


def mlp_torch() -> tn.Module:
    """Return three dense layers."""
    layers = tn.Linear(20, 32), tn.ReLU(), tn.Linear(32, 16), tn.ReLU(), tn.Linear(16, 10)
    return tn.Sequential(*layers)


def dense_norm() -> Any:
    """Return dense layers with normalization of each sample and leaky units."""
    net = nn.HybridSequential()
    net.add(nn.Dense(32), nn.LayerNorm(), nn.LeakyReLU(0.1), nn.Dense(16), nn.ELU(), nn.Dense(10))
    return net


def dense_norm_torch() -> tn.Module:
    """Return the network of `dense_norm`."""
    first = tn.Linear(20, 32), tn.LayerNorm(32), tn.LeakyReLU(0.1)
    return tn.Sequential(*first, tn.Linear(32, 16), tn.ELU(), tn.Linear(16, 10))


class Language(gluon.HybridBlock):
    """A language model: embedding, recurrent layer, projection to words."""

    def __init__(self, layer: type) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, UNITS)
        self.layer = layer(UNITS, input_size=UNITS)
        self.head = nn.Dense(WORDS, flatten=False, in_units=UNITS)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return scores of words, a row for each position."""
        return F.reshape(self.head(self.layer(self.embedding(x))), (-1, WORDS))


class LanguageTorch(tn.Module):
    """The same in torch."""

    def __init__(self, layer: type) -> None:
        super().__init__()
        self.embedding = tn.Embedding(WORDS, UNITS)
        self.layer = layer(UNITS, UNITS)
        self.head = tn.Linear(UNITS, WORDS)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of words, a row for each position."""
        return self.head(self.layer(self.embedding(x))[0]).view(-1, WORDS)


def text() -> list[Any]:
    """Return a batch of sentences, (time, batch)."""
    return [mx.nd.array(range(LENGTH * BATCH)).reshape((LENGTH, BATCH))]


def text_torch() -> list[Tensor]:
    """Return a batch of sentences, (time, batch)."""
    return [torch.arange(LENGTH * BATCH).view(LENGTH, BATCH)]


def next_words() -> Any:
    """Return the words to predict."""
    return mx.nd.array(range(LENGTH * BATCH))


def next_words_torch() -> Tensor:
    """Return the words to predict."""
    return torch.arange(LENGTH * BATCH)


def language(layer: str, hybrid: bool = True) -> Row:
    """Return the row of a language model."""
    ours = train(lambda: Language(getattr(gluon.rnn, layer)), text, next_words, hybrid=hybrid)
    torchs = train_torch(lambda: LanguageTorch(getattr(tn, layer)), text_torch, next_words_torch)
    return Row(f"{layer} language model, {'hybridized' if hybrid else 'eager'}", ours, torchs)


# -- optimizers, attention, sparse gradients ------------------------------------------------------

PARAMETERS = 160


def update(name: str, **options: Any) -> Callable[[], Step]:
    """Return what makes an optimizer's step over many parameters."""

    def prepare() -> Step:
        numbers = list(range(PARAMETERS))
        weights = [mx.nd.ones((8, 4)) for _ in numbers]
        grads = [mx.nd.ones((8, 4)) for _ in numbers]
        updater = mx.optimizer.get_updater(mx.optimizer.create(name, **options))
        return lambda: updater(numbers, grads, weights)

    return prepare


def update_torch(kind: Callable[..., torch.optim.Optimizer], **options: Any) -> Callable[[], Step]:
    """Return what makes an optimizer's step over many parameters."""

    def prepare() -> Step:
        weights = [torch.ones(8, 4, requires_grad=True) for _ in range(PARAMETERS)]
        for weight in weights:
            weight.grad = torch.ones(8, 4)
        return kind(weights, foreach=True, **options).step

    return prepare


OPTIMIZERS: tuple[tuple[str, Callable[[], Step], Callable[[], Step] | None], ...] = (
    ("SGD", update("sgd"), update_torch(torch.optim.SGD, lr=0.01)),
    (
        "SGD with momentum",
        update("sgd", momentum=0.9),
        update_torch(torch.optim.SGD, lr=0.01, momentum=0.9),
    ),
    (
        "NAG",
        update("nag", momentum=0.9),
        update_torch(torch.optim.SGD, lr=0.01, momentum=0.9, nesterov=True),
    ),
    ("Adam", update("adam"), update_torch(torch.optim.Adam)),
    ("AdaGrad", update("adagrad"), update_torch(torch.optim.Adagrad)),
    ("AdaDelta", update("adadelta"), update_torch(torch.optim.Adadelta)),
    ("RMSProp", update("rmsprop"), update_torch(torch.optim.RMSprop)),
    ("Adamax", update("adamax"), update_torch(torch.optim.Adamax)),
    ("Nadam", update("nadam"), update_torch(torch.optim.NAdam)),
    ("Signum", update("signum"), None),
    ("FTRL", update("ftrl"), None),
    ("LAMB", update("lamb"), None),
)
HEADS, MODEL, WORDS_OF_TEXT = 2, 16, 6


class Attention(gluon.HybridBlock):
    """A layer of a transformer: attention, addition, normalization, two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Dense(3 * MODEL, flatten=False, in_units=MODEL)
        self.out = nn.Dense(MODEL, flatten=False, in_units=MODEL)
        self.first, self.second = nn.LayerNorm(), nn.LayerNorm()
        self.wide = nn.Dense(4 * MODEL, flatten=False, in_units=MODEL)
        self.narrow = nn.Dense(MODEL, flatten=False, in_units=4 * MODEL)
        self.head = nn.Dense(10)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return scores of classes."""
        parts = F.reshape(self.project(x), (0, 0, 3, HEADS, -1))
        parts = F.split(F.transpose(parts, (2, 0, 3, 1, 4)), 3, axis=0, squeeze_axis=True)
        q, k, v = (F.reshape(part, (-3, 0, 0)) for part in parts)
        scores = F.batch_dot(q, k, transpose_b=True) * (MODEL // HEADS) ** -0.5
        seen = F.batch_dot(F.softmax(scores), v)
        seen = F.transpose(F.reshape(seen, (-4, -1, HEADS, 0, 0)), (0, 2, 1, 3))
        x = self.first(x + self.out(F.reshape(seen, (0, 0, -3))))
        x = self.second(x + self.narrow(F.LeakyReLU(self.wide(x), act_type="gelu")))
        return self.head(x)


class AttentionTorch(tn.Module):
    """The same in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.out = tn.Linear(MODEL, 3 * MODEL), tn.Linear(MODEL, MODEL)
        self.first, self.second = tn.LayerNorm(MODEL), tn.LayerNorm(MODEL)
        self.wide, self.narrow = tn.Linear(MODEL, 4 * MODEL), tn.Linear(4 * MODEL, MODEL)
        self.head = tn.Linear(WORDS_OF_TEXT * MODEL, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of classes."""
        parts = self.project(x).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k, v = parts
        scores = q @ k.transpose(-1, -2) * (MODEL // HEADS) ** -0.5
        seen = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        x = self.first(x + self.out(seen))
        x = self.second(x + self.narrow(F.gelu(self.wide(x))))
        return self.head(x.flatten(1))


def vectors_of_text() -> list[Any]:
    """Return a batch of embedded sentences."""
    return [mx.nd.random.normal(shape=(BATCH, WORDS_OF_TEXT, MODEL))]


def vectors_of_text_torch() -> list[Tensor]:
    """Return a batch of embedded sentences."""
    return [torch.randn(BATCH, WORDS_OF_TEXT, MODEL)]


ZOO = gluon.model_zoo.vision
RESNET = train_torch(resnet18, pictures_torch, classes_torch)
MOBILE = train_torch(mobilenet_v2, pictures_torch, classes_torch)
ADAM = {"optimizer": "adam", "learning_rate": 0.001}
ROWS = (
    Row("ResNet-18, hybridized", train(ZOO.resnet18_v1, pictures, classes), RESNET),
    Row("ResNet-18, eager", train(ZOO.resnet18_v1, pictures, classes, hybrid=False), RESNET),
    Row(
        "ResNet-18, prediction",
        predict(ZOO.resnet18_v1, pictures),
        predict_torch(resnet18, pictures_torch),
    ),
    Row("MobileNetV2 0.25, hybridized", train(ZOO.mobilenet_v2_0_25, pictures, classes), MOBILE),
    Row(
        "MobileNetV2 0.25, eager",
        train(ZOO.mobilenet_v2_0_25, pictures, classes, hybrid=False),
        MOBILE,
    ),
    Row(
        "MobileNetV2 0.25, prediction",
        predict(ZOO.mobilenet_v2_0_25, pictures),
        predict_torch(mobilenet_v2, pictures_torch),
    ),
    Row(
        "Module, 4 x (conv, BatchNorm, relu)",
        module_steps,
        train_torch(four_convolutions, pictures_torch, classes_torch),
    ),
    Row(
        "2 x (conv, BatchNorm, relu6), hybridized",
        train(small_relu6, pictures, classes),
        train_torch(small_relu6_torch, pictures_torch, classes_torch),
    ),
    Row(
        "2 x (conv, BatchNorm, relu6), eager",
        train(small_relu6, pictures, classes, hybrid=False),
        train_torch(small_relu6_torch, pictures_torch, classes_torch),
    ),
    language("LSTM"),
    language("LSTM", hybrid=False),
    language("GRU"),
    Row(
        "MLP, Adam, hybridized",
        train(mlp, vectors, classes, **ADAM),
        train_torch(mlp_torch, vectors_torch, classes_torch, optimizer=torch.optim.Adam, lr=0.001),
    ),
    Row(
        "MLP, Adam, eager",
        train(mlp, vectors, classes, hybrid=False, **ADAM),
        train_torch(mlp_torch, vectors_torch, classes_torch, optimizer=torch.optim.Adam, lr=0.001),
    ),
    Row("MLP, prediction", predict(mlp, vectors), predict_torch(mlp_torch, vectors_torch)),
    Row(
        "Dense, LayerNorm, LeakyReLU, ELU, hybridized",
        train(dense_norm, vectors, classes),
        train_torch(dense_norm_torch, vectors_torch, classes_torch),
    ),
    Row(
        "Attention, hybridized",
        train(Attention, vectors_of_text, classes),
        train_torch(AttentionTorch, vectors_of_text_torch, classes_torch),
    ),
    Row(
        "Attention, prediction",
        predict(Attention, vectors_of_text),
        predict_torch(AttentionTorch, vectors_of_text_torch),
    ),
    *(
        Row(f"{name} over {PARAMETERS} parameters", ours, theirs)
        for name, ours, theirs in OPTIMIZERS
    ),
)
