"""Composites that select, sort, round or compare elements."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ...util import check_ufunc_keywords
from ..codegen.functions import NumpyNamespace, is_number


def clip(F: NumpyNamespace, a: Any, a_min: Any, a_max: Any, out: Any = None) -> Any:
    """Return the elements clipped to an interval; None means no limit on that side.

    >>> mx.np.clip(mx.np.array([1, 2, 3]), 1, 2)
    array([1., 2., 2.])
    """
    if a_min is None and a_max is None:
        raise ValueError("array_clip: must set either max or min")
    if is_number(a):
        return onp.clip(a, a_min, a_max)
    limits: list[Any] = [a_min, a_max]
    low, high = (
        float(limit) if F.is_array(limit) and not hasattr(limit, "list_outputs") else limit
        for limit in limits
    )
    low = float("-inf") if low is None else low
    high = float("inf") if high is None else high
    return F._npi_clip(a, a_min=low, a_max=high, out=out)


def around(F: NumpyNamespace, x: Any, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
    """Return the elements rounded to a number of decimals.

    >>> mx.np.around(mx.np.array([1.26]), 1)
    array([1.3])
    """
    check_ufunc_keywords("around", kwargs)
    if not F.is_array(x):
        return onp.around(x, decimals)
    return F._npi_around(x, decimals=decimals, out=out)


def round(F: NumpyNamespace, x: Any, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
    """Return the elements rounded to a number of decimals; alias of `around`.

    >>> mx.np.round(mx.np.array([1.7]))
    array([2.])
    """
    check_ufunc_keywords("round", kwargs)
    return around(F, x, decimals, out)


def round_(F: NumpyNamespace, x: Any, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
    """Return the elements rounded to a number of decimals; alias of `around`.

    >>> mx.np.round_(mx.np.array([1.7]))
    array([2.])
    """
    check_ufunc_keywords("round_", kwargs)
    return around(F, x, decimals, out)


def fabs(F: NumpyNamespace, x: Any, out: Any = None, **kwargs: Any) -> Any:
    """Return absolute values.

    >>> mx.np.fabs(mx.np.array([-1, 2]))
    array([1., 2.])
    """
    check_ufunc_keywords("fabs", kwargs)
    if not F.is_array(x):
        return onp.fabs(x)
    return F._npi_abs(x, out=out)


def bitwise_not(F: NumpyNamespace, x: Any, out: Any = None, **kwargs: Any) -> Any:
    """Return the bitwise NOT of integers, the logical NOT of bools.

    >>> mx.np.bitwise_not(mx.np.array([0, 1], dtype="int32"))
    array([-1, -2], dtype=int32)
    """
    check_ufunc_keywords("bitwise_not", kwargs)
    if not F.is_array(x):
        return onp.bitwise_not(x)
    return F._npi_bitwise_not(x, out=out)


def invert(F: NumpyNamespace, x: Any, out: Any = None, **kwargs: Any) -> Any:
    """Return the bitwise NOT of integers; alias of `bitwise_not`.

    >>> mx.np.invert(mx.np.array([0], dtype="int32"))
    array([-1], dtype=int32)
    """
    check_ufunc_keywords("invert", kwargs)
    return bitwise_not(F, x, out)


def nan_to_num(
    F: NumpyNamespace,
    x: Any,
    copy: bool = True,
    nan: Any = 0.0,
    posinf: Any = None,
    neginf: Any = None,
    **kwargs: Any,
) -> Any:
    """Return the array with NaN and infinities replaced by numbers.

    >>> mx.np.nan_to_num(mx.np.array([mx.np.nan, 1.0]), nan=7)
    array([7., 1.])
    """
    check_ufunc_keywords("nan_to_num", kwargs)
    if not F.is_array(x):
        return onp.nan_to_num(x, copy=copy, nan=nan, posinf=posinf, neginf=neginf)
    attributes = {"copy": copy, "nan": nan, "posinf": posinf, "neginf": neginf}
    if not copy and not hasattr(x, "list_outputs"):
        return F._npi_nan_to_num(x, **attributes, out=x)
    return F._npi_nan_to_num(x, **attributes)


def sort(
    F: NumpyNamespace, a: Any, axis: Any = -1, kind: Any = None, order: str | None = None
) -> Any:
    """Return the elements in ascending order along an axis.

    Parameters
    ----------
    axis
        Axis to sort along; None: the flattened array.
    order
        Accepted for compatibility with NumPy; only None.

    >>> mx.np.sort(mx.np.array([3, 1, 2]))
    array([1., 2., 3.])
    """
    _refuse_order("sort", order)
    return F._npi_sort(a, axis=axis, is_ascend=True)


def argsort(
    F: NumpyNamespace, a: Any, axis: Any = -1, kind: Any = None, order: str | None = None
) -> Any:
    """Return the indices, as int64, that sort the array along an axis.

    Parameters
    ----------
    axis
        Axis to sort along; None: the flattened array.
    order
        Accepted for compatibility with NumPy; only None.

    >>> mx.np.argsort(mx.np.array([3, 1, 2]))
    array([1, 2, 0], dtype=int64)
    """
    _refuse_order("argsort", order)
    return F._npi_argsort(a, axis=axis, is_ascend=True, dtype="int64")


def _refuse_order(name: str, order: Any) -> None:
    if order is not None:
        raise NotImplementedError(f"{name}: order={order!r} is not supported.")


def take(
    F: NumpyNamespace, a: Any, indices: Any, axis: Any = None, mode: str = "raise", out: Any = None
) -> Any:
    """Return the elements at some indices along an axis, or of the flattened array.

    Parameters
    ----------
    axis
        Axis to take along; None: the flattened array.
    mode
        What to do with indices out of range: ``'clip'`` or ``'wrap'`` them, or ``'raise'``.

    >>> mx.np.take(mx.np.array([1, 2, 3]), mx.np.array([2, 0]))
    array([3., 1.])
    """
    if mode not in ("wrap", "clip", "raise"):
        raise NotImplementedError(f"function take does not support mode {mode!r}")
    if axis is None:
        return F._npi_take(F._np_reshape(a, newshape=-1), indices, axis=0, mode=mode, out=out)
    return F._npi_take(a, indices, axis=axis, mode=mode, out=out)


def where(F: NumpyNamespace, condition: Any, x: Any = None, y: Any = None) -> Any:
    """Return elements of `x` where the condition holds, else of `y`.

    With only the condition, the result is that of `nonzero`.

    Parameters
    ----------
    x
        Values if the condition is true.

    >>> mx.np.where(mx.np.array([1, 0]), 5.0, 6.0)
    array([5., 6.])
    """
    if x is None and y is None:
        return nonzero(F, condition)
    if x is None or y is None:
        raise ValueError("where: pass both x and y, or neither.")
    if is_number(condition):
        return x if condition != 0 else y
    if is_number(x):
        if is_number(y):
            return F._npi_where_scalar2(condition, x=float(x), y=float(y))
        return F._npi_where_lscalar(condition, y, scalar=float(x))
    if is_number(y):
        return F._npi_where_rscalar(condition, x, scalar=float(y))
    return F._npi_where(condition, x, y)


def nonzero(F: NumpyNamespace, a: Any) -> Any:
    """Return the indices of elements that are not 0: one vector of int64 for each axis.

    >>> mx.np.nonzero(mx.np.array([0, 7]))
    (array([1], dtype=int64),)
    """
    indices = F._npi_nonzero(a).T
    return tuple(indices[i] for i in range(indices.shape[0]))


def unique(
    F: NumpyNamespace,
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
) -> Any:
    """Return the unique elements in ascending order, optionally with their positions.

    >>> mx.np.unique(mx.np.array([2, 1, 2]))
    array([1., 2.])
    """
    output = F._npi_unique(
        ar,
        return_index=return_index,
        return_inverse=return_inverse,
        return_counts=return_counts,
        axis=axis,
    )
    if isinstance(output, list):
        return tuple(output) if len(output) > 1 else output[0]
    return output


def diff(
    F: NumpyNamespace, a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None
) -> Any:
    """Return differences of neighbors along an axis.

    Parameters
    ----------
    n
        Order of the differences.
    axis
        Axis; a negative value counts from the last.

    >>> mx.np.diff(mx.np.array([1, 3, 6]))
    array([2., 3.])
    """
    if prepend is not None or append is not None:
        raise NotImplementedError("prepend and append options are not supported yet")
    return F._npi_diff(a, n=n, axis=axis)


def ediff1d(F: NumpyNamespace, ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Return differences of neighbors of the flattened array, with values added at the ends.

    >>> mx.np.ediff1d(mx.np.array([1, 3, 6]), to_begin=0)
    array([0., 2., 3.])
    """
    arrays = [ary]
    attributes = {}
    for key, value in (("to_begin", to_begin), ("to_end", to_end)):
        is_array = F.is_array(value)
        attributes[f"{key}_arr_given"] = is_array
        attributes[f"{key}_scalar"] = None if is_array else value
        if is_array:
            arrays.append(value)
    return F._npi_ediff1d(*arrays, **attributes)


def histogram(
    F: NumpyNamespace,
    a: Any,
    bins: Any = 10,
    range: Any = None,
    normed: Any = None,
    weights: Any = None,
    density: Any = None,
) -> Any:
    """Return the number of elements in each bin, and the edges of the bins.

    >>> mx.np.histogram(mx.np.array([1, 2, 1]), bins=2, range=(0, 2))[0]
    array([0, 3], dtype=int64)
    """
    for key, value in (("normed", normed), ("weights", weights), ("density", density)):
        if value is True or (value is not None and key == "weights"):
            raise NotImplementedError(f"{key} is not supported yet...")
    if F.is_array(bins):
        return F._npi_histogram(a, bins)
    if range is None:
        if hasattr(a, "list_outputs"):
            raise NotImplementedError("histogram of a symbol needs range=(low, high).")
        range = (float(F._np_min(a).item()), float(F._np_max(a).item()))
    return F._npi_histogram(a, bin_cnt=bins, range=range)


def polyval(F: NumpyNamespace, p: Any, x: Any) -> Any:
    """Evaluate a polynomial with coefficients from the highest power down.

    Parameters
    ----------
    x
        Points to evaluate at.

    >>> mx.np.polyval(mx.np.array([1, 0, 2]), mx.np.array([3]))
    array([11.])
    """
    if F.is_array(p) and F.is_array(x):
        return F._npi_polyval(p, x)
    if F.is_array(p) or F.is_array(x):
        raise TypeError("polyval: p and x must both be arrays.")
    return onp.polyval(p, x)


def unravel_index(F: NumpyNamespace, indices: Any, shape: Any, order: str = "C") -> Any:
    """Return the coordinates of flat indices in an array of the given shape.

    Parameters
    ----------
    shape
        Shape of the array that the indices are for.

    >>> mx.np.unravel_index(mx.np.array([3], dtype="int32"), (2, 2))
    (array([1], dtype=int32), array([1], dtype=int32))
    """
    if order != "C":
        raise NotImplementedError(f"order={order!r} is not supported; arrays are row-major ('C').")
    if is_number(indices):
        return onp.unravel_index(indices, shape)
    output = F._unravel_index(indices, shape=shape)
    return (
        output if hasattr(output, "list_outputs") else tuple(output[i] for i in _range_of(output))
    )


def _range_of(array: Any) -> Any:
    return range(array.shape[0])


def diag_indices_from(F: NumpyNamespace, arr: Any) -> Any:
    """Return the indices of the main diagonal, one vector for each axis.

    >>> mx.np.diag_indices_from(mx.np.ones((2, 2)))
    (array([0, 1], dtype=int64), array([0, 1], dtype=int64))
    """
    output = F._npi_diag_indices_from(arr)
    return (
        output if hasattr(output, "list_outputs") else tuple(output[i] for i in _range_of(output))
    )


def shape(F: NumpyNamespace, a: Any) -> Any:
    """Return the sizes of the axes.

    >>> mx.np.shape(mx.np.ones((2, 3)))
    (2, 3)
    """
    return a.shape if hasattr(a, "shape") else onp.shape(a)


def ndim(F: NumpyNamespace, a: Any) -> Any:
    """Return the number of axes.

    >>> mx.np.ndim(mx.np.ones((2, 3)))
    2
    """
    return a.ndim if hasattr(a, "ndim") else onp.ndim(a)


def size(F: NumpyNamespace, a: Any, axis: Any = None) -> Any:
    """Return the number of elements, or the size of an axis.

    >>> mx.np.size(mx.np.ones((2, 3)), 1)
    3
    """
    if axis is None:
        return a.size if hasattr(a, "size") else onp.size(a)
    return shape(F, a)[axis]


def shares_memory(F: NumpyNamespace, a: Any, b: Any, max_work: Any = None) -> Any:
    """Return whether two arrays start at the same memory address.

    >>> x = mx.np.ones(2)
    >>> mx.np.shares_memory(x, x.detach()), mx.np.shares_memory(x, x.copy())
    (True, False)
    """
    output = F._npi_share_memory(a, b)
    return output if hasattr(output, "list_outputs") else bool(output.item())


def may_share_memory(F: NumpyNamespace, a: Any, b: Any, max_work: Any = None) -> Any:
    """Return whether two arrays might share memory.

    >>> mx.np.may_share_memory(mx.np.ones(2), mx.np.ones(2))
    False
    """
    return shares_memory(F, a, b)
