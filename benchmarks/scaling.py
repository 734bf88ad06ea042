"""Simulate data-parallel training with many workers: ``python -m benchmarks.scaling``.

A step is a forward pass, a backward pass that makes the gradients of the layers one after the
other, and sums of gradients in buckets that travel, one at a time, from the moment they are
complete. What the network cannot hide behind backward is waited for.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

BUCKET = 8 * 2**20  # bytes; MXNET_KVSTORE_BUCKET_MB


@dataclass(frozen=True)
class Model:
    """A network: its gradients in the order of backward, and the time of one worker's step."""

    name: str
    gradients: tuple[int, ...]  # bytes of each group of layers, in float32
    forward: float  # seconds
    backward: float


@dataclass(frozen=True)
class Network:
    """A network between workers: bytes a second and seconds a message, of one link."""

    name: str
    bandwidth: float
    latency: float


def ring(size: float, workers: int, net: Network) -> float:
    """Return the time of a ring: 2(n-1) messages of 1/n of the data."""
    return 2 * (workers - 1) * (net.latency + size / workers / net.bandwidth)


def tree(size: float, workers: int, net: Network) -> float:
    """Return the time of recursive halving and doubling: 2 log2(n) messages, the same bytes."""
    rounds = math.ceil(math.log2(workers)) if workers > 1 else 0
    return 2 * rounds * net.latency + 2 * (workers - 1) / workers * size / net.bandwidth


def two_bit(size: float, workers: int, net: Network) -> float:
    """Return the time of 2-bit sums: all signs between two workers, else shares and their sums.

    Sums are taken as evenly spread; most are 0, so that the true messages are shorter.
    """
    if workers == 2:
        return net.latency + size / 20 / net.bandwidth
    bits = 1.6 + math.log2(2 * workers - 1)
    sent = (workers - 1) / workers * size * bits / 32
    return 4 * (workers - 1) * net.latency + sent / net.bandwidth


def buckets(model: Model, limit: int = BUCKET) -> list[tuple[float, float]]:
    """Return (time at which it is complete, bytes) of every bucket of a backward pass."""
    total, result, size, done = sum(model.gradients), [], 0, 0
    for gradient in model.gradients:
        size, done = size + gradient, done + gradient
        if size >= limit:
            result.append((model.forward + model.backward * done / total, size))
            size = 0
    if size:
        result.append((model.forward + model.backward, size))
    return result


def step_time(
    model: Model,
    workers: int,
    net: Network,
    cost: Callable[[float, int, Network], float] = ring,
    scale: float = 1.0,
    is_early: bool = True,
) -> float:
    """Return the seconds of a step; `scale` is the size of what travels against float32."""
    compute = model.forward + model.backward
    if workers == 1:
        return compute
    free = 0.0
    for ready, size in buckets(model):
        start = max(free, ready if is_early else compute)
        free = start + cost(size * scale, workers, net)
    return max(free, compute)


def _layers(total: float, parts: list[float]) -> tuple[int, ...]:
    return tuple(int(total * p / sum(parts)) for p in parts)


# Backward begins at the output. ResNet-50 has most of its weights in the last stage; BERT-base has
# twelve equal layers, and an embedding table of a fifth of all weights at the very end.
MODELS = [
    Model("ResNet-50, 102 MB", _layers(102e6, [8, 19, 19, 12, 7, 7, 7, 6, 6, 6, 3]), 0.06, 0.12),
    Model("BERT-base, 438 MB", _layers(438e6, [2, *[6.5] * 12, 22]), 0.08, 0.16),
]
NETWORKS = [
    Network("10 Gbit/s", 1.1e9, 50e-6),
    Network("25 Gbit/s", 2.8e9, 30e-6),
    Network("100 Gbit/s", 11e9, 10e-6),
]
SETTINGS = [
    ("after backward", ring, 1.0, False),
    ("early, ring", ring, 1.0, True),
    ("early, tree", tree, 1.0, True),
    ("early, bf16", tree, 0.5, True),
    ("2bit", two_bit, 1.0, False),  # it is sent with the step
]
WORKERS = (8, 16, 64, 256, 1024)


def main() -> None:
    """Print the share of ideal speed for each model, network and setting."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    for model in MODELS:
        for net in NETWORKS:
            print(f"{model.name}, {net.name}, {net.latency * 1e6:.0f} us")
            for name, cost, scale, is_early in SETTINGS:
                alone = step_time(model, 1, net)
                shares = [alone / step_time(model, n, net, cost, scale, is_early) for n in WORKERS]
                row = " ".join(f"{n:5d}: {s:4.0%}" for n, s in zip(WORKERS, shares, strict=True))
                print(f"  {name:15} {row}")


if __name__ == "__main__":
    main()
