"""Layers and losses: training, slicing, errors, dtypes. Values are in the golden tests."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mxnet as mx
from mxnet import autograd, nd
from mxnet.gluon import contrib, nn
from mxnet.ops.interpreters import Interpreter


@pytest.mark.parametrize("hybridize", [False, True])
def test_dropout_is_active_only_when_training(hybridize):
    layer = nn.Dropout(0.25)
    if hybridize:
        layer.hybridize()
    x = nd.ones((100, 100))
    assert_array_equal(layer(x).asnumpy(), x.asnumpy())
    with autograd.record():
        y = layer(x).asnumpy()
    assert_allclose(np.unique(y), [0, 1 / 0.75], rtol=1e-6)
    assert abs((y == 0).mean() - 0.25) < 0.02


def test_dropout_mask_is_shared_along_axes():
    with autograd.record():
        y = nn.Dropout(0.5, axes=(1,))(nd.ones((50, 7))).asnumpy()
    assert (y == y[:, :1]).all()
    assert 0 < (y[:, 0] == 0).sum() < 50


@pytest.mark.parametrize("kind", [nn.Sequential, nn.HybridSequential])
def test_slice_of_sequential_shares_layers_and_prefix(kind):
    net = kind(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(4), nn.Dense(3), nn.Dense(2))
    part = net[1:]
    assert type(part) is kind
    assert part.prefix == "net_"
    assert len(part) == 2
    assert part[0] is net[1]
    assert net[-1] is net[2]


def test_sequential_of_hybrid_blocks_warns_when_hybridized():
    net = nn.Sequential(prefix="net_")
    net.add(nn.Dense(2))
    with pytest.warns(UserWarning, match="All children of this Sequential layer 'net_'"):
        net.hybridize()


def test_half_precision_leaves_batch_statistics_in_float32():
    layer = nn.BatchNorm(in_channels=2)
    layer.cast("float16")
    assert {np.dtype(p.dtype).name for p in layer.collect_params().values()} == {"float32"}
    layer.cast("float64")
    assert {np.dtype(p.dtype).name for p in layer.collect_params().values()} == {"float64"}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: nn.Conv2D(3, (2, 2, 2)), AssertionError, "kernel_size must be a number or a"),
        (lambda: nn.Conv1D(3, 2, layout="NWC"), AssertionError, "Only supports 'NCW' layout"),
        (lambda: nn.Conv2D(3, 2, layout="NCW"), AssertionError, "'NCHW' and 'NHWC' layout"),
        (lambda: nn.Conv2D(3, 2, (1, 1, 1)), mx.MXNetError, "Stride must have the same number"),
        (lambda: nn.Conv2D(3, 2, 1, (1,)), mx.MXNetError, "Padding must have the same number"),
        (lambda: nn.Conv2DTranspose(3, 2, output_padding=(1,)), AssertionError, "output_padding"),
        (lambda: nn.MaxPool1D(2, layout="X"), AssertionError, "Only NCW and NWC layouts"),
        (lambda: nn.MaxPool2D((2, 2, 2)), AssertionError, "pool_size must be a number or a list"),
        (lambda: nn.ReflectionPad2D((1, 2)), AssertionError, "padding must be a number"),
        (lambda: nn.LeakyReLU(-1), AssertionError, "must be no less than 0"),
        (lambda: nn.Lambda("nope"), AssertionError, "nope is not found in ndarray"),
        (lambda: nn.HybridLambda("nope"), AssertionError, "not found in symbol/ndarray"),
        (lambda: nn.Lambda(3), ValueError, "Unrecognized function in lambda: 3"),
        (lambda: nn.HybridLambda(3), ValueError, "Unrecognized function in lambda: 3"),
    ],
)
def test_invalid_layer_arguments_raise_in_the_constructor(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("ndim", [2, 3])
def test_channels_last_convolution_equals_channels_first(ndim):
    first, last = (("NCHW", "NHWC"), ("NCDHW", "NDHWC"))[ndim - 2]
    kind = (nn.Conv2D, nn.Conv3D)[ndim - 2]
    a, b = kind(4, 2, layout=first), kind(4, 2, layout=last)
    x = nd.random.normal(shape=(2, 3) + (5,) * ndim)
    back = (0, *range(2, ndim + 2), 1)
    for layer, data in ((a, x), (b, x.transpose(back))):
        layer.initialize()
        layer(data)
    assert b.weight.shape == (4, *(2,) * ndim, 3)
    b.weight.set_data(a.weight.data().transpose(back))
    assert_allclose(
        b(x.transpose(back)).asnumpy(), a(x).transpose(back).asnumpy(), rtol=1e-4, atol=1e-5
    )


def test_layers_with_dtype_float64():
    layer = nn.Dense(3, dtype="float64")
    layer.initialize()
    assert layer(nd.ones((2, 4), dtype="float64")).dtype == np.float64


def test_initial_deformable_convolution_equals_plain_convolution():
    layer = contrib.cnn.ModulatedDeformableConvolution(4, (3, 3), padding=(1, 1))
    x = nd.random.normal(shape=(1, 2, 5, 5))
    layer.initialize()
    found = layer(x).asnumpy()
    weight, bias = layer.deformable_conv_weight.data(), layer.deformable_conv_bias.data()
    plain = nd.Convolution(x, weight, bias, kernel=(3, 3), pad=(1, 1), num_filter=4)
    assert_allclose(found, plain.asnumpy(), rtol=1e-4, atol=1e-5)


def test_export_and_import_roundtrip(tmp_path):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(3, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Dense(2))
    net.initialize()
    net.hybridize()
    x = nd.random.normal(shape=(2, 1, 8, 8))
    wanted = net(x).asnumpy()
    net.export(str(tmp_path / "net"))
    loaded = mx.gluon.SymbolBlock.imports(
        str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params")
    )
    assert_allclose(loaded(x).asnumpy(), wanted, rtol=1e-5, atol=1e-6)


class Watch(Interpreter):
    """Records the operators of eager calls."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def run(self, op, tensors, attrs, proceed):
        self.names.append(op.name)
        return proceed(tensors, attrs)


def entropy_and_gradients(labels: mx.nd.NDArray) -> list[np.ndarray]:
    """Return the loss of fixed scores, and its first and second gradient."""
    pred = mx.nd.array(np.linspace(-2, 3, 12).reshape(4, 3))
    pred.attach_grad()
    with mx.autograd.record():
        loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()(pred, labels)
        slope = mx.autograd.grad(loss, pred, create_graph=True)[0]
        (slope * slope).sum().backward()
    return [loss.asnumpy(), slope.asnumpy(), pred.grad.asnumpy()]


@pytest.mark.parametrize(
    "labels", [[0, 1, 2, 1], [[0], [1], [2], [1]], [-1, 1, 7, 2], [0.4, 1.6, 2, 0]]
)
def test_fused_cross_entropy_equals_its_operators(labels: list) -> None:
    fused = entropy_and_gradients(mx.nd.array(labels))
    with Watch() as watch:  # recorded operators run one by one
        watched = entropy_and_gradients(mx.nd.array(labels))
    assert "pick" in watch.names
    assert "_likelihood_loss" not in watch.names
    for one, other in zip(fused, watched, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 2)])
def test_cross_entropy_error_for_wrong_label_shape_names_pick(shape: tuple) -> None:
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    with pytest.raises(mx.base.MXNetError, match="pick"):
        loss(mx.nd.ones((4, 3)), mx.nd.zeros(shape))


def test_recorded_graph_of_fused_cross_entropy_has_its_operators() -> None:
    pred, label = mx.nd.ones((4, 3)), mx.nd.zeros(4)
    pred.attach_grad()
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    with mx.autograd.record():
        fused = mx.autograd.get_symbol(loss(pred, label))
        with Watch():
            watched = mx.autograd.get_symbol(loss(pred, label))
    operators = [
        [(node["op"], node.get("attrs")) for node in json.loads(shown.tojson())["nodes"]]
        for shown in (fused, watched)
    ]
    assert operators[0] == operators[1]
    assert "pick" in [name for name, _ in operators[0]]


def test_cross_entropy_gradient_of_labels_is_zero():
    """Also for the fused kernel, in a first and in a cached call."""
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    pred, label = mx.nd.ones((2, 3)), mx.nd.array([0, 1])
    pred.attach_grad()
    label.attach_grad()
    for _ in range(2):
        label.grad[:] = 7
        with mx.autograd.record():
            value = loss(pred, label)
        value.backward()
        assert label.grad.asnumpy().tolist() == [0, 0]
