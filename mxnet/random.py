"""The seed, and samplers under `mx.random`.

Each device has one stream, torch's default generator. Operators use the stream of their device;
shuffles and choices on the host (iterators, samplers, initializers) use the CPU's by `host_rng`. So
`seed` makes everything reproducible. If a program seeds NumPy or Python's `random`, `host_order`
draws orders from these streams, as MXNet does.
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
# The last element is the position, which changes with every draw.
_WORDS = random.getstate()[1][:-1]


def seed(seed_state: int, ctx: Context | str = "all") -> None:
    """Seed the random streams.

    Parameters
    ----------
    seed_state : int
        The seed, any integer.
    ctx : Context, or 'all'
        Device whose stream is seeded; all CPU contexts share one.

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
    """Return a NumPy generator seeded from the CPU's stream.

    Each caller gets its own generator, so that threads do not interfere.

    >>> mx.random.seed(7)
    >>> first = mx.random.host_rng().permutation(5)
    >>> mx.random.seed(7)
    >>> (mx.random.host_rng().permutation(5) == first).all()
    np.True_
    """
    words = torch.randint(0, 2**32, (4,), device="cpu")
    return np.random.Generator(np.random.PCG64(words.tolist()))


def host_order(count: int) -> np.ndarray:
    """Return a random permutation of the numbers below `count`, for shuffling on the host.

    If the program has called `numpy.random.seed`, the order is NumPy's, as in MXNet. Otherwise it
    is determined by `mx.random.seed`.

    Parameters
    ----------
    count : int
        Number of elements.

    >>> np.random.seed(0)
    >>> mx.random.host_order(6)
    array([5, 2, 1, 3, 0, 4])
    """
    if numpy_is_seeded():
        return np.random.permutation(count)  # noqa: NPY002 (the stream that the program seeded)
    return host_rng().permutation(count)


def numpy_is_seeded() -> bool:
    """Return whether the program has called `numpy.random.seed`."""
    return getattr(np.random.mtrand.get_bit_generator(), "seed_seq", None) is None


def streams_are_seeded() -> bool:
    """Return whether the program has seeded NumPy and, after the import, Python's `random`.

    Some hundred draws from `random` look like a seed; the order is then MXNet's too.
    """
    return numpy_is_seeded() and random.getstate()[1][:-1] != _WORDS
