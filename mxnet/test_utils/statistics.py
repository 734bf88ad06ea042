"""Whether random generators make what they promise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

Generator = Callable[[int], Any]


def _samples(generator: Generator, count: int) -> np.ndarray:
    made = generator(count)
    return np.asarray(made.asnumpy() if hasattr(made, "asnumpy") else made).reshape(-1)


def mean_check(generator: Generator, mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Return whether the mean of samples is within three deviations of the true mean.

    Parameters
    ----------
    generator
        Makes a number of independent samples.
    mu
        The true mean.
    sigma
        The true standard deviation.
    nsamples
        How many samples to make.

    >>> mean_check(lambda n: np.zeros(n), 0, 1.0, nsamples=100)
    True
    """
    mean = _samples(generator, nsamples).astype(np.float64).mean()
    return bool(abs(mean - mu) < 3 * sigma / math.sqrt(nsamples))


def var_check(generator: Generator, sigma: float, nsamples: int = 1000000) -> bool:
    """Return whether the variance of samples is within three deviations of the true one.

    Parameters
    ----------
    generator
        Makes a number of independent samples.
    sigma
        The true standard deviation.
    nsamples
        How many samples to make.

    >>> var_check(lambda n: np.random.normal(0, 1, n), 1.0, nsamples=1000) in (True, False)
    True
    """
    variance = _samples(generator, nsamples).astype(np.float64).var(ddof=1)
    return bool(abs(variance - sigma**2) < 3 * math.sqrt(2 * sigma**4 / (nsamples - 1)))


def gen_buckets_probs_with_ppf(
    ppf: Callable[[float], float], nbuckets: int
) -> tuple[list[tuple[float, float]], list[float]]:
    """Return intervals of equal probability of a distribution, given its quantile function.

    Parameters
    ----------
    ppf
        The quantile function.
    nbuckets
        Number of intervals.

    >>> gen_buckets_probs_with_ppf(lambda q: 10 * q, 2)
    ([(0.0, 5.0), (5.0, 10.0)], [0.5, 0.5])
    """
    edges = [ppf(i / nbuckets) for i in range(nbuckets + 1)]
    return list(pairwise(edges)), [1.0 / nbuckets] * nbuckets


def chi_square_check(
    generator: Generator,
    buckets: Sequence[Any],
    probs: Sequence[float],
    nsamples: int = 1000000,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Compare how often samples fall into buckets with how often they should.

    Parameters
    ----------
    generator
        Makes a number of independent samples.
    buckets
        The values of a discrete distribution, or intervals (low, high) in ascending order.
    probs
        The probability of each bucket.
    nsamples
        How many to make.

    Returns
    -------
    p : float
        The p value of the chi-square test; a small one says that the generator is wrong.
    obs_freq, expected_freq : how many samples were and should be in each bucket.

    >>> coin = lambda n: np.random.randint(0, 2, n)
    >>> p, found, expected = mx.test_utils.chi_square_check(coin, [0, 1], [0.5, 0.5], 1000)
    >>> 0 <= p <= 1
    True
    """
    if not isinstance(buckets, list | tuple) or len(buckets) != len(probs) or not buckets:
        raise AssertionError("buckets must be a list with a probability for each of its members")
    samples = _samples(generator, nsamples)
    intervals = isinstance(buckets[0], list | tuple)
    observed = _in_intervals(samples, buckets) if intervals else _values(samples, buckets)
    expected = (nsamples * np.asarray(probs, dtype=np.float64)).astype(np.int32)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (observed - expected) ** 2 / expected
    distance = float(np.nan_to_num(terms, nan=0.0, posinf=np.inf).sum())
    freedom = torch.tensor((len(buckets) - 1) / 2, dtype=torch.float64)
    p = torch.special.gammaincc(freedom, torch.tensor(distance / 2, dtype=torch.float64)).item()
    return p, observed, expected


def _in_intervals(samples: np.ndarray, buckets: Sequence[tuple[float, float]]) -> np.ndarray:
    lows, highs = (np.asarray(side, dtype=np.float64) for side in zip(*buckets, strict=True))
    if (lows[1:] < highs[:-1]).any():
        raise AssertionError("buckets must be in ascending order and must not overlap")
    ordered = np.sort(samples.astype(np.float64))
    last = np.append(np.full(len(buckets) - 1, False), True)  # the last interval is closed
    ends = np.where(
        last, np.searchsorted(ordered, highs, "right"), np.searchsorted(ordered, highs, "left")
    )
    return ends - np.searchsorted(ordered, lows, "left")


def _values(samples: np.ndarray, buckets: Sequence[float]) -> np.ndarray:
    found, counts = np.unique(samples, return_counts=True)
    seen = dict(zip(found.tolist(), counts.tolist(), strict=True))
    return np.array([seen.get(b, 0) for b in buckets])


def verify_generator(
    generator: Generator,
    buckets: Sequence[Any],
    probs: Sequence[float],
    nsamples: int = 1000000,
    nrepeat: int = 5,
    success_rate: float = 0.2,
    alpha: float = 0.05,
) -> list[float]:
    """Raise AssertionError unless a chi-square test succeeds often enough; return its p values.

    Parameters
    ----------
    generator, buckets, probs, nsamples
        As for `chi_square_check`.
    nrepeat
        How often to test.
    success_rate
        Which part of the tests has to succeed.
    alpha
        A test succeeds if its p value is above this.

    >>> coin = lambda n: np.random.randint(0, 2, n)
    >>> fair = ([0, 1], [0.5, 0.5])
    >>> len(mx.test_utils.verify_generator(coin, *fair, 1000, nrepeat=2, success_rate=0))
    2
    """
    runs = [chi_square_check(generator, buckets, probs, nsamples) for _ in range(nrepeat)]
    values = [p for p, _, _ in runs]
    if sum(p > alpha for p in values) < nrepeat * success_rate:
        raise AssertionError(
            f"Generator test fails, Chi-square p={values}, obs_freq={[o for _, o, _ in runs]}, "
            f"expected_freq={[e for _, _, e in runs]}.\nbuckets={buckets}, probs={probs}"
        )
    return values
