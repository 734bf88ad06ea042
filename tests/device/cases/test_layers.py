"""Layers, cells, losses and networks of the zoo on a device equal those on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import contrib, loss, nn, rnn
from tests.batches import check_each
from tests.device.cases.comparing import compare

RNG = np.random.default_rng(0)
LINE, PLANE, CUBE = (2, 4, 9), (2, 4, 8, 8), (1, 2, 6, 6, 6)

# name -> (how to make the block, shapes of its inputs)
LAYERS: dict[str, tuple[Callable[[], Any], list[tuple]]] = {
    "Dense": (lambda: nn.Dense(3, activation="relu"), [(2, 5)]),
    "Dense of the last axis": (lambda: nn.Dense(3, flatten=False), [(2, 4, 5)]),
    "Dropout": (lambda: nn.Dropout(0.0), [(2, 5)]),
    "Embedding": (lambda: nn.Embedding(7, 3), [(2, 5)]),
    "Flatten": (nn.Flatten, [PLANE]),
    "Activation": (lambda: nn.Activation("softsign"), [(2, 5)]),
    "LeakyReLU": (lambda: nn.LeakyReLU(0.1), [(2, 5)]),
    "PReLU": (nn.PReLU, [(2, 5)]),
    "ELU": (nn.ELU, [(2, 5)]),
    "SELU": (nn.SELU, [(2, 5)]),
    "GELU": (nn.GELU, [(2, 5)]),
    "Swish": (nn.Swish, [(2, 5)]),
    "Lambda": (lambda: nn.Lambda(lambda x: x * 2), [(2, 5)]),
    "HybridLambda": (lambda: nn.HybridLambda("tanh"), [(2, 5)]),
    "Conv1D": (lambda: nn.Conv1D(3, 3), [LINE]),
    "Conv2D": (lambda: nn.Conv2D(4, 3, padding=1, groups=2), [PLANE]),
    "Conv2D NHWC": (lambda: nn.Conv2D(3, 3, layout="NHWC"), [(2, 8, 8, 4)]),
    "Conv3D": (lambda: nn.Conv3D(3, 3), [CUBE]),
    "Conv1DTranspose": (lambda: nn.Conv1DTranspose(3, 3), [LINE]),
    "Conv2DTranspose": (lambda: nn.Conv2DTranspose(3, 3, strides=2), [PLANE]),
    "Conv3DTranspose": (lambda: nn.Conv3DTranspose(3, 3), [CUBE]),
    "DeformableConvolution": (
        lambda: contrib.cnn.DeformableConvolution(3, (3, 3), in_channels=4), [PLANE],
    ),
    "ModulatedDeformableConvolution": (
        lambda: contrib.cnn.ModulatedDeformableConvolution(3, (3, 3), in_channels=4), [PLANE],
    ),
    "ReflectionPad2D": (lambda: nn.ReflectionPad2D(1), [PLANE]),
    **{
        f"{kind}{size}D": (lambda kind=kind, size=size: getattr(nn, f"{kind}{size}D")(), [shape])
        for kind in ("MaxPool", "AvgPool", "GlobalMaxPool", "GlobalAvgPool")
        for size, shape in ((1, LINE), (2, PLANE), (3, CUBE))
    },
    "BatchNorm": (nn.BatchNorm, [PLANE]),
    "BatchNormReLU": (nn.BatchNormReLU, [PLANE]),
    "InstanceNorm": (nn.InstanceNorm, [PLANE]),
    "LayerNorm": (nn.LayerNorm, [(2, 5)]),
    "GroupNorm": (lambda: nn.GroupNorm(2), [PLANE]),
    "SyncBatchNorm": (lambda: contrib.nn.SyncBatchNorm(num_devices=1), [PLANE]),
    "PixelShuffle2D": (lambda: contrib.nn.PixelShuffle2D(2), [PLANE]),
    "PixelShuffle1D": (lambda: contrib.nn.PixelShuffle1D(2), [LINE]),
    "PixelShuffle3D": (lambda: contrib.nn.PixelShuffle3D((1, 1, 2)), [CUBE]),
    "Identity": (contrib.nn.Identity, [(2, 5)]),
    "RNN": (lambda: rnn.RNN(3, 2, bidirectional=True), [(4, 2, 5)]),
    "RNN relu": (lambda: rnn.RNN(3, activation="relu", layout="NTC"), [(4, 2, 5)]),
    "LSTM": (lambda: rnn.LSTM(3, 2, bidirectional=True), [(4, 2, 5)]),
    "LSTM projected": (lambda: rnn.LSTM(4, projection_size=3), [(4, 2, 5)]),
    "LSTM clipped": (
        lambda: rnn.LSTM(4, state_clip_min=-0.1, state_clip_max=0.1), [(4, 2, 5)],
    ),
    "GRU": (lambda: rnn.GRU(3, 2, bidirectional=True), [(4, 2, 5)]),
}  # fmt: skip

CELLS: dict[str, Callable[[], Any]] = {
    "RNNCell": lambda: rnn.RNNCell(3),
    "LSTMCell": lambda: rnn.LSTMCell(3),
    "GRUCell": lambda: rnn.GRUCell(3),
    "LSTMPCell": lambda: contrib.rnn.LSTMPCell(4, 3),
    "ResidualCell": lambda: rnn.ResidualCell(rnn.GRUCell(5)),
    "ZoneoutCell": lambda: rnn.ZoneoutCell(rnn.RNNCell(3), 0.0, 0.0),
    "BidirectionalCell": lambda: rnn.BidirectionalCell(rnn.LSTMCell(3), rnn.LSTMCell(3)),
    "SequentialRNNCell": lambda: _stack(rnn.LSTMCell(4), rnn.DropoutCell(0.0), rnn.GRUCell(3)),
    "VariationalDropoutCell": lambda: contrib.rnn.VariationalDropoutCell(rnn.RNNCell(3)),
}

CONVOLUTIONAL_CELLS = [
    f"Conv{size}D{kind}Cell" for size in (1, 2, 3) for kind in ("RNN", "LSTM", "GRU")
]

# name -> (how to make the loss, shape of the prediction, label or its shape, more inputs)
SOFT, FEW = (4, 5), RNG.integers(0, 5, 4).astype("float32")
LOSSES: dict[str, tuple[Callable[[], Any], tuple, Any]] = {
    "L1Loss": (loss.L1Loss, SOFT, SOFT),
    "L2Loss": (loss.L2Loss, SOFT, SOFT),
    "HuberLoss": (loss.HuberLoss, SOFT, SOFT),
    "HingeLoss": (loss.HingeLoss, SOFT, SOFT),
    "SquaredHingeLoss": (loss.SquaredHingeLoss, SOFT, SOFT),
    "LogisticLoss": (loss.LogisticLoss, SOFT, SOFT),
    "SigmoidBinaryCrossEntropyLoss": (loss.SigmoidBCELoss, SOFT, SOFT),
    "SoftmaxCrossEntropyLoss": (loss.SoftmaxCELoss, SOFT, FEW),
    "SoftmaxCrossEntropyLoss dense": (lambda: loss.SoftmaxCELoss(sparse_label=False), SOFT, SOFT),
    "KLDivLoss": (lambda: loss.KLDivLoss(from_logits=False), SOFT, SOFT),
    "PoissonNLLLoss": (loss.PoissonNLLLoss, SOFT, SOFT),
    "SDMLLoss": (loss.SDMLLoss, SOFT, SOFT),
    "CTCLoss": (loss.CTCLoss, (2, 8, 5), np.array([[1, 2], [3, 0]], "float32")),
}


def _stack(*cells: Any) -> Any:
    stack = rnn.HybridSequentialRNNCell()
    for cell in cells:
        stack.add(cell)
    return stack


def _inputs(name: str, shapes: list[tuple], ctx: mx.Context) -> list[nd.NDArray]:
    rng = np.random.default_rng(len(name))
    if "Embedding" in name:
        return [nd.array(rng.integers(0, 7, shape), ctx=ctx) for shape in shapes]
    return [nd.array(rng.standard_normal(shape), ctx=ctx) for shape in shapes]


def _initialize(block: Any, ctx: mx.Context) -> None:
    """Initialize parameters with the values of the CPU: each device draws its own."""
    block.initialize(mx.init.Constant(0.1), ctx=ctx)


def _vary(block: Any) -> None:
    for i, parameter in enumerate(block.collect_params().values()):
        low = 0.1 if "var" in parameter.name else -0.5
        values = np.random.default_rng(i).uniform(low, 0.5, parameter.shape)
        parameter.set_data(nd.array(values.astype("float32")))


def _train_once(block: Any, inputs: list[nd.NDArray], call: Callable, hybrid: bool) -> list:
    """Return the outputs in both modes, and all gradients."""
    call(*inputs)  # initializes deferred shapes
    _vary(block)
    if hybrid and isinstance(block, gluon.HybridBlock):
        block.hybridize(static_alloc=True)
    first = inputs[0]
    first.attach_grad()
    for _ in range(2 if hybrid else 1):  # the second call is cached
        with autograd.record():
            output = call(*inputs)
            total = sum((o**2).sum() for o in (output if isinstance(output, list) else [output]))
        total.backward()
    outputs = [total, call(*inputs), first.grad]
    parameters = [p for p in block.collect_params().values() if p.grad_req != "null"]
    flat = [o for out in outputs for o in (out if isinstance(out, list) else [out])]
    return [*flat, *(p.grad(first.context).tostype("default") for p in parameters)]


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybridized"])
def test_layers(hybrid: bool, last: mx.Context) -> None:
    def check(name: str) -> None:
        make, shapes = LAYERS[name]

        def run(ctx: mx.Context) -> list:
            block = make()
            _initialize(block, ctx)
            return _train_once(block, _inputs(name, shapes, ctx), block, hybrid)

        compare(run, last, rtol=1e-3, atol=1e-4)

    check_each({name: name for name in LAYERS}, check)


def test_cells(last: mx.Context) -> None:
    def check(name: str) -> None:
        def run(ctx: mx.Context) -> list:
            cell = CELLS[name]()
            _initialize(cell, ctx)

            def unroll(x: nd.NDArray) -> nd.NDArray:
                return cell.unroll(4, x, layout="NTC", merge_outputs=True)[0]

            return _train_once(cell, _inputs(name, [(2, 4, 5)], ctx), unroll, False)

        compare(run, last, rtol=1e-3, atol=1e-4)

    check_each({name: name for name in CELLS}, check)


def test_convolutional_cells(last: mx.Context) -> None:
    def check(name: str) -> None:
        size = int(name[4])
        shape = (2, *[5] * size)

        def run(ctx: mx.Context) -> list:
            cell = getattr(contrib.rnn, name)(shape, 3, 3, 3, i2h_pad=1)
            _initialize(cell, ctx)

            def unroll(x: nd.NDArray) -> nd.NDArray:
                return cell.unroll(2, x, layout="NTC", merge_outputs=True)[0]

            return _train_once(cell, _inputs(name, [(1, 2, *shape)], ctx), unroll, False)

        compare(run, last, rtol=1e-3, atol=1e-4)

    check_each({name: name for name in CONVOLUTIONAL_CELLS}, check)


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybridized"])
def test_losses(hybrid: bool, last: mx.Context) -> None:
    def check(name: str) -> None:
        make, shape, label = LOSSES[name]
        rng = np.random.default_rng(len(name))
        target = rng.uniform(0, 1, label) if isinstance(label, tuple) else label

        def run(ctx: mx.Context) -> list:
            block = make()
            if hybrid:
                block.hybridize()
            x = nd.array(np.random.default_rng(1).uniform(0.1, 1, shape), ctx=ctx)
            y = nd.array(target, ctx=ctx)
            x.attach_grad()
            with autograd.record():
                out = block(x, y)
            out.backward()
            return [out, x.grad]

        compare(run, last, rtol=1e-3)

    check_each({name: name for name in LOSSES}, check)


def test_losses_with_three_inputs(last: mx.Context) -> None:
    def run(ctx: mx.Context) -> list:
        a, b, c = (nd.array(RNG_ARRAYS[i], ctx=ctx) for i in range(3))
        a.attach_grad()
        signs = nd.array([1, -1, 1, -1], ctx=ctx)
        with autograd.record():
            out = loss.TripletLoss()(a, b, c) + loss.CosineEmbeddingLoss()(a, b, signs)
        out.backward()
        return [out, a.grad]

    compare(run, last)


RNG_ARRAYS = RNG.standard_normal((3, 4, 5)).astype("float32")

# One of each family, with the smallest image that it takes.
ZOO = {
    "alexnet": 64,
    "densenet121": 224,
    "inceptionv3": 299,
    "mobilenet0.25": 32,
    "mobilenetv2_0.25": 32,
    "resnet18_v1": 32,
    "resnet18_v2": 32,
    "squeezenet1.1": 224,
    "vgg11_bn": 32,
}
QUICK = ["mobilenet0.25", "resnet18_v2"]


def _zoo_step(name: str, ctx: mx.Context) -> list:
    net = gluon.model_zoo.vision.get_model(name, classes=4)
    net.initialize(mx.init.Constant(0.01), ctx=ctx)
    size = ZOO[name]
    x = nd.array(np.random.default_rng(0).standard_normal((1, 3, size, size)), ctx=ctx)
    net(x)
    for i, parameter in enumerate(net.collect_params().values()):
        if parameter.name.endswith("weight"):
            scale = 1 / np.sqrt(np.prod(parameter.shape[1:]))
            values = np.random.default_rng(i).standard_normal(parameter.shape) * scale
            parameter.set_data(nd.array(values.astype("float32")))
    net.hybridize()
    predicted = net(x)
    with autograd.record(train_mode=False):  # dropout draws other numbers on each device
        output = net(x)
    output.backward()
    first = next(p for p in net.collect_params().values() if p.grad_req != "null")
    return [predicted, output, first.grad(ctx)]


@pytest.mark.parametrize("name", QUICK)
def test_zoo_networks(name: str, last: mx.Context) -> None:
    compare(lambda ctx: _zoo_step(name, ctx), last, rtol=1e-2, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ZOO if name not in QUICK])
def test_remaining_zoo_networks(name: str, last: mx.Context) -> None:
    compare(lambda ctx: _zoo_step(name, ctx), last, rtol=1e-2, atol=1e-3)
