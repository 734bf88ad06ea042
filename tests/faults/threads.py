"""Share a block between threads from its first call on, and train separate blocks beside it."""

from __future__ import annotations

import json
import sys
import threading
import traceback
from collections.abc import Callable

import numpy as np

import mxnet as mx
from mxnet.gluon import nn

THREADS = 8


def network() -> mx.gluon.HybridBlock:
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(4, 3, activation="relu"),
        nn.BatchNorm(),
        nn.MaxPool2D(),
        nn.Flatten(),
        nn.Dense(8, activation="relu"),
        nn.Dropout(0.5),
        nn.Dense(3),
    )
    return net


def in_threads(work: Callable[[int], None]) -> list[str]:
    """Run work in threads that begin together; return the errors."""
    barrier, errors = threading.Barrier(THREADS), []

    def run(number: int) -> None:
        barrier.wait(60)
        try:
            work(number)
        except Exception:
            errors.append(traceback.format_exc()[-600:])

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return errors + ["a thread hangs"] * sum(thread.is_alive() for thread in threads)


def predict(seed: int, hybridize: bool) -> list[str]:
    """Call one new block in all threads; all results must be the same."""
    net = network()
    net.initialize(mx.init.Xavier())
    if hybridize:
        net.hybridize()
    inputs = mx.nd.array(np.random.default_rng(seed).random((2, 3, 12, 12)))
    found: list = [None] * THREADS

    def work(number: int) -> None:
        for _ in range(3):
            found[number] = net(inputs).asnumpy()

    errors = in_threads(work)
    wanted = net(inputs).asnumpy()
    wrong = [f for f in found if f is not None and not np.allclose(f, wanted, atol=1e-5)]
    return errors + ["a wrong result"] * len(wrong)


def train(seed: int, hybridize: bool) -> list[str]:
    """Train one block per thread. The results equal those of training without threads."""
    inputs = np.random.default_rng(seed).random((4, 5)).astype("float32")

    def trained() -> np.ndarray:
        net = nn.HybridSequential()
        net.add(nn.Dense(6, activation="tanh"), nn.Dense(2))
        net.initialize(mx.init.One())
        if hybridize:
            net.hybridize()
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        for _ in range(3):
            with mx.autograd.record():
                loss = (net(mx.nd.array(inputs)) ** 2).sum()
            loss.backward()
            trainer.step(4)
        return net[0].weight.data().asnumpy()

    wanted = trained()
    found: list = [wanted] * THREADS

    def work(number: int) -> None:
        found[number] = trained()

    errors = in_threads(work)
    return errors + ["a wrong weight"] * sum(not np.allclose(f, wanted) for f in found)


def main(seed: int, count: int) -> dict:
    """Run `count` rounds of each kind; return how many failed."""
    sys.setswitchinterval(1e-6)
    failed, errors, rounds = 0, [], 0
    for number in range(count):
        for kind in (predict, train):
            for hybridize in (False, True):
                found = kind(seed + number, hybridize)
                rounds += 1
                failed += bool(found)
                errors += found[:1]
    return {"rounds": rounds, "failed": failed, "errors": errors[:3]}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
