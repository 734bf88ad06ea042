"""`mx.sym.random`: distributions with numbers or symbols as parameters."""

from __future__ import annotations

from typing import Any

from ..base import _Null, numeric_types
from ..ops import registry
from .codegen import call, entry_of
from .symbol import Symbol

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
    random: str, sample: str | None, params: dict[str, Any], shape: Any, dtype: Any, kwargs: dict
) -> Symbol:
    """Choose the operator by what the parameters are: all symbols, or all numbers."""
    kinds = [isinstance(p, Symbol) for p in params.values()]
    attrs = {"shape": shape, "dtype": dtype, **kwargs}
    if all(kinds):
        if sample is None:
            raise ValueError(f"{random}: distribution parameters must be numbers, not symbols.")
        given = {k: entry_of(p, k) for k, p in params.items()}
        return call(Symbol, registry.get(sample), sample, given, attrs)
    if not any(kinds) and all(isinstance(p, numeric_types) for p in params.values()):
        return call(Symbol, registry.get(random), random, {}, {**params, **attrs})
    told = " and ".join(str(type(p)) for p in params.values())
    raise ValueError(
        f"Distribution parameters must all have the same type, Symbol or number, but got {told}."
    )


def uniform(
    low: Any = 0, high: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any
) -> Symbol:
    """Draw evenly from [low, high)."""
    params = {"low": low, "high": high}
    return _draw("_random_uniform", "_sample_uniform", params, shape, dtype, kwargs)


def normal(
    loc: Any = 0, scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any
) -> Symbol:
    """Draw from a normal distribution.

    >>> mx.sym.random.normal(0, 1, shape=(2, 3)).infer_shape()[1]
    [(2, 3)]
    """
    if isinstance(loc, Symbol):
        params = {"mu": loc, "sigma": scale}
    else:
        params = {"loc": loc, "scale": scale}
    return _draw("_random_normal", "_sample_normal", params, shape, dtype, kwargs)


def randn(*shape: int, **kwargs: Any) -> Symbol:
    """Draw from a normal distribution; the sizes are the positional arguments."""
    loc, scale = kwargs.pop("loc", 0), kwargs.pop("scale", 1)
    return normal(loc, scale, shape, kwargs.pop("dtype", _Null), **kwargs)


def poisson(lam: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Draw counts with the mean `lam`."""
    return _draw("_random_poisson", "_sample_poisson", {"lam": lam}, shape, dtype, kwargs)


def exponential(scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Draw waiting times with the mean `scale`."""
    params = {"lam": 1.0 / scale}
    return _draw("_random_exponential", "_sample_exponential", params, shape, dtype, kwargs)


def gamma(
    alpha: Any = 1, beta: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any
) -> Symbol:
    """Draw from a gamma distribution of shape `alpha` and scale `beta`."""
    params = {"alpha": alpha, "beta": beta}
    return _draw("_random_gamma", "_sample_gamma", params, shape, dtype, kwargs)


def negative_binomial(
    k: Any = 1, p: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any
) -> Symbol:
    """Draw the number of failures before `k` successes of probability `p`."""
    names = "_random_negative_binomial", "_sample_negative_binomial"
    return _draw(*names, {"k": k, "p": p}, shape, dtype, kwargs)


def generalized_negative_binomial(
    mu: Any = 1, alpha: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any
) -> Symbol:
    """Draw counts of mean `mu` and dispersion `alpha`."""
    names = "_random_generalized_negative_binomial", "_sample_generalized_negative_binomial"
    return _draw(*names, {"mu": mu, "alpha": alpha}, shape, dtype, kwargs)


def multinomial(
    data: Symbol, shape: Any = _Null, get_prob: bool = True, dtype: Any = "int32", **kwargs: Any
) -> Symbol:
    """Draw indices with the given probabilities, and their log-likelihood."""
    attrs = {"shape": shape, "get_prob": get_prob, "dtype": dtype, **kwargs}
    given = {"data": entry_of(data, "data")}
    op = registry.get("_sample_multinomial")
    return call(Symbol, op, "_sample_multinomial", given, attrs)


def shuffle(data: Symbol, **kwargs: Any) -> Symbol:
    """Put the rows in random order."""
    given = {"data": entry_of(data, "data")}
    return call(Symbol, registry.get("_shuffle"), "_shuffle", given, kwargs)


def randint(low: Any, high: Any, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Draw whole numbers from [low, high)."""
    return _draw("_random_randint", None, {"low": low, "high": high}, shape, dtype, kwargs)
