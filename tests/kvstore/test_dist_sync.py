"""Synchronous distributed stores: workers on loopback hold what MXNet 1.9.1's held."""

from __future__ import annotations

import json
import pathlib

import pytest

import mxnet as mx
from tests.distributed.forked import run_forked, run_forked_roles
from tests.distributed.jobs import succeeded
from tests.golden import record_dist_kvstore as recorder

RECORDER = pathlib.Path(recorder.__file__)
GOLDEN = json.loads((RECORDER.parent / "dist_kvstore.json").read_text())


def run_stories(names):
    # One process may have several stores, so all stories share it; MXNet needed one for each.
    for name in names:
        print(json.dumps(recorder.stories(mx, name)))


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_workers_hold_what_mxnet_holds(workers):
    names = [which for which, count, _ in recorder.JOBS if count == workers]
    for process in succeeded(run_forked(run_stories, workers, names)):
        for name, line in zip(names, process.out.splitlines(), strict=True):
            recorder.assert_close(json.loads(line), GOLDEN[f"{name} {workers}"], name)


def push_to_servers():
    store = mx.kvstore.create("dist_async")
    store.init(["w", "v"], [mx.nd.zeros(2) + store.rank] * 2)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
    store.push(["w", "v"], [mx.nd.ones(2)] * 2)
    store.barrier()
    out = mx.nd.zeros(2)
    store.pull("w", out=out)
    print(*store._owners, *out.asnumpy())


def test_the_roles_of_mxnets_launcher_serve_and_exit():
    ended = succeeded(run_forked_roles(push_to_servers, 2, 2))
    assert [e.role for e in ended] == ["scheduler", "server", "server", "worker", "worker"]
    assert [e.out for e in ended] == [*[""] * 3, *["server0 server1 -2.0 -2.0\n"] * 2]


def test_servers_of_a_synchronous_job_wait_for_its_end():
    ended = succeeded(run_forked_roles(run_stories, 2, 1, ["dist_sync:module"]))
    assert [e.out != "" for e in ended] == [False, False, True, True]
