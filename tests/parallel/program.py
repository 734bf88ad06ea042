"""A program as MXNet's users write them, for every role: servers do not get past `import mxnet`.

Gradients do not depend on weights, and all numbers are sums of powers of two, so the result of an
asynchronous job is known exactly, whatever the order of its pushes.
"""

import sys

import mxnet as mx

print("a program, not a server")  # servers do not get here

import numpy as np  # noqa: E402

from mxnet import autograd, gluon, nd  # noqa: E402

STEPS = 4


def train_by_trainer(kind, workers, rank):
    """Gluon's Trainer on a linear loss."""
    store = mx.kv.create(kind)
    net = gluon.nn.Dense(1, use_bias=False, in_units=4)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore=store)
    for _ in range(STEPS):
        with autograd.record():
            loss = net(nd.ones((2, 4)) * (rank + 1)).sum()
        loss.backward()
        trainer.step(2)
    store.barrier()
    out = nd.zeros((1, 4))
    store.pull(0, out=out)
    expected = 1 - 0.5 * STEPS * sum(range(1, workers + 1))
    assert out.asnumpy().tolist() == [[expected] * 4], (kind, out)


def train_by_module(kind, workers, rank):
    """`Module.fit` on batches of its own part, as train_mnist.py does."""
    store = mx.kv.create(kind)
    data = mx.io.NDArrayIter(np.ones((8, 3), "float32"), batch_size=2)
    output = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, no_bias=True, name="fc")
    module = mx.mod.Module(mx.sym.MakeLoss(output), label_names=None)
    settings = {"learning_rate": 0.25, "rescale_grad": 0.5}
    module.fit(
        data,
        eval_metric=mx.metric.Loss(),
        kvstore=store,
        optimizer="sgd",
        optimizer_params=settings,
        initializer=mx.init.One(),
        num_epoch=1,
    )
    store.barrier()
    out = nd.zeros((2, 3))
    store.pull("fc_weight", out=out)
    assert out.asnumpy().tolist() == [[1 - 0.25 * 4 * workers] * 3] * 2, (kind, out)


def train_sparse(kind, workers, rank):
    """Push and pull rows of a weight, as in MXNet's sparse linear classification example."""
    store = mx.kv.create(kind)
    store.init("rows", nd.zeros((6, 2)).tostype("row_sparse"))
    store.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.5))
    weight = nd.sparse.zeros("row_sparse", (6, 2))
    for _ in range(STEPS):
        store.row_sparse_pull("rows", out=weight, row_ids=nd.array([rank, 5]))
        gradient = nd.sparse.row_sparse_array((nd.ones((2, 2)), [rank, 5]), shape=(6, 2))
        store.push("rows", gradient)
    store.barrier()
    store.row_sparse_pull("rows", out=weight, row_ids=nd.arange(6))
    expected = np.zeros((6, 2))
    expected[:workers] = -0.5 * STEPS
    expected[5] = -0.5 * STEPS * workers
    assert weight.asnumpy().tolist() == expected.tolist(), (kind, weight)


def push_compressed(workers, rank):
    """Push with 2-bit gradient compression."""
    store = mx.kv.create("dist_sync")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init("bits", nd.zeros(3))
    store.push("bits", nd.array([0.75, -0.75, 0.25]))
    out = nd.zeros(3)
    store.pull("bits", out=out)
    assert out.asnumpy().tolist() == [0.5 * workers, -0.5 * workers, 0], out


def main():
    """Train in all ways, with all kinds of stores."""
    first = mx.kv.create("dist_async")
    workers, rank = first.num_workers, first.rank
    for kind in ("dist_async", "dist_sync"):
        for train in (train_by_trainer, train_by_module, train_sparse):
            train(kind, workers, rank)
            first.barrier()
    push_compressed(workers, rank)
    mx.distributed.init()
    assert mx.nd.ones(1).asscalar() == mx.distributed.allreduce(mx.nd.ones(1)).asscalar()
    print("DONE", rank, workers, *sys.argv[1:])


if __name__ == "__main__":
    main()
