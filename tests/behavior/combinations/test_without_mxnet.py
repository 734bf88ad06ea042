"""Feature combinations that MXNet 1.9.1 on a CPU cannot run."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import autograd, gluon, nd, npx, sym
from mxnet.contrib.amp.amp import mixed_precision
from mxnet.gluon import nn
from tests.behavior.combinations import fill, ramp


@pytest.fixture
def numpy_mode():
    npx.set_np()
    yield
    npx.reset_np()


def dense_symbol(**options):
    hidden = sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc", **options)
    return sym.SoftmaxOutput(sym.Activation(hidden, act_type="relu", name="act"), name="softmax")


@pytest.mark.parametrize("monitor_all", [False, True])
@pytest.mark.parametrize("no_bias", [False, True])
def test_monitor_in_mixed_precision_receives_every_output(monitor_all, no_bias):
    executor = dense_symbol(no_bias=no_bias).simple_bind(mx.cpu(), data=(2, 3))
    executor.arg_dict["fc_weight"][:] = 0.5
    monitor = mx.mon.Monitor(1, monitor_all=monitor_all)
    with mixed_precision(torch.float16):
        monitor.install(executor)
        monitor.tic()
        executor.forward(is_train=True, data=ramp((2, 3)))
        executor.backward()
    names = [name for _, name, _ in monitor.toc()]
    assert {"fc_output", "act_output", "softmax_output", "fc_backward_output1"} <= set(names)


def test_operator_hooks_in_mixed_precision_receive_float16():
    layer = nn.Dense(2, in_units=3, use_bias=False, prefix="fc_")
    layer.initialize()
    layer.hybridize()
    types = {}
    layer.register_op_hook(lambda name, op, array: types.update({name.decode(): array.dtype}))
    with mixed_precision(torch.float16):
        layer(nd.ones((1, 3)))
    assert types["fc_fwd_output"] is np.float16


def test_bfloat16_arrays_print_decimal_values():
    x = nd.array([1.5, 2, -3]).astype("bfloat16")
    assert "[ 1.5  2.  -3. ]" in str(x)
    assert "16320" not in repr(x)
    assert "<NDArray 3 @cpu(0)>" in repr(x)
    assert repr(x.as_np_ndarray()) == "array([ 1.5,  2. , -3. ], dtype=bfloat16)"


def test_custom_operator_error_names_wrong_parameters():
    class Renamed(mx.operator.CustomOp):
        def forward(self, is_train, req, inputs, outputs, aux):
            self.assign(outputs[0], req[0], inputs[0])

    @mx.operator.register("combination_renamed_parameters")
    class RenamedProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Renamed()

    names = r"is_train, req, in_data, out_data, aux"
    with pytest.raises(mx.MXNetError, match=names):
        nd.Custom(nd.ones(2), op_type="combination_renamed_parameters")


def test_summary_of_hybridized_network_before_first_forward(capsys):
    network = nn.HybridSequential()
    network.add(nn.Dense(2))
    network.initialize()
    network.hybridize()
    with pytest.raises(AssertionError, match="must not be hybridized"):
        network.summary(nd.ones((1, 3)))
    network.hybridize(False)
    network.summary(nd.ones((1, 3)))
    assert "Total params: 8" in capsys.readouterr().out
    network.hybridize()
    assert network(nd.ones((1, 3))).shape == (1, 2)


def test_check_finite_variable_is_read_at_import(monkeypatch):
    layer = nn.HybridLambda(lambda F, x: F.log(x))
    layer.hybridize()
    monkeypatch.setenv("MXNET_CHECK_FINITE", "1")
    assert np.isnan(layer(-nd.ones(2)).asnumpy()).all()
    with autograd.detect_anomaly(), pytest.raises(mx.MXNetError, match="log"):
        layer(-nd.ones(2))


@pytest.mark.usefixtures("numpy_mode")
def test_dense_layer_of_an_empty_batch():
    layer = nn.Dense(2, in_units=3)
    layer.initialize()
    layer.hybridize()
    assert layer(mx.np.ones((2, 3))).shape == (2, 2)
    assert layer(mx.np.zeros((0, 3))).shape == (0, 2)
    with autograd.record():
        loss = layer(mx.np.zeros((0, 3))).sum()
    loss.backward()
    assert not layer.weight.grad().asnumpy().any()


@pytest.mark.usefixtures("numpy_mode")
def test_convolution_of_an_empty_batch():
    network = nn.HybridSequential()
    network.add(nn.Conv2D(2, 3, in_channels=1), nn.BatchNorm(in_channels=2), nn.MaxPool2D())
    network.initialize()
    network.hybridize()
    assert network(mx.np.zeros((0, 1, 6, 6))).shape == (0, 2, 2, 2)


def train_with_augmentation(workers):
    """Return weights of a network with dropout after two epochs of augmented images."""
    mx.random.seed(3)
    images = [nd.array(np.full((6, 6, 3), 20 * i), dtype="uint8") for i in range(8)]
    transforms = gluon.data.vision.transforms
    augment = transforms.Compose(
        [transforms.RandomFlipLeftRight(), transforms.RandomBrightness(0.5), transforms.ToTensor()]
    )
    data = gluon.data.ArrayDataset(images, np.arange(8) % 2).transform_first(augment)
    loader = gluon.data.DataLoader(data, batch_size=4, shuffle=True, num_workers=workers)
    network = nn.HybridSequential()
    network.add(nn.Flatten(), nn.Dropout(0.5), nn.Dense(2, in_units=108))
    network.initialize()
    fill(network.collect_params())
    network.hybridize()
    trainer = gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.1})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(2):
        for x, y in loader:
            with autograd.record():
                value = loss(network(x), y)
            value.backward()
            trainer.step(4)
    return network[2].weight.data().asnumpy()


def test_training_with_augmentation_is_reproducible_with_a_seed():
    first, second = train_with_augmentation(0), train_with_augmentation(0)
    np.testing.assert_array_equal(first, second)


def test_dataloader_workers_use_numpy_arrays():
    npx.set_np()
    try:
        data = gluon.data.SimpleDataset(list(range(6))).transform(
            lambda i: mx.np.arange(3) * i + mx.np.linalg.norm(mx.np.ones(4))
        )
        loader = gluon.data.DataLoader(data, batch_size=2, num_workers=2)
        batches = list(loader)
    finally:
        npx.reset_np()
    assert all(type(batch) is mx.np.ndarray for batch in batches)
    expected = np.arange(6)[:, None] * np.arange(3) + 2
    np.testing.assert_array_equal(np.concatenate([b.asnumpy() for b in batches]), expected)


def test_gradients_of_a_numpy_network_in_mixed_precision():
    npx.set_np()
    try:
        layer = nn.Dense(2, in_units=3)
        layer.initialize()
        fill(layer.collect_params())
        layer.hybridize()
        with mixed_precision(torch.float16), autograd.record():
            loss = (layer(ramp((2, 3))) ** 2).sum()
        loss.backward()
        gradient = layer.weight.grad()
    finally:
        npx.reset_np()
    assert gradient.dtype == np.float32
    assert np.isfinite(gradient.asnumpy()).all()


def test_second_order_gradients_of_a_hybridized_network():
    results = []
    for hybrid in (False, True):
        network = nn.HybridSequential(prefix="net_")
        with network.name_scope():
            network.add(nn.Dense(3, in_units=2, activation="tanh"), nn.Dense(1, in_units=3))
        network.initialize()
        fill(network.collect_params())
        network.hybridize(hybrid)
        x = ramp((2, 2))
        x.attach_grad()
        with autograd.record():
            (slope,) = autograd.grad(network(x).sum(), [x], create_graph=True)
            penalty = (slope * slope).sum()
        penalty.backward()
        results.append(x.grad.asnumpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-6)


def test_trainer_states_load_across_precisions(tmp_path):
    def trained(multi_precision, dtype, states=None):
        layer = nn.Dense(2, in_units=3, prefix="fc_")
        layer.initialize()
        fill(layer.collect_params())
        layer.cast(dtype)
        options = {"learning_rate": 0.1, "momentum": 0.9, "multi_precision": multi_precision}
        trainer = gluon.Trainer(layer.collect_params(), "nag", options)
        for _ in range(2):
            with autograd.record():
                loss = (layer(ramp((2, 3)).astype(dtype)) ** 2).sum()
            loss.backward()
            if states:
                trainer.load_states(states)
            trainer.step(2)
        path = str(tmp_path / f"{dtype}-{multi_precision}.states")
        trainer.save_states(path)
        return layer.weight.data().asnumpy(), path

    _, path = trained(False, "float32")
    weights, _ = trained(True, "float32", path)
    assert np.isfinite(weights).all()
    _, path = trained(True, "float16")
    weights, _ = trained(True, "float16", path)
    assert np.isfinite(weights).all()
