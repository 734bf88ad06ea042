"""`mx.npx.random`: the seed, and samplers that NumPy does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import random as _random

if TYPE_CHECKING:
    from ._stubs.random import *  # noqa: F403

__all__ = ["seed"]


def seed(seed: int, ctx: Any = "all") -> None:
    """Seed the random numbers of all devices, or of one.

    Parameters
    ----------
    seed
        The seed, any integer.
    ctx
        The device, or ``'all'``.

    >>> mx.npx.random.seed(7)
    """
    _random.seed(seed, ctx)
