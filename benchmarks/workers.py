"""Measure LeNet with several workers on this machine: ``python -m benchmarks.workers 1 2 4``."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

STEPS, BATCH = 40, 64


def train() -> None:
    """Train as one worker; rank 0 prints images a second of all workers, and bytes sent."""
    import mxnet as mx
    from mxnet import autograd, gluon, nd

    store: Any = mx.kvstore.create("dist_sync")
    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Conv2D(20, 5, activation="tanh"),
        gluon.nn.MaxPool2D(2),
        gluon.nn.Conv2D(50, 5, activation="tanh"),
        gluon.nn.MaxPool2D(2),
        gluon.nn.Flatten(),
        gluon.nn.Dense(500, activation="tanh"),
        gluon.nn.Dense(10),
    )
    net.initialize(mx.init.Xavier())
    net.hybridize()
    x, y = nd.random.uniform(shape=(BATCH, 1, 28, 28)), nd.arange(BATCH) % 10
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    net(x)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01}, kvstore=store)
    start = before = exchange = 0.0
    for number in range(STEPS + 5):
        if number == 5:
            store.barrier()
            start, before, exchange = time.perf_counter(), store.bytes_sent, 0.0
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        begin = time.perf_counter()
        trainer.step(BATCH * store.num_workers)
        exchange += time.perf_counter() - begin
    seconds = time.perf_counter() - start
    if store.rank == 0:
        rate = STEPS * BATCH * store.num_workers / seconds
        sent = (store.bytes_sent - before) / STEPS / 1e6
        print(
            f"{store.num_workers} workers: {rate:.0f} images/s, {1e3 * seconds / STEPS:.1f} ms a "
            f"step, of it {1e3 * exchange / STEPS:.1f} in Trainer.step; {sent:.2f} MB sent"
        )


def main() -> None:
    """Run the measurement for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workers", nargs="*", type=int, default=[1, 2, 4])
    parser.add_argument("--as-worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_worker:
        train()
        return
    from mxnet.parallel.launch import main as launch

    for workers in options.workers:
        command = [sys.executable, "-m", "benchmarks.workers", "--as-worker"]
        launch(["-n", str(workers), "--env", "OMP_NUM_THREADS=1", *command])


if __name__ == "__main__":
    main()
