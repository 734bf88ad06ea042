"""Connections from outside a job are rejected and have no effect."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.parallel import channel
from mxnet.parallel.channel import Channel, ChannelError, Listener, connect, escape
from mxnet.parallel.heartbeat import HeartbeatMonitor, parse_failure
from mxnet.parallel.store import JobStore, StoreServer
from tests.parallel.strangers import attack, listening
from tests.parallel.workers import run_forked_roles, succeeded

LIMIT = 200.0
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="sockets are found in /proc")


@on_linux
def test_job_under_attack_gives_the_same_result_bit_for_bit(tmp_path):
    with ThreadPoolExecutor(1) as pool:
        settings = {"MXNET_JOB_SECRET": "of this job", "MXNET_KVSTORE_HEARTBEAT": "60"}
        job = pool.submit(
            run_forked_roles, train_until_attacked, 2, 1, str(tmp_path), timeout=300, **settings
        )
        try:
            parents = await_files(tmp_path, ["parent-0", "parent-1"])
            sockets = listening(children(int(parents[0])))
            assert {address for _, address, _ in sockets} == {"127.0.0.1"}  # no other network
            answers = [attack(port) for _, _, port in sockets]
        finally:
            (tmp_path / "attacked").touch()
        scheduler, server, *workers = succeeded(job.result())
    assert len(sockets) == 6  # scheduler, server, and two of Gloo of each worker
    assert sum(answers) == 2  # Gloo's ports accept no more connections
    expected = hashlib.sha256(expected_weights().tobytes()).hexdigest()
    assert [w.out.split()[-1] for w in workers] == [expected] * 2
    for process in (scheduler, server, *workers):
        assert "HTTP" not in process.err and "\x1b" not in process.err


def children(parent):
    """Return the processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # others of the machine end meanwhile
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(stat.parent.name))
    return found


def await_files(folder, names):
    """Return the contents of files, after waiting for them."""
    end = time.monotonic() + LIMIT
    paths = [folder / name for name in names]
    while not all(path.exists() and path.read_text() for path in paths):
        assert time.monotonic() < end, f"{names} did not come"
        time.sleep(0.05)
    return [path.read_text() for path in paths]


def expected_weights():
    """Return the weights after the counted steps of both workers."""
    weights = np.zeros(1000, "float32")
    for number in range(1, 11):
        weights -= np.float32(0.5) * np.arange(1000, dtype="float32") * number * 3  # ranks 1 and 2
    return weights


def train_until_attacked(folder):
    """Push five steps, push nothing until the attack is over, and push five more."""
    folder = Path(folder)
    sync, store = mx.kvstore.create("dist_sync"), mx.kvstore.create("dist_async")
    sync.init("stop", nd.zeros(1))
    sync.init("w", nd.zeros(1000))
    store.init("w", nd.zeros(1000))
    for one in (sync, store):
        one.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    stop = mx.kvstore.create("dist_sync")
    stop.init("stop", nd.zeros(1))

    def step(number):
        value = nd.arange(1000) * number * (sync.rank + 1)
        sync.push("w", value)
        store.push("w", value)

    for number in range(1, 6):
        step(number)
    (folder / f"parent-{sync.rank}").write_text(str(os.getppid()))
    out = nd.zeros(1)
    while out.asscalar() < 2:
        stop.push("stop", nd.array([float((folder / "attacked").exists())]))
        stop.pull("stop", out=out)
        step(0)
        time.sleep(0.01)
    for number in range(6, 11):
        step(number)
    store.barrier()
    weights = [nd.zeros(1000), nd.zeros(1000)]
    for one, weight in zip((sync, store), weights, strict=True):
        one.pull("w", out=weight)
    first, second = (w.asnumpy().tobytes() for w in weights)
    assert first == second
    print(hashlib.sha256(first).hexdigest())


# -- one process ----------------------------------------------------------------------------------


def echo(connection):
    while True:
        connection.send(*connection.receive())


def test_connections_with_a_wrong_secret_are_rejected():
    listener = Listener("127.0.0.1", 0, echo, b"right")
    with pytest.raises(ChannelError, match="not part of this job: its MXNET_JOB_SECRET differs"):
        connect("127.0.0.1", listener.port, 0.5, b"wrong")
    good = connect("127.0.0.1", listener.port, 10, b"right")
    good.send({"a": [1, "ü"]}, [b"x" * 100_000, b""])
    content, data = good.receive()
    assert content == {"a": [1, "ü"]} and [bytes(d) for d in data] == [b"x" * 100_000, b""]
    assert listener.strangers >= 1
    good.close()
    listener.close()


@pytest.mark.parametrize("change", ["bit", "repeat", "length"])
def test_forged_replayed_and_oversized_messages_raise(change):
    with contextlib.ExitStack() as scope:
        (a, b), (c, d) = [tcp_pair(scope) for _ in range(2)]
        Channel(a, b"1" * 32, b"2" * 32).send({"n": 1}, [b"data"])
        raw = b.recv(10_000)
        if change == "bit":
            raw = raw[:60] + bytes([raw[60] ^ 1]) + raw[61:]
        elif change == "repeat":
            raw = raw + raw
        else:
            raw = channel.PREFIX.pack(10, 2**60) + raw[channel.PREFIX.size :]
        receiver = Channel(d, b"2" * 32, b"1" * 32)
        c.sendall(raw)
        if change == "repeat":
            assert receiver.receive()[0] == {"n": 1}
        expected = "too many" if change == "length" else "forged or damaged"
        with pytest.raises(ChannelError, match=expected):
            receiver.receive()


def tcp_pair(scope):
    """Return both ends of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = scope.enter_context(socket.create_connection(server.getsockname()))
        return client, scope.enter_context(server.accept()[0])


def test_half_open_connections_do_not_block_workers(monkeypatch):
    monkeypatch.setattr(channel, "MAX_UNPROVEN", 8)
    listener = Listener("127.0.0.1", 0, echo, b"s")
    idle = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(40)]
    good = connect("127.0.0.1", listener.port, 20, b"s")
    good.send({"hello": 1})
    assert good.receive()[0] == {"hello": 1}
    for sock in (good, *idle):
        sock.close()
    listener.close()


def test_malformed_heartbeats_and_failures_are_ignored():
    server = StoreServer("127.0.0.1", 0, b"s")
    stores = [JobStore("127.0.0.1", server.port, 10, b"s") for _ in range(3)]
    store = stores[0]
    store.set("failure", "]")
    store.set("beat/1", "[3]")
    monitor = HeartbeatMonitor(stores[1], 0, 2, heartbeat=0.4, serves=False)
    try:
        monitor.start()
        failure = monitor.wait_for_failure(20)  # rank 1 sends no heartbeats, which is detected
        assert failure is not None and failure["rank"] == 1 and "silent" in failure["why"]
        monitor.has_failed = True
    finally:
        monitor.stop()
        for one in stores:
            one.close()
        server.close()


def test_text_from_other_processes_is_escaped_and_truncated():
    assert escape("a\x1b[31m\r\nb") == "a\\x1b[31m\\r\\nb"
    assert len(escape("x" * 10_000)) < 1100
    record = json.dumps({"rank": 1, "host": "\x1b]0;h\x07", "pid": 1, "why": "w" * 5000})
    failure = parse_failure(record.encode())
    assert failure["host"] == "\\x1b]0;h\\x07" and len(failure["why"]) < 1100
    assert parse_failure(b'{"rank": 1}') is None and parse_failure(b"\xff") is None


def test_custom_optimizers_on_servers_raise():
    from mxnet.parallel.async_server import pack_optimizer

    class Mine(mx.optimizer.SGD):
        pass

    with pytest.raises(mx.MXNetError, match=r"Mine is a user-defined class.*use one of these"):
        pack_optimizer(Mine())
    packed = pack_optimizer(mx.optimizer.Adam(lr_scheduler=mx.lr_scheduler.FactorScheduler(10)))
    _, optimizer = mx.optimizer.states_file.read_states(packed)
    assert type(optimizer) is mx.optimizer.Adam and optimizer.lr_scheduler.step == 10


def test_job_on_several_machines_is_not_trusted():
    from mxnet.parallel.rendezvous import read_job

    job = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9"}
    assert read_job(job).is_trusted
    assert not read_job({**job, "MASTER_ADDR": "10.0.0.1"}).is_trusted
    assert read_job({**job, "MASTER_ADDR": "10.0.0.1", "LOCAL_WORLD_SIZE": "2"}).is_trusted
