"""User programs with `ctx = [mx.gpu(0), mx.gpu(1)]`.

Each trains on two devices, and on the CPU in two halves: losses and parameters are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn, rnn
from tests.device.cases.comparing import assert_close

Contexts = list[mx.Context]
CPUS = [mx.cpu(0), mx.cpu(1)]
RNG = np.random.default_rng(0)
IMAGES = RNG.standard_normal((16, 1, 12, 12)).astype("float32")
DIGITS = RNG.integers(0, 10, 16).astype("float32")


def compare(train: Callable[[Contexts], Sequence[np.ndarray]], two: Contexts) -> None:
    expected, actual = train(CPUS), train(two)
    assert_close(actual, expected, rtol=2e-3, atol=1e-4)
    assert all(np.isfinite(values).all() for values in actual)


class Weights(mx.init.Initializer):
    """The same numbers on every device, different ones for each parameter."""

    def _init_weight(self, name: Any, array: nd.NDArray) -> None:
        rng = np.random.default_rng(sum(map(ord, str(name))))
        scale = 1 / np.sqrt(max(1, np.prod(array.shape[1:])))
        array[:] = nd.array(rng.uniform(-scale, scale, array.shape).astype("float32"))

    def _init_default(self, name: Any, array: nd.NDArray) -> None:
        self._init_weight(name, array)


def lenet_symbol() -> mx.sym.Symbol:
    data = mx.sym.Variable("data")
    conv = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, name="conv1")
    pool = mx.sym.Pooling(
        mx.sym.Activation(conv, act_type="tanh"), pool_type="max", kernel=(2, 2), stride=(2, 2)
    )
    fc1 = mx.sym.FullyConnected(mx.sym.flatten(pool), num_hidden=16, name="fc1")
    fc2 = mx.sym.FullyConnected(mx.sym.Activation(fc1, act_type="tanh"), num_hidden=10, name="fc2")
    return mx.sym.SoftmaxOutput(fc2, name="softmax")


def test_lenet_by_module(two: Contexts) -> None:
    def train(ctx: Contexts) -> list[np.ndarray]:
        batches = mx.io.NDArrayIter(IMAGES, DIGITS, batch_size=8)
        module = mx.mod.Module(lenet_symbol(), context=ctx)
        metric = mx.metric.create(["acc", "ce"])
        module.fit(
            batches,
            eval_data=batches,
            eval_metric=metric,
            num_epoch=2,
            initializer=Weights(),
            optimizer_params={"learning_rate": 0.1, "momentum": 0.9},
            kvstore="device",
        )
        arguments, _ = module.get_params()
        predicted = module.predict(batches).asnumpy()
        return [predicted, np.array(metric.get()[1]), *(a.asnumpy() for a in arguments.values())]

    compare(train, two)


def test_lenet_by_gluon(two: Contexts) -> None:
    def train(ctx: Contexts) -> list[np.ndarray]:
        net = nn.HybridSequential(prefix="lenet_")
        with net.name_scope():
            net.add(nn.Conv2D(4, 3, activation="tanh"), nn.MaxPool2D(), nn.BatchNorm())
            net.add(nn.Dense(16, activation="tanh"), nn.Dense(10))
        net.initialize(Weights(), ctx=ctx)
        net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
        loss, accuracy = gluon.loss.SoftmaxCrossEntropyLoss(), mx.metric.Accuracy()
        losses = []
        loader = gluon.data.DataLoader(gluon.data.ArrayDataset(IMAGES, DIGITS), 8)
        for _ in range(2):
            for data, label in loader:
                xs = gluon.utils.split_and_load(data, ctx)
                ys = gluon.utils.split_and_load(label, ctx)
                with autograd.record():
                    outs = [net(x) for x in xs]
                    ls = [loss(o, y) for o, y in zip(outs, ys, strict=True)]
                for each in ls:
                    each.backward()
                trainer.step(data.shape[0])
                accuracy.update(ys, outs)
                losses.append(sum(each.sum().asscalar() for each in ls))
        parameters = [p.data(ctx[1]).asnumpy() for p in net.collect_params().values()]
        return [np.array(losses), np.array(accuracy.get()[1]), *parameters]

    compare(train, two)


def test_bucketing_module(two: Contexts) -> None:
    """Sentences of several lengths share weights."""

    def network(length: int) -> tuple[mx.sym.Symbol, tuple, tuple]:
        words = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=12, output_dim=6, name="embed")
        stack = mx.rnn.SequentialRNNCell()
        stack.add(mx.rnn.LSTMCell(num_hidden=5, prefix="lstm_"))
        outputs, _ = stack.unroll(length, inputs=words, merge_outputs=True)
        scores = mx.sym.FullyConnected(
            mx.sym.Reshape(outputs, shape=(-1, 5)), num_hidden=12, name="pred"
        )
        labels = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
        return mx.sym.SoftmaxOutput(scores, labels, name="softmax"), ("data",), ("softmax_label",)

    def train(ctx: Contexts) -> list[np.ndarray]:
        rng = np.random.default_rng(1)
        module = mx.mod.BucketingModule(network, default_bucket_key=6, context=ctx)
        module.bind([("data", (8, 6))], [("softmax_label", (8, 6))])
        module.init_params(Weights())
        module.init_optimizer(kvstore="local", optimizer="sgd")
        outputs = []
        for length in (6, 3, 4, 3, 6):
            words = nd.array(rng.integers(0, 12, (8, length)))
            batch = mx.io.DataBatch(
                [words], [words], bucket_key=length,
                provide_data=[("data", (8, length))],
                provide_label=[("softmax_label", (8, length))],
            )  # fmt: skip
            module.forward_backward(batch)
            module.update()
            outputs.append(module.get_outputs()[0].asnumpy())
        arguments, _ = module.get_params()
        return [*outputs, *(arguments[name].asnumpy() for name in sorted(arguments))]

    compare(train, two)


class Detector(gluon.HybridBlock):
    """Two feature maps, each with class scores, offsets and anchors, as in SSD."""

    def __init__(self) -> None:
        super().__init__(prefix="ssd_")
        with self.name_scope():
            self.first = nn.Conv2D(4, 3, strides=2, padding=1, activation="relu")
            self.second = nn.Conv2D(4, 3, strides=2, padding=1, activation="relu")
            self.classes = [nn.Conv2D(4 * 3, 3, padding=1) for _ in range(2)]
            self.offsets = [nn.Conv2D(4 * 4, 3, padding=1) for _ in range(2)]
            self.register_children(*self.classes, *self.offsets)

    def register_children(self, *blocks: gluon.Block) -> None:
        for block in blocks:
            self.register_child(block)

    def hybrid_forward(self, F: Any, x: Any) -> tuple:
        maps = [self.first(x)]
        maps.append(self.second(maps[0]))
        anchors = [F.contrib.MultiBoxPrior(m, sizes=(0.3, 0.6), ratios=(1, 2, 0.5)) for m in maps]
        classes = [
            F.reshape(F.transpose(head(m), (0, 2, 3, 1)), (0, -1, 3))
            for head, m in zip(self.classes, maps, strict=True)
        ]
        offsets = [
            F.flatten(F.transpose(head(m), (0, 2, 3, 1)))
            for head, m in zip(self.offsets, maps, strict=True)
        ]
        return F.concat(*classes, dim=1), F.concat(*offsets, dim=1), F.concat(*anchors, dim=1)


def test_ssd(two: Contexts) -> None:
    boxes = np.array([[[1, 0.1, 0.1, 0.5, 0.6]], [[0, 0.4, 0.3, 0.9, 0.8]]] * 2, "float32")

    def train(ctx: Contexts) -> list[np.ndarray]:
        net = Detector()
        net.initialize(Weights(), ctx=ctx)
        net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "wd": 1e-4})
        ce, l1 = gluon.loss.SoftmaxCrossEntropyLoss(), gluon.loss.L1Loss()
        losses = []
        for _ in range(2):
            xs = gluon.utils.split_and_load(nd.array(IMAGES[:4]), ctx)
            ys = gluon.utils.split_and_load(nd.array(boxes), ctx)
            parts = []
            for x, y in zip(xs, ys, strict=True):
                with autograd.record():
                    scores, offsets, anchors = net(x)
                    with autograd.pause():
                        targets, masks, classes = nd.contrib.MultiBoxTarget(
                            anchors, y, nd.transpose(scores, (0, 2, 1))
                        )
                    total = ce(scores, classes) + l1(offsets * masks, targets * masks)
                total.backward()
                parts.append(total.mean().asscalar())
            trainer.step(4)
            losses.append(parts)
        found = [
            nd.contrib.MultiBoxDetection(nd.softmax(s, axis=-1).transpose((0, 2, 1)), o, a)
            for s, o, a in map(net, xs)
        ]
        parameters = [p.data(ctx[1]).asnumpy() for p in net.collect_params().values()]
        return [np.array(losses), *(f.asnumpy() for f in found), *parameters]

    compare(train, two)


class LanguageModel(gluon.Block):
    """Embedding, LSTM and a decoder, as in the word language model of MXNet's examples."""

    def __init__(self) -> None:
        super().__init__(prefix="lm_")
        with self.name_scope():
            self.encoder = nn.Embedding(15, 6)
            self.rnn = rnn.LSTM(7, 2, input_size=6)
            self.decoder = nn.Dense(15, in_units=7)

    def forward(self, words: nd.NDArray, state: list) -> tuple:
        output, state = self.rnn(self.encoder(words), state)
        return self.decoder(output.reshape((-1, 7))), state


def test_language_model(two: Contexts) -> None:
    text = np.random.default_rng(3).integers(0, 15, (12, 8)).astype("float32")

    def train(ctx: Contexts) -> list[np.ndarray]:
        model = LanguageModel()
        model.initialize(Weights(), ctx=ctx)
        trainer = gluon.Trainer(model.collect_params(), "sgd", {"learning_rate": 1.0})
        loss = gluon.loss.SoftmaxCrossEntropyLoss()
        hidden = [model.rnn.begin_state(batch_size=4, func=nd.zeros, ctx=c) for c in ctx]
        losses = []
        for start in (0, 5):
            data = gluon.utils.split_and_load(nd.array(text[start : start + 5]), ctx, batch_axis=1)
            label = gluon.utils.split_and_load(
                nd.array(text[start + 1 : start + 6]), ctx, batch_axis=1
            )
            hidden = [[s.detach() for s in state] for state in hidden]
            total = []
            with autograd.record():
                for i, (x, y) in enumerate(zip(data, label, strict=True)):
                    output, hidden[i] = model(x, hidden[i])
                    total.append(loss(output, y.reshape((-1,))).sum() / x.size)
            autograd.backward(total)
            for c in ctx:
                grads = [p.grad(c) for p in model.collect_params().values()]
                gluon.utils.clip_global_norm(grads, 0.25)
            trainer.step(1)
            losses.append([each.asscalar() for each in total])
        parameters = [p.data(ctx[1]).asnumpy() for p in model.collect_params().values()]
        return [np.array(losses), *parameters]

    compare(train, two)
