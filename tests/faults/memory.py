"""Ask for more memory than there is, everywhere; the process goes on each time."""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable

import mxnet as mx
from mxnet import nd

LIMIT = 700 << 20  # bytes on top of what the process has


def run_executor(n: int) -> None:
    x = mx.sym.var("x")
    executor = (mx.sym.exp(x) * x).simple_bind(mx.cpu(), x=(n,))
    executor.forward(is_train=True)
    executor.backward(nd.ones((n,)))


def differentiate(n: int) -> None:
    x = nd.ones((n,))
    x.attach_grad()
    with mx.autograd.record():
        y = nd.exp(nd.sin(x) * x).sum()
    y.backward()


def train(n: int) -> None:
    net = mx.gluon.nn.Dense(n // 1000 or 1)
    net.initialize()
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "adam")
    with mx.autograd.record():
        loss = net(nd.ones((2, 1000))).sum()
    loss.backward()
    trainer.step(1)


def save_and_load(n: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        nd.save(f"{folder}/x.params", [nd.zeros((n,))])
        nd.load(f"{folder}/x.params")


KINDS: list[Callable[[int], object]] = [
    lambda n: nd.full((n,), 2.0),
    lambda n: nd.empty((n,)),
    lambda n: nd.zeros((n,)) + 1,
    lambda n: nd.random.uniform(shape=(n,)),
    lambda n: nd.ones((n,)).asnumpy(),
    lambda n: nd.concat(nd.ones((n // 2,)), nd.ones((n // 2,)), dim=0),
    lambda n: nd.one_hot(nd.zeros((n // 10,)), 10),
    lambda n: nd.ones((n,)).astype("float64"),
    lambda n: nd.sparse.zeros("row_sparse", (n, 1)).tostype("default"),
    lambda n: nd.ones((n,)).attach_grad(),
    lambda n: mx.gluon.Parameter("w", shape=(n,)).initialize(),
    run_executor,
    differentiate,
    train,
    save_and_load,
]


def used() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123 (not a file of a disk)
        return int(file.read().split()[0]) * resource.getpagesize()


def main(seed: int, count: int) -> dict:
    """Make `count` attempts; return how they ended."""
    chance, outcomes, errors = random.Random(seed), Counter(), {}
    for kind in KINDS:
        kind(1000)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used() + LIMIT, hard))
    for _ in range(count):
        kind = chance.choice(KINDS)
        try:
            kind(int(10 ** chance.uniform(6.5, 10.5)))
            outcomes["done"] += 1
        except MemoryError:  # ours is one, too
            outcomes["out of memory"] += 1
        except mx.MXNetError as error:
            outcomes["refused"] += 1
            errors[type(error).__name__] = str(error)[:300]
        except Exception as error:
            outcomes["unexpected"] += 1
            errors[type(error).__name__] = traceback.format_exc()[-1000:]
        assert nd.ones((3,)).sum().asscalar() == 3
    return {**outcomes, "errors": errors}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
