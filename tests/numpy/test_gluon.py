"""Gluon under `npx.set_np()` gives equal values in `mx.np` arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn, rnn
from mxnet.gluon.data.vision import transforms

LAYERS: dict[str, tuple[Callable, tuple[int, ...]]] = {
    "Dense": (lambda: nn.Dense(3, activation="relu"), (2, 4)),
    "Dense of sequences": (lambda: nn.Dense(3, flatten=False), (2, 5, 4)),
    "Dropout": (lambda: nn.Dropout(0.0), (2, 4)),
    "BatchNorm": (lambda: nn.BatchNorm(), (2, 4, 3, 3)),
    "LayerNorm": (lambda: nn.LayerNorm(), (2, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2), (2, 4, 3)),
    "InstanceNorm": (lambda: nn.InstanceNorm(), (2, 4, 3)),
    "Flatten": (lambda: nn.Flatten(), (2, 4, 3)),
    "HybridLambda": (lambda: nn.HybridLambda("relu"), (2, 4)),
    "PReLU": (lambda: nn.PReLU(), (2, 4)),
    "GELU": (lambda: nn.GELU(), (2, 4)),
    "Swish": (lambda: nn.Swish(), (2, 4)),
    "Conv2D": (lambda: nn.Conv2D(3, 2, activation="tanh"), (2, 4, 5, 5)),
    "Conv2DTranspose": (lambda: nn.Conv2DTranspose(3, 2), (2, 4, 5, 5)),
    "MaxPool2D": (lambda: nn.MaxPool2D(), (2, 4, 6, 6)),
    "GlobalAvgPool2D": (lambda: nn.GlobalAvgPool2D(), (2, 4, 6, 6)),
    "ReflectionPad2D": (lambda: nn.ReflectionPad2D(1), (2, 4, 6, 6)),
    "LSTM": (lambda: rnn.LSTM(3), (5, 2, 4)),
    "GRU": (lambda: rnn.GRU(3, 2, bidirectional=True), (5, 2, 4)),
}
LOSSES = [
    "L1Loss",
    "L2Loss",
    "SigmoidBCELoss",
    "KLDivLoss",
    "HuberLoss",
    "HingeLoss",
    "SquaredHingeLoss",
    "LogisticLoss",
    "PoissonNLLLoss",
]


def _run(make: Callable, shape: tuple[int, ...], is_np: bool, hybridize: bool) -> tuple:
    """Return output and gradient of a layer whose weights follow from the seed."""
    npx.set_np(shape=is_np, array=is_np)
    mx.random.seed(0)
    data = onp.random.RandomState(0).uniform(-1, 1, shape).astype("float32")
    x = np.array(data) if is_np else mx.nd.array(data)
    net = make()
    net.initialize(mx.init.Xavier())
    if hybridize:
        net.hybridize()
    x.attach_grad()
    with autograd.record():
        out = net(x)
        total = (out * out).sum()
    total.backward()
    if is_np:
        arrays = [p.data() for p in net.collect_params().values()]
        assert {type(a) for a in (out, x.grad, *arrays)} == {np.ndarray}
    return out.asnumpy(), x.grad.asnumpy()


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_on_np_arrays_equal_legacy_arrays(name: str, hybridize: bool) -> None:
    """Outputs, gradients and parameters are np arrays with the same values."""
    make, shape = LAYERS[name]
    wanted = _run(make, shape, False, hybridize)
    given = _run(make, shape, True, hybridize)
    for a, b in zip(wanted, given, strict=True):
        assert a.shape == b.shape
        onp.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_return_one_value_per_sample(name: str, hybridize: bool) -> None:
    """Values equal those of legacy arrays."""
    host = onp.random.RandomState(1).uniform(0.1, 0.9, (2, 2, 3)).astype("float32")
    loss = getattr(gluon.loss, name)()
    if hybridize:
        loss.hybridize()
    out = loss(np.array(host[0]), np.array(host[1]))
    npx.reset_np()
    wanted = getattr(gluon.loss, name)()(mx.nd.array(host[0]), mx.nd.array(host[1]))
    assert type(out) is np.ndarray
    onp.testing.assert_allclose(out.asnumpy(), wanted.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize("name", ["Accuracy", "F1", "CrossEntropy", "NegativeLogLikelihood"])
def test_metrics_accept_np_arrays(name: str) -> None:
    metric, legacy = getattr(mx.metric, name)(), getattr(mx.metric, name)()
    labels, scores = [1, 0, 1], [[0.1, 0.9], [0.8, 0.2], [0.6, 0.4]]
    metric.update([np.array(labels)], [np.array(scores)])
    legacy.update([mx.nd.array(labels)], [mx.nd.array(scores)])
    assert metric.get()[0] == legacy.get()[0]
    assert metric.get()[1] == pytest.approx(legacy.get()[1])


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "nag", "rmsprop", "adagrad", "lamb", "ftrl"])
def test_trainer_updates_np_weights(optimizer: str) -> None:
    net = nn.Dense(2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), optimizer)
    with autograd.record():
        out = net(np.ones((2, 3))).sum()
    before = net.weight.data().copy()
    out.backward()
    trainer.step(1)
    after = net.weight.data()
    assert type(after) is np.ndarray
    assert not np.array_equal(before, after)


def test_dataloader_returns_np_batches() -> None:
    data = gluon.data.ArrayDataset(np.arange(10).reshape(5, 2), np.arange(5))
    for x, y in gluon.data.DataLoader(data, 2):
        assert type(x) is type(y) is np.ndarray
    assert (x.shape, y.shape) == ((1, 2), (1,))
    assert type(next(iter(gluon.data.DataLoader([1, 2, 3], 2)))) is np.ndarray


def test_transforms_return_np_arrays() -> None:
    image = np.zeros((8, 8, 3), dtype="uint8")
    steps = [transforms.Resize(6), transforms.CenterCrop(5), transforms.ToTensor()]
    out = transforms.Compose(steps)(image)
    assert type(out) is np.ndarray
    assert out.shape == (3, 5, 5)


def test_states_of_recurrent_layers_are_np_arrays() -> None:
    layer = rnn.LSTM(3)
    layer.initialize()
    states = layer.begin_state(batch_size=2)
    _, after = layer(np.ones((4, 2, 5)), states)
    assert {type(s) for s in (*states, *after)} == {np.ndarray}
    cell = rnn.GRUCell(3)
    cell.initialize()
    outs, _ = cell.unroll(4, np.ones((2, 4, 5)), merge_outputs=True)
    assert type(outs) is np.ndarray


def test_split_and_load_returns_np_arrays() -> None:
    parts = gluon.utils.split_and_load(np.ones((4, 2)), [mx.cpu(0), mx.cpu(1)])
    assert [type(p) for p in parts] == [np.ndarray, np.ndarray]
    assert parts[1].ctx == mx.cpu(1)


def test_custom_operators_receive_np_arrays() -> None:
    class Exp(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], np.exp(in_data[0]))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * out_data[0])

    @mx.operator.register("exp_of_np")
    class ExpProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Exp()

    x = np.zeros(2)
    x.attach_grad()
    with autograd.record():
        y = mx.nd.Custom(x, op_type="exp_of_np")
    y.backward()
    assert type(y) is np.ndarray
    assert x.grad.tolist() == [1, 1]


def test_initializers_receive_np_arrays() -> None:
    class Sparse(mx.init.Initializer):
        def _init_weight(self, name, data):
            data[:] = np.arange(data.size).reshape(data.shape)
            data *= np.abs(data) >= 2

    net = nn.Dense(2)
    net.initialize(Sparse())
    net(np.ones((1, 2)))
    assert net.weight.data().tolist() == [[0, 0], [2, 3]]


@pytest.mark.parametrize("hybridize", [False, True])
def test_legacy_outputs_in_numpy_mode_raise(hybridize: bool) -> None:
    class Legacy(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x.as_nd_ndarray() * 2

    net = Legacy()
    net.hybridize(hybridize)
    with pytest.raises(TypeError, match="as_np_ndarray"):
        net(np.ones(2))
