"""Optimizer states sharded over workers give equal weights and files with less memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

import mxnet as mx
import mxnet.distributed as hvd
from mxnet import autograd, gluon, nd
from mxnet.parallel.sharding import Partition
from tests.parallel.workers import run_forked, succeeded


@pytest.mark.parametrize("workers", [2, 3])
def test_sharded_states_give_equal_weights(workers):
    for process in succeeded(run_forked(run_all, workers)):
        last = "small_models_and_unknown_optimizers_stay_whole"
        assert process.out.split()[-1] == last, process.out


def test_states_load_with_a_different_number_of_workers(tmp_path):
    path = str(tmp_path / "run.states")
    for workers in (3, 2):
        succeeded(run_forked(train_and_save, workers, path, 2))
    updater = mx.optimizer.get_updater(mx.optimizer.Adam())
    updater.set_states((tmp_path / "run.states").read_bytes())
    for key, shape in SHAPES.items():
        mean, square = updater.states[key]
        assert mean.shape == square.shape == shape
        assert np.all(square.asnumpy() > 0)


def test_partition_is_balanced_and_stable():
    partition = Partition(3, splits=True)
    partition.add({"a": (100, 100), "b": (2, 10_000), "c": (10,), "d": (9,)})
    assert partition["a"] == [(0, 34), (34, 67), (67, 100)]
    assert [stop - start for start, stop in partition["b"]] == [2, 0, 0]  # too few rows to split
    before = partition["a"], partition["c"]
    partition.add({"e": (4097,)})
    assert (partition["a"], partition["c"]) == before
    whole = Partition(2, splits=False)
    whole.add({"a": (100, 100), "b": (60, 100), "c": (50, 100)})
    assert [whole[key][0][1] for key in "abc"] == [100, 0, 0]


SHAPES = {"weight": (70, 90), "bias": (70,), "table": (5000, 2), "tall": (4099,)}
OPTIMIZERS = {
    "sgd": {"momentum": 0.9, "wd": 0.01},
    "adam": {},
    "rmsprop": {"centered": True},
    "adamw": {"wd": 0.01},
    "ftml": {},
    "lamb": {"wd": 0.01},
    "lars": {"momentum": 0.9},
}


def make_store(optimizer, settings, shard_mb, compression=None, dtype="float32"):
    """Return a store with weights and an optimizer, sharded above some size."""
    os.environ["MXNET_KVSTORE_SHARD_MB"] = str(shard_mb)
    store = mx.kvstore.create("dist_sync")
    if compression:
        store.set_gradient_compression({"type": compression})
    store.set_optimizer(mx.optimizer.create(optimizer, learning_rate=0.05, **settings))
    random = np.random.RandomState(1)
    values = [nd.array(random.normal(size=s), dtype=dtype) for s in SHAPES.values()]
    store.init(list(SHAPES), values)
    return store


def push_rounds(store, rounds, seed=0, dtype="float32"):
    """Push gradients that differ between ranks, and return the weights."""
    random = np.random.RandomState(100 * seed + store.rank)
    outs = [nd.zeros(shape, dtype=dtype) for shape in SHAPES.values()]
    for _ in range(rounds):
        # Sums of eighths are exact in any order.
        grads = [
            nd.array(np.round(random.normal(size=s) * 8) / 8, dtype=dtype) for s in SHAPES.values()
        ]
        store.push(list(SHAPES), grads)
        store.pull(list(SHAPES), outs)
    return [out.asnumpy() for out in outs]


def assert_close(actual, expected, tolerance=1e-6):
    """Compare lists of arrays."""
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def run_all():
    """Run all checks that share one job."""
    hvd.init()
    for check in (
        weights_equal_unsharded_ones,
        half_precision_and_compressed_gradients,
        sparse_gradients,
        each_worker_keeps_its_part,
        trainers_send_gradients_early,
        one_worker_saves_alone,
        small_models_and_unknown_optimizers_stay_whole,
    ):
        check()
        print(check.__name__, flush=True)


def weights_equal_unsharded_ones():
    for name, settings in OPTIMIZERS.items():
        held = [push_rounds(make_store(name, settings, mb), 3) for mb in (-1, 0)]
        assert_close(held[1], held[0])


def half_precision_and_compressed_gradients():
    for kind, tolerance in (("2bit", 1e-6), ("fp16", 1e-3)):
        held = [push_rounds(make_store("adam", {}, mb, kind), 3) for mb in (-1, 0)]
        assert_close(held[1], held[0], tolerance)
    settings = {"momentum": 0.9, "multi_precision": True}
    held = [
        push_rounds(make_store("sgd", settings, mb, dtype="float16"), 3, dtype="float16")
        for mb in (-1, 0)
    ]
    assert_close(held[1], held[0], 2e-3)


def sparse_gradients():
    for lazy in (True, False):
        held = []
        for mb in (-1, 0):
            store = make_store("adam", {"lazy_update": lazy}, mb)
            out = nd.zeros(SHAPES["table"])
            for number in range(3):
                rows = [store.rank, 1000 * store.rank + number, 4999]
                values = np.ones((3, 2)) * (store.rank + 1)
                grad = nd.sparse.row_sparse_array((values, rows), shape=SHAPES["table"])
                store.push("table", grad)
                store.pull("table", out=out)
            held.append([out.asnumpy()])
        assert_close(held[1], held[0])


def each_worker_keeps_its_part():
    store = make_store("adam", {}, 0)
    push_rounds(store, 1)
    whole = 2 * 4 * sum(int(np.prod(shape)) for shape in SHAPES.values())
    sizes = hvd.allgather_object(store._updater.nbytes)
    assert sum(sizes) == whole
    assert max(sizes) < whole / hvd.size() * 1.05


def trainers_send_gradients_early():
    random = np.random.RandomState(2)
    x, y = nd.array(random.normal(size=(6, 40))), nd.array(random.normal(size=(6, 1)))
    os.environ["MXNET_KVSTORE_BUCKET_MB"] = "0.01"
    weights = []
    for mb in (-1, 0):
        os.environ["MXNET_KVSTORE_SHARD_MB"] = str(mb)
        mx.random.seed(3)
        net = gluon.nn.HybridSequential()
        net.add(*[gluon.nn.Dense(70, activation="tanh") for _ in range(4)], gluon.nn.Dense(1))
        net.initialize(mx.init.Xavier())
        net(x)
        trainer = gluon.Trainer(net.collect_params(), "adam", kvstore="dist_sync")
        for _ in range(4):
            with autograd.record():
                loss = gluon.loss.L2Loss()(net(x + hvd.rank()), y)
            loss.backward()
            trainer.step(6)
        assert trainer._early and trainer._early_failures == 0
        weights.append([p.data().asnumpy() for p in net.collect_params().values()])
    del os.environ["MXNET_KVSTORE_BUCKET_MB"]
    assert_close(weights[1], weights[0], 1e-5)


def one_worker_saves_alone():
    whole, store = (make_store("adam", {}, mb) for mb in (-1, 0))
    for one in (whole, store):
        push_rounds(one, 2)
    with tempfile.TemporaryDirectory() as folder:
        if store.rank == 0:  # the others go on to the next push, and wait there
            store.save_optimizer_states(f"{folder}/sharded", dump_optimizer=True)
            whole.save_optimizer_states(f"{folder}/whole", dump_optimizer=True)
            states = []
            for name in ("sharded", "whole"):
                updater = mx.optimizer.get_updater(mx.optimizer.Adam())
                updater.set_states(Path(folder, name).read_bytes())
                assert updater.optimizer.num_update == 2
                states.append([updater.states[k][i].asnumpy() for k in SHAPES for i in (0, 1)])
            assert_close(*states)
        folder = hvd.broadcast_object(folder)  # rank 0 is here only after it has saved
        store.load_optimizer_states(f"{folder}/whole")
        whole.load_optimizer_states(f"{folder}/sharded")
        assert_close(push_rounds(store, 2, seed=5), push_rounds(whole, 2, seed=5))


def small_models_and_unknown_optimizers_stay_whole():
    class Own(mx.optimizer.SGD):
        def update(self, index, weight, grad, state):
            weight[:] -= self.learning_rate * grad

    for optimizer, mb in ((mx.optimizer.Adam(), 64), (mx.optimizer.Nadam(), 0), (Own(), 0)):
        os.environ["MXNET_KVSTORE_SHARD_MB"] = str(mb)
        store = mx.kvstore.create("dist_sync")
        store.set_optimizer(optimizer)
        store.init(list(SHAPES), [nd.zeros(shape) for shape in SHAPES.values()])
        push_rounds(store, 1)
        sizes = hvd.allgather_object(sorted(store._updater.states))
        assert sizes == [sorted(SHAPES)] * hvd.size()


def train_and_save(path, rounds):
    """Train by sharded Adam from saved states, if there are, and save on rank 0 at the end."""
    store = make_store("adam", {}, 0)
    if Path(path).exists():
        store.load_optimizer_states(path)
    weights = push_rounds(store, rounds, seed=store.num_workers)
    if store.rank == 0:  # the others are at their end by now
        store.save_optimizer_states(path)
        print(sum(float(np.abs(w).sum()) for w in weights))


@pytest.mark.slow
def test_fully_shard_trains_a_gluon_network_to_equal_losses(tmp_path):
    first, second = succeeded(run_forked(train_fully_sharded, 2, str(tmp_path), timeout=200))
    assert first.out == second.out == "same losses, same file\n"


def train_fully_sharded(folder):
    """Train a copy of a network with sharded weights; compare losses and the saved file."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mx.distributed.init()
    rank, size = mx.distributed.rank(), mx.distributed.size()
    nets = [build_layers() for _ in range(2)]
    nets[0].save_parameters(f"{folder}/start-{rank}.params")
    nets[1].load_parameters(f"{folder}/start-{rank}.params")
    whole, sharded = (net.as_torch() for net in nets)
    fully_shard(sharded, mesh=init_device_mesh("cpu", (size,)))
    own = sum(p.to_local().numel() for p in sharded.parameters())
    assert own * size == sum(p.numel() for p in whole.parameters())
    data = torch.randn(5, 8, 32, generator=torch.Generator().manual_seed(3))
    expected = train_by_adam(whole, data)
    part = data.chunk(size, dim=1)[rank]
    losses = mx.distributed.allreduce(mx.nd.array(train_by_adam(sharded, part)), average=True)
    np.testing.assert_allclose(losses.asnumpy(), expected, rtol=1e-4)
    values = get_model_state_dict(sharded, options=StateDictOptions(full_state_dict=True))
    mx.nd.save(f"{folder}/{rank}.params", {k: mx.nd.from_torch(v) for k, v in values.items()})
    nets[1].load_parameters(f"{folder}/{rank}.params")
    for one, other in zip(*(net.collect_params().values() for net in nets), strict=True):
        np.testing.assert_allclose(one.data().asnumpy(), other.data().asnumpy(), atol=1e-4)
    print("same losses, same file")


def build_layers():
    """Return a small network, initialized with the seed of rank 0."""
    mx.random.seed(5)
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(64, in_units=32, activation="tanh"))
    net.add(mx.gluon.nn.Dense(8, in_units=64))
    net.initialize(mx.init.Xavier())
    return net


def train_by_adam(module, batches):
    """Train by torch's Adam, and return the losses."""
    optimizer = torch.optim.Adam(module.parameters(), 0.01)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = module(batch).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
