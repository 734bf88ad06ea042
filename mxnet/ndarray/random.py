"""`mx.nd.random`: samples as arrays.

Parameters are numbers, or arrays of which every element gives `shape` samples. The ``*_like``
functions are put here by `face`.
"""

from __future__ import annotations

from typing import Any

from ..base import _Null, numeric_types
from ..context import Context
from ..error import AttributeConversionError
from ..imperative.apply import apply, parse_context
from ..ops import registry
from .codegen import make_function
from .ndarray import NDArray

_LIKE = (
    "exponential_like",
    "gamma_like",
    "generalized_negative_binomial_like",
    "negative_binomial_like",
    "normal_like",
    "poisson_like",
    "uniform_like",
)

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
    *_LIKE,
]

Parameter = float | NDArray
_KINDS = (*numeric_types, NDArray)


def _draw(
    name: str,
    parameters: dict[str, Parameter],
    shape: Any,
    dtype: Any,
    ctx: Context | str | None,
    out: NDArray | None,
    kwargs: dict[str, Any],
) -> NDArray:
    """Call the operator for numbers or the one for arrays, with what was given."""
    kwargs.pop("name", None)
    if dtype is not _Null and dtype is not None:
        kwargs["dtype"] = dtype
    elif out is not None:
        kwargs["dtype"] = out.dtype
    values = list(parameters.values())
    _check_kinds(values)
    if isinstance(values[0], NDArray):
        if shape is not _Null and shape is not None:
            kwargs["shape"] = shape
        return apply(registry.get(f"_sample_{name}"), values, kwargs, out, cls=NDArray)
    if shape is _Null or shape is None:
        shape = (1,) if out is None else out.shape
    if isinstance(ctx, str):
        ctx = parse_context(ctx)
    raw = {**parameters, **kwargs, "shape": shape}
    return apply(registry.get(f"_random_{name}"), (), raw, out, cls=NDArray, ctx=ctx)


def _check_kinds(values: list[Any]) -> None:
    for value in values:
        if not isinstance(value, _KINDS):
            raise ValueError(
                f"Distribution parameters must be either NDArray or numbers, but got {type(value)}."
            )
    first = values[0]
    for other in values[1:]:
        if isinstance(first, NDArray) != isinstance(other, NDArray):
            raise AssertionError(
                "Distribution parameters must all have the same type, but got both "
                f"{type(first)} and {type(other)}. Make an array of the number, of the same shape."
            )


def uniform(
    low: Parameter = 0,
    high: Parameter = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Context | None = None,
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """Draw evenly from [`low`, `high`).

    Parameters
    ----------
    low, high : float or NDArray
    shape : int or tuple of int; of the result, or of the samples for each element of arrays.
    dtype : {'float16', 'float32', 'float64'}, default 'float32'
    ctx : Context, default the current one; arrays of parameters have their own.
    out : NDArray that receives the samples, and tells shape and dtype where these are not given.

    >>> mx.random.uniform(0, 1, shape=(2, 3)).shape
    (2, 3)
    >>> mx.random.uniform(nd.array([0, 10]), nd.array([1, 20]), shape=4).shape
    (2, 4)
    """
    return _draw("uniform", {"low": low, "high": high}, shape, dtype, ctx, out, kwargs)


def normal(
    loc: Parameter = 0,
    scale: Parameter = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Context | None = None,
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """Draw from a normal distribution of mean `loc` and standard deviation `scale`.

    >>> mx.random.normal(0, 1, shape=(2, 3)).shape
    (2, 3)
    """
    return _draw("normal", {"loc": loc, "scale": scale}, shape, dtype, ctx, out, kwargs)


def randn(*shape: int, **kwargs: Any) -> NDArray:
    """Draw from a normal distribution; the sizes of the result are given one by one.

    `loc`, `scale`, `dtype`, `ctx` and `out` go by keyword.

    >>> mx.random.randn(2, 3).shape
    (2, 3)
    """
    loc, scale = kwargs.pop("loc", 0), kwargs.pop("scale", 1)
    return normal(loc, scale, shape or _Null, **kwargs)


def gamma(
    alpha: Parameter = 1,
    beta: Parameter = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Context | None = None,
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """Draw from a gamma distribution of shape `alpha` and scale `beta`.

    >>> mx.random.gamma(2, 3, shape=(2,)).shape
    (2,)
    """
    return _draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, ctx, out, kwargs)


def exponential(
    scale: Parameter = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Context | None = None,
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """Draw from an exponential distribution of mean `scale`.

    >>> mx.random.exponential(4, shape=(2,)).shape
    (2,)
    """
    _check_kinds([scale])
    if not isinstance(scale, NDArray) and scale == 0:
        raise AttributeConversionError("exponential: scale has to be positive, but got 0.")
    return _draw("exponential", {"lam": 1.0 / scale}, shape, dtype, ctx, out, kwargs)


def poisson(
    lam: Parameter = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Context | None = None,
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """Draw counts from a Poisson distribution of mean `lam`, as floating-point numbers.

    >>> mx.random.poisson(4, shape=(2,)).shape
    (2,)
    """
    return _draw("poisson", {"lam": lam}, shape, dtype, ctx, out, kwargs)


def negative_binomial(
    k: Parameter = 1,
    p: Parameter = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Context | None = None,
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """Draw how many failures come before `k` successes, each of probability `p`.

    >>> mx.random.negative_binomial(3, 1, shape=(2,)).asnumpy()
    array([0., 0.], dtype=float32)
    """
    return _draw("negative_binomial", {"k": k, "p": p}, shape, dtype, ctx, out, kwargs)


def generalized_negative_binomial(
    mu: Parameter = 1,
    alpha: Parameter = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Context | None = None,
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """Draw counts of mean `mu` and variance ``mu + alpha mu^2``.

    >>> mx.random.generalized_negative_binomial(0, 1, shape=(2,)).asnumpy()
    array([0., 0.], dtype=float32)
    """
    parameters = {"mu": mu, "alpha": alpha}
    return _draw("generalized_negative_binomial", parameters, shape, dtype, ctx, out, kwargs)


def randint(
    low: int,
    high: int,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Context | None = None,
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """Draw whole numbers evenly from [`low`, `high`), as int32 unless dtype is 'int64'.

    >>> mx.random.randint(7, 8, shape=(2,)).asnumpy()
    array([7, 7], dtype=int32)
    """
    for bound in (low, high):
        if isinstance(bound, NDArray):
            raise TypeError("randint takes numbers; low and high cannot be arrays.")
    return _draw("randint", {"low": low, "high": high}, shape, dtype, ctx, out, kwargs)


_multinomial = make_function(registry.get("_sample_multinomial"), "multinomial", NDArray)
_shuffle = make_function(registry.get("_shuffle"), "shuffle", NDArray)


def multinomial(
    data: NDArray,
    shape: Any = _Null,
    get_prob: bool = False,
    out: NDArray | None = None,
    dtype: Any = "int32",
    **kwargs: Any,
) -> NDArray | list[NDArray]:
    """Draw indices by the probabilities on the last axis of `data`.

    Parameters
    ----------
    data : NDArray of probabilities; other axes than the last are a batch.
    shape : int or tuple of int; of the samples for each distribution, by default one.
    get_prob : whether to return also the logarithm of the probabilities of what was drawn.
    dtype : of the indices, default 'int32'.

    >>> mx.random.multinomial(nd.array([[0, 1], [1, 0]]), shape=3).asnumpy()
    array([[1, 1, 1],
           [0, 0, 0]], dtype=int32)
    """
    if shape is not _Null and shape is not None:
        kwargs["shape"] = shape
    return _multinomial(data, get_prob=get_prob, dtype=dtype, out=out, **kwargs)


def shuffle(data: NDArray, **kwargs: Any) -> NDArray:
    """Put the entries along the first axis into random order, in a new array or in `out`.

    >>> sorted(mx.random.shuffle(nd.array([3, 1, 2])).asnumpy().tolist())
    [1.0, 2.0, 3.0]
    """
    return _shuffle(data, **kwargs)
