"""`mx.profiler` on servers of an asynchronous store."""

from __future__ import annotations

import json
from pathlib import Path

import mxnet as mx
from mxnet import nd, profiler
from tests.parallel.workers import run_forked_roles

LIMIT = 60  # seconds


def test_servers_profile_push_and_pull_calls(tmp_path: Path) -> None:
    ended = run_forked_roles(push_and_pull, 1, 1, str(tmp_path / "trace.json"), timeout=LIMIT)
    assert all(process.status == 0 for process in ended), [process.err for process in ended]
    events = json.loads((tmp_path / "rank0_trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == ["push", "pull", "push", "pull"]
    assert all(event["dur"] >= 0 and event["args"]["keys"] == ["w"] for event in events)
    assert events[0]["args"]["bytes"] > 4 * 1000


def push_and_pull(path: str) -> None:
    store = mx.kvstore.create("dist_async")
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.1))
    store.init("w", nd.zeros(1000))
    profiler.set_config(filename=path, profile_process="server")
    profiler.set_state("run", profile_process="server")
    out = nd.zeros(1000)
    for _ in range(2):
        store.push("w", nd.ones(1000))
        store.pull("w", out=out)
    profiler.set_state("stop", profile_process="server")
    store.pull("w", out=out)  # is not recorded
    profiler.dump(profile_process="server")
