"""Stores, Trainer, layers and Horovod's names on several workers, against one process."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
import mxnet.distributed as hvd
from mxnet import autograd, gluon, nd
from tests.parallel.workers import ROOT, run_forked, succeeded


@pytest.mark.parametrize("workers", [2, 3])
def test_results_of_workers_equal_one_process(workers):
    for process in succeeded(run_forked(run_all, workers)):
        assert process.out.split()[-1] == "asynchronous_pushes_are_not_lost", process.out


def test_gradient_compression_with_four_workers():
    for process in succeeded(run_forked(run_compressed, 4)):
        assert process.out == "done\n"


def test_job_with_one_worker():
    (process,) = succeeded(run_forked(run_some, 1))
    assert process.out == "done\n"


@pytest.mark.slow
def test_distributed_example_trains():
    pytest.importorskip("sklearn")
    first, second = succeeded(run_forked(train_the_example, 2))
    assert float(first.out.split()[-1]) > 0.8
    assert second.out == ""


def test_existing_torch_process_group_is_used():
    ended = succeeded(run_forked(the_program_may_start_torch_itself, 2))
    assert [e.out for e in ended] == ["0 [2.0, 2.0]\n", "1 [2.0, 2.0]\n"]


def run_all():
    """Run all checks that share one job of two workers."""
    hvd.init()
    for check in (
        compressed_sums_follow_mxnets_arithmetic,
        half_precision_sums,
        every_name_sums,
        trainers_equal_one_process,
        trainers_update_row_sparse_parameters,
        modules_equal_one_process,
        compressed_training_follows_mxnets_arithmetic,
        samplers_split_the_data,
        gradients_that_leave_early_equal_one_process,
        sparse_gradients_equal_one_process,
        synchronized_batch_norm_equals_the_joined_batch,
        horovod_programs_run,
        horovods_reductions,
        horovods_exchanges,
        process_sets_limit_collectives,
        mistakes_are_errors_on_all_workers,
        metrics_are_summed,
        estimator_equals_one_process,
        the_learning_rate_reaches_the_optimizer,
        states_are_saved_and_loaded,
        asynchronous_pushes_are_not_lost,
    ):
        check()
        print(check.__name__, flush=True)


def run_some():
    """Run checks that need no second worker."""
    hvd.init()
    every_name_sums()
    trainers_equal_one_process()
    metrics_are_summed()
    the_learning_rate_reaches_the_optimizer()
    asynchronous_pushes_are_not_lost()
    print("done")


def run_compressed():
    """Check 2-bit sums."""
    hvd.init()
    compressed_sums_follow_mxnets_arithmetic()
    print("done")


def train_the_example():
    """Run the example; its last line holds the accuracy."""
    import runpy
    import sys

    sys.argv = ["train_digits.py", "--epochs", "2"]
    runpy.run_path(str(ROOT / "examples" / "distributed" / "train_digits.py"), run_name="__main__")


def the_program_may_start_torch_itself():
    """Use a process group that the program has created."""
    import os

    import torch

    rank, size = (int(os.environ.pop(name)) for name in ("RANK", "WORLD_SIZE"))
    address = f"tcp://{os.environ.pop('MASTER_ADDR')}:{os.environ.pop('MASTER_PORT')}"
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=size)
    store = mx.kvstore.create("dist_sync")
    store.init("w", nd.zeros(2))
    store.push("w", nd.ones(2))
    out = nd.zeros(2)
    store.pull("w", out=out)
    print(store.rank, out.asnumpy().tolist())
    torch.distributed.destroy_process_group()


def compressed_sums_follow_mxnets_arithmetic():
    store = mx.kvstore.create("dist_sync")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init("w", nd.ones(40003) * 7)
    out = nd.zeros(40003)
    store.pull("w", out=out)
    assert out.asnumpy().tolist() == [7] * 40003  # initial values are not compressed
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
        expected = np.array([0.5, 1, 2, 1 / 3]) * hvd.size()
        np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-2)


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


STEPS = 3


def trained(store, x, y, total, **settings):
    """Return the weights after some steps of a Trainer."""
    mx.random.seed(3)
    net = gluon.nn.HybridSequential(prefix="")
    with net.name_scope():
        net.add(gluon.nn.Dense(5, activation="tanh"), gluon.nn.Dense(1))
    net.initialize(mx.init.Xavier())
    options = {"learning_rate": 0.1, "momentum": 0.9}
    trainer = gluon.Trainer(net.collect_params(), "sgd", options, kvstore=store, **settings)
    for _ in range(STEPS):
        with autograd.record():
            loss = gluon.loss.L2Loss()(net(x), y)
        loss.backward()
        trainer.step(total)
    return [p.data() for p in net.collect_params().values()]


def trainers_equal_one_process():
    random = np.random.RandomState(2)
    x, y = nd.array(random.normal(size=(8, 4))), nd.array(random.normal(size=(8, 1)))
    expected = trained(None, x, y, 8)
    for name in ("dist_sync", "dist_device_sync", "horovod"):
        for on_kvstore in (None, False) if name == "horovod" else (None, True, False):
            actual = trained(name, part(x), part(y), 8, update_on_kvstore=on_kvstore)
            for a, b in zip(actual, expected, strict=True):
                assert_same(a, b)


def trainers_update_row_sparse_parameters():
    """Each worker uses two rows, one of them shared with its neighbor."""
    rows = nd.array([hvd.rank(), hvd.rank() + 1])
    table = gluon.Parameter(
        "table", shape=(9, 2), init="ones", stype="row_sparse", grad_stype="row_sparse"
    )
    table.initialize()
    trainer = gluon.Trainer([table], "sgd", {"learning_rate": 0.5}, kvstore="dist_sync")
    for _ in range(STEPS):
        with autograd.record():
            used = nd.Embedding(
                rows, table.row_sparse_data(rows), input_dim=9, output_dim=2, sparse_grad=True
            )
        used.backward()
        trainer.step(1)
    uses = np.bincount([r + i for r in range(hvd.size()) for i in (0, 1)], minlength=9)
    actual = table.row_sparse_data(nd.arange(9)).asnumpy()
    np.testing.assert_array_equal(actual, 1 - 0.5 * STEPS * uses[:, None].repeat(2, 1))


def modules_equal_one_process():
    random = np.random.RandomState(2)
    x, y = random.normal(size=(12, 4)), random.normal(size=(12, 1))
    for sparse in (False, True):
        weights = []
        for store, take in ((None, lambda a: a), ("dist_sync", part)):
            data = mx.sym.Variable("data")
            if sparse:  # the gradient of the table has the rows that the tokens name
                table = mx.sym.Variable("table_weight", stype="row_sparse")
                rows = mx.sym.contrib.SparseEmbedding(
                    data, table, input_dim=9, output_dim=2, name="table"
                )
                net = mx.sym.sum(rows, axis=(1, 2), keepdims=True).reshape((-1, 1))
            else:
                net = mx.sym.FullyConnected(data, num_hidden=1, name="fc")
            net = mx.sym.LinearRegressionOutput(net, mx.sym.Variable("label"), name="out")
            samples = np.abs(x * 2).astype("int32") % 9 if sparse else x
            batches = mx.io.NDArrayIter(
                take(samples.astype("float32")),
                take(y),
                12 if store is None else 12 // hvd.size(),
                label_name="label",
            )
            module = mx.mod.Module(net, label_names=["label"], context=mx.cpu())
            module.bind(batches.provide_data, batches.provide_label)
            module.init_params(mx.init.Constant(0.1))
            options = {"learning_rate": 0.1, "rescale_grad": 1 / 12}
            chosen = mx.kvstore.create(store) if store else None
            module.init_optimizer(chosen, "sgd", options)
            for _ in range(STEPS):
                batches.reset()
                batch = batches.next()
                if sparse and store:
                    module.prepare(batch, sparse_row_id_fn=lambda b: {"table_weight": b.data[0]})
                module.forward_backward(batch)
                module.update()
            if sparse and store:
                every = lambda b: {"table_weight": nd.arange(9)}  # noqa: E731
                module.prepare(batch, sparse_row_id_fn=every)
            (weight,) = (v for k, v in module.get_params()[0].items() if "weight" in k)
            weights.append(weight.tostype("default"))
        assert_same(weights[1], weights[0])


def compressed_training_follows_mxnets_arithmetic():
    """Trainer and Module update by the sum of the 2-bit gradients."""
    random = np.random.RandomState(6)
    x = random.normal(size=(hvd.size(), 8, 5)).astype("float32")
    settings = {"type": "2bit", "threshold": 0.5}
    expected, residuals = np.full((1, 5), 0.2, "float32"), np.zeros((hvd.size(), 1, 5), "float32")
    for _ in range(STEPS):
        residuals += x.sum(1, keepdims=True)  # the gradient of the sum of all outputs
        sent = np.where(residuals >= 0.5, 0.5, np.where(residuals <= -0.5, -0.5, 0))
        residuals -= sent.astype("float32")
        expected -= 0.1 * sent.sum(0).astype("float32")
    net = gluon.nn.Dense(1, use_bias=False, in_units=5)
    net.initialize(mx.init.Constant(0.2))
    options = {"learning_rate": 0.1}
    trainer = gluon.Trainer(
        net.collect_params(), "sgd", options, kvstore="dist_sync", compression_params=settings
    )
    symbol = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, no_bias=True, name="fc")
    module = mx.mod.Module(
        mx.sym.MakeLoss(symbol), label_names=None, context=mx.cpu(), compression_params=settings
    )
    module.bind([("data", (8, 5))])
    module.init_params(mx.init.Constant(0.2))
    module.init_optimizer(mx.kvstore.create("dist_sync"), "sgd", {**options, "rescale_grad": 1.0})
    mine = nd.array(x[hvd.rank()])
    for _ in range(STEPS):
        with autograd.record():
            loss = net(mine)
        loss.backward()
        trainer.step(1)
        module.forward_backward(mx.io.DataBatch([mine]))
        module.update()
    assert_same(net.weight.data(), nd.array(expected))
    assert_same(module.get_params()[0]["fc_weight"], nd.array(expected))


def samplers_split_the_data():
    """A sampler as in MXNet's tutorials, and iterators with part_index and num_parts."""

    class SplitSampler(gluon.data.sampler.Sampler):
        def __init__(self, length, num_parts, part_index):
            self.part_len = length // num_parts
            self.start = self.part_len * part_index

        def __iter__(self):
            indices = list(range(self.start, self.start + self.part_len))
            np.random.shuffle(indices)  # noqa: NPY002 (as the tutorials do)
            return iter(indices)

        def __len__(self):
            return self.part_len

    dataset = gluon.data.ArrayDataset(nd.arange(12))
    store = mx.kvstore.create("dist_sync")
    sampler = SplitSampler(12, store.num_workers, store.rank)
    batches = list(gluon.data.DataLoader(dataset, 2, sampler=sampler))
    seen = [int(v) for batch in batches for v in batch.asnumpy()]
    assert sorted(sum(hvd.allgather_object(seen), [])) == list(range(12))  # noqa: RUF017


def gradients_that_leave_early_equal_one_process():
    import os

    random = np.random.RandomState(2)
    x, y = nd.array(random.normal(size=(8, 4))), nd.array(random.normal(size=(8, 1)))

    def train(store, x, y, change):
        mx.random.seed(3)
        net = gluon.nn.HybridSequential(prefix="")
        net.add(*[gluon.nn.Dense(6, activation="tanh") for _ in range(3)], gluon.nn.Dense(1))
        net.initialize(mx.init.Xavier())
        net(x)
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1}, store)
        for number in range(6):
            with autograd.record():
                loss = gluon.loss.L2Loss()(net(x), y)
            loss.backward()
            if number in change and (store is None or hvd.rank() == 0):
                net[3].weight.grad()[:] = 0.5
            elif number in change:
                net[3].weight.grad()[:] = 0
            trainer.step(8)
        return trainer, [p.data() for p in net.collect_params().values()]

    os.environ["MXNET_KVSTORE_BUCKET_MB"] = "0.0001"  # buckets of about 25 numbers
    for change in ((), (3,), (2, 4)):
        # Rank 0 sets a gradient and the others clear theirs, so the sum is known.
        _, expected = train(None, x, y, change)
        trainer, actual = train("dist_sync", part(x), part(y), change)
        assert trainer._early_failures == len(change)
        assert bool(trainer._early) is (len(change) < 2)
        for a, b in zip(actual, expected, strict=True):
            assert_same(a, b, 1e-5)
    del os.environ["MXNET_KVSTORE_BUCKET_MB"]


def sparse_gradients_equal_one_process():
    tokens = np.array([[0, 3], [3, 5], [1, 3], [7, 7]])
    for settings in ({}, {"update_on_kvstore": True}):
        weights = []
        for store, rows in ((None, nd.array(tokens)), ("dist_sync", nd.array(part(tokens)))):
            layer = gluon.nn.Embedding(8, 3, sparse_grad=True)
            layer.initialize(mx.init.Constant(0.5))
            chosen = settings if store else {}
            options = {"learning_rate": 0.1}
            trainer = gluon.Trainer(layer.collect_params(), "sgd", options, store, **chosen)
            for _ in range(STEPS):
                with autograd.record():
                    loss = (layer(rows) ** 2).sum()
                loss.backward()
                trainer.step(4)
            weights.append(layer.weight.data())
        assert_same(weights[1], weights[0])


def synchronized_batch_norm_equals_the_joined_batch():
    data = np.random.RandomState(1).normal(loc=2, size=(6, 3, 2, 2)).astype("float32")
    weights = np.random.RandomState(2).normal(size=data.shape).astype("float32")
    held = []
    for layer, take in (
        (gluon.nn.BatchNorm(in_channels=3, epsilon=1e-5), lambda a: a),
        (gluon.contrib.nn.SyncBatchNorm(in_channels=3), part),
    ):
        layer.initialize()
        x = nd.array(take(data))
        x.attach_grad()
        with autograd.record():
            y = layer(x)
            loss = (y * nd.array(take(weights))).sum()
        loss.backward()
        held.append((y, x.grad, layer.running_mean.data(), layer.running_var.data()))
    for actual, expected in zip(held[1][:2], held[0][:2], strict=True):
        assert_same(actual, nd.array(part(expected.asnumpy())), 1e-5)
    for actual, expected in zip(held[1][2:], held[0][2:], strict=True):
        assert_same(actual, expected, 1e-5)


def horovod_programs_run():
    n, rank = hvd.size(), hvd.rank()
    assert hvd.local_size() == n and hvd.local_rank() == rank and hvd.is_homogeneous()
    mean = hvd.allreduce(nd.ones(2) * rank, name="x")
    assert mean.asnumpy().tolist() == [(n - 1) / 2] * 2
    assert hvd.allreduce(nd.ones(1), average=False).asscalar() == n
    both = hvd.grouped_allreduce([nd.ones(1), nd.ones(2) * rank], average=False)
    assert [b.asnumpy().tolist() for b in both] == [[n], [n * (n - 1) / 2] * 2]
    joined = hvd.allgather(nd.ones((rank + 1, 2)) * rank)
    assert joined.shape == (n * (n + 1) // 2, 2) and joined.asnumpy()[-1, 0] == n - 1
    assert hvd.broadcast(nd.ones(2) * rank, root_rank=1).asnumpy().tolist() == [1, 1]
    assert hvd.broadcast_object({"rank": rank}, root_rank=1) == {"rank": 1}
    assert hvd.allgather_object(rank) == list(range(n))
    rows = hvd.alltoall(nd.arange(n) + 10 * rank)
    assert rows.asnumpy().tolist() == [10 * r + rank for r in range(n)]

    net = gluon.nn.Dense(1, in_units=2)
    net.initialize(mx.init.Constant(rank + 1.0))
    params = net.collect_params()
    hvd.broadcast_parameters(params, root_rank=1)
    assert net.weight.data().asnumpy().tolist() == [[2, 2]]
    half = hvd.Compression.fp16
    trainer = hvd.DistributedTrainer(params, "sgd", {"learning_rate": 1.0}, compression=half)
    with autograd.record():
        loss = net(nd.ones((1, 2)) * (rank + 1)).sum()
    loss.backward()
    trainer.step(1)
    np.testing.assert_allclose(net.weight.data().asnumpy(), [[2 - (n + 1) / 2] * 2], atol=1e-6)

    update = mx.optimizer.get_updater(hvd.DistributedOptimizer(mx.optimizer.SGD(learning_rate=1.0)))
    weight = nd.zeros(2)
    update(0, nd.ones(2) * (rank + 1), weight)
    np.testing.assert_allclose(weight.asnumpy(), [-(n + 1) / 2] * 2, atol=1e-6)


def horovods_reductions():
    """The numbers are those of Horovod's own tests."""
    n, rank = hvd.size(), hvd.rank()
    own = nd.array([rank + 1, -rank])
    for op, expected in (
        (hvd.Sum, [n * (n + 1) / 2, -n * (n - 1) / 2]),
        (hvd.Average, [(n + 1) / 2, -(n - 1) / 2]),
        (hvd.Min, [1, -(n - 1)]),
        (hvd.Max, [n, 0]),
        (hvd.Product, [np.prod(range(1, n + 1)), 0]),
    ):
        assert hvd.allreduce(own, op=op).asnumpy().tolist() == expected
        rows = nd.broadcast_to(own.reshape((1, 2)), (n + 1, 2))
        part = hvd.reducescatter(rows, op=op)  # the first worker gets two rows, the others one
        assert part.asnumpy().tolist() == [expected] * (2 if rank == 0 else 1)
    integers = nd.array([3, 5, -7], dtype="int32")
    scaled = hvd.allreduce(integers, average=False, prescale_factor=0.3)
    assert scaled.asnumpy().tolist() == [0, n, -2 * n] and scaled.dtype == np.int32
    scaled = hvd.allreduce(integers, postscale_factor=0.5)
    assert scaled.asnumpy().tolist() == [1, 2, -3]
    pair = hvd.grouped_reducescatter([nd.ones(n), nd.ones((n, 2))], op=hvd.Sum)
    assert [p.asnumpy().tolist() for p in pair] == [[n], [[n, n]]]


def horovods_exchanges():
    n, rank = hvd.size(), hvd.rank()
    first, second = hvd.grouped_allgather([nd.ones(rank + 1), nd.ones((1, 2)) * rank])
    assert first.shape == (n * (n + 1) // 2,)
    assert second.asnumpy().tolist() == [[r, r] for r in range(n)]
    for dtype in ("float32", "int64", "float16", "uint8"):
        rows = nd.array(np.repeat(np.arange(n), rank + 1)[:, None].repeat(2, 1), dtype=dtype)
        out, counts = hvd.alltoall(rows, splits=nd.array([rank + 1] * n, dtype="int32"))
        assert out.asnumpy().tolist() == [[rank, rank]] * (n * (n + 1) // 2)
        assert np.dtype(out.dtype) == dtype
        assert counts.asnumpy().tolist() == list(range(1, n + 1)) and counts.dtype == np.int32
    out, counts = hvd.alltoall(nd.arange(5), splits=[2] + [0] * (n - 1))  # rows may be left over
    assert out.asnumpy().tolist() == [0, 1] * (n if rank == 0 else 0)


def process_sets_limit_collectives():
    n, rank = hvd.size(), hvd.rank()
    last = hvd.add_process_set([n - 1])
    both = hvd.add_process_set(hvd.ProcessSet([0, 1]))
    assert (last.size(), both.size()) == (1, 2) and both.included() is (rank < 2)
    if both.included():
        assert both.rank() == rank
        assert hvd.allreduce(nd.ones(1) * rank, process_set=both).asscalar() == 0.5
        assert hvd.broadcast(nd.ones(1) * rank, root_rank=1, process_set=both).asscalar() == 1
        assert hvd.allgather(nd.ones(1) * rank, process_set=both).asnumpy().tolist() == [0, 1]
        assert hvd.allgather_object(rank, process_set=both) == [0, 1]
        net = gluon.nn.Dense(1, in_units=1, use_bias=False)
        net.initialize(mx.init.One())
        trainer = hvd.DistributedTrainer(
            net.collect_params(), "sgd", {"learning_rate": 1.0}, process_set=both
        )
        with autograd.record():
            loss = net(nd.ones((1, 1)) * (rank + 1)).sum()
        loss.backward()
        trainer.step(1)
        assert net.weight.data().asscalar() == 1 - 1.5
    else:
        with pytest.raises(mx.MXNetError, match=f"Rank {rank} is not in ProcessSet"):
            hvd.allreduce(nd.ones(1), process_set=both)
    with pytest.raises(ValueError, match="already"):
        hvd.add_process_set([0, 1])
    assert hvd.remove_process_set(both) and not hvd.remove_process_set(both)
    assert hvd.remove_process_set(last)
    with pytest.raises(mx.MXNetError, match="was not added"):
        hvd.barrier(both)


def mistakes_are_errors_on_all_workers():
    """An invalid call of only one worker raises on all of them, without a hang or an abort."""
    n, rank = hvd.size(), hvd.rank()
    is_odd = rank == 1
    other = np.float64 if is_odd else np.float32
    for call in (
        lambda: hvd.broadcast(nd.ones(2 + is_odd), root_rank=0),
        lambda: hvd.broadcast(nd.ones(2, dtype=other), root_rank=0),
        lambda: hvd.broadcast(nd.ones(2), root_rank=int(is_odd)),
        lambda: hvd.broadcast_object(1, root_rank=int(is_odd)),
        lambda: hvd.broadcast_parameters({"w": nd.ones(2 + is_odd)}),
        lambda: hvd.allgather(nd.ones((2, 2 + is_odd))),
        lambda: hvd.allgather(nd.ones(2, dtype=other)),
        lambda: hvd.allgather(nd.ones((2,) * (1 + is_odd))),
        lambda: hvd.alltoall(nd.ones((n, 2 + is_odd))),
        lambda: hvd.alltoall(nd.ones(n, dtype=other)),
        lambda: hvd.allreduce(nd.ones(2 + is_odd), op=hvd.Max),
        lambda: hvd.allreduce(nd.ones(2), op=hvd.Max if is_odd else hvd.Min),
        lambda: hvd.reducescatter(nd.ones(2 + is_odd)),
        lambda: hvd.broadcast(nd.ones(2), root_rank=0) if is_odd else hvd.allgather(nd.ones(2)),
        lambda: hvd.add_process_set([0] if is_odd else [1]),
    ):
        with pytest.raises(hvd.Disagreement, match="rank 1"):
            call()
    for splits, text in (
        ([1.0] * n, "splits must be integers, got float32"),
        (nd.ones(n), "splits must be integers, got float32"),
        ([n] * n, "cannot be split"),
        ([1] * (n + 1), "cannot be split"),
    ):
        with pytest.raises(mx.MXNetError, match=text):
            hvd.alltoall(nd.ones(n), splits=splits)
        expected = text if is_odd else "Workers differ in alltoall"
        with pytest.raises(mx.MXNetError, match=expected):  # on all, if one is wrong
            hvd.alltoall(nd.ones(n), splits=splits if is_odd else [1] * n)
    for call, text in (
        (lambda: hvd.alltoall(nd.ones(n + 1)), "cannot be split evenly"),
        (lambda: hvd.allreduce(nd.ones(1), op=hvd.Adasum), "Adasum is not supported"),
        (lambda: hvd.allreduce(nd.ones(1), average=True, op=hvd.Sum), "not both"),
        (lambda: hvd.broadcast(nd.ones(1), root_rank=n), f"root_rank {n} is not among"),
    ):
        with pytest.raises(mx.MXNetError, match=text):
            call()


def metrics_are_summed():
    metric = mx.metric.create(["acc", "mae"])
    labels, scores = nd.array([0, 1]), nd.array([[0.9, 0.1], [0.8, 0.2]])
    metric.get_metric(0).update([labels], [scores if hvd.rank() else scores[::-1]])
    metric.get_metric(1).update([nd.zeros(2)], [nd.ones(2) * hvd.rank()])
    hvd.reduce_metric(metric)
    names = dict(metric.get_name_value())
    assert names["accuracy"] == 0.5 and names["mae"] == (hvd.size() - 1) / 2


def estimator_equals_one_process():
    """Train by an Estimator with a distributed Trainer."""
    from mxnet.gluon.contrib import estimator

    random = np.random.RandomState(2)
    data = random.normal(size=(12, 4)).astype("float32"), random.normal(size=(12, 1))
    weights = []
    for store, take in ((None, lambda a: a), ("dist_sync", part)):
        net = gluon.nn.Dense(1, in_units=4)
        net.initialize(mx.init.Constant(0.3))
        options = {"learning_rate": 0.1, "rescale_grad": 1 / 12}
        trainer = gluon.Trainer(net.collect_params(), "sgd", options, kvstore=store)
        dataset = gluon.data.ArrayDataset(*(take(a).astype("float32") for a in data))
        fit = estimator.Estimator(net, gluon.loss.L2Loss(), trainer=trainer, context=mx.cpu())
        fit.logger.setLevel("ERROR")
        handler = estimator.StoppingHandler(max_epoch=3)
        size = len(dataset)
        trainer._scale *= size  # step divides by the size of this worker's batch
        fit.fit(gluon.data.DataLoader(dataset, size), event_handlers=[handler], epochs=3)
        weights.append(net.weight.data())
    assert_same(weights[1], weights[0])


def part(array):
    """Return this worker's part of an array."""
    return array[hvd.rank() :: hvd.size()]


def assert_same(actual, expected, tolerance=1e-6):
    np.testing.assert_allclose(actual.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=tolerance)
