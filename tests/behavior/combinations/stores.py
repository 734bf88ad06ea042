"""Key-value stores with updaters that call operators, sparse values and compression."""

from __future__ import annotations

import mxnet as mx
from mxnet import autograd, gluon, nd
from tests.behavior.combinations import error_of, fill, ramp


def updater_that_calls_operators():
    store = mx.kv.create("local")
    momentum = {}

    def update(key, grad, weight):
        state = momentum.setdefault(key, nd.zeros(weight.shape))
        nd.sgd_mom_update(weight, grad, state, out=weight, lr=0.1, momentum=0.9)
        weight[:] = nd.clip(weight, -1, 1)

    store._set_updater(update)
    store.init(3, nd.ones((2, 2)))
    out = nd.zeros((2, 2))
    for step in range(3):
        store.push(3, [ramp((2, 2), step), ramp((2, 2), step + 1)])
        store.pull(3, out=out)
    return [out, momentum[3]]


def updater_that_records_a_gradient():
    store = mx.kv.create("local")

    def update(key, grad, weight):
        x = weight.copy()
        x.attach_grad()
        with autograd.record():
            penalty = (x * x).sum()
        penalty.backward()
        weight -= 0.1 * (grad + x.grad)

    store._set_updater(update)
    store.init("w", ramp((3,)))
    out = nd.zeros(3)
    for _ in range(2):
        store.push("w", nd.ones(3))
        store.pull("w", out=out)
    return out


def optimizer_in_a_store_and_its_states():
    store = mx.kv.create("device")
    store.init([0, 1], [nd.ones(2), nd.ones(3)])
    store.set_optimizer(mx.optimizer.Adam(learning_rate=0.1))
    outs = [nd.zeros(2), nd.zeros(3)]
    for step in range(2):
        store.push([0, 1], [ramp((2,), step), ramp((3,), step)])
        store.pull([0, 1], out=outs)
    return outs


def pushpull_of_lists_of_devices():
    store = mx.kv.create("local")
    store.init("a", nd.zeros(2))
    values = [nd.ones(2), nd.ones(2) * 2]
    outs = [nd.zeros(2), nd.zeros(2)]
    store.pushpull("a", values, out=outs)
    return outs


def rows_of_a_sparse_weight():
    store = mx.kv.create("local")
    weight = nd.array([[1, 1], [2, 2], [3, 3]]).tostype("row_sparse")
    store.init("e", weight)
    out = nd.zeros((3, 2)).tostype("row_sparse")
    store.row_sparse_pull("e", out=out, row_ids=nd.array([2, 0]))
    return [out.indices, out.tostype("default")]


def compressed_gradients():
    store = mx.kv.create("device")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init("a", nd.zeros(4))
    out = nd.zeros(4)
    results = []
    for _ in range(3):
        store.push("a", [nd.array([0.3, -0.9, 0.1, 0.6]), nd.array([0.3, 0, 0, 0])])
        store.pull("a", out=out)
        results.append(out.copy())
    return results


def store_as_the_argument_of_a_trainer():
    network = gluon.nn.Dense(2, in_units=3)
    network.initialize()
    fill(network.collect_params())
    trainer = gluon.Trainer(
        network.collect_params(),
        "sgd",
        {"learning_rate": 0.1},
        kvstore=mx.kv.create("local"),
        update_on_kvstore=True,
    )
    for _ in range(2):
        with autograd.record():
            loss = (network(ramp((2, 3))) ** 2).sum()
        loss.backward()
        trainer.step(2)
    return [network.weight.data(), error_of(trainer.allreduce_grads)]


def sparse_embedding_with_a_trainer():
    layer = gluon.nn.Embedding(4, 2, sparse_grad=True)
    layer.initialize()
    fill(layer.collect_params())
    trainer = gluon.Trainer(
        layer.collect_params(), "adam", {"learning_rate": 0.1, "lazy_update": True}
    )
    for row in ([0, 1], [1, 3]):
        with autograd.record():
            loss = (layer(nd.array(row)) ** 2).sum()
        loss.backward()
        trainer.step(1)
    return [layer.weight.data(), layer.weight.grad().stype]


def wrong_keys_are_errors():
    store = mx.kv.create("local")
    store.init("a", nd.zeros(2))
    return [
        error_of(lambda: store.init("a", nd.zeros(2))),
        error_of(lambda: store.push("b", nd.ones(2))),
    ]
