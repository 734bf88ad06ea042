"""`mx doctor --bench`: compares a few programs with plain torch, on the CPU and on the first GPU.

It takes some seconds and shows whether an installation is as fast as it should be; `benchmarks/`
measures with care.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import torch

from mxnet import accelerator, autograd, gluon
from mxnet import ndarray as nd
from mxnet.context import Context, cpu, gpu, torch_device
from mxnet.gluon import nn

ROUNDS, WARMUP, MIN_SECONDS = 5, 3, 0.05
CPU_SIZE, GPU_SIZE = 256, 2048  # of matrices
Step = Callable[[], object]


def measure_devices() -> list[tuple[str, str, str, str, str]]:
    """Return a row for each device and case: both times, and their ratio."""
    contexts = [cpu(), *([gpu(0)] if accelerator.count() else [])]
    return [row for ctx in contexts for row in _measure_device(ctx)]


def _measure_device(ctx: Context) -> Iterator[tuple[str, str, str, str, str]]:
    device = torch_device(ctx)
    for title, make in CASES.items():
        ours, torchs = make(ctx, device)
        first, second = _in_turns(device, ours, torchs)
        yield str(ctx), title, _format(first), _format(second), f"{first / second:.2f}"


def _in_turns(device: torch.device, *steps: Step) -> list[float]:
    """Return the median seconds of each step, measured alternately."""
    for step in steps:
        for _ in range(WARMUP):
            step()
    counts = [max(1, int(MIN_SECONDS / max(_seconds(device, step, 1), 1e-7))) for step in steps]
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(ROUNDS):
        for step, count, results in zip(steps, counts, times, strict=True):
            results.append(_seconds(device, step, count))
    return [statistics.median(results) for results in times]


def _seconds(device: torch.device, step: Step, count: int) -> float:
    accelerator.synchronize(device)
    start = time.perf_counter()
    for _ in range(count):
        step()
    accelerator.synchronize(device)
    return (time.perf_counter() - start) / count


def _small_add(ctx: Context, device: torch.device) -> tuple[Step, Step]:
    a, b = nd.ones((10, 10), ctx=ctx), nd.ones((10, 10), ctx=ctx)
    x, y = torch.ones(10, 10, device=device), torch.ones(10, 10, device=device)
    return lambda: a + b, lambda: x + y


def _product(ctx: Context, device: torch.device) -> tuple[Step, Step]:
    size = CPU_SIZE if device.type == "cpu" else GPU_SIZE
    a, x = nd.ones((size, size), ctx=ctx), torch.ones(size, size, device=device)
    return lambda: nd.dot(a, a), lambda: torch.mm(x, x)


def _training_step(ctx: Context, device: torch.device) -> tuple[Step, Step]:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(32, 3, activation="relu"), nn.Conv2D(32, 3, activation="relu"))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(10))
    net.initialize(ctx=ctx)
    net.hybridize(static_alloc=True)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
    data, label = nd.ones((16, 3, 32, 32), ctx=ctx), nd.zeros(16, ctx=ctx)

    def ours() -> None:
        with autograd.record():
            out = loss(net(data), label)
        out.backward()
        trainer.step(16)

    layers = torch.nn.Sequential(
        *(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3), torch.nn.ReLU()),
        *(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 10)),
    ).to(device)
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01, momentum=0.9)
    x = torch.ones(16, 3, 32, 32, device=device)
    y = torch.zeros(16, dtype=torch.long, device=device)

    def torchs() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(layers(x), y).backward()
        optimizer.step()

    return ours, torchs


def _format(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


CASES: dict[str, Callable[[Context, torch.device], tuple[Step, Step]]] = {
    "add 10 x 10": _small_add,
    "matrix product": _product,
    "training step": _training_step,
}
