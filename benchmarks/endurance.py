"""Train with changing shapes for a while: ``python -m benchmarks.endurance --minutes 30``.

Batches, lengths and image sizes change from step to step; memory must not grow. Bytes of live
arrays, bytes that the allocator has given out and the process's resident memory are printed every
minute. The run fails if arrays or the allocator need more in the second half than in the quarter
before it. Resident memory swings by gaps, which oneDNN leaves when it replaces the code of its last
1,024 primitives, and which go back to the system from time to time: its middle value counts.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn, rnn

KINDS = ("live arrays", "given out", "resident")
ALLOWED_GROWTH = (1.01, 1.05, 1.1)
WHICH = (max, max, statistics.median)


def convolutional() -> Callable[[random.Random], None]:
    """Return a step of a small hybridized network on images of any size."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D())
    net.add(nn.Conv2D(32, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"))
    net.add(nn.GlobalAvgPool2D(), nn.Dropout(0.2), nn.Dense(10))
    return _trained(net, lambda draw: (draw.randint(1, 16), 3, *[draw.randint(16, 48)] * 2))


def recurrent() -> Callable[[random.Random], None]:
    """Return a step of a hybridized LSTM on sequences of any length."""
    net = nn.HybridSequential()
    net.add(rnn.LSTM(32, layout="NTC"), nn.Dense(10))
    return _trained(net, lambda draw: (draw.randint(1, 8), 12, 16), hybridizes=False)


def _trained(
    net: gluon.HybridBlock, shape_of: Callable[[random.Random], tuple], hybridizes: bool = True
) -> Callable[[random.Random], None]:
    net.initialize(mx.init.Xavier())
    if hybridizes:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 1e-3})
    loss_of, metric = gluon.loss.SoftmaxCrossEntropyLoss(), mx.metric.Accuracy()

    def step(draw: random.Random) -> None:
        x = nd.random.normal(shape=shape_of(draw))
        y = nd.array([draw.randrange(10) for _ in range(x.shape[0])])
        with autograd.record():
            out = net(x)
            loss = loss_of(out, y)
        loss.backward()
        trainer.step(x.shape[0])
        metric.update(y, out)
        net(x)  # prediction keeps prepared weights of its own

    return step


def bucketed() -> Callable[[random.Random], None]:
    """Return a step of a BucketingModule."""

    def graph(length: int) -> tuple:
        data, label = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")
        words = mx.sym.Embedding(data, input_dim=50, output_dim=16, name="embed")
        cell = mx.rnn.LSTMCell(16, prefix="lstm_")
        outputs: Any = cell.unroll(length, words, merge_outputs=True)[0]
        out = mx.sym.FullyConnected(mx.sym.mean(outputs, axis=1), num_hidden=10, name="fc")
        return mx.sym.SoftmaxOutput(out, label, name="softmax"), ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(graph, default_bucket_key=12)
    module.bind([("data", (4, 12))], [("softmax_label", (4,))])
    module.init_params(mx.init.Xavier())
    module.init_optimizer()

    def step(draw: random.Random) -> None:
        length = draw.randint(3, 12)
        batch = mx.io.DataBatch(
            [nd.ones((4, length))],
            [nd.ones((4,))],
            bucket_key=length,
            provide_data=[("data", (4, length))],
            provide_label=[("softmax_label", (4,))],
        )
        module.forward_backward(batch)
        module.update()

    return step


def memory_now() -> tuple[int, int, int]:
    """Return bytes of live arrays, bytes that the allocator gave out, and resident bytes."""
    gc.collect()
    live = sum(mx._process.memory._live_storages()["cpu"].values())
    state = mx._process.memory.malloc_state()
    return live, state.uordblks + state.hblkhd, mx._process.memory._process_memory()[0]


def main() -> None:
    """Run until the time is over and compare the halves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    options = parser.parse_args()
    steps = [convolutional(), recurrent(), bucketed()]
    draw, seen = random.Random(0), []
    start = last = time.monotonic()
    for number in itertools.count():
        steps[number % len(steps)](draw)
        now = time.monotonic()
        if now - last > 5:
            last = now
            seen.append(memory_now())
            if len(seen) % 12 == 0:
                sizes = (f"{k} {n / 1e6:.3f} MB" for k, n in zip(KINDS, seen[-1], strict=True))
                print(f"{(now - start) / 60:5.1f} min, {number} steps, {', '.join(sizes)}")
                sys.stdout.flush()
        if now - start > 60 * options.minutes:
            break
    half = len(seen) // 2
    for name, values, limit, which in zip(
        KINDS, zip(*seen, strict=True), ALLOWED_GROWTH, WHICH, strict=True
    ):
        first, second = which(values[half // 2 : half]), which(values[half:])
        print(f"{name}: second quarter {first / 1e6:.3f} MB, second half {second / 1e6:.3f} MB")
        if second > limit * first:
            raise SystemExit(f"{name}: memory grew")


if __name__ == "__main__":
    main()
