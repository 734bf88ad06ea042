"""Random numbers of the augmenters, from the CPU's stream, which `mx.random.seed` seeds.

If the program has seeded NumPy and Python's `random`, these are used, as in MXNet.

Single numbers are drawn from torch's generator directly: creating a NumPy generator is ten times
slower.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from ..random import host_rng, streams_are_seeded


class _Stream:
    """The CPU's stream with methods of NumPy's generators."""

    def random(self) -> float:
        return torch.rand((), dtype=torch.float64, device="cpu").item()

    def uniform(self, low: float, high: float, count: int | None = None) -> float | np.ndarray:
        if count is None:
            return low + (high - low) * self.random()
        return host_rng().uniform(low, high, count)

    def integers(self, low: int, high: int, *, endpoint: bool) -> int:
        return int(torch.randint(low, high + endpoint, (), device="cpu").item())

    def permutation(self, count: int) -> np.ndarray:
        return host_rng().permutation(count)

    def normal(self, mean: float, deviation: float, count: int) -> np.ndarray:
        return host_rng().normal(mean, deviation, count)


class _SeededStreams:
    """MXNet's streams: Python's for single numbers, NumPy's for several."""

    random = staticmethod(random.random)

    def uniform(self, low: float, high: float, count: int | None = None) -> float | np.ndarray:
        if count is None:
            return random.uniform(low, high)
        return np.random.uniform(low, high, count)  # noqa: NPY002 (the stream that was seeded)

    def integers(self, low: int, high: int, *, endpoint: bool) -> int:
        return random.randint(low, high - (not endpoint))

    def permutation(self, count: int) -> np.ndarray:
        numbers = list(range(count))
        random.shuffle(numbers)
        return np.asarray(numbers)

    def normal(self, mean: float, deviation: float, count: int) -> np.ndarray:
        return np.random.normal(mean, deviation, count)  # noqa: NPY002


_stream, _seeded_streams = _Stream(), _SeededStreams()


class _Chosen(threading.local):
    """The active random source inside `one_image`."""

    stream: _Stream | _SeededStreams | None = None


_chosen = _Chosen()


def generator() -> _Stream | _SeededStreams:
    """Return the source of the functions below."""
    return _chosen.stream or (_seeded_streams if streams_are_seeded() else _stream)


def is_seeded() -> bool:
    """Return whether MXNet's streams are used."""
    return generator() is _seeded_streams


@contextmanager
def one_image() -> Iterator[None]:
    """Return a scope that checks only once whether the program has seeded its streams.

    The check is slower than a draw: Python copies all 624 words of its state.
    """
    before, _chosen.stream = _chosen.stream, generator()
    try:
        yield
    finally:
        _chosen.stream = before


def fraction() -> float:
    """Return a number in [0, 1)."""
    return float(generator().random())


def between(low: float, high: float) -> float:
    """Return a number from ``low`` to ``high``."""
    return float(generator().uniform(low, high))


def whole(low: int, high: int) -> int:
    """Return an integer from ``low`` to ``high``, both inclusive."""
    return int(generator().integers(low, high, endpoint=True))


def order(count: int) -> Sequence[int]:
    """Return a random permutation of the numbers below ``count``."""
    return generator().permutation(count).tolist()


def normal(deviation: float, count: int) -> np.ndarray:
    """Return normally distributed numbers with mean 0."""
    return generator().normal(0, deviation, count)


def several(low: float, high: float, count: int) -> np.ndarray:
    """Return ``count`` numbers from ``low`` to ``high``."""
    return np.asarray(generator().uniform(low, high, count))
