"""Gluon programs: run by real MXNet when recording, by MXNext when comparing.

`FACTS` return JSON data; `NETWORKS` make a block and its inputs, whose exported files, outputs and
gradients are recorded.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FACTS: dict[str, Callable[[Any], Any]] = {}
NETWORKS: dict[str, Callable[[Any], tuple]] = {}


def fact(function: Callable) -> Callable:
    FACTS[function.__name__] = function
    return function


def network(function: Callable) -> Callable:
    NETWORKS[function.__name__] = function
    return function


def answer(mx: Any, name: str) -> Any:
    """Return the facts of one program, with name counters reset."""
    with mx.name.NameManager(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FACTS[name](mx)


def values(shape: tuple[int, ...], start: int = 0) -> np.ndarray:
    """Return numbers that are the same everywhere."""
    flat = np.sin(np.arange(start, start + int(np.prod(shape))) * 0.7) * 0.5
    return flat.reshape(shape).astype(np.float32)


def fill(mx: Any, params: Any) -> None:
    """Give parameters values that are the same everywhere."""
    for number, (name, param) in enumerate(params.items()):
        made = values(param.shape, number)
        if name.endswith("var"):
            made = np.abs(made) + 0.5
        param.set_data(mx.nd.array(made))


def mlp(mx: Any, prefix: str | None = None) -> Any:
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Dense(4, activation="relu"), nn.BatchNorm(), nn.Dense(2))
    return net


def two_inputs(mx: Any) -> Any:
    nn = mx.gluon.nn

    class Two(mx.gluon.HybridBlock):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            with self.name_scope():
                self.first = nn.Dense(3)
                self.second = nn.Dense(3, params=self.first.params)
                self.scale = self.params.get("scale", shape=(1,), init="ones")

        def hybrid_forward(self, F: Any, x: Any, pair: Any, scale: Any) -> Any:
            left, right = pair
            joined = self.first(x) + self.second(left)
            return [joined, [F.broadcast_mul(right, scale) * 2, F.relu(joined)]]

    return Two()


@network
def dense(mx: Any) -> tuple:
    return mlp(mx), [mx.nd.array(values((3, 5)))]


@network
def nested(mx: Any) -> tuple:
    x = mx.nd.array(values((2, 3)))
    return two_inputs(mx), [x, [x + 1, x * 2]]


@network
def convolution(mx: Any) -> tuple:
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix="conv_")
    with net.name_scope():
        net.add(nn.Conv2D(3, 3, padding=1, activation="tanh"), nn.MaxPool2D(), nn.BatchNorm())
        net.add(nn.Flatten(), nn.Dense(3))
    return net, [mx.nd.array(values((2, 2, 6, 6)))]


@fact
def names(mx: Any) -> Any:
    nn, gluon = mx.gluon.nn, mx.gluon

    class Inner(gluon.HybridBlock):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            with self.name_scope():
                self.a = nn.Dense(2)
                self.b = nn.HybridSequential(prefix="")
                with self.b.name_scope():
                    self.b.add(nn.Dense(3))
            self.c = nn.Dense(1)

    found = []
    for made in (Inner(), Inner(prefix="p_"), Inner(prefix="")):
        found.append([b.prefix for b in (made, made.a, made.b, made.b[0], made.c)])
        found.append(list(made.collect_params()))
        found.append(list(made.collect_params(".*weight")))
    mx.sym.relu(mx.sym.var("x"))
    found.append([nn.Dense(1).name, nn.Activation("relu").prefix, gluon.loss.L2Loss().name])
    with made.name_scope():
        found.append([nn.Dense(1).prefix, mx.sym.relu(mx.sym.var("x")).name])
    with mx.name.Prefix("out_"):
        found.append(nn.Dense(2).prefix)
    return found


@fact
def printed(mx: Any) -> Any:
    gluon = mx.gluon
    net = mlp(mx)
    net.initialize()
    before = [repr(net), repr(net.collect_params()), repr(net.params)]
    net(mx.nd.ones((2, 3)))
    both = two_inputs(mx)
    params = gluon.ParameterDict("net_")
    params.get("w", shape=(2, 0), allow_deferred_init=True)
    params.get_constant("c", [1, 2])
    data = mx.sym.var("data")
    block = gluon.SymbolBlock([mx.sym.relu(data, name="r"), data], data)
    return [
        *before,
        repr(net),
        repr(net.collect_params()),
        repr(both),
        repr(params),
        repr(block),
        repr(gluon.Parameter("p", shape=3, dtype="float16")),
        repr(gluon.Block()),
    ]


@fact
def summaries(mx: Any) -> Any:
    found = []
    for make in (mlp, two_inputs):
        net = make(mx)
        net.initialize()
        x = mx.nd.ones((2, 3))
        inputs = [x] if make is mlp else [x, [x, x]]
        for _ in range(2):
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                net.summary(*inputs)
            found.append(text.getvalue().partition("Multiply-adds")[0])  # MXNet ends there
        net.collect_params(".*weight").setattr("grad_req", "null")
    return found


@fact
def saved_keys(mx: Any) -> Any:
    found = []
    for make in (mlp, two_inputs):
        net = make(mx)
        net.initialize()
        x = mx.nd.ones((2, 3))
        net(*([x] if make is mlp else [x, [x, x]]))
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "file.params")
            net.save_parameters(path)
            found.append(list(mx.nd.load(path)))
            net.save_parameters(path, deduplicate=True)
            found.append(list(mx.nd.load(path)))
            net.collect_params().save(path)
            found.append(list(mx.nd.load(path)))
            net.collect_params().save(path, strip_prefix=net.prefix)
            found.append(list(mx.nd.load(path)))
    return found


@fact
def hooks(mx: Any) -> Any:
    net = mx.gluon.nn.Dense(3, in_units=2, activation="relu")
    net.initialize()
    seen = []
    after = net.register_forward_hook(lambda b, x, y: seen.append(["after", b.name, y.shape]))
    before = net.register_forward_pre_hook(lambda b, x: seen.append(["before", len(x)]))
    net(mx.nd.ones((1, 2)))
    after.detach()
    net(mx.nd.ones((4, 2)))
    before.detach()
    net(mx.nd.ones((1, 2)))
    net.apply(lambda b: seen.append(b.name))
    return seen


TRAINERS = {
    "one": ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01}, [0], "device", None),
    "adam": ("adam", {"learning_rate": 0.1}, [0], "device", None),
    "device": ("sgd", {"learning_rate": 0.1, "momentum": 0.9}, [0, 1], "device", None),
    "summing": ("sgd", {"learning_rate": 0.1, "momentum": 0.9}, [0, 1], "device", False),
    "local": ("adam", {"learning_rate": 0.1}, [0, 1], "local", True),
    "apart": ("sgd", {"learning_rate": 0.1}, [0, 1], None, None),
}


@fact
def training(mx: Any) -> Any:
    found = {}
    for name, (optimizer, arguments, devices, kvstore, update) in TRAINERS.items():
        contexts = [mx.cpu(i) for i in devices]
        net = mx.gluon.nn.Dense(2, in_units=3)
        net.initialize(ctx=contexts)
        fill(mx, net.collect_params())
        net.bias.lr_mult = 2.0
        trainer = mx.gluon.Trainer(
            net.collect_params(), optimizer, arguments, kvstore, update_on_kvstore=update
        )
        rows = []
        for step in range(3):
            with mx.autograd.record():
                losses = [
                    (net(mx.nd.array(values((2, 3), step + i), ctx=c)) ** 2).sum()
                    for i, c in enumerate(contexts)
                ]
            for loss in losses:
                loss.backward()
            trainer.step(4)
            for ctx in contexts:
                rows.append(net.weight.data(ctx).asnumpy().tolist())
                rows.append(net.bias.data(ctx).asnumpy().tolist())
        found[name] = rows
    return found


def flat(value: Any) -> list:
    """Return nested lists as one."""
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def gradients(net: Any, inputs: list, training: bool) -> dict[str, np.ndarray]:
    """Return the parameters' gradients, and in training what the layers remember."""
    mx = importlib.import_module("mxnet")
    with mx.autograd.record(train_mode=training):
        loss = sum((a * a).sum() for a in flat(net(*inputs)))
    loss.backward(train_mode=training)
    found = {}
    for name, param in net.collect_params().items():
        if param.grad_req != "null":
            found[f"{training}:{name}"] = param.grad().asnumpy()
        elif training:
            found[f"after:{name}"] = param.data().asnumpy()
    return found


def without_addresses(text: str) -> str:
    """Return text without what differs from process to process."""
    return re.sub(r"(Constant_\w+)_\d+", r"\1", text)
