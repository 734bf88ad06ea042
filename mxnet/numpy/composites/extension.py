"""Composites of `mx.npx` and `mx.npx.random`; the other functions are plain operators."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..codegen.functions import NumpyNamespace


RANDOM = ("bernoulli", "normal_n", "uniform_n")


def reshape(
    F: NumpyNamespace, a: Any, newshape: Any, reverse: bool = False, order: str = "C"
) -> Any:
    """Return the array with a new shape, given by sizes and codes.

    -1 is inferred, -2 copies a size, -3 skips an axis of size 1, -4 copies all remaining sizes, -5
    merges two axes, -6 splits one into the two sizes that follow.

    >>> mx.npx.reshape(mx.np.ones((2, 3, 4)), (-5, -2)).shape
    (6, 4)
    """
    return F._npx_reshape(a, newshape=newshape, reverse=reverse, order=order)


def nonzero(F: NumpyNamespace, a: Any) -> Any:
    """Return the indices of nonzero elements as int64, one row per element.

    >>> mx.npx.nonzero(mx.np.array([0, 7]))
    array([[1]], dtype=int64)
    """
    return F._npx_nonzero(a)


def constraint_check(F: NumpyNamespace, x: Any, msg: Any) -> Any:
    """Return True if all elements are true, else raise an error with the message.

    >>> mx.npx.constraint_check(mx.np.array([1, 1], dtype=bool), "must be true")
    array(True)
    """
    return F._npx_constraint_check(x, msg=msg)


def bernoulli(
    F: NumpyNamespace,
    prob: Any = None,
    logit: Any = None,
    size: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
) -> Any:
    """Draw from a Bernoulli distribution, given by probability or logit.

    Parameters
    ----------
    prob
        Probability of 1: a number or an array.
    logit
        Log-odds of 1, instead of `prob`.

    >>> mx.npx.random.bernoulli(prob=0.5, size=(2, 3)).shape
    (2, 3)
    """
    if (prob is None) == (logit is None):
        raise ValueError("Either `prob` or `logit` must be specified, but not both.")
    is_logit = prob is None
    value = logit if is_logit else prob
    if isinstance(size, Integral):
        size = (int(size),)
    attributes = {
        "prob": None,
        "logit": None,
        "is_logit": is_logit,
        "size": size,
        "ctx": F.context_text(ctx),
        "dtype": "float32" if dtype is None else dtype,
    }
    if F.is_array(value):
        return F._npi_bernoulli(value, **attributes, out=out)
    attributes["logit" if is_logit else "prob"] = value
    return F._npi_bernoulli(**attributes, out=out)


def _per_parameter(
    F: NumpyNamespace, operator: Any, batch_shape: Any, dtype: Any, ctx: Any, **parameters: Any
) -> Any:
    arrays = [value for value in parameters.values() if F.is_array(value)]
    attributes = {k: None if F.is_array(v) else v for k, v in parameters.items()}
    if isinstance(batch_shape, Integral):
        batch_shape = (int(batch_shape),)
    return operator(
        *arrays,
        **attributes,
        size=batch_shape,
        ctx=F.context_text(ctx),
        dtype="float32" if dtype is None else dtype,
    )


def uniform_n(
    F: NumpyNamespace,
    low: Any = 0.0,
    high: Any = 1.0,
    batch_shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
) -> Any:
    """Draw from uniform distributions; the shape is `batch_shape` plus that of the parameters.

    Parameters
    ----------
    batch_shape
        Shape of the batch of samples.

    >>> mx.npx.random.uniform_n(mx.np.zeros(3), 1.0, batch_shape=(2,)).shape
    (2, 3)
    """
    return _per_parameter(F, F._npi_uniform_n, batch_shape, dtype, ctx, low=low, high=high)


def normal_n(
    F: NumpyNamespace,
    loc: Any = 0.0,
    scale: Any = 1.0,
    batch_shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
) -> Any:
    """Draw from normal distributions; the shape is `batch_shape` plus that of the parameters.

    Parameters
    ----------
    batch_shape
        Shape of the batch of samples.

    >>> mx.npx.random.normal_n(mx.np.zeros(3), 1.0, batch_shape=(2,)).shape
    (2, 3)
    """
    return _per_parameter(F, F._npi_normal_n, batch_shape, dtype, ctx, loc=loc, scale=scale)
