"""Record what workers of MXNet 1.9.1's distributed stores hold: sums, optimizers, training.

Run inside an MXNet 1.9.1 environment: python tests/golden/record/record_dist_kvstore.py
(with --missing: only jobs that are not in the file).
It starts a scheduler, servers and workers on this machine; each worker runs the stories.
"""

from __future__ import annotations

import json
import os
import pathlib
import socket
import subprocess
import sys

import numpy as np

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
ROUNDS = 4


def gradients(rank, devices, shape=(6,)):
    """Return the gradients of each round and device of a worker."""
    random = np.random.RandomState(7 + rank)
    return np.round(random.normal(scale=0.6, size=(ROUNDS, devices, *shape)) * 8) / 8


def held(array):
    """Return an array as rounded numbers."""
    return np.round(array.asnumpy().astype("float64"), 6).tolist()


def push_rounds(mx, store, key, devices):
    """Push the gradients of this worker round by round; return what is pulled after each."""
    out, rows = mx.nd.zeros(6), []
    for values in gradients(store.rank, devices):
        store.push(key, [mx.nd.array(v, ctx=mx.cpu(i)) for i, v in enumerate(values)])
        store.pull(key, out=out)
        rows.append(held(out))
    return rows


def store_stories(mx, store):
    """Yield (name, stored values) of a store without and with an optimizer."""
    store.init("w", mx.nd.ones(6) * (store.rank + 2))
    out = mx.nd.zeros(6)
    store.pull("w", out=out)
    yield "init", held(out)
    for devices in (1, 2):
        yield f"sum-{devices}", push_rounds(mx, store, "w", devices)
    store.pushpull("w", mx.nd.arange(6) * (store.rank + 1), out=out)
    yield "pushpull", held(out)
    store.broadcast("b", mx.nd.arange(6) + store.rank, out=out)
    yield "broadcast", held(out)
    store.init(["l1", "l2"], [mx.nd.zeros(6), mx.nd.zeros(6)])
    store.push(["l1", "l2"], [mx.nd.ones(6), mx.nd.ones(6) * (store.rank + 1)])
    outs = [mx.nd.zeros(6), mx.nd.zeros(6)]
    store.pull(["l1", "l2"], out=outs)
    yield "lists", [held(o) for o in outs]
    yield "rows", row_stories(mx, store)
    store._set_updater(lambda key, value, stored: stored.__imul__(0))
    yield "updater", push_rounds(mx, store, "b", 1)
    store.init("o", mx.nd.ones(6) * (store.rank + 1))
    store.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9, wd=0.01))
    yield "sgd", push_rounds(mx, store, "o", 2)


def row_stories(mx, store):
    """Return rows of row_sparse arrays after pushes of different rows."""
    start = mx.nd.array(np.arange(10).reshape(5, 2)).tostype("row_sparse")
    store.init("e", start)
    found = []
    for rows in ([1, 4], [store.num_workers]):
        place = np.array([store.rank, store.num_workers])  # all rows together: MXNet needs that
        values = np.ones((2, 2)) * (store.rank + 1)
        store.push("e", mx.nd.sparse.row_sparse_array((values, place), shape=(5, 2)))
        out = mx.nd.sparse.zeros("row_sparse", (5, 2))
        store.row_sparse_pull("e", out=out, row_ids=mx.nd.array([*rows, *rows]))
        found.append([out.indices.asnumpy().tolist(), held(out.tostype("default"))])
    return found


def compressed_story(mx, store):
    """Return what is pulled after pushes of 2-bit gradients; first values are not compressed."""
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init("c", mx.nd.arange(6) / 8)
    out = mx.nd.zeros(6)
    store.pull("c", out=out)
    return [held(out), *push_rounds(mx, store, "c", 1)]


def samples(rank, workers):
    """Return this worker's part of the data."""
    random = np.random.RandomState(3)
    x = np.round(random.normal(size=(24, 5)) * 8) / 8
    y = np.round(x.sum(1, keepdims=True) * 4) / 8
    return x[rank::workers].astype("float32"), y[rank::workers].astype("float32")


def trainer_story(mx, store, optimizer, on_kvstore):
    """Return the weights after some steps of a Trainer."""
    x, y = (mx.nd.array(v) for v in samples(store.rank, store.num_workers))
    net = mx.gluon.nn.Dense(1, in_units=5, prefix="net_")
    net.initialize(mx.init.Constant(0.1 * (store.rank + 1)))
    trainer = mx.gluon.Trainer(
        net.collect_params(),
        optimizer,
        {"learning_rate": 0.05},
        kvstore=store,
        update_on_kvstore=on_kvstore,
    )
    for _ in range(ROUNDS):
        with mx.autograd.record():
            loss = mx.gluon.loss.L2Loss()(net(x), y)
        loss.backward()
        trainer.step(24)
    return [held(net.weight.data()), held(net.bias.data())]


def module_story(mx, store):
    """Return the weights after an epoch of Module.fit."""
    x, y = samples(store.rank, store.num_workers)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    net = mx.sym.LinearRegressionOutput(net, mx.sym.Variable("label"), name="out")
    module = mx.mod.Module(net, label_names=["label"], context=mx.cpu())
    module.fit(
        mx.io.NDArrayIter(x, y, 4, label_name="label"),
        num_epoch=2,
        kvstore=store,
        initializer=mx.init.Constant(0.1 * (store.rank + 1)),
        optimizer_params={"learning_rate": 0.05, "momentum": 0.5},
        eval_metric="mse",
    )
    args, _ = module.get_params()
    return [held(args["fc_weight"]), held(args["fc_bias"])]


def stories(mx, which):
    """Run the stories of one job; the name of the store is part of `which`."""
    kind, _, story = which.partition(":")
    store = mx.kvstore.create(kind)
    if story == "store":
        return dict(store_stories(mx, store))
    if story == "compressed":
        return {story: compressed_story(mx, store)}
    if story == "module":
        return {story: module_story(mx, store)}
    _, optimizer, on_kvstore = story.split("-")
    return {story: trainer_story(mx, store, optimizer, on_kvstore == "True")}


# A store keeps its optimizer: in MXNet each job trains once.
JOBS = [
    ("dist_sync:store", 2, 1),
    ("dist_sync:store", 3, 1),
    ("dist_sync:store", 4, 2),
    ("dist_sync:compressed", 2, 1),
    ("dist_sync:compressed", 3, 1),
    ("dist_sync:compressed", 4, 2),
    ("dist_sync:trainer-sgd-True", 2, 1),
    ("dist_sync:trainer-adam-False", 2, 1),
    ("dist_sync:module", 2, 1),
    ("dist_device_sync:trainer-sgd-True", 2, 1),
]


def run_job(which, workers, servers):
    """Run one job on this machine and return the answers of its workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        **os.environ,
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_NUM_SERVER": str(servers),
        "DMLC_INTERFACE": "lo",
        "OMP_NUM_THREADS": "1",
    }
    roles = ["scheduler"] + ["server"] * servers + ["worker"] * workers
    started = [
        subprocess.Popen(
            [sys.executable, __file__, which],
            env={**settings, "DMLC_ROLE": role},
            stdout=subprocess.PIPE if role == "worker" else None,
            text=True,
        )
        for role in roles
    ]
    try:
        return [json.loads(p.communicate(timeout=150)[0]) for p in started[1 + servers :]]
    finally:
        for process in started:
            process.kill()


def assert_close(found, wanted, name):
    """Raise unless two trees of numbers are nearly equal."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), name
        for key, value in wanted.items():
            assert_close(found[key], value, "%s %s" % (name, key))
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), name
        for a, b in zip(found, wanted, strict=True):
            assert_close(a, b, name)
    else:
        assert abs(found - wanted) <= 3e-6, (name, found, wanted)


def main():
    """Write dist_kvstore.json, or run the stories of the given jobs as a worker."""
    if len(sys.argv) > 1 and sys.argv[1] != "--missing":
        import mxnet as mx

        for which in sys.argv[1:]:
            print(json.dumps(stories(mx, which)))
        return
    place = DATA / "dist_kvstore.json"
    rows = json.loads(place.read_text()) if "--missing" in sys.argv else {}
    for which, workers, servers in JOBS:
        if f"{which} {workers}" in rows:
            continue
        answers = run_job(which, workers, servers)
        for answer in answers:
            assert_close(answer, answers[0], which)
        rows[f"{which} {workers}"] = answers[0]
        text = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items())
        place.write_text("{\n" + text + "\n}\n")
    print(len(rows), "jobs")


if __name__ == "__main__":
    main()
