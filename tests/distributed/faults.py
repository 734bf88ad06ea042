"""What workers do in the tests of faults; runs in processes of its own."""

from __future__ import annotations

import os
import signal
import time

import mxnet as mx


def push_forever(fault, optimizer=None):
    """Push again and again; rank 1 fails in some way after a few rounds."""
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


def fail(fault):
    """Fail as wanted."""
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
    """Give different shapes, dtypes, keys and settings on the two ranks; each is an error."""
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
    """Check that a call raises an error that holds some texts."""
    try:
        call()
    except mx.distributed.Disagreement as error:
        for text in texts:
            assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"nothing was raised that holds {texts}")


def only_arrive():
    """Create a store and do nothing."""
    mx.kvstore.create("dist_sync")
