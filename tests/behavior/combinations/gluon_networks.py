"""Gluon: hybridize combined with casts, shared parameters, deferred shapes, states and files."""

from __future__ import annotations

import tempfile

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from tests.behavior.combinations import error_of, fill, ramp


def _network(**options):
    network = nn.HybridSequential(prefix="net_")
    with network.name_scope():
        network.add(nn.Dense(4, activation="tanh", **options), nn.Dense(2))
    network.initialize()
    network(nd.ones((1, 3)))
    fill(network.collect_params())
    return network


def summary_of_a_hybridized_network():
    network = nn.HybridSequential()
    network.add(nn.Dense(2))
    network.initialize()
    network.hybridize()
    return error_of(lambda: network.summary(nd.ones((1, 3))))


def cast_after_hybridize():
    network = _network()
    network.hybridize()
    first = network(ramp((2, 3)))
    network.cast("float64")
    return [first, network(ramp((2, 3)).astype("float64"))]


def shared_parameters_in_two_hybridized_networks():
    first = nn.Dense(2, in_units=3, prefix="a_")
    second = nn.Dense(2, in_units=3, prefix="b_", params=first.params)
    first.initialize()
    fill(first.collect_params())
    for layer in (first, second):
        layer.hybridize()
    trainer = gluon.Trainer(first.collect_params(), "sgd", {"learning_rate": 0.1})
    with autograd.record():
        loss = (first(ramp((2, 3))) * second(ramp((2, 3), 1))).sum()
    loss.backward()
    trainer.step(1)
    return [first(ramp((1, 3))), second(ramp((1, 3)))]


def deferred_shapes_of_a_loaded_file():
    network = _network()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/net.params"
        network.save_parameters(path)
        other = nn.HybridSequential(prefix="other_")
        with other.name_scope():
            other.add(nn.Dense(4, activation="tanh"), nn.Dense(2))
        other.hybridize()
        other.load_parameters(path)
    return [network(ramp((2, 3))), other(ramp((2, 3)))]


def batch_norm_frozen_in_the_middle_of_training():
    network = nn.HybridSequential(prefix="net_")
    with network.name_scope():
        network.add(nn.Dense(3, in_units=3), nn.BatchNorm(in_channels=3), nn.Dense(1, in_units=3))
    network.initialize()
    fill(network.collect_params())
    network.hybridize()
    trainer = gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.1})
    for step in range(4):
        if step == 2:
            network[1].collect_params().setattr("grad_req", "null")
            network[1]._kwargs["use_global_stats"] = True
            network.hybridize()
        with autograd.record():
            loss = (network(ramp((4, 3), step)) ** 2).sum()
        loss.backward()
        trainer.step(4, ignore_stale_grad=True)
    return [network[1].running_mean.data(), network[0].weight.data()]


def gradient_of_the_input_and_of_added_parameters():
    network = _network()
    network.hybridize()
    network.collect_params().setattr("grad_req", "add")
    x = ramp((2, 3))
    x.attach_grad()
    for _ in range(2):
        with autograd.record():
            loss = network(x).sum()
        loss.backward()
    return [x.grad, network[0].weight.grad()]


def second_order_of_a_sine():
    x = ramp((2, 3))
    x.attach_grad()
    with autograd.record():
        out = nd.sin(x)
        (slope,) = autograd.grad(out, [x], create_graph=True, retain_graph=True)
        penalty = (slope * slope).sum()
    penalty.backward()
    return [slope, x.grad]


def dropout_repeats_by_its_seed():
    network = nn.HybridSequential()
    network.add(nn.Dropout(0.5), nn.Dense(2, in_units=8))
    network.initialize()
    fill(network.collect_params())
    results = []
    for hybrid in (False, False, True, True):
        network.hybridize(hybrid)
        mx.random.seed(7)
        with autograd.record():
            results.append(network(ramp((4, 8))).asnumpy())
    same = [bool((results[0] == results[1]).all()), bool((results[2] == results[3]).all())]
    return [same, network(ramp((4, 8)))]


def recurrent_cell_unrolled_in_a_hybridized_block():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="net_")
            with self.name_scope():
                self.cell = gluon.rnn.GRUCell(3, input_size=2)

        def hybrid_forward(self, F, x):
            out, _ = self.cell.unroll(3, x, layout="NTC", merge_outputs=True)
            return out

    network = Net()
    network.initialize()
    fill(network.collect_params())
    results = []
    for hybrid in (False, True):
        network.hybridize(hybrid)
        with autograd.record():
            out = network(ramp((2, 3, 2)))
        out.backward()
        results.append([out, network.cell.i2h_weight.grad()])
    return results


def condition_on_a_parameter():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="net_")
            self.scale = self.params.get("scale", shape=(1,), init="ones")

        def hybrid_forward(self, F, x, scale):
            return F.contrib.cond(
                (F.sum(x) > 0).reshape((1,)),
                lambda: F.broadcast_mul(x, scale) * 2,
                lambda: F.broadcast_mul(x, scale) - 1,
            )

    network = Net()
    network.initialize()
    network.hybridize()
    return [network(nd.ones(2)), network(-nd.ones(2))]


def constant_parameters_in_training():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="net_")
            self.mask = self.params.get_constant("mask", nd.array([1, 0, 1]))
            self.weight = self.params.get("weight", shape=(3,), init="ones")

        def hybrid_forward(self, F, x, mask, weight):
            return x * mask * weight

    network = Net()
    network.initialize()
    network.hybridize()
    trainer = gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.5})
    with autograd.record():
        loss = network(nd.array([1, 2, 3])).sum()
    loss.backward()
    trainer.step(1)
    return [network.weight.data(), network.mask.data()]


def split_batches_on_two_devices():
    contexts = [mx.cpu(0), mx.cpu(1)]
    network = nn.Dense(2, in_units=3)
    network.initialize(ctx=contexts)
    for context in contexts:
        network.weight.data(context)[:] = ramp((2, 3))
    network.hybridize()
    trainer = gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(2):
        parts = gluon.utils.split_and_load(ramp((4, 3)), contexts)
        with autograd.record():
            losses = [(network(part) ** 2).sum() for part in parts]
        autograd.backward(losses)
        trainer.step(4)
    return [network.weight.data(context) for context in contexts]


def loss_with_sample_weights_and_masks():
    loss = gluon.loss.SoftmaxCrossEntropyLoss(sparse_label=True)
    loss.hybridize()
    x = ramp((3, 4))
    x.attach_grad()
    with autograd.record():
        value = loss(x, nd.array([0, 3, 1]), nd.array([[1], [0], [0.5]]))
    value.backward()
    return [value, x.grad]


def workers_of_a_loader_give_the_order_of_the_sampler():
    data = gluon.data.ArrayDataset(np.arange(12, dtype="float32").reshape(6, 2), np.arange(6))
    sampler = gluon.data.BatchSampler(gluon.data.SequentialSampler(6), 4, "keep")
    rows = []
    for workers in (0, 2):
        loader = gluon.data.DataLoader(data, batch_sampler=sampler, num_workers=workers)
        rows.append([[x, y] for x, y in loader])
    return rows


def transforms_in_workers():
    data = gluon.data.SimpleDataset([np.full((2, 2, 3), 51 * i, "uint8") for i in range(3)])
    data = data.transform(lambda image: nd.image.to_tensor(nd.array(image, dtype="uint8")))
    loader = gluon.data.DataLoader(data, batch_size=2, last_batch="discard", num_workers=1)
    return list(loader)


def exported_network_with_batch_norm_and_a_cast():
    network = nn.HybridSequential(prefix="net_")
    with network.name_scope():
        network.add(nn.Dense(3, in_units=2), nn.BatchNorm(in_channels=3))
    network.initialize()
    fill(network.collect_params())
    network.hybridize()
    expected = network(ramp((2, 2)))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/net"
        network.export(path, epoch=3)
        block = gluon.SymbolBlock.imports(path + "-symbol.json", ["data"], path + "-0003.params")
    block.cast("float64")
    return [expected, block(ramp((2, 2)).astype("float64"))]


def profiler_around_a_hybridized_step():
    network = _network()
    network.hybridize()
    with tempfile.TemporaryDirectory() as folder:
        mx.profiler.set_config(profile_all=True, filename=f"{folder}/p.json", aggregate_stats=True)
        mx.profiler.set_state("run")
        with autograd.record():
            out = network(ramp((2, 3)))
        out.backward()
        nd.waitall()
        mx.profiler.set_state("stop")
        table = mx.profiler.dumps()
    return [out, network[0].weight.grad(), "FullyConnected" in table]
