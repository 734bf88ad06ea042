"""Networks of `mx.np` arrays: hybridized, trained, saved, with losses and optimizers."""

from __future__ import annotations

import functools
import tempfile

import mxnet as mx
from mxnet import autograd, gluon
from tests.behavior.combinations import fill, ramp


def _in_numpy_mode(program):
    @functools.wraps(program)
    def run():
        mx.npx.set_np()
        try:
            return program()
        finally:
            mx.npx.reset_np()

    return run


def _perceptron():
    network = gluon.nn.HybridSequential(prefix="net_")
    with network.name_scope():
        network.add(gluon.nn.Dense(4, in_units=3, activation="relu"))
        network.add(gluon.nn.Dense(2, in_units=4))
    network.initialize()
    fill(network.collect_params())
    return network


def _train(network, optimizer, options, steps=3, loss=None):
    loss = loss or gluon.loss.L2Loss()
    trainer = gluon.Trainer(network.collect_params(), optimizer, options)
    losses = []
    for _ in range(steps):
        with autograd.record():
            value = loss(network(ramp((4, 3))), ramp((4, 2), 5))
        value.backward()
        trainer.step(4)
        losses.append(value.mean())
    return losses


@_in_numpy_mode
def hybridized_training_equals_eager_training():
    results = []
    for hybrid in (False, True):
        network = _perceptron()
        network.hybridize(hybrid)
        results.append(_train(network, "adam", {"learning_rate": 0.1}))
    return results


@_in_numpy_mode
def training_with_momentum_and_added_gradients():
    network = _perceptron()
    network.hybridize(static_alloc=True, static_shape=True)
    network.collect_params().setattr("grad_req", "add")
    trainer = gluon.Trainer(
        network.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9}
    )
    for _ in range(2):
        for part in range(2):
            with autograd.record():
                value = (network(ramp((2, 3), part)) ** 2).sum()
            value.backward()
        trainer.step(4)
        network.collect_params().zero_grad()
    return [p.data() for p in network.collect_params().values()]


@_in_numpy_mode
def operators_of_npx_in_a_hybridized_block():
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            scaled = F.npx.softmax(F.npx.leaky_relu(x, act_type="gelu"), axis=-1)
            return F.np.concatenate([scaled, F.np.exp(x)], axis=1), F.np.mean(x, axis=0)

    network = Net()
    network.hybridize()
    x = ramp((2, 3))
    x.attach_grad()
    with autograd.record():
        first, second = network(x)
        loss = first.sum() + (second * second).sum()
    loss.backward()
    return [first, second, x.grad]


@_in_numpy_mode
def scalars_and_broadcasts_in_a_hybridized_block():
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x, y):
            return F.np.sum(x) * y + F.np.max(y, axis=0, keepdims=True), x.reshape(-1)[0:2]

    network = Net()
    network.hybridize()
    return network(ramp((2, 3)), ramp((4, 1)))


@_in_numpy_mode
def exported_network_runs_in_a_symbol_block():
    network = _perceptron()
    network.hybridize()
    expected = network(ramp((2, 3)))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/net"
        network.export(path)
        loaded = gluon.SymbolBlock.imports(path + "-symbol.json", ["data"], path + "-0000.params")
        result = loaded(ramp((2, 3)))
    return [expected, result, type(result).__name__]


@_in_numpy_mode
def recurrent_layer_with_a_trainer():
    layer = gluon.rnn.LSTM(3, input_size=2, prefix="lstm_")
    layer.initialize()
    fill(layer.collect_params())
    layer.hybridize()
    trainer = gluon.Trainer(layer.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(2):
        with autograd.record():
            out, state = layer(ramp((4, 2, 2)), layer.begin_state(2))
            loss = (out**2).sum() + state[0].sum()
        loss.backward()
        trainer.step(1)
    return [out, state[1], layer.collect_params()["lstm_l0_i2h_weight"].data()]


@_in_numpy_mode
def embedding_and_layer_norm():
    network = gluon.nn.HybridSequential(prefix="net_")
    with network.name_scope():
        network.add(gluon.nn.Embedding(5, 4), gluon.nn.LayerNorm(in_channels=4))
        network.add(gluon.nn.Dense(2, in_units=4, flatten=False))
    network.initialize()
    fill(network.collect_params())
    network.hybridize()
    with autograd.record():
        out = network(mx.np.array([[0, 4, 2], [1, 1, 3]]))
    out.backward()
    return [out, network[0].weight.grad()]


@_in_numpy_mode
def batch_norm_in_training_and_inference():
    network = gluon.nn.HybridSequential(prefix="net_")
    with network.name_scope():
        network.add(gluon.nn.Conv2D(2, 3, in_channels=1), gluon.nn.BatchNorm(in_channels=2))
    network.initialize()
    fill(network.collect_params())
    network.hybridize()
    with autograd.record():
        trained = network(ramp((2, 1, 4, 4)))
    trained.backward()
    return [trained, network(ramp((2, 1, 4, 4))), network[1].running_mean.data()]


@_in_numpy_mode
def masks_and_updates_in_eager_training():
    x = ramp((3, 4))
    x.attach_grad()
    with autograd.record():
        y = mx.np.where(x > 0, x * 3, x)
        loss = y[1:].sum() + (y * y).mean()
    loss.backward()
    x[x.grad > 1] = 0
    return [x, x.grad]


@_in_numpy_mode
def saved_parameters_load_into_a_hybridized_network():
    network = _perceptron()
    expected = network(ramp((2, 3)))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/net.params"
        network.save_parameters(path)
        other = gluon.nn.HybridSequential()
        other.add(gluon.nn.Dense(4, activation="relu"), gluon.nn.Dense(2))
        other.hybridize()
        other.load_parameters(path)
        result = other(ramp((2, 3)))
    return [expected, result]


def metric_of_numpy_arrays_of_a_classic_network():
    network = _perceptron()
    metric = mx.metric.MSE()
    metric.update([ramp((2, 2))], [network(ramp((2, 3)))])
    return metric.get()
