"""Composites of `mx.np.random` and `mx.npx.random`."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as onp

from ..codegen.functions import NumpyNamespace, is_number
from .creation import zeros_like


def _sample(
    F: NumpyNamespace,
    operator: Any,
    size: Any,
    out: Any = None,
    extra: Any = None,
    **parameters: Any,
) -> Any:
    arrays, attributes = [], dict(extra or {})
    for key, value in parameters.items():
        is_array = F.is_array(value)
        attributes[key] = None if is_array else value
        if is_array:
            arrays.append(value)
    if isinstance(size, Integral):
        size = (int(size),)
    return operator(*arrays, size=size, **attributes, out=out)


def _place(F: NumpyNamespace, ctx: Any, dtype: Any = None) -> Any:
    return {"ctx": F.context_text(ctx), "dtype": "float32" if dtype is None else dtype}


def uniform(
    F: NumpyNamespace,
    low: Any = 0.0,
    high: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
) -> Any:
    """Draw from a uniform distribution over ``[low, high)``.

    >>> mx.np.random.uniform(size=(2, 3)).shape
    (2, 3)
    """
    return _sample(F, F._npi_uniform, size, out, _place(F, ctx, dtype), low=low, high=high)


def normal(
    F: NumpyNamespace,
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
) -> Any:
    """Draw from a normal distribution.

    >>> mx.np.random.normal(0, 0.01, (2, 3)).shape
    (2, 3)
    """
    return _sample(F, F._npi_normal, size, out, _place(F, ctx, dtype), loc=loc, scale=scale)


def lognormal(
    F: NumpyNamespace,
    mean: Any = 0.0,
    sigma: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
) -> Any:
    """Draw from a log-normal distribution.

    >>> mx.np.random.lognormal(size=3).shape
    (3,)
    """
    return F._npi_exp(normal(F, mean, sigma, size, dtype, ctx), out=out)


def logistic(
    F: NumpyNamespace,
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    ctx: Any = None,
    out: Any = None,
) -> Any:
    """Draw from a logistic distribution.

    >>> mx.np.random.logistic(size=3).shape
    (3,)
    """
    device = {"ctx": F.context_text(ctx)}
    return _sample(F, F._npi_logistic, size, out, device, loc=loc, scale=scale)


def gumbel(
    F: NumpyNamespace,
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    ctx: Any = None,
    out: Any = None,
) -> Any:
    """Draw from a Gumbel distribution.

    >>> mx.np.random.gumbel(size=3).shape
    (3,)
    """
    device = {"ctx": F.context_text(ctx)}
    return _sample(F, F._npi_gumbel, size, out, device, loc=loc, scale=scale)


def exponential(
    F: NumpyNamespace, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draw from an exponential distribution.

    >>> mx.np.random.exponential(size=3).shape
    (3,)
    """
    return _sample(F, F._npi_exponential, size, out, {"ctx": F.context_text(ctx)}, scale=scale)


def rayleigh(
    F: NumpyNamespace, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draw from a Rayleigh distribution.

    >>> mx.np.random.rayleigh(size=3).shape
    (3,)
    """
    return _sample(F, F._npi_rayleigh, size, out, {"ctx": F.context_text(ctx)}, scale=scale)


def weibull(F: NumpyNamespace, a: Any, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Draw from a Weibull distribution.

    Parameters
    ----------
    a
        Shape parameter: a number or an array.

    >>> mx.np.random.weibull(2.0, size=3).shape
    (3,)
    """
    return _sample(F, F._npi_weibull, size, out, {"ctx": F.context_text(ctx)}, a=a)


def pareto(F: NumpyNamespace, a: Any, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Draw from a Pareto II distribution.

    Parameters
    ----------
    a
        Shape parameter: a number or an array.

    >>> mx.np.random.pareto(2.0, size=3).shape
    (3,)
    """
    return _sample(F, F._npi_pareto, size, out, {"ctx": F.context_text(ctx)}, a=a)


def power(F: NumpyNamespace, a: Any, size: Any = None) -> Any:
    """Draw from a power distribution over ``[0, 1]``.

    Parameters
    ----------
    a
        Shape parameter: a number or an array.

    >>> mx.np.random.power(2.0, size=3).shape
    (3,)
    """
    return _sample(F, F._npi_powerd, size, a=a)


def gamma(
    F: NumpyNamespace,
    shape: Any,
    scale: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
) -> Any:
    """Draw from a gamma distribution.

    Parameters
    ----------
    shape
        Shape parameter: a number or an array.

    >>> mx.np.random.gamma(2.0, size=3).shape
    (3,)
    """
    return _sample(F, F._npi_gamma, size, out, _place(F, ctx, dtype), shape=shape, scale=scale)


def beta(
    F: NumpyNamespace, a: Any, b: Any, size: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Draw from a beta distribution.

    Parameters
    ----------
    a
        First shape parameter: a number or an array.
    b
        Second shape parameter: a number or an array.

    >>> mx.np.random.beta(1.0, 2.0, size=3).shape
    (3,)
    """
    target_dtype = "float32" if dtype is None else dtype
    x = gamma(F, a, 1.0, size, "float64", ctx)
    y = gamma(F, b, 1.0, size, "float64", ctx)
    return F._npi_cast(x / (x + y), dtype=target_dtype)


def chisquare(
    F: NumpyNamespace, df: Any, size: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Draw from a chi-square distribution.

    >>> mx.np.random.chisquare(2.0, size=3).shape
    (3,)
    """
    return gamma(F, df / 2, 1.0, size, dtype, ctx) * 2


def randint(
    F: NumpyNamespace,
    low: Any,
    high: Any = None,
    size: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
) -> Any:
    """Draw integers from ``[low, high)``, or from ``[0, low)`` if `high` is None.

    Parameters
    ----------
    low
        Lower bound, or the upper bound if `high` is None.
    size
        Shape of the samples; by default one number.
    dtype
        Data type of the result; int32 by default.

    >>> mx.np.random.randint(0, 5, (2,)).dtype
    dtype('int64')
    """
    if high is None:
        low, high = 0, low
    if size is None:
        size = ()
    shape = (int(size),) if isinstance(size, Integral) else tuple(size)
    kind = "int64" if dtype is None or dtype in (int, "int") else dtype
    return F._npi_random_randint(
        low=low, high=high, shape=shape, dtype=kind, ctx=F.context_text(ctx), out=out
    )


def rand(F: NumpyNamespace, *size: Any, **kwargs: Any) -> Any:
    """Draw from a uniform distribution over ``[0, 1)``.

    >>> mx.np.random.rand(2, 3).shape
    (2, 3)
    """
    return uniform(F, 0.0, 1.0, tuple(size), **kwargs)


def randn(F: NumpyNamespace, *size: Any, **kwargs: Any) -> Any:
    """Draw from the standard normal distribution.

    >>> mx.np.random.randn(2, 3).shape
    (2, 3)
    """
    return normal(F, 0.0, 1.0, tuple(size), **kwargs)


def shuffle(F: NumpyNamespace, x: Any) -> Any:
    """Shuffle an array along its first axis, in place.

    Parameters
    ----------
    x
        The array; it is changed in place.

    >>> mx.np.random.shuffle(mx.np.arange(3))
    """
    F._npi_shuffle(x, out=x)


def choice(
    F: NumpyNamespace,
    a: Any,
    size: Any = None,
    replace: Any = True,
    p: Any = None,
    ctx: Any = None,
    out: Any = None,
) -> Any:
    """Draw a random sample from an array, or from ``range(a)``.

    Parameters
    ----------
    a
        Array to sample from, or a number.
    size
        Shape of the samples; by default one sample.
    p
        Probability of each element; by default all are equal.

    >>> mx.np.random.choice(5, (2,)).shape
    (2,)
    """
    if isinstance(size, Integral):
        size = (int(size),)
    attrs = {"size": size, "ctx": F.context_text(ctx), "replace": replace}
    indices = {"weighted": p is not None, **attrs}
    weights = () if p is None else (p,)
    if is_number(a):
        return F._npi_choice(*weights, a=int(a), **indices, out=out)
    chosen = F._npi_choice(a, *weights, a=None, **indices)
    return F._npi_take(a, chosen, axis=0, out=out)


def multinomial(F: NumpyNamespace, n: Any, pvals: Any, size: Any = None, **kwargs: Any) -> Any:
    """Draw from a multinomial distribution: counts of each outcome in `n` trials, as int64.

    Parameters
    ----------
    n
        Number of trials.
    size
        Shape of the samples; by default one sample.

    >>> int(mx.np.random.multinomial(3, [0.5, 0.5]).sum())
    3
    """
    if kwargs:
        raise TypeError(f"multinomial() got an unexpected keyword argument {next(iter(kwargs))!r}")
    if isinstance(size, Integral):
        size = (int(size),)
    if F.is_array(pvals):
        return F._npi_multinomial(pvals, n=n, pvals=None, size=size)
    values = tuple(float(p) for p in onp.asarray(pvals).ravel())
    return F._npi_multinomial(n=n, pvals=values, size=size)


def multivariate_normal(
    F: NumpyNamespace,
    mean: Any,
    cov: Any,
    size: Any = None,
    check_valid: Any = None,
    tol: Any = None,
) -> Any:
    """Draw from a multivariate normal distribution.

    Parameters
    ----------
    mean
        Mean vectors, on the last axis.
    cov
        Covariance matrices, on the last two axes.

    >>> mx.np.random.multivariate_normal(mx.np.zeros(2), mx.np.eye(2), 3).shape
    (3, 2)
    """
    if check_valid is not None or tol is not None:
        raise NotImplementedError("multivariate_normal: check_valid and tol are not supported.")
    size = (int(size),) if isinstance(size, Integral) else tuple(size or ())
    # The covariance may have more batch axes, and shapes of symbols are unknown. Decompositions do
    # not support float16, and types of symbols are unknown too.
    wide, _ = F.amp_multicast(cov, F._npi_zeros(shape=(1,), dtype="float32"), num_outputs=2)
    center = zeros_like(F, mean) + zeros_like(F, F._np_sum(wide, axis=-1))
    dtype = getattr(wide, "dtype", "float32")
    draws = F._npi_normal_n(center, loc=None, scale=1.0, size=size, dtype=dtype)
    columns = F._npi_expand_dims(center + draws, axis=-1)
    deviations = F._np_squeeze(F._npi_matmul(F._npi_cholesky(wide), columns), axis=-1)
    result, _ = F.amp_multicast(mean + deviations, mean, num_outputs=2, cast_narrow=True)
    return result
