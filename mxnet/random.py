"""The seed, and samplers under `mx.random`.

One stream serves a device: torch's default generator. Operators draw from that of their device;
shuffles and choices on the host (iterators, samplers, initializers) take theirs from the CPU's by
`host_rng`. So one call of `seed` repeats everything. Programs that seed NumPy or Python's `random`
count on the orders that MXNet drew from there: `host_order` gives them these.
"""

from __future__ import annotations

import numbers
import random

import numpy as np
import torch

from . import accelerator
from .context import Context, torch_device
from .ndarray.random import (
    exponential,
    gamma,
    generalized_negative_binomial,
    multinomial,
    negative_binomial,
    normal,
    poisson,
    randint,
    randn,
    shuffle,
    uniform,
)

__all__ = [
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "host_order",
    "host_rng",
    "multinomial",
    "negative_binomial",
    "normal",
    "poisson",
    "randint",
    "randn",
    "seed",
    "shuffle",
    "uniform",
]

_SEEDS = 2**64
_WORDS = random.getstate()[1][:-1]  # the last number is the position, which every draw moves


def seed(seed_state: int, ctx: Context | str = "all") -> None:
    """Restart the random streams, so that what follows repeats.

    Parameters
    ----------
    seed_state : int
        The seed, any integer.
    ctx : Context, or 'all'
        The device whose stream is meant. All CPU contexts share one.

    >>> mx.random.seed(128)
    >>> first = mx.random.uniform(shape=(2,)).asnumpy()
    >>> mx.random.seed(128)
    >>> (mx.random.uniform(shape=(2,)).asnumpy() == first).all()
    np.True_
    """
    if not isinstance(seed_state, numbers.Integral):
        raise ValueError(f"seed_state must be int, but got {seed_state!r}")
    number = int(seed_state) % _SEEDS
    if ctx == "all":
        torch.manual_seed(number)
        return
    accelerator.seed(torch_device(Context(ctx)), number)


def host_rng() -> np.random.Generator:
    """Return a NumPy generator whose own seed is drawn from the CPU's stream.

    Each caller gets its own, so threads do not meet; under one `seed` the same calls give the
    same generators.

    >>> mx.random.seed(7)
    >>> first = mx.random.host_rng().permutation(5)
    >>> mx.random.seed(7)
    >>> (mx.random.host_rng().permutation(5) == first).all()
    np.True_
    """
    words = torch.randint(0, 2**32, (4,), device="cpu")
    return np.random.Generator(np.random.PCG64(words.tolist()))


def host_order(count: int) -> np.ndarray:
    """Return the numbers below `count` in random order, for a shuffle on the host.

    If the program called `numpy.random.seed`, NumPy shuffles, as it always does in MXNet: the
    order is the one that MXNet has. Otherwise `mx.random.seed` makes the orders repeat.

    Parameters
    ----------
    count : int
        How many numbers.

    >>> np.random.seed(0)
    >>> mx.random.host_order(6)
    array([5, 2, 1, 3, 0, 4])
    """
    if numpy_is_seeded():
        return np.random.permutation(count)  # noqa: NPY002 (the stream that the program seeded)
    return host_rng().permutation(count)


def numpy_is_seeded() -> bool:
    """Return whether the program called `numpy.random.seed`: before, there is a seed sequence."""
    return getattr(np.random.mtrand.get_bit_generator(), "seed_seq", None) is None


def streams_are_seeded() -> bool:
    """Return whether the program seeded NumPy and, after the import, Python's `random`.

    Some hundred draws from `random` look like a seed: its orders are those of MXNet in any case.
    """
    return numpy_is_seeded() and random.getstate()[1][:-1] != _WORDS
