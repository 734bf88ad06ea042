"""Loading parameters during distributed training."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from tests.parallel.workers import run_forked, run_forked_roles, succeeded

LIMIT = 60  # seconds; a collective without partners would wait for 300


@pytest.mark.parametrize("is_named", [True, False])
def test_parameters_loaded_by_all_workers_are_used(is_named: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ended = succeeded(run_forked(load_on_all, 2, is_named, folder, timeout=LIMIT))
    assert ended[0].out == ended[1].out != ""


@pytest.mark.parametrize("is_named", [True, False])
def test_parameters_loaded_by_one_worker_raise_on_all(is_named: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ended = run_forked(load_on_one, 2, is_named, folder, timeout=LIMIT)
    for process in ended:
        assert process.status == 0, process.err
        assert "Workers push different keys at the same time" in process.out
        assert "weights overwritten (keys 0, 1; checksum" in process.out


def test_different_parameters_loaded_by_workers_raise_on_all() -> None:
    ended = run_forked(load_different_values, 2, timeout=LIMIT)
    assert all("Workers push different keys" in process.out for process in ended)


def test_loading_parameters_with_an_asynchronous_store_raises() -> None:
    ended = run_forked_roles(load_beside_servers, workers=1, servers=1, timeout=LIMIT)
    (worker,) = (process for process in ended if process.role.startswith("worker"))
    assert "Cannot reset distributed KVStore" in worker.out, worker.err


def begin(store: str | mx.kvstore.KVStore) -> tuple[gluon.nn.Dense, gluon.Trainer]:
    """Return a layer and its trainer after one step."""
    net = gluon.nn.Dense(1, in_units=2)
    net.initialize(mx.init.One())
    settings = {"learning_rate": 0.1, "momentum": 0.9}
    trainer = gluon.Trainer(net.collect_params(), "sgd", settings, kvstore=store)
    step(net, trainer)
    return net, trainer


def step(net: gluon.nn.Dense, trainer: gluon.Trainer) -> None:
    with autograd.record():
        loss = net(nd.array([[1.0, 2.0]])).sum()
    loss.backward()
    trainer.step(1)


def make_store(is_named: bool) -> str | mx.kvstore.KVStore:
    return "dist_sync" if is_named else mx.kvstore.create("dist_sync")


def save_zeros(folder: str) -> str:
    path = str(Path(folder, f"{os.getpid()}.params"))
    zeros = gluon.nn.Dense(1, in_units=2)
    zeros.initialize(mx.init.Zero())
    zeros.save_parameters(path)
    return path


def load_on_all(is_named: bool, folder: str) -> None:
    net, trainer = begin(make_store(is_named))
    net.load_parameters(save_zeros(folder))
    step(net, trainer)  # momentum stays: 0 - (0.9 * 0.1 g + 0.1 g), g summed over two workers
    np.testing.assert_allclose(net.weight.data().asnumpy(), [[-0.38, -0.76]], rtol=1e-5)
    step(net, trainer)
    print(net.weight.data().asnumpy(), flush=True)


def load_on_one(is_named: bool, folder: str) -> None:
    net, trainer = begin(make_store(is_named))
    if trainer._kvstore.rank == 0:
        net.load_parameters(save_zeros(folder))
    with pytest.raises(mx.base.MXNetError) as caught:
        step(net, trainer)
    print(caught.value, flush=True)


def load_different_values() -> None:
    net, trainer = begin("dist_sync")
    net.weight.set_data(nd.full((1, 2), trainer._kvstore.rank))
    with pytest.raises(mx.base.MXNetError) as caught:
        step(net, trainer)
    print(caught.value, flush=True)


def load_beside_servers() -> None:
    net, _ = begin("dist_async")
    with pytest.raises(mx.base.MXNetError) as caught:
        net.weight.set_data(nd.zeros((1, 2)))
    print(caught.value, flush=True)
