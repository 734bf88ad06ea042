"""Distributed stores: sums, compression, optimizers and pushes at any time."""

from __future__ import annotations

import numpy as np

import mxnet as mx
import mxnet.distributed as hvd
from mxnet import nd


def compressed_sums_follow_mxnets_arithmetic():
    store = mx.kvstore.create("dist_sync")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init("w", nd.ones(40003) * 7)
    out = nd.zeros(40003)
    store.pull("w", out=out)
    assert out.asnumpy().tolist() == [7] * 40003  # first values travel as they are
    random = np.random.RandomState(5)
    residuals = np.zeros((hvd.size(), 40003), "float32")
    for _ in range(4):
        grads = random.normal(scale=0.6, size=residuals.shape).astype("float32")
        residuals += grads
        sent = np.where(residuals >= 0.5, 0.5, np.where(residuals <= -0.5, -0.5, 0))
        residuals -= sent.astype("float32")
        before = store.bytes_sent
        store.push("w", nd.array(grads[hvd.rank()]))
        store.pull("w", out=out)
        np.testing.assert_allclose(out.asnumpy(), sent.sum(0), atol=1e-6)
        floats = 2 * (hvd.size() - 1) / hvd.size() * 40003 * 4  # what their sum would send
        assert store.bytes_sent - before <= floats / 15


def half_precision_sums():
    for kind in ("fp16", "bf16"):
        store = mx.kvstore.create("dist_device_sync")
        store.set_gradient_compression({"type": kind})
        store.init("w", nd.zeros(4))
        out = nd.zeros(4)
        store.push("w", nd.array([0.5, 1, 2, 1 / 3]))
        store.pull("w", out=out)
        wanted = np.array([0.5, 1, 2, 1 / 3]) * hvd.size()
        np.testing.assert_allclose(out.asnumpy(), wanted, rtol=1e-2)


def every_name_sums():
    total = sum(range(1, hvd.size() + 1))
    names = ("dist", "dist_sync", "dist_device_sync", "dist_sync_device", "p3", "p3store_dist")
    for name in names:
        store = mx.kvstore.create(name)
        assert (store.type, store.rank, store.num_workers) == (name, hvd.rank(), hvd.size())
        store.init(3, nd.zeros(2))
        store.push(3, nd.ones(2) * 5)
        store.push(3, nd.ones(2) * (hvd.rank() + 1))  # the second round replaces the first
        out = nd.zeros(2)
        store.pull(3, out=out)
        assert out.asnumpy().tolist() == [total] * 2
    nccl = mx.kvstore.create("nccl")  # the devices of one process
    assert (nccl.rank, nccl.num_workers) == (0, 1)
    for name in ("horovod", "byteps"):
        store = mx.kvstore.create(name)
        assert (store.type, store.rank, store.num_workers) == (name, hvd.rank(), hvd.size())
        out = nd.zeros(2)
        store.broadcast("k", nd.ones(2) * (hvd.rank() + 4), out=out)
        assert out.asnumpy().tolist() == [4, 4]
        store.pushpull("k", out)
        assert out.asnumpy().tolist() == [4 * hvd.size()] * 2


def the_learning_rate_reaches_the_optimizer():
    for name in ("dist_sync", "dist_async"):
        store = mx.kvstore.create(name)
        optimizer = mx.optimizer.SGD(learning_rate=1.0)
        store.init(f"rate-{name}", nd.zeros(1))
        store.set_optimizer(optimizer)
        optimizer.set_learning_rate(0.25)
        store.barrier()
        out = nd.zeros(1)
        if store.rank == 0 or name == "dist_sync":
            store.push(f"rate-{name}", nd.ones(1))
        store.barrier()
        store.pull(f"rate-{name}", out=out)
        assert out.asscalar() == -0.25 * (hvd.size() if name == "dist_sync" else 1)


def states_are_saved_and_loaded():
    import tempfile

    store = mx.kvstore.create("dist_sync")
    store.init("w", nd.zeros(2))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0, momentum=0.5))
    store.push("w", nd.ones(2))
    with tempfile.TemporaryDirectory() as folder:
        store.save_optimizer_states(f"{folder}/states")
        store.push("w", nd.ones(2))
        store.load_optimizer_states(f"{folder}/states")
    store.push("w", nd.ones(2))
    out = nd.zeros(2)
    store.pull("w", out=out)
    # With two workers: momentum -2, -3, and from the saved -2 again -3.
    assert out.asnumpy().tolist() == [-4 * hvd.size()] * 2


def asynchronous_pushes_are_not_lost():
    for name in ("dist_async_device", "dist_device_async"):
        assert mx.kvstore.create(name).type == name
    store = mx.kvstore.create("dist_async")
    store.init(["x", "y", "z"], [nd.zeros(3) + hvd.rank()] * 3)
    store.init("rows", nd.zeros((4, 2)).tostype("row_sparse"))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0, rescale_grad=-1.0))
    out = nd.zeros(3)
    for number in range(1, 21):
        store.push(["x", "y", "z"], [nd.ones(3)] * 3)
        store.pull("y", out=out)
        assert out.asnumpy().min() >= number  # at least this worker's own
    row = nd.sparse.row_sparse_array((nd.ones((1, 2)), [hvd.rank()]), shape=(4, 2))
    store.push("rows", row)
    store.barrier()
    store.pull("z", out=out)
    assert out.asnumpy().tolist() == [20 * hvd.size()] * 3
    rows = nd.sparse.zeros("row_sparse", (4, 2))
    store.row_sparse_pull("rows", out=rows, row_ids=nd.array([1, 0, 1]))
    assert rows.indices.asnumpy().tolist() == [0, 1]
    assert rows.asnumpy().sum() == 2 * min(2, hvd.size())
