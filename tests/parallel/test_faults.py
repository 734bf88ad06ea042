"""A failed worker is reported by all others within seconds, and nothing hangs."""

from __future__ import annotations

import os
import signal
import socket
import time

import pytest

import mxnet as mx
from mxnet.parallel.group import Group
from mxnet.parallel.heartbeat import HeartbeatMonitor, WorkerFailed
from mxnet.parallel.store import JobStore, StoreServer
from tests.parallel.workers import run_forked, succeeded

LIMIT = 100  # seconds; a few on an idle machine
QUICK = {"MXNET_KVSTORE_HEARTBEAT": 3, "MXNET_KVSTORE_TIMEOUT": 3}
EXPECTED = {
    "killed": "was killed, crashed or is frozen",
    "frozen": "was killed, crashed or is frozen",
    "raises": "raised ValueError: no such picture",
    "ends": "ended its program while others still needed it",
    "stuck": "did not take part in the sum of key w within 3 s",
}


@pytest.mark.parametrize("fault", EXPECTED)
def test_every_other_rank_reports_the_failed_rank(fault):
    workers = 3 if fault == "killed" else 2
    settings = QUICK if fault != "frozen" else {**QUICK, "MXNET_KVSTORE_TIMEOUT": 300}
    ended = run_forked(
        push_forever,
        workers,
        fault,
        timeout=150,
        not_awaited=[1] if fault == "frozen" else [],
        **settings,
    )
    for process in ended[:1] + ended[2:]:
        assert process.status == 1, process.err
        assert process.seconds < LIMIT
        assert "Rank 1 on " in process.err and EXPECTED[fault] in process.err, process.err
        host = socket.gethostname()
        assert f"Rank {process.role} on {host} was in the sum of key w for" in process.err
    if fault == "stuck":
        assert "faults.py:" in ended[0].err and "in fail" in ended[0].err
        assert ended[1].status == 1  # its own monitor ends it


@pytest.mark.parametrize("fault", ["killed", "ends"])
def test_failed_rank_is_reported_with_sharded_states(fault):
    settings = {**QUICK, "MXNET_KVSTORE_TIMEOUT": 300, "MXNET_KVSTORE_SHARD_MB": 0}
    other, _ = run_forked(push_forever, 2, fault, "adam", timeout=150, **settings)
    assert other.status == 1 and other.seconds < LIMIT
    assert "Rank 1 on " in other.err and EXPECTED[fault] in other.err, other.err


def test_lost_server_of_an_asynchronous_store_is_reported():
    ended = run_forked(push_to_a_lost_server, 2, timeout=150, **QUICK)
    assert ended[0].status == 1 and ended[0].seconds < LIMIT
    assert "Rank 1 on " in ended[0].err and EXPECTED["killed"] in ended[0].err, ended[0].err


def test_max_staleness_bounds_the_lead_of_fast_workers():
    settings = {"MXNET_KVSTORE_MAX_STALENESS": 2}
    for process in succeeded(run_forked(push_at_different_speeds, 2, timeout=150, **settings)):
        assert process.out == "close\n"


def test_mismatched_pushes_raise_on_all_workers():
    for process in succeeded(run_forked(disagree, 2, timeout=150)):
        assert process.out == "all raised\n" and process.seconds < LIMIT


def test_missing_worker_is_reported_while_waiting_and_on_timeout():
    present = run_forked(only_arrive, 3, ranks=[0, 2], MXNET_KVSTORE_CONNECT_TIMEOUT=4, timeout=150)
    for process in present:
        assert process.status == 1 and process.seconds < LIMIT
        assert "missing rank 1; present rank 0 on" in process.err
    assert "mxnet: waiting for 1 of 3 workers: rank 1 has not joined 127.0.0.1:" in present[0].err
    assert "waiting for" not in present[1].err  # one of them reports it


def push_forever(fault, optimizer=None):
    """Push repeatedly; rank 1 fails in some way after a few rounds."""
    store = mx.kvstore.create("dist_sync")
    if optimizer:
        store.set_optimizer(mx.optimizer.create(optimizer))
    store.init("w", mx.nd.zeros(4))
    out = mx.nd.zeros(4)
    for number in range(10_000):
        if number == 3 and store.rank == 1:
            fail(fault)
        store.push("w", mx.nd.ones(4))
        store.pull("w", out=out)


def push_to_a_lost_server():
    """Push to servers, one of which is on rank 1, which dies."""
    store = mx.kvstore.create("dist_async")
    keys = [f"w{i}" for i in range(8)]
    store.init(keys, [mx.nd.zeros(4)] * 8)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.1))
    for number in range(10_000):
        if number == 3 and store.rank == 1:
            fail("killed")
        store.push(keys, [mx.nd.ones(4)] * 8)
        store.pull(keys, out=[mx.nd.zeros(4) for _ in keys])


def push_at_different_speeds():
    """Rank 0 pushes at full speed, and checks that rank 1 is not far behind."""
    store = mx.kvstore.create("dist_async")
    store.init("w", mx.nd.zeros(2))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=-1.0))
    out = mx.nd.zeros(2)
    for number in range(1, 13):
        value = mx.nd.array([1, 0] if store.rank == 0 else [0, 1])
        store.push("w", value)
        store.pull("w", out=out)
        own, other = out.asnumpy()[:: 1 if store.rank == 0 else -1]
        assert own == number and other >= number - 2, (store.rank, out)
        time.sleep(0.05 * store.rank)
    print("close")


def fail(fault):
    """Fail in the requested way."""
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "frozen":
        os.kill(os.getpid(), signal.SIGSTOP)
    if fault == "raises":
        raise ValueError("no such picture")
    if fault == "ends":
        raise SystemExit(0)
    time.sleep(1000)


def disagree():
    """Push different shapes, dtypes, keys and settings on the two ranks; each raises."""
    store = mx.kvstore.create("dist_sync")
    rank = store.rank
    raised(
        lambda: store.init("a", mx.nd.zeros(2 + rank)), "rank 0: key a (2,)", "rank 1: key a (3,)"
    )
    types = ["float32", "float16"]
    raised(lambda: store.init("a", mx.nd.zeros(2, dtype=types[rank])), *types)
    store.init(["a", "b", "c"], [mx.nd.zeros(2), mx.nd.zeros(2), mx.nd.zeros(9)])
    raised(lambda: pushed(store, "ab"[rank]), "rank 0: a (2,)", "rank 1: b (2,)")
    raised(lambda: pushed(store, "ac"[rank]), "rank 0: a (2,)", "rank 1: c (9,)")
    for key in "ab":
        pushed(store, key)
    raised(lambda: pushed(store, "ab"[rank]), "rank 0: keys a", "rank 1: keys b")
    rates = [0.1, 0.2]
    optimizers = [mx.optimizer.SGD(learning_rate=rate) for rate in rates]
    raised(lambda: store.set_optimizer(optimizers[rank]), "'lr': 0.1", "'lr': 0.2")
    store.set_optimizer(optimizers[0])
    pushed(store, "a")
    optimizers[0].rescale_grad = 1 / (rank + 1)
    raised(lambda: pushed(store, "a"), "rescale_grad=1 ", "rescale_grad=0.5")
    print("all raised")


def pushed(store, key):
    """Push and pull a key."""
    shape = 9 if key == "c" else 2
    store.push(key, mx.nd.ones(shape))
    store.pull(key, out=mx.nd.zeros(shape))


def raised(call, *texts):
    """Check that a call raises an error that contains some texts."""
    try:
        call()
    except mx.distributed.Disagreement as error:
        for text in texts:
            assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"nothing was raised that holds {texts}")


def only_arrive():
    """Create a store with a short timeout and do nothing."""
    mx.distributed.rendezvous.QUIET_SECONDS = 1.0
    mx.kvstore.create("dist_sync")


class EndsWhenTheTimeIsOver:
    """A collective of torch that completes just after a wait for it has timed out."""

    def __init__(self, error=None):
        self.error = error

    def wait(self, limit=None):
        if limit is not None:
            raise RuntimeError("Operation timed out!")
        if self.error is not None:
            raise self.error

    def is_completed(self):
        return True


def test_collective_completing_just_after_its_timeout_succeeds():
    server = StoreServer("127.0.0.1", 0, b"s")
    store = JobStore("127.0.0.1", server.port, 10, b"s")
    group = Group(None)
    group.monitor = HeartbeatMonitor(store, 0, 1, heartbeat=0.1, serves=False)
    try:
        group.finish(EndsWhenTheTimeIsOver(), "a sum")
        assert not group.monitor.has_failed
        with pytest.raises(WorkerFailed, match="lost a connection: reset by peer"):
            group.finish(EndsWhenTheTimeIsOver(RuntimeError("reset by peer")), "a sum")
    finally:
        store.close()
        server.close()


def test_worker_that_left_before_a_broken_connection_is_reported():
    """It may leave long before the others need it."""
    server = StoreServer("127.0.0.1", 0, b"s")
    stores = [JobStore("127.0.0.1", server.port, 10, b"s") for _ in range(2)]
    stores[0].set("left/1", "finished")
    monitor = HeartbeatMonitor(stores[1], 0, 2, heartbeat=0.4, serves=False)
    try:
        monitor.start()
        assert monitor.wait_for_failure(1.0) is None  # no other worker needs it
        monitor.suspect()
        failure = monitor.wait_for_failure(60)
        assert failure is not None and failure["rank"] == 1
        assert failure["why"] == EXPECTED["ends"]
        monitor.has_failed = True
    finally:
        monitor.stop()
        for store in stores:
            store.close()
        server.close()
