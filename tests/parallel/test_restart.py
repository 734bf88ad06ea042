"""`fit(resume=...)` and Gluon loops resume from the last state that all workers have."""

from __future__ import annotations

import json
import os
import signal
import sys

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, gluon
from tests.parallel.workers import ROOT, launch, launch_forked, run_forked, succeeded

QUICK = {"MXNET_KVSTORE_HEARTBEAT": 20}  # a kill is noticed by its connections; load is not one


def weights(processes):
    rows = [p.out.rpartition("]]")[0] + "]]" for p in succeeded(processes)]
    assert len(set(rows)) == 1  # all workers have equal weights
    return json.loads(rows[0])[0]


def test_gluon_loop_restarts_with_the_same_or_fewer_workers(tmp_path):
    expected = weights(run_forked(train_and_print, 2, str(tmp_path / "whole")))
    ended = run_forked(train_and_print, 2, str(tmp_path / "run"), 9, **QUICK)
    assert [e.status for e in ended] == [1, -9]
    again = run_forked(train_and_print, 2, str(tmp_path / "run"))
    assert weights(again) == expected  # bit for bit
    assert all(p.out.endswith(" 10\n") for p in again)  # of 18 steps, 8 were done
    ended = run_forked(train_and_print, 3, str(tmp_path / "fewer"), 7, **QUICK)
    assert [e.status for e in ended] == [1, -9, 1]
    again = run_forked(train_and_print, 2, str(tmp_path / "fewer"))
    # Of 4 steps an epoch, 6 are done; with 6 an epoch, the second epoch goes on after 3.
    assert all(p.out.endswith(" 9\n") for p in again) and len(weights(again)) == 21


def test_restarted_fit_equals_uninterrupted_fit(tmp_path):
    expected = weights(run_forked(fit_and_print, 2, None))
    ended = run_forked(fit_and_print, 2, str(tmp_path), 9, **QUICK)
    assert [e.status for e in ended] == [1, -9]
    again = run_forked(fit_and_print, 2, str(tmp_path))
    assert weights(again) == expected
    assert all(p.out.endswith(" 10\n") for p in again)  # of 18 batches, 8 were done


PROGRAM = """
import os, sys
from tests.parallel import test_restart
first = os.environ["MXNET_LAUNCH_ATTEMPT"] == "0"
getattr(test_restart, sys.argv[1])(sys.argv[2], 9 if first else None)
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", ["fit_and_print", "train_and_print"])
def test_launcher_restarts_killed_job_to_the_same_result(program, tmp_path):
    uninterrupted = None if program == "fit_and_print" else str(tmp_path / "whole")
    expected = weights(run_forked(globals()[program], 2, uninterrupted))
    (tmp_path / "run").mkdir()
    command = [sys.executable, "-c", PROGRAM, program, str(tmp_path / "run")]
    options = ["-n", "2", "--max-restarts", "1"]
    settings = {"PYTHONPATH": ROOT, "OMP_NUM_THREADS": 1, **QUICK}
    (launcher,) = run_forked(launch, 1, [*options, *command], timeout=240, **settings)
    assert launcher.status == 0, launcher.err
    assert "Rank 1 on" in launcher.err and "restart 1 of 1" in launcher.err
    for rank in (0, 1):
        assert f"[rank {rank}] {[expected]} 10\n" in launcher.out


def test_fit_resumes_with_fewer_workers(tmp_path):
    ended = run_forked(fit_and_print, 3, str(tmp_path), 7, **QUICK)
    assert [e.status for e in ended] == [1, -9, 1]
    again = run_forked(fit_and_print, 2, str(tmp_path))
    values = weights(again)
    assert max(abs(w - 1) for w in values) < 0.6  # it began with 0.1, and the data's weights are 1
    assert all(p.out.endswith(" 9\n") for p in again)  # epochs of 4, then of 6 batches


DEATHS = {4: 5, 3: 9, 2: 13}  # the step after which rank 1 dies, by number of workers


@pytest.mark.slow
def test_elastic_restarts_with_four_three_two_and_four_workers(tmp_path):
    (alone,) = run_forked(train_elastically, 1, str(tmp_path / "alone"))
    *_, expected = alone.out.splitlines()
    program = (train_elastically, str(tmp_path / "run"))
    fewer = ["-n", "4", "--min-workers", "2", "--max-restarts", "2"]
    (first,) = run_forked(launch_forked, 1, fewer, *program, timeout=300, **QUICK)
    assert first.status == 137, first.err
    (second,) = run_forked(launch_forked, 1, ["-n", "4"], *program, timeout=300, **QUICK)
    assert second.status == 0, second.err
    lines = (first.out + second.out).splitlines()
    starts = [line.partition("] ")[2] for line in lines if line.startswith("[rank 0] workers")]
    # Every attempt resumes from the last step saved before the failure.
    assert starts == [f"workers {n} from step {s}" for n, s in ((4, 0), (3, 4), (2, 8), (4, 12))]
    results = [json.loads(line.partition("] ")[2]) for line in lines if "] [" in line]
    assert len(results) == 4 and all(result == results[0] for result in results)
    np.testing.assert_allclose(results[0], json.loads(expected), rtol=1e-5)


def train_elastically(folder):
    """Train on all data in each step, so that results do not depend on the number of workers."""
    store, x, y = join_job()
    net = gluon.nn.Dense(1, in_units=3)
    net.initialize(mx.init.Constant(0.1))
    options = {"learning_rate": 0.1, "momentum": 0.9}
    trainer = gluon.Trainer(net.collect_params(), "sgd", options, kvstore=store)
    checkpoint = mx.checkpoint.load(folder, net=net, trainer=trainer)
    step = 0 if checkpoint is None else checkpoint.step
    print(f"workers {store.num_workers} from step {step}")
    while step < 16:
        with autograd.record():
            loss = gluon.loss.L2Loss()(net(mx.nd.array(x)), mx.nd.array(y))
        loss.backward()
        trainer.step(len(x) * store.num_workers)
        step += 1
        if step == DEATHS.get(store.num_workers) and store.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if step % 2 == 0:
            mx.checkpoint.save(folder, step, net=net, trainer=trainer)
    print([*net.weight.data().asnumpy().ravel().tolist(), net.bias.data().asscalar().item()])


def fit_and_print(folder, die_at=None):
    """Train by Module.fit with resume; rank 1 dies at some batch. Print the weights at the end."""
    store, x, y = join_job()
    data = mx.io.NDArrayIter(x, y, 4, shuffle=True)
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


def join_job():
    """Return a store, and this worker's part of the data, as programs split by rank."""
    store = mx.kvstore.create("dist_sync")
    x = np.random.RandomState(4).normal(size=(48, 3)).astype("float32")
    y = x.sum(1, keepdims=True)
    mx.random.seed(11 + store.rank)
    np.random.seed(11 + store.rank)  # noqa: NPY002 (what shuffles data uses it)
    length = len(x) // store.num_workers
    part = slice(store.rank * length, (store.rank + 1) * length)
    return store, x[part], y[part]


def train_and_print(folder, die_at=None):
    """Train by a plain Gluon loop with mx.checkpoint; rank 1 dies at some step."""
    store, x, y = join_job()
    dataset = gluon.data.ArrayDataset(x, y)
    data = mx.checkpoint.track(gluon.data.DataLoader(dataset, 4, shuffle=True))
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(4, in_units=3), gluon.nn.Dropout(0.2), gluon.nn.Dense(1, in_units=4))
    net.initialize(mx.init.Xavier())
    options = {"learning_rate": 0.05}
    trainer = gluon.Trainer(net.collect_params(), "adam", options, kvstore=store)
    checkpoint = mx.checkpoint.load(folder, net=net, trainer=trainer, data=data)
    step = done = 0 if checkpoint is None else checkpoint.step
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
