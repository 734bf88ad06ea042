"""Draws of the augmenters: all come from `host_rng`, so that `mx.random.seed` repeats them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..random import host_rng

generator = host_rng


def fraction() -> float:
    """Return a number in [0, 1)."""
    return float(generator().random())


def between(low: float, high: float) -> float:
    """Return a number from ``low`` to ``high``."""
    return float(generator().uniform(low, high))


def whole(low: int, high: int) -> int:
    """Return a whole number from ``low`` to ``high``, both possible."""
    return int(generator().integers(low, high, endpoint=True))


def order(count: int) -> Sequence[int]:
    """Return the numbers below ``count`` in random order."""
    return generator().permutation(count).tolist()


def normal(deviation: float, count: int) -> np.ndarray:
    """Return normally distributed numbers around 0."""
    return generator().normal(0, deviation, count)


def several(low: float, high: float, count: int) -> np.ndarray:
    """Return ``count`` numbers from ``low`` to ``high``."""
    return generator().uniform(low, high, count)
