"""Programs that resume: one worker dies at some step, and all start again."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon


def fit_and_print(folder, die_at=None):
    """Train by Module.fit with resume; rank 1 dies at some batch. Print the weights at the end."""
    import os
    import signal

    store = mx.kvstore.create("dist_sync")
    random = np.random.RandomState(4)
    x = random.normal(size=(48, 3)).astype("float32")
    y = x.sum(1, keepdims=True)
    mx.random.seed(11 + store.rank)
    np.random.seed(11 + store.rank)  # noqa: NPY002 (NDArrayIter shuffles by it)
    data = mx.io.NDArrayIter(part_of(x, store), part_of(y, store), 4, shuffle=True)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    net = mx.sym.LinearRegressionOutput(net, mx.sym.Variable("softmax_label"), name="out")
    seen = [0]

    def callback(param):
        seen[0] += 1
        if seen[0] == die_at and store.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    module = mx.mod.Module(net, context=mx.cpu())
    module.fit(
        data,
        num_epoch=3,
        kvstore=store,
        initializer=mx.init.Constant(0.1),
        optimizer_params={"learning_rate": 0.05, "momentum": 0.9},
        eval_metric="mse",
        batch_end_callback=callback,
        resume=None if folder is None else f"{folder}/run",
        resume_every=None if folder is None else 2,
    )
    print(module.get_params()[0]["fc_weight"].asnumpy().tolist(), seen[0])


def part_of(array, store):
    """Return the part of a worker, as programs split by rank."""
    length = len(array) // store.num_workers
    return array[store.rank * length : (store.rank + 1) * length]


def train_and_print(folder, die_at=None):
    """Train by a plain Gluon loop with mx.checkpoint; rank 1 dies at some step."""
    import os
    import signal

    store = mx.kvstore.create("dist_sync")
    random = np.random.RandomState(4)
    x = random.normal(size=(48, 3)).astype("float32")
    y = x.sum(1, keepdims=True)
    mx.random.seed(11 + store.rank)
    np.random.seed(11 + store.rank)  # noqa: NPY002 (RandomSampler shuffles by it)
    dataset = gluon.data.ArrayDataset(part_of(x, store), part_of(y, store))
    data = mx.checkpoint.track(gluon.data.DataLoader(dataset, 4, shuffle=True))
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(4, in_units=3), gluon.nn.Dropout(0.2), gluon.nn.Dense(1, in_units=4))
    net.initialize(mx.init.Xavier())
    options = {"learning_rate": 0.05}
    trainer = gluon.Trainer(net.collect_params(), "adam", options, kvstore=store)
    found = mx.checkpoint.load(folder, net=net, trainer=trainer, data=data)
    step = done = 0 if found is None else found.step
    while data.epoch < 3:
        for images, labels in data:
            with autograd.record():
                loss = gluon.loss.L2Loss()(net(images), labels)
            loss.backward()
            trainer.step(4 * store.num_workers)
            step += 1
            if step == die_at and store.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if step % 2 == 0:
                mx.checkpoint.save(folder, step, net=net, trainer=trainer, data=data)
    weights = np.concatenate([p.data().asnumpy().ravel() for p in net.collect_params().values()])
    print([weights.tolist()], step - done)
