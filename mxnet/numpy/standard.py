"""Functions of the Python array API standard that MXNet 1.9.1 does not have.

With these and `ndarray.__array_namespace__`, libraries written for the standard support arrays of
`mx.np`.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as onp
import torch

from ..context import Context
from ..runtime.array import wrap_foreign
from .multiarray import array, ndarray

__all__ = [
    "asarray",
    "astype",
    "can_cast",
    "from_dlpack",
    "isdtype",
    "logical_and",
    "logical_or",
    "logical_xor",
    "matrix_transpose",
    "permute_dims",
    "unstack",
    "vecdot",
]

# The standard's names of functions with NumPy's names in `mx.np`.
SYNONYMS = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "bitwise_not",
    "concat": "concatenate",
    "cumulative_sum": "cumsum",
    "pow": "power",
}


def asarray(
    obj: Any, dtype: Any = None, device: Context | None = None, copy: bool | None = None
) -> ndarray:
    """Convert values to an array; an array is returned unchanged if possible.

    Unlike `array`, it keeps the types of Python integers and bools.

    Parameters
    ----------
    obj
        The values.
    dtype
        The data type.
    device
        Device of the result; by default that of the array.
    copy
        Whether to copy even if not necessary.

    >>> mx.np.asarray([1, 2])
    array([1, 2], dtype=int64)
    """
    if isinstance(obj, ndarray):
        output = obj if dtype is None or obj.dtype == onp.dtype(dtype) else obj.astype(dtype)
        output = output if device is None else output.to_device(device)
        return output.copy() if copy and output is obj else output
    if copy is False:
        raise ValueError(f"asarray: {type(obj).__name__} cannot be used without a copy.")
    values = obj if hasattr(obj, "dtype") else onp.asarray(obj)
    if not isinstance(obj, onp.ndarray | torch.Tensor) and onp.asarray(obj).dtype == onp.float64:
        values = onp.asarray(obj, dtype=onp.float32)  # the default of mx.np
    return array(values, dtype, device)


def from_dlpack(x: Any) -> ndarray:
    """Create an array that shares memory with another library's array.

    Parameters
    ----------
    x
        The array.

    >>> import torch
    >>> mx.np.from_dlpack(torch.ones(2))
    array([1., 1.])
    """
    return wrap_foreign(ndarray, torch.from_dlpack(x))


def astype(x: ndarray, dtype: Any, *, copy: bool = True, device: Context | None = None) -> ndarray:
    """Return the array converted to a data type.

    Parameters
    ----------
    x
        The array.
    dtype
        The data type.
    copy
        Whether to copy even if not necessary.
    device
        Device of the result; by default that of the array.

    >>> mx.np.astype(mx.np.ones(2), "int32")
    array([1, 1], dtype=int32)
    """
    array = x.astype(dtype, copy=copy)
    return array if device is None else array.to_device(device)


_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a data type has a kind, such as 'integral' or 'real floating'.

    Parameters
    ----------
    dtype
        The data type.
    kind
        The kind, or a tuple of kinds.

    >>> mx.np.isdtype(mx.np.float32, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return onp.dtype(dtype).kind in _KINDS[kind]
    return onp.dtype(dtype) == onp.dtype(kind)


def can_cast(from_: Any, to: Any) -> bool:
    """Return whether one data type can be cast to another without loss.

    Parameters
    ----------
    from_
        A data type, or an array.
    to
        A data type.

    >>> mx.np.can_cast("float32", "float64")
    True
    """
    return onp.can_cast(from_.dtype if isinstance(from_, ndarray) else from_, to)


def logical_and(x1: Any, x2: Any) -> ndarray:
    """Return whether both are true, elementwise.

    Parameters
    ----------
    x1
        The left operand.
    x2
        The right operand.

    >>> mx.np.logical_and(mx.np.array([1, 1]), mx.np.array([1, 0]))
    array([ True, False])
    """
    return (x1 != 0) & (x2 != 0)


def logical_or(x1: Any, x2: Any) -> ndarray:
    """Return whether either is true, elementwise.

    Parameters
    ----------
    x1
        The left operand.
    x2
        The right operand.

    >>> mx.np.logical_or(mx.np.array([1, 0]), mx.np.array([0, 0]))
    array([ True, False])
    """
    return (x1 != 0) | (x2 != 0)


def logical_xor(x1: Any, x2: Any) -> ndarray:
    """Return whether exactly one is true, elementwise.

    Parameters
    ----------
    x1
        The left operand.
    x2
        The right operand.

    >>> mx.np.logical_xor(mx.np.array([1, 1]), mx.np.array([0, 1]))
    array([ True, False])
    """
    return (x1 != 0) ^ (x2 != 0)


def matrix_transpose(x: ndarray) -> ndarray:
    """Return the array with its last two axes exchanged.

    Parameters
    ----------
    x
        The array.

    >>> mx.np.matrix_transpose(mx.np.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    return x.mT


def permute_dims(x: ndarray, axes: tuple[int, ...]) -> ndarray:
    """Return the array with its axes permuted.

    Parameters
    ----------
    x
        The array.
    axes
        The new order of the axes.

    >>> mx.np.permute_dims(mx.np.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return cast("ndarray", x.transpose(axes))


def unstack(x: ndarray, *, axis: int = 0) -> tuple[ndarray, ...]:
    """Split an array into slices along an axis, without the axis.

    Parameters
    ----------
    x
        The array.
    axis
        Axis; a negative value counts from the last.

    >>> len(mx.np.unstack(mx.np.ones((2, 3))))
    2
    """
    key = (slice(None),) * (axis % x.ndim)
    return tuple(cast("ndarray", x[(*key, i)]) for i in range(x.shape[axis]))


def vecdot(x1: ndarray, x2: ndarray, *, axis: int = -1) -> ndarray:
    """Return the dot products of vectors along an axis.

    Parameters
    ----------
    x1
        The left operand.
    x2
        The right operand.
    axis
        Axis; a negative value counts from the last.

    >>> mx.np.vecdot(mx.np.ones((2, 3)), mx.np.ones((2, 3)))
    array([3., 3.])
    """
    return cast("ndarray", (x1 * x2).sum(axis=axis))


def array_namespace(self: ndarray, *, api_version: str | None = None) -> Any:
    """Return `mx.np`, the namespace of the array's functions."""
    from .. import numpy

    return numpy
