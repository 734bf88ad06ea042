"""Random shapes, arrays and matrices, and small arrays with known content."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

import mxnet as mx

from ..ndarray import NDArray
from .comparison import default_dtype

# ruff: noqa: NPY002 (np.random.seed has to rule these numbers)


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple:
    """Return a random shape with two axes, of at most the given sizes.

    Parameters
    ----------
    dim0
        Largest size of the first axis.
    dim1
        Largest size of the second axis.
    allow_zero_size
        Whether sizes may be 0.

    >>> len(mx.test_utils.rand_shape_2d())
    2
    """
    return _rand_shape((dim0, dim1), allow_zero_size)


def rand_shape_3d(
    dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False
) -> tuple:
    """Return a random shape with three axes, of at most the given sizes.

    Parameters
    ----------
    dim0
        Largest size of the first axis.
    dim1
        Largest size of the second axis.
    dim2
        Largest size of the third axis.
    allow_zero_size
        Whether sizes may be 0.

    >>> len(mx.test_utils.rand_shape_3d())
    3
    """
    return _rand_shape((dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple:
    """Return a random shape with `num_dim` axes of at most `dim`.

    Parameters
    ----------
    num_dim
        Number of axes.
    dim
        Largest size.
    allow_zero_size
        Whether sizes may be 0.

    >>> len(mx.test_utils.rand_shape_nd(4))
    4
    """
    return _rand_shape((dim,) * num_dim, allow_zero_size)


def _rand_shape(limits: Sequence[int], allow_zero_size: bool) -> tuple[int, ...]:
    low = 0 if allow_zero_size else 1
    return tuple(int(np.random.randint(low, n + 1)) for n in limits)


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """Return a random point with integer coordinates.

    Parameters
    ----------
    x_low
        Least x.
    x_high
        Largest x.
    y_low
        Least y.
    y_high
        Largest y.

    >>> len(mx.test_utils.rand_coord_2d(0, 5, 0, 5))
    2
    """
    x = np.random.randint(x_low, x_high)
    y = np.random.randint(y_low, y_high)
    return int(x), int(y)


def random_arrays(*shapes: tuple[int, ...]) -> Any:
    """Return a NumPy array of normal numbers for each shape; for one shape, the array itself.

    Parameters
    ----------
    shapes
        The shapes.

    >>> mx.test_utils.random_arrays((2, 3)).shape
    (2, 3)
    """
    arrays = [np.array(np.random.randn(*s), dtype=default_dtype()) for s in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(*shapes: tuple[int, ...], **kwargs: Any) -> list[np.ndarray]:
    """Return a list of NumPy arrays with numbers between `low` (0) and `high` (1).

    Parameters
    ----------
    shapes
        The shapes.

    >>> mx.test_utils.random_uniform_arrays((2, 3))[0].shape
    (2, 3)
    """
    low, high = kwargs.pop("low", 0.0), kwargs.pop("high", 1.0)
    dtype = kwargs.pop("dtype", default_dtype())
    return [np.random.uniform(low, high, size=s).astype(dtype) for s in shapes]


def random_sample(population: Sequence[Any], k: int) -> list[Any]:
    """Return `k` different members of a sequence in random order.

    Parameters
    ----------
    population
        The sequence.
    k
        How many.

    >>> sorted(mx.test_utils.random_sample([1, 2, 3], 3))
    [1, 2, 3]
    """
    order = np.random.permutation(len(population))[:k]
    return [population[i] for i in order]


def assign_each(the_input: np.ndarray, function: Callable | None) -> np.ndarray:
    """Return an array with a function applied to each element; without one, a copy.

    Parameters
    ----------
    the_input
        The array.
    function
        The function of elements.

    >>> mx.test_utils.assign_each(np.array([1.0, 2.0]), lambda x: x + 1)
    array([2., 3.])
    """
    return np.array(the_input) if function is None else np.vectorize(function)(the_input)


def assign_each2(input1: np.ndarray, input2: np.ndarray, function: Callable | None) -> np.ndarray:
    """Return an array with a function applied to pairs of elements; without one, a copy.

    Parameters
    ----------
    input1, input2
        The arrays.
    function
        The function of elements.

    >>> mx.test_utils.assign_each2(np.array([1.0]), np.array([2.0]), lambda x, y: x + y)
    array([3.])
    """
    return np.array(input1) if function is None else np.vectorize(function)(input1, input2)


def create_2d_tensor(rows: int, columns: int, dtype: Any = np.int64) -> NDArray:
    """Return an array whose rows hold their numbers.

    Parameters
    ----------
    rows
        Number of rows.
    columns
        Number of columns.
    dtype
        Data type of the array.

    >>> create_2d_tensor(2, 3).asnumpy()
    array([[0, 0, 0],
           [1, 1, 1]])
    """
    return mx.nd.arange(0, rows, dtype=dtype).reshape((rows, 1)).broadcast_to((rows, columns))


def create_vector(size: int, dtype: Any = np.int64) -> NDArray:
    """Return the numbers from 0 up to, but not including, `size`.

    Parameters
    ----------
    size
        Number of elements, or of rows.
    dtype
        Data type of the array.

    >>> mx.test_utils.create_vector(3).asnumpy()
    array([0, 1, 2])
    """
    return mx.nd.arange(0, size, dtype=dtype)


def get_identity_mat(size: int) -> NDArray:
    """Return the identity matrix.

    Parameters
    ----------
    size
        Number of elements, or of rows.

    >>> mx.test_utils.get_identity_mat(2).shape
    (2, 2)
    """
    return mx.nd.eye(size)


def get_identity_mat_batch(size: int) -> NDArray:
    """Return two identity matrices in one array.

    Parameters
    ----------
    size
        Number of elements, or of rows.

    >>> mx.test_utils.get_identity_mat_batch(3).shape
    (2, 3, 3)
    """
    return mx.nd.array(np.stack([np.eye(size)] * 2))


def np_reduce(dat: np.ndarray, axis: Any, keepdims: bool, numpy_reduce_func: Callable) -> Any:
    """Return a NumPy reduction over one axis, several, or all.

    Parameters
    ----------
    dat
        The array.
    axis
        One axis, several, or None for all.
    keepdims
        Whether reduced axes stay.
    numpy_reduce_func
        NumPy's function.

    >>> mx.test_utils.np_reduce(np.ones((2, 3)), 1, False, np.sum)
    array([3., 3.])
    """
    if isinstance(axis, int):
        axis = (axis,)
    axes = tuple(range(dat.ndim)) if axis is None else tuple(axis)
    reduced = dat
    for i in sorted((a % dat.ndim for a in axes), reverse=True):
        reduced = numpy_reduce_func(reduced, axis=i)
    if keepdims:
        kept_shape = tuple(
            1 if i in {a % dat.ndim for a in axes} else n for i, n in enumerate(dat.shape)
        )
        reduced = np.reshape(reduced, kept_shape)
    return reduced


def collapse_sum_like(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return `a` summed over the axes along which an array of `shape` is broadcast to it.

    Parameters
    ----------
    a
        The array to sum.
    shape
        The shape to sum to.

    >>> collapse_sum_like(np.ones((2, 3, 4)), (3, 1)).ravel().tolist()
    [8.0, 8.0, 8.0]
    """
    extra = a.ndim - len(shape)
    if extra < 0:
        raise AssertionError(f"shape {shape} has more axes than {a.shape}")
    stretched = (i + extra for i, n in enumerate(shape) if n == 1 and a.shape[i + extra] != 1)
    return a.sum(axis=(*range(extra), *stretched)).reshape(shape)


# -- matrices with known eigenvalues -----------------------------------------------------------


def new_orthonormal_matrix_2d(n: int) -> np.ndarray:
    """Return a random orthonormal matrix.

    Parameters
    ----------
    n
        Number of rows.

    >>> mx.test_utils.new_orthonormal_matrix_2d(3).shape
    (3, 3)
    """
    return _orthonormal((n, n))


def _orthonormal(shape: tuple[int, ...]) -> np.ndarray:
    return np.linalg.qr(np.random.uniform(-1, 1, size=shape))[0]


def _eigenvalues(shape: tuple[int, ...]) -> np.ndarray:
    """Return well separated real numbers between -10 and 10."""
    n = shape[-1]
    centers = np.linspace(-10, 10, n + 2)[1:-1]
    shake = np.random.uniform(-1, 1, size=shape[:-1]) * 5 / (n + 1)
    return centers + shake


def new_sym_matrix_with_real_eigvals_nd(shape: tuple[int, ...]) -> np.ndarray:
    """Return symmetric matrices with small, well separated eigenvalues.

    Parameters
    ----------
    shape
        Shape of the array.

    >>> mx.test_utils.new_sym_matrix_with_real_eigvals_nd((2, 3, 3)).shape
    (2, 3, 3)
    """
    q, w = _orthonormal(shape), _eigenvalues(shape)
    matrix = (q * w[..., None, :]) @ np.swapaxes(q, -1, -2)
    return (matrix + np.swapaxes(matrix, -1, -2)) / 2


def new_sym_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Return a symmetric matrix with small, well separated eigenvalues.

    Parameters
    ----------
    n
        Number of rows.

    >>> mx.test_utils.new_sym_matrix_with_real_eigvals_2d(3).shape
    (3, 3)
    """
    return new_sym_matrix_with_real_eigvals_nd((n, n))


def new_matrix_with_real_eigvals_nd(shape: tuple[int, ...]) -> np.ndarray:
    """Return matrices with small, well separated real eigenvalues.

    Parameters
    ----------
    shape
        Shape of the array.

    >>> mx.test_utils.new_matrix_with_real_eigvals_nd((2, 3, 3)).shape
    (2, 3, 3)
    """
    n = shape[-1]
    shear = np.triu(np.random.uniform(-0.3, 0.3, size=shape), 1) + np.eye(n)
    p = _orthonormal(shape) @ shear
    return (p * _eigenvalues(shape)[..., None, :]) @ np.linalg.inv(p)


def new_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Return a matrix with small, well separated real eigenvalues.

    Parameters
    ----------
    n
        Number of rows.

    >>> mx.test_utils.new_matrix_with_real_eigvals_2d(3).shape
    (3, 3)
    """
    return new_matrix_with_real_eigvals_nd((n, n))


# -- whether random generators make what they promise ---------------------------------------------


Generator = Callable[[int], Any]


def _samples(generator: Generator, count: int) -> np.ndarray:
    samples = generator(count)
    return np.asarray(samples.asnumpy() if hasattr(samples, "asnumpy") else samples).reshape(-1)


def mean_check(generator: Generator, mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Return whether the mean of samples is within three deviations of the true mean.

    Parameters
    ----------
    generator
        Function that returns a number of independent samples.
    mu
        The true mean.
    sigma
        The true standard deviation.
    nsamples
        Number of samples.

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
        Function that returns a number of independent samples.
    sigma
        The true standard deviation.
    nsamples
        Number of samples.

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
    """Compare the observed and expected counts of samples in buckets.

    Parameters
    ----------
    generator
        Function that returns a number of independent samples.
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
    values, counts = np.unique(samples, return_counts=True)
    seen = dict(zip(values.tolist(), counts.tolist(), strict=True))
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
