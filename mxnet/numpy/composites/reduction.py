"""Composites that reduce axes: sums, extrema, averages, quantiles, counts."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as onp

from ...util import check_ufunc_keywords
from ..codegen.functions import NumpyNamespace, is_number


def sum(
    F: NumpyNamespace,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    out: Any = None,
) -> Any:
    """Return the sum of elements over some axes, by default over all.

    >>> mx.np.sum(mx.np.array([[1, 2], [3, 4]]), axis=0)
    array([4., 6.])
    """
    return F._np_sum(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, out=out)


def prod(
    F: NumpyNamespace,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Return the product of elements over some axes, by default over all.

    >>> mx.np.prod(mx.np.array([2, 3]))
    array(6.)
    """
    return F._np_prod(a, axis=axis, dtype=dtype, keepdims=keepdims, out=out)


def product(
    F: NumpyNamespace,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Return the product of elements over some axes; alias of `prod`.

    >>> mx.np.product(mx.np.array([2, 3]))
    array(6.)
    """
    return prod(F, a, axis, dtype, out, keepdims)


def mean(
    F: NumpyNamespace,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Return the mean of elements over some axes, as float32 for integers.

    >>> mx.np.mean(mx.np.array([1, 2], dtype="int32"))
    array(1.5)
    """
    return F._npi_mean(a, axis=axis, dtype=dtype, keepdims=keepdims, out=out)


def std(
    F: NumpyNamespace,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
) -> Any:
    """Return the standard deviation over some axes.

    >>> mx.np.std(mx.np.array([1, 3]))
    array(1.)
    """
    return F._npi_std(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, out=out)


def var(
    F: NumpyNamespace,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
) -> Any:
    """Return the variance over some axes.

    >>> mx.np.var(mx.np.array([1, 3]))
    array(1.)
    """
    return F._npi_var(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, out=out)


def max(
    F: NumpyNamespace, a: Any, axis: Any = None, keepdims: bool = False, out: Any = None
) -> Any:
    """Return the largest element over some axes.

    >>> mx.np.max(mx.np.array([[1, 2], [3, 4]]), axis=0)
    array([3., 4.])
    """
    return F._np_max(a, axis=axis, keepdims=keepdims, out=out)


def min(
    F: NumpyNamespace, a: Any, axis: Any = None, keepdims: bool = False, out: Any = None
) -> Any:
    """Return the smallest element over some axes.

    >>> mx.np.min(mx.np.array([[1, 2], [3, 4]]))
    array(1.)
    """
    return F._np_min(a, axis=axis, keepdims=keepdims, out=out)


def amax(
    F: NumpyNamespace, a: Any, axis: Any = None, keepdims: bool = False, out: Any = None
) -> Any:
    """Return the largest element over some axes; alias of `max`.

    >>> mx.np.amax(mx.np.array([1, 2]))
    array(2.)
    """
    return F._np_max(a, axis=axis, keepdims=keepdims, out=out)


def amin(
    F: NumpyNamespace, a: Any, axis: Any = None, keepdims: bool = False, out: Any = None
) -> Any:
    """Return the smallest element over some axes; alias of `min`.

    >>> mx.np.amin(mx.np.array([1, 2]))
    array(1.)
    """
    return F._np_min(a, axis=axis, keepdims=keepdims, out=out)


def all(
    F: NumpyNamespace, a: Any, axis: Any = None, keepdims: bool = False, out: Any = None
) -> Any:
    """Return whether all elements over some axes are true.

    >>> mx.np.all(mx.np.array([1, 0]))
    array(False)
    """
    return F._np_all(a, axis=axis, keepdims=keepdims, out=out)


def any(
    F: NumpyNamespace, a: Any, axis: Any = None, keepdims: bool = False, out: Any = None
) -> Any:
    """Return whether any element over some axes is true.

    >>> mx.np.any(mx.np.array([1, 0]))
    array(True)
    """
    return F._np_any(a, axis=axis, keepdims=keepdims, out=out)


def alltrue(
    F: NumpyNamespace, a: Any, axis: Any = None, keepdims: bool = False, out: Any = None
) -> Any:
    """Return whether all elements are true; like `all`, but a NumPy bool over all axes.

    >>> mx.np.alltrue(mx.np.array([1, 2]))
    np.True_
    """
    output = all(F, a, axis, keepdims, out)
    is_scalar = axis is None and not keepdims and out is None and hasattr(output, "item")
    return onp.bool_(output.item()) if is_scalar else output


def sometrue(
    F: NumpyNamespace, a: Any, axis: Any = None, keepdims: bool = False, out: Any = None
) -> Any:
    """Return whether any element is true; alias of `any`.

    >>> mx.np.sometrue(mx.np.array([0, 2]))
    array(True)
    """
    return any(F, a, axis, keepdims, out)


def argmax(F: NumpyNamespace, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Return the index of the largest element, as int64.

    >>> mx.np.argmax(mx.np.array([1, 3, 2]))
    array(1, dtype=int64)
    """
    return F._npi_argmax(a, axis=axis, keepdims=False, out=out)


def argmin(F: NumpyNamespace, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Return the index of the smallest element, as int64.

    >>> mx.np.argmin(mx.np.array([2, 1, 3]))
    array(1, dtype=int64)
    """
    return F._npi_argmin(a, axis=axis, keepdims=False, out=out)


def average(
    F: NumpyNamespace,
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    out: Any = None,
) -> Any:
    """Return the (weighted) average over some axes.

    With `returned` the result is a list: the average and the sum of the weights.

    >>> mx.np.average(mx.np.array([1, 3]), weights=mx.np.array([3, 1]))
    array(1.5)
    """
    if weights is None:
        output = F._npi_average(a, axis=axis, returned=returned, weighted=False, out=out)
    else:
        output = F._npi_average(a, weights, axis=axis, returned=returned, out=out)
    return list(output[:2]) if returned else output


def cumsum(F: NumpyNamespace, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return cumulative sums along an axis, by default of the flattened array.

    >>> mx.np.cumsum(mx.np.array([1, 2, 3]))
    array([1., 3., 6.])
    """
    return F._np_cumsum(a, axis=axis, dtype=dtype, out=out)


def trace(
    F: NumpyNamespace, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, out: Any = None
) -> Any:
    """Return the sum along a diagonal.

    >>> mx.np.trace(mx.np.array([[1, 2], [3, 4]]))
    array(5.)
    """
    return F._np_trace(a, offset=offset, axis1=axis1, axis2=axis2, out=out)


def percentile(
    F: NumpyNamespace,
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = None,
    interpolation: Any = "linear",
    keepdims: bool = False,
) -> Any:
    """Return percentiles of the elements over some axes.

    Parameters
    ----------
    q
        Percentiles between 0 and 100; those of an array become the first axis of the result.

    >>> mx.np.percentile(mx.np.array([1, 2, 3]), 50)
    array(2.)
    """
    if overwrite_input is not None:
        raise NotImplementedError("overwrite_input is not supported.")
    attributes = {"axis": axis, "interpolation": interpolation, "keepdims": keepdims}
    if is_number(q):
        return F._npi_percentile(a, q_scalar=q, **attributes, out=out)
    return F._npi_percentile(a, q, **attributes, out=out)


def quantile(
    F: NumpyNamespace,
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = None,
    interpolation: Any = "linear",
    keepdims: bool = False,
) -> Any:
    """Return quantiles of the elements over some axes; `q` is between 0 and 1.

    Parameters
    ----------
    q
        Quantiles between 0 and 1; those of an array become the first axis of the result.

    >>> mx.np.quantile(mx.np.array([1, 2, 3]), 0.5)
    array(2.)
    """
    if overwrite_input is not None:
        raise NotImplementedError("overwrite_input is not supported.")
    return percentile(F, a, q * 100, axis, out, None, interpolation, keepdims)


def bincount(F: NumpyNamespace, x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """Return the count of each non-negative integer, or the sum of its weights.

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


# -- products ---------------------------------------------------------------------------------


def dot(F: NumpyNamespace, a: Any, b: Any, out: Any = None) -> Any:
    """Return the dot product of vectors, or the matrix product.

    >>> mx.np.dot(mx.np.array([1, 2]), mx.np.array([3, 4]))
    array(11.)
    """
    return F._np_dot(a, b, out=out)


def matmul(F: NumpyNamespace, a: Any, b: Any, out: Any = None, **kwargs: Any) -> Any:
    """Return the matrix product; leading axes are broadcast.

    >>> mx.np.matmul(mx.np.ones((2, 3)), mx.np.ones((3, 2)))
    array([[3., 3.],
           [3., 3.]])
    """
    check_ufunc_keywords("matmul", kwargs)
    return F._npi_matmul(a, b, out=out)


def inner(F: NumpyNamespace, a: Any, b: Any) -> Any:
    """Return the inner product over the last axes.

    >>> mx.np.inner(mx.np.array([1, 2]), mx.np.array([3, 4]))
    array(11.)
    """
    return tensordot(F, a, b, [-1, -1])


def outer(F: NumpyNamespace, a: Any, b: Any) -> Any:
    """Return the outer product of two vectors.

    >>> mx.np.outer(mx.np.array([1, 2]), mx.np.array([3, 4]))
    array([[3., 4.],
           [6., 8.]])
    """
    return tensordot(F, a.reshape(-1), b.reshape(-1), 0)


def vdot(F: NumpyNamespace, a: Any, b: Any) -> Any:
    """Return the dot product of two flattened arrays.

    >>> mx.np.vdot(mx.np.ones((2, 2)), mx.np.ones((2, 2)))
    array(4.)
    """
    return tensordot(F, a.reshape(-1), b.reshape(-1), 1)


def tensordot(F: NumpyNamespace, a: Any, b: Any, axes: Any = 2) -> Any:
    """Return the tensor dot product over some axes.

    Parameters
    ----------
    axes
        Number of axes to sum over, or a pair of the axes of `a` and of `b`.

    >>> mx.np.tensordot(mx.np.ones((2, 3)), mx.np.ones((3, 2)), axes=1).shape
    (2, 2)
    """
    if isinstance(axes, Integral):
        return F._npi_tensordot_int_axes(a, b, axes=int(axes))
    if len(axes) != 2:
        raise ValueError("Axes must consist of two arrays.")
    first, second = ((x,) if isinstance(x, Integral) else tuple(x) for x in axes)
    if len(first) != len(second):
        raise ValueError("Axes length mismatch")
    return F._npi_tensordot(a, b, a_axes_summed=first, b_axes_summed=second)


def einsum(F: NumpyNamespace, *operands: Any, **kwargs: Any) -> Any:
    """Evaluate Einstein summation notation.

    >>> mx.np.einsum("ij,j->i", mx.np.ones((2, 3)), mx.np.ones(3))
    array([3., 3.])
    """
    out = kwargs.pop("out", None)
    optimize = kwargs.pop("optimize", False)
    if kwargs:
        raise TypeError(f"einsum() got an unexpected keyword argument {next(iter(kwargs))!r}")
    subscripts, *arrays = operands
    return F._npi_einsum(*arrays, subscripts=subscripts, optimize=int(bool(optimize)), out=out)
