"""Composites that reduce axes: sums, extremes, averages, quantiles, counts."""

from __future__ import annotations

from numbers import Number

__all__ = [
    "all",
    "alltrue",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "average",
    "bincount",
    "cumsum",
    "max",
    "mean",
    "min",
    "percentile",
    "prod",
    "product",
    "quantile",
    "sometrue",
    "std",
    "sum",
    "trace",
    "var",
]


def sum(F, a, axis=None, dtype=None, keepdims=False, initial=None, out=None):
    """Return the sum of elements over some axes, by default over all.

    >>> mx.np.sum(mx.np.array([[1, 2], [3, 4]]), axis=0)
    array([4., 6.])
    """
    return F._np_sum(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, out=out)


def prod(F, a, axis=None, dtype=None, out=None, keepdims=False):
    """Return the product of elements over some axes, by default over all.

    >>> mx.np.prod(mx.np.array([2, 3]))
    array(6.)
    """
    return F._np_prod(a, axis=axis, dtype=dtype, keepdims=keepdims, out=out)


def product(F, a, axis=None, dtype=None, out=None, keepdims=False):
    """Return the product of elements over some axes; another name of `prod`.

    >>> mx.np.product(mx.np.array([2, 3]))
    array(6.)
    """
    return prod(F, a, axis, dtype, out, keepdims)


def mean(F, a, axis=None, dtype=None, out=None, keepdims=False):
    """Return the mean of elements over some axes; of integers it is float32.

    >>> mx.np.mean(mx.np.array([1, 2], dtype="int32"))
    array(1.5)
    """
    return F._npi_mean(a, axis=axis, dtype=dtype, keepdims=keepdims, out=out)


def std(F, a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
    """Return the standard deviation over some axes.

    >>> mx.np.std(mx.np.array([1, 3]))
    array(1.)
    """
    return F._npi_std(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, out=out)


def var(F, a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
    """Return the variance over some axes.

    >>> mx.np.var(mx.np.array([1, 3]))
    array(1.)
    """
    return F._npi_var(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, out=out)


def max(F, a, axis=None, keepdims=False, out=None):
    """Return the largest element over some axes.

    >>> mx.np.max(mx.np.array([[1, 2], [3, 4]]), axis=0)
    array([3., 4.])
    """
    return F._np_max(a, axis=axis, keepdims=keepdims, out=out)


def min(F, a, axis=None, keepdims=False, out=None):
    """Return the smallest element over some axes.

    >>> mx.np.min(mx.np.array([[1, 2], [3, 4]]))
    array(1.)
    """
    return F._np_min(a, axis=axis, keepdims=keepdims, out=out)


def amax(F, a, axis=None, keepdims=False, out=None):
    """Return the largest element over some axes; another name of `max`.

    >>> mx.np.amax(mx.np.array([1, 2]))
    array(2.)
    """
    return F._np_max(a, axis=axis, keepdims=keepdims, out=out)


def amin(F, a, axis=None, keepdims=False, out=None):
    """Return the smallest element over some axes; another name of `min`.

    >>> mx.np.amin(mx.np.array([1, 2]))
    array(1.)
    """
    return F._np_min(a, axis=axis, keepdims=keepdims, out=out)


def all(F, a, axis=None, keepdims=False, out=None):
    """Return whether all elements over some axes are true.

    >>> mx.np.all(mx.np.array([1, 0]))
    array(False)
    """
    return F._np_all(a, axis=axis, keepdims=keepdims, out=out)


def any(F, a, axis=None, keepdims=False, out=None):
    """Return whether any element over some axes is true.

    >>> mx.np.any(mx.np.array([1, 0]))
    array(True)
    """
    return F._np_any(a, axis=axis, keepdims=keepdims, out=out)


def alltrue(F, a, axis=None, keepdims=False, out=None):
    """Return whether all elements are true; another name of `all`.

    >>> mx.np.alltrue(mx.np.array([1, 2]))
    array(True)
    """
    return all(F, a, axis, keepdims, out)


def sometrue(F, a, axis=None, keepdims=False, out=None):
    """Return whether any element is true; another name of `any`.

    >>> mx.np.sometrue(mx.np.array([0, 2]))
    array(True)
    """
    return any(F, a, axis, keepdims, out)


def argmax(F, a, axis=None, out=None):
    """Return the index of the largest element, as int64.

    >>> mx.np.argmax(mx.np.array([1, 3, 2]))
    array(1, dtype=int64)
    """
    return F._npi_argmax(a, axis=axis, keepdims=False, out=out)


def argmin(F, a, axis=None, out=None):
    """Return the index of the smallest element, as int64.

    >>> mx.np.argmin(mx.np.array([2, 1, 3]))
    array(1, dtype=int64)
    """
    return F._npi_argmin(a, axis=axis, keepdims=False, out=out)


def average(F, a, axis=None, weights=None, returned=False, out=None):
    """Return the average over some axes, weighted if weights are given.

    With `returned` the result is a pair: the average and the sum of the weights.

    >>> mx.np.average(mx.np.array([1, 3]), weights=mx.np.array([3, 1]))
    array(1.5)
    """
    if weights is None:
        made = F._npi_average(a, axis=axis, returned=returned, weighted=False, out=out)
    else:
        made = F._npi_average(a, weights, axis=axis, returned=returned, out=out)
    return tuple(made[:2]) if returned else made


def cumsum(F, a, axis=None, dtype=None, out=None):
    """Return cumulative sums along an axis, by default of the flattened array.

    >>> mx.np.cumsum(mx.np.array([1, 2, 3]))
    array([1., 3., 6.])
    """
    return F._np_cumsum(a, axis=axis, dtype=dtype, out=out)


def trace(F, a, offset=0, axis1=0, axis2=1, out=None):
    """Return the sum along a diagonal.

    >>> mx.np.trace(mx.np.array([[1, 2], [3, 4]]))
    array(5.)
    """
    return F._np_trace(a, offset=offset, axis1=axis1, axis2=axis2, out=out)


def percentile(
    F, a, q, axis=None, out=None, overwrite_input=None, interpolation="linear", keepdims=False
):
    """Return percentiles of the elements over some axes.

    Parameters
    ----------
    q
        Percentiles between 0 and 100; those of an array become the first axis of the result.

    >>> mx.np.percentile(mx.np.array([1, 2, 3]), 50)
    array(2.)
    """
    if overwrite_input is not None:
        raise NotImplementedError("overwrite_input is not supported; leave it out.")
    attributes = {"axis": axis, "interpolation": interpolation, "keepdims": keepdims}
    if isinstance(q, Number):
        return F._npi_percentile(a, q_scalar=q, **attributes, out=out)
    return F._npi_percentile(a, q, **attributes, out=out)


def quantile(
    F, a, q, axis=None, out=None, overwrite_input=None, interpolation="linear", keepdims=False
):
    """Return quantiles of the elements over some axes; `q` is between 0 and 1.

    Parameters
    ----------
    q
        Quantiles between 0 and 1; those of an array become the first axis of the result.

    >>> mx.np.quantile(mx.np.array([1, 2, 3]), 0.5)
    array(2.)
    """
    if overwrite_input is not None:
        raise NotImplementedError("overwrite_input is not supported; leave it out.")
    return percentile(F, a, q * 100, axis, out, None, interpolation, keepdims)


def bincount(F, x, weights=None, minlength=0):
    """Return how often each non-negative integer occurs, or the sum of weights at each.

    Parameters
    ----------
    x
        Non-negative integers.

    >>> mx.np.bincount(mx.np.array([0, 1, 1], dtype="int32"))
    array([1, 2], dtype=int32)
    """
    if minlength < 0:
        raise ValueError("Minlength value should greater than 0")
    if weights is None:
        return F._npi_bincount(x, minlength=minlength, has_weights=False)
    return F._npi_bincount(x, weights, minlength=minlength, has_weights=True)
