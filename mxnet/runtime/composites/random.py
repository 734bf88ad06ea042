"""Distributions with numbers or arrays as parameters: `mx.nd.random` and `mx.sym.random`."""

from __future__ import annotations

import math
from typing import Any

from ...base import _Null, numeric_types
from ...error import AttributeConversionError
from .namespace import OperatorNamespace

__all__ = [
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "multinomial",
    "negative_binomial",
    "normal",
    "poisson",
    "randint",
    "randn",
    "shuffle",
    "uniform",
]


def _draw(
    F: OperatorNamespace,
    distribution: str,
    parameters: dict[str, Any],
    shape: Any,
    dtype: Any,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Call the operator for numbers or the one for arrays, with the given arguments."""
    values = list(parameters.values())
    takes_arrays = _check_parameters(F, values)
    if dtype is not _Null and dtype is not None:
        kwargs["dtype"] = dtype
    if shape is not _Null and shape is not None:
        kwargs["shape"] = shape
    if out is not None:
        kwargs = {"dtype": out.dtype, **kwargs, "out": out}
    if takes_arrays:
        return getattr(F, f"_sample_{distribution}")(*values, **kwargs)
    if ctx is not None:
        kwargs["ctx"] = str(ctx)
    if not F.is_symbolic:
        kwargs.setdefault("shape", (1,) if out is None else out.shape)
    return getattr(F, f"_random_{distribution}")(**parameters, **kwargs)


def _check_parameters(F: OperatorNamespace, values: list[Any]) -> bool:
    """Return whether the parameters are arrays. Raise for other types and for mixtures."""
    kind = F.array_class.__name__
    for value in values:
        if not F.is_array(value) and not isinstance(value, numeric_types):
            raise ValueError(
                f"Distribution parameters must be either {kind} or numbers, but got {type(value)}."
            )
    first = F.is_array(values[0])
    for other in values[1:]:
        if F.is_array(other) != first:
            raise AssertionError(
                "Distribution parameters must all have the same type, but got both "
                f"{type(values[0])} and {type(other)}. Make an array of the number, of the same "
                "shape."
            )
    return first


def uniform(
    F: OperatorNamespace,
    low: Any = 0,
    high: Any = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Draw evenly from [`low`, `high`).

    Parameters
    ----------
    low : numbers
        Lower bound. An array gives samples for each of its elements.
    high : numbers
        Upper bound, which is left out.
    shape : int or tuple of int
        Shape of the result, or of the samples for each element of array parameters.
    dtype : {'float16', 'float32', 'float64'}, default 'float32'
        Data type of the samples: float16, float32 (the default) or float64.
    ctx : Context
        Device of the samples; by default the current one, or that of array parameters.
    out
        Array that receives the samples; it gives shape and data type where these are not given.

    >>> mx.nd.random.uniform(0, 1, shape=(2, 3)).shape
    (2, 3)
    """
    return _draw(F, "uniform", {"low": low, "high": high}, shape, dtype, ctx, out, **kwargs)


def normal(
    F: OperatorNamespace,
    loc: Any = 0,
    scale: Any = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Draw from a normal distribution of mean `loc` and standard deviation `scale`.

    >>> mx.nd.random.normal(0, 1, shape=(2, 3)).shape
    (2, 3)
    """
    return _draw(F, "normal", {"loc": loc, "scale": scale}, shape, dtype, ctx, out, **kwargs)


def randn(F: OperatorNamespace, *shape: int, **kwargs: Any) -> Any:
    """Draw from a normal distribution; the sizes of the result are given one by one.

    `loc`, `scale` and `dtype` go by keyword.

    >>> mx.nd.random.randn(2, 3).shape
    (2, 3)
    """
    loc, scale = kwargs.pop("loc", 0), kwargs.pop("scale", 1)
    return normal(F, loc, scale, shape or _Null, **kwargs)


def gamma(
    F: OperatorNamespace,
    alpha: Any = 1,
    beta: Any = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Draw from a gamma distribution of shape `alpha` and scale `beta`.

    >>> mx.nd.random.gamma(2, 3, shape=(2,)).shape
    (2,)
    """
    return _draw(F, "gamma", {"alpha": alpha, "beta": beta}, shape, dtype, ctx, out, **kwargs)


def exponential(
    F: OperatorNamespace,
    scale: Any = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Draw from an exponential distribution of mean `scale`.

    Parameters
    ----------
    scale
        Mean of the distribution. An array gives samples for each of its elements.

    >>> mx.nd.random.exponential(4, shape=(2,)).shape
    (2,)
    """
    _check_parameters(F, [scale])
    if not F.is_array(scale) and scale == 0:
        raise AttributeConversionError("exponential: scale has to be positive, but got 0.")
    return _draw(F, "exponential", {"lam": 1.0 / scale}, shape, dtype, ctx, out, **kwargs)


def poisson(
    F: OperatorNamespace,
    lam: Any = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Draw counts from a Poisson distribution of mean `lam`, as floating-point numbers.

    >>> mx.nd.random.poisson(4, shape=(2,)).shape
    (2,)
    """
    return _draw(F, "poisson", {"lam": lam}, shape, dtype, ctx, out, **kwargs)


def negative_binomial(
    F: OperatorNamespace,
    k: Any = 1,
    p: Any = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Draw how many failures come before `k` successes, each of probability `p`.

    >>> mx.nd.random.negative_binomial(3, 1, shape=(2,)).asnumpy()
    array([0., 0.], dtype=float32)
    """
    return _draw(F, "negative_binomial", {"k": k, "p": p}, shape, dtype, ctx, out, **kwargs)


def generalized_negative_binomial(
    F: OperatorNamespace,
    mu: Any = 1,
    alpha: Any = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Draw counts of mean `mu` and variance ``mu + alpha mu^2``.

    Parameters
    ----------
    alpha
        Dispersion of the distribution. An array gives samples for each of its elements.

    >>> mx.nd.random.generalized_negative_binomial(0, 1, shape=(2,)).asnumpy()
    array([0., 0.], dtype=float32)
    """
    parameters = {"mu": mu, "alpha": alpha}
    name = "generalized_negative_binomial"
    return _draw(F, name, parameters, shape, dtype, ctx, out, **kwargs)


def randint(
    F: OperatorNamespace,
    low: int,
    high: int,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Draw integers evenly from [`low`, `high`), as int32 unless dtype is 'int64'.

    Parameters
    ----------
    low
        Smallest number.
    high
        Upper bound, which is left out.
    dtype
        Data type of the samples; int32 by default.

    >>> mx.nd.random.randint(7, 8, shape=(2,)).asnumpy()
    array([7, 7], dtype=int32)
    """
    if F.is_array(low) or F.is_array(high):
        raise TypeError(
            f"randint takes numbers; low and high cannot be of type {F.array_class.__name__}."
        )
    return _draw(F, "randint", {"low": low, "high": high}, shape, dtype, ctx, out, **kwargs)


def multinomial(
    F: OperatorNamespace,
    data: Any,
    shape: Any = _Null,
    get_prob: bool = False,
    out: Any = None,
    dtype: Any = "int32",
    **kwargs: Any,
) -> Any:
    """Draw indices by the probabilities on the last axis of `data`.

    Parameters
    ----------
    data
        Probabilities on the last axis; the others are a batch.
    shape : int or tuple of int
        Shape of the samples for each distribution; by default one.
    get_prob
        Whether to return the logarithm of the drawn probabilities too.
    dtype
        Data type of the indices.

    >>> mx.nd.random.multinomial(nd.array([[0, 1], [1, 0]]), shape=3).asnumpy()
    array([[1, 1, 1],
           [0, 0, 0]], dtype=int32)
    """
    if shape is not _Null and shape is not None:
        kwargs["shape"] = shape
    if out is not None:
        kwargs["out"] = out
    return F._sample_multinomial(data, get_prob=get_prob, dtype=dtype, **kwargs)


def shuffle(F: OperatorNamespace, data: Any, **kwargs: Any) -> Any:
    """Put the entries along the first axis into random order, in a new array or in `out`.

    Parameters
    ----------
    data
        The array; the shuffled one is a copy.

    >>> sorted(mx.nd.random.shuffle(nd.array([3, 1, 2])).asnumpy().tolist())
    [1.0, 2.0, 3.0]
    """
    return F._shuffle(data, **kwargs)


# -- candidate sampling -------------------------------------------------------------------------


def rand_zipfian(
    F: OperatorNamespace, true_classes: Any, num_sampled: int, range_max: int, ctx: Any = None
) -> tuple[Any, Any, Any]:
    """Draw class numbers from a log-uniform (Zipfian) distribution over [0, range_max).

    Returns the samples, and how often the true and the sampled classes are expected among them.

    >>> sampled, _, _ = mx.nd.contrib.rand_zipfian(mx.nd.array([3]), 4, 5)
    >>> sampled.shape
    (4,)
    """
    log_range = math.log(range_max + 1)
    drawn = uniform(F, 0, log_range, (num_sampled,), "float64", ctx)
    sampled = (drawn.exp() - 1).astype("int64") % range_max

    def expected(classes: Any) -> Any:
        numbers = classes.astype("float64")
        if ctx is not None:
            numbers = numbers.as_in_context(ctx)
        return ((numbers + 2.0) / (numbers + 1.0)).log() / log_range * num_sampled

    return sampled, expected(true_classes), expected(sampled)
