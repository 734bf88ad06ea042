"""Composites that change the shape of an array."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as onp
from numpy.lib.array_utils import normalize_axis_index

from ..codegen.functions import NumpyNamespace, check_order, is_number


def reshape(F: NumpyNamespace, a: Any, newshape: Any, order: str = "C", out: Any = None) -> Any:
    """Return the array with a new shape; one size may be -1 (inferred).

    >>> mx.np.reshape(mx.np.arange(4), (2, -1))
    array([[0., 1.],
           [2., 3.]])
    """
    check_order(order)
    return F._np_reshape(a, newshape=newshape, order=order, out=out)


def ravel(F: NumpyNamespace, x: Any, order: str = "C") -> Any:
    """Return the elements as a vector.

    >>> mx.np.ravel(mx.np.ones((2, 2)))
    array([1., 1., 1., 1.])
    """
    if order != "C":
        raise NotImplementedError(f"order={order!r} is not supported; arrays are row-major ('C').")
    if not F.is_array(x):
        return onp.ravel(x)
    return F._npi_reshape(x, newshape=-1)


def transpose(F: NumpyNamespace, a: Any, axes: Any = None) -> Any:
    """Return the array with its axes permuted; without `axes` they are reversed.

    Parameters
    ----------
    axes
        The new order of the axes; None: reversed.

    >>> mx.np.transpose(mx.np.ones((2, 3))).shape
    (3, 2)
    """
    return F._np_transpose(a, axes=axes)


def moveaxis(F: NumpyNamespace, a: Any, source: Any, destination: Any) -> Any:
    """Return the array with some axes moved to other positions.

    >>> mx.np.moveaxis(mx.np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return F._np_moveaxis(a, source=source, destination=destination)


def rollaxis(F: NumpyNamespace, a: Any, axis: Any, start: Any = 0) -> Any:
    """Return the array with one axis moved before another one.

    Parameters
    ----------
    axis
        The axis to move.
    start
        The axis is moved before this position.

    >>> mx.np.rollaxis(mx.np.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    axis = normalize_axis_index(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    if not 0 <= start <= a.ndim:
        raise onp.exceptions.AxisError(start, a.ndim + 1, "start")
    return moveaxis(F, a, axis, start - 1 if axis < start else start)


def swapaxes(F: NumpyNamespace, a: Any, axis1: int, axis2: int) -> Any:
    """Return the array with two axes exchanged.

    >>> mx.np.swapaxes(mx.np.ones((2, 3)), 0, 1).shape
    (3, 2)
    """
    return F._npi_swapaxes(a, dim1=axis1, dim2=axis2)


def expand_dims(F: NumpyNamespace, a: Any, axis: Any) -> Any:
    """Return the array with a new axis of size 1.

    Parameters
    ----------
    axis
        Position of the new axis in the result.

    >>> mx.np.expand_dims(mx.np.ones(2), 0).shape
    (1, 2)
    """
    return F._npi_expand_dims(a, axis=axis)


def squeeze(F: NumpyNamespace, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Return the array without axes of size 1.

    >>> mx.np.squeeze(mx.np.ones((1, 2, 1))).shape
    (2,)
    """
    return F._np_squeeze(a, axis=axis, out=out)


def broadcast_to(F: NumpyNamespace, array: Any, shape: Any) -> Any:
    """Return the array broadcast to a shape.

    >>> mx.np.broadcast_to(mx.np.ones(2), (3, 2)).shape
    (3, 2)
    """
    if not F.is_array(array):
        return F._npi_full(shape=shape, value=float(array))
    return F._npi_broadcast_to(array, shape=shape)


def broadcast_arrays(F: NumpyNamespace, *args: Any) -> Any:
    """Return a list of the arrays, all broadcast to their common shape.

    >>> [x.shape for x in mx.np.broadcast_arrays(mx.np.ones((2, 1)), mx.np.ones(3))]
    [(2, 3), (2, 3)]
    """
    shape = onp.broadcast_shapes(*(x.shape for x in args))
    return [x if tuple(x.shape) == shape else broadcast_to(F, x, shape) for x in args]


def flip(F: NumpyNamespace, m: Any, axis: Any = None, out: Any = None) -> Any:
    """Return the elements in reverse order along some axes, by default along all.

    >>> mx.np.flip(mx.np.array([1, 2]))
    array([2., 1.])
    """
    if not F.is_array(m):
        return onp.flip(m, axis)
    return F._npi_flip(m, axis=axis, out=out)


def flipud(F: NumpyNamespace, m: Any) -> Any:
    """Return the rows in reverse order.

    >>> mx.np.flipud(mx.np.array([[1], [2]]))
    array([[2.],
           [1.]])
    """
    return flip(F, m, 0)


def fliplr(F: NumpyNamespace, m: Any) -> Any:
    """Return the columns in reverse order.

    >>> mx.np.fliplr(mx.np.array([[1, 2]]))
    array([[2., 1.]])
    """
    return flip(F, m, 1)


def roll(F: NumpyNamespace, a: Any, shift: Any, axis: Any = None) -> Any:
    """Return the elements shifted cyclically along an axis.

    >>> mx.np.roll(mx.np.array([1, 2, 3]), 1)
    array([3., 1., 2.])
    """
    return F._np_roll(a, shift=shift, axis=axis)


def rot90(F: NumpyNamespace, m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    """Return the array rotated by multiples of 90 degrees in the plane of two axes.

    Parameters
    ----------
    k
        Number of rotations by 90 degrees.
    axes
        The two axes of the plane of rotation.

    >>> mx.np.rot90(mx.np.array([[1, 2], [3, 4]]))
    array([[2., 4.],
           [1., 3.]])
    """
    return F._npi_rot90(m, k=k, axes=axes)


def repeat(F: NumpyNamespace, a: Any, repeats: Any, axis: Any = None) -> Any:
    """Return each element repeated, along an axis or of the flattened array.

    >>> mx.np.repeat(mx.np.array([1, 2]), 2)
    array([1., 1., 2., 2.])
    """
    return F._np_repeat(a, repeats=repeats, axis=axis)


def tile(F: NumpyNamespace, A: Any, reps: Any) -> Any:
    """Return the array tiled along each axis.

    >>> mx.np.tile(mx.np.array([1, 2]), 2)
    array([1., 2., 1., 2.])
    """
    if not F.is_array(A):
        return onp.tile(A, reps)
    return F._npi_tile(A, reps=reps)


def resize(F: NumpyNamespace, a: Any, new_shape: Any) -> Any:
    """Return the array with a new shape, repeated or truncated as needed.

    >>> mx.np.resize(mx.np.array([1, 2]), (3,))
    array([1., 2., 1.])
    """
    shape = (int(new_shape),) if isinstance(new_shape, Integral) else tuple(new_shape)
    if hasattr(a, "dtype") and not a.size:
        return F._npi_full(shape=shape, value=0.0, dtype=a.dtype)
    positions = F._npi_arange(start=0, stop=math.prod(shape), dtype="int64")
    flat = F._np_reshape(a, newshape=-1)
    if hasattr(a, "dtype"):
        repeated = F._npi_take(flat, positions, axis=0, mode="wrap")
    else:  # the input of a symbol may be empty at run time: the result is then this appended zero
        count = F._npi_maximum_scalar(F.size_array(flat), scalar=1)
        padded = F._npi_pad(flat, pad_width=((0, 1),), mode="constant", constant_value=0)
        repeated = F._npi_take(padded, F._npi_mod(positions, count), axis=0)
    return F._np_reshape(repeated, newshape=shape)


def copy(F: NumpyNamespace, a: Any, out: Any = None) -> Any:
    """Return a copy.

    >>> mx.np.copy(mx.np.ones(2))
    array([1., 1.])
    """
    return F._np_copy(a, out=out)


def diag(F: NumpyNamespace, array: Any, k: Any = 0) -> Any:
    """Return a diagonal of a matrix, or a matrix with this diagonal.

    >>> mx.np.diag(mx.np.array([1, 2]))
    array([[1., 0.],
           [0., 2.]])
    """
    return F._np_diag(array, k=k)


def diagflat(F: NumpyNamespace, array: Any, k: Any = 0) -> Any:
    """Return a matrix with the flattened array on a diagonal.

    >>> mx.np.diagflat(mx.np.array([[1, 2]])).shape
    (2, 2)
    """
    return F._np_diagflat(array, k=k)


def diagonal(F: NumpyNamespace, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return the diagonal in the plane of two axes.

    >>> mx.np.diagonal(mx.np.array([[1, 2], [3, 4]]))
    array([1., 4.])
    """
    return F._np_diagonal(a, offset=offset, axis1=axis1, axis2=axis2)


def tril(F: NumpyNamespace, m: Any, k: Any = 0) -> Any:
    """Return the matrix with zeros above a diagonal.

    >>> mx.np.tril(mx.np.ones((2, 2)))
    array([[1., 0.],
           [1., 1.]])
    """
    return F._npi_tril(m, k=k)


def triu(F: NumpyNamespace, m: Any, k: Any = 0) -> Any:
    """Return the matrix with zeros below a diagonal.

    >>> mx.np.triu(mx.np.ones((2, 2)))
    array([[1., 1.],
           [0., 1.]])
    """
    return m - F._npi_tril(m, k=k - 1)


def atleast_1d(F: NumpyNamespace, *arys: Any) -> Any:
    """Return the arrays with at least one axis.

    >>> mx.np.atleast_1d(mx.np.array(1))
    array([1.])
    """
    return _alone(F._np_atleast_1d(*arys), arys)


def atleast_2d(F: NumpyNamespace, *arys: Any) -> Any:
    """Return the arrays with at least two axes.

    >>> mx.np.atleast_2d(mx.np.array(1))
    array([[1.]])
    """
    return _alone(F._np_atleast_2d(*arys), arys)


def atleast_3d(F: NumpyNamespace, *arys: Any) -> Any:
    """Return the arrays with at least three axes.

    >>> mx.np.atleast_3d(mx.np.array(1)).shape
    (1, 1, 1)
    """
    return _alone(F._np_atleast_3d(*arys), arys)


def _alone(outputs: Any, arys: Any) -> Any:
    if len(arys) == 1:
        return outputs[0] if isinstance(outputs, list) else outputs
    return outputs


def _pad_width(pad_width: Any, ndim: Any) -> Any:
    pairs = onp.broadcast_to(onp.asarray(pad_width, dtype=int), (ndim, 2))
    return tuple((int(before), int(after)) for before, after in pairs)


_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "maximum", "minimum")
_NO_PAD_MODES = ("linear_ramp", "wrap", "empty", "mean", "median")


def pad(
    F: NumpyNamespace, x: Any, pad_width: Any = None, mode: str = "constant", **kwargs: Any
) -> Any:
    """Return the padded array.

    Parameters
    ----------
    pad_width
        Pairs (before, after), one for each axis, or one pair or number for all.
    mode : {'constant', 'edge', 'reflect', 'symmetric', 'maximum', 'minimum'}
        Type of padding: ``'constant'``, ``'edge'``, ``'reflect'``, ``'symmetric'``, ``'maximum'``
        or ``'minimum'``.
    constant_values, reflect_type
        Options of their modes.

    >>> mx.np.pad(mx.np.array([1, 2]), ((1, 0),))
    array([0., 1., 2.])
    """
    if mode in _NO_PAD_MODES:
        raise ValueError(f"mode {mode!r} is not supported; use one of {', '.join(_PAD_MODES)}.")
    if mode not in _PAD_MODES:
        raise ValueError(f"unknown pad mode {mode!r}; known are {', '.join(_PAD_MODES)}.")
    allowed = {"constant": ("constant_values",), "reflect": ("reflect_type",)}
    allowed["symmetric"] = allowed["reflect"]
    unknown = set(kwargs) - set(allowed.get(mode, ()))
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {sorted(unknown)}")
    if not isinstance(pad_width, tuple) or not all(isinstance(p, tuple) for p in pad_width):
        pad_width = _pad_width(pad_width, x.ndim)
    attributes = {"pad_width": pad_width, "mode": mode}
    if mode == "constant":
        attributes["constant_value"] = kwargs.get("constant_values", 0)
    elif "reflect_type" in kwargs:
        if kwargs["reflect_type"] != "even":
            raise ValueError("reflect_type must be 'even'")
        attributes["reflect_type"] = "even"
    return F._npi_pad(x, **attributes)


# -- joining and splitting --------------------------------------------------------------------


def concatenate(F: NumpyNamespace, seq: Any, axis: Any = 0, out: Any = None) -> Any:
    """Concatenate arrays along an existing axis; None flattens them first.

    Parameters
    ----------
    axis
        Axis to concatenate along; None flattens the arrays first.

    >>> mx.np.concatenate([mx.np.ones(2), mx.np.zeros(1)])
    array([1., 1., 0.])
    """
    return F._npi_concatenate(seq if type(seq) is tuple else tuple(seq), axis=axis, out=out)


def append(F: NumpyNamespace, arr: Any, values: Any, axis: Any = None) -> Any:
    """Return the array with values added at its end.

    >>> mx.np.append(mx.np.ones(1), mx.np.zeros(1))
    array([1., 0.])
    """
    return F._npi_concatenate(arr, values, axis=axis)


def stack(F: NumpyNamespace, arrays: Any, axis: Any = 0, out: Any = None) -> Any:
    """Stack arrays of the same shape along a new axis.

    Parameters
    ----------
    axis
        Position of the new axis in the result.

    >>> mx.np.stack([mx.np.ones(2), mx.np.zeros(2)]).shape
    (2, 2)
    """
    return F._npi_stack(arrays if type(arrays) is tuple else tuple(arrays), axis=axis, out=out)


def vstack(F: NumpyNamespace, arrays: Any, out: Any = None) -> Any:
    """Stack arrays vertically (along the first axis).

    >>> mx.np.vstack([mx.np.ones(2), mx.np.zeros(2)]).shape
    (2, 2)
    """
    return F._npi_vstack(*arrays, out=out)


def row_stack(F: NumpyNamespace, arrays: Any) -> Any:
    """Stack arrays vertically; alias of `vstack`.

    >>> mx.np.row_stack([mx.np.ones(2), mx.np.zeros(2)]).shape
    (2, 2)
    """
    return F._npi_vstack(*arrays)


def hstack(F: NumpyNamespace, arrays: Any) -> Any:
    """Stack arrays horizontally (along the second axis).

    >>> mx.np.hstack([mx.np.ones(2), mx.np.zeros(2)])
    array([1., 1., 0., 0.])
    """
    return F._npi_hstack(*arrays)


def dstack(F: NumpyNamespace, arrays: Any) -> Any:
    """Stack arrays along the third axis.

    >>> mx.np.dstack([mx.np.ones(2), mx.np.zeros(2)]).shape
    (1, 2, 2)
    """
    return F._npi_dstack(*arrays)


def column_stack(F: NumpyNamespace, tup: Any) -> Any:
    """Stack vectors as the columns of a matrix.

    >>> mx.np.column_stack([mx.np.ones(2), mx.np.zeros(2)]).shape
    (2, 2)
    """
    return F._npi_column_stack(*tup)


def _parse_sections(indices_or_sections: Any) -> Any:
    if isinstance(indices_or_sections, Integral):
        return [], int(indices_or_sections)
    if isinstance(indices_or_sections, set):
        indices_or_sections = sorted(indices_or_sections)
    if isinstance(indices_or_sections, list | tuple | onp.ndarray):
        return [0, *(int(i) for i in indices_or_sections)], 0
    raise ValueError("indices_or_sections must be either int, or tuple / list / set of ints")


def _as_list(outputs: Any) -> Any:
    return outputs if isinstance(outputs, list | tuple) else [outputs]


def _split_evenly(F: NumpyNamespace, ary: Any, indices_or_sections: Any, axis: Any) -> Any:
    indices, sections = _parse_sections(indices_or_sections)
    return _as_list(
        F._npi_split(ary, indices=indices, axis=axis, squeeze_axis=False, sections=sections)
    )


def split(F: NumpyNamespace, ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Split an array into equal parts, or at indices, along an axis.

    >>> [x.shape for x in mx.np.split(mx.np.ones(4), 2)]
    [(2,), (2,)]
    """
    sections = indices_or_sections
    if isinstance(sections, Integral) and hasattr(ary, "dtype") and ary.shape[axis] % sections:
        raise ValueError("array split does not result in an equal division")
    return _split_evenly(F, ary, indices_or_sections, axis)


def array_split(F: NumpyNamespace, ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Split an array into parts that may differ in size by one.

    >>> [x.shape for x in mx.np.array_split(mx.np.ones(3), 2)]
    [(2,), (1,)]
    """
    return _split_evenly(F, ary, indices_or_sections, axis)


def vsplit(F: NumpyNamespace, ary: Any, indices_or_sections: Any) -> Any:
    """Split an array along its first axis.

    >>> len(mx.np.vsplit(mx.np.ones((4, 2)), 2))
    2
    """
    if hasattr(ary, "dtype") and ary.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(F, ary, indices_or_sections, 0)


def hsplit(F: NumpyNamespace, ary: Any, indices_or_sections: Any) -> Any:
    """Split an array along its second axis, a vector along its only one.

    >>> len(mx.np.hsplit(mx.np.ones((2, 4)), 2))
    2
    """
    if hasattr(ary, "dtype") and ary.ndim < 1:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    indices, sections = _parse_sections(indices_or_sections)
    return _as_list(
        F._npi_hsplit(ary, indices=indices, axis=1, squeeze_axis=False, sections=sections)
    )


def dsplit(F: NumpyNamespace, ary: Any, indices_or_sections: Any) -> Any:
    """Split an array along its third axis.

    >>> len(mx.np.dsplit(mx.np.ones((1, 2, 4)), 2))
    2
    """
    if hasattr(ary, "dtype") and ary.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    indices, sections = _parse_sections(indices_or_sections)
    parts = F._npi_dsplit(ary, indices=indices, axis=2, squeeze_axis=False, sections=sections)
    # As in MXNet, a single symbol is not in a list.
    return _as_list(parts) if hasattr(ary, "dtype") else parts


def _slice_attributes(obj: Any) -> Any:
    return {"start": obj.start, "stop": obj.stop, "step": obj.step}


def delete(F: NumpyNamespace, arr: Any, obj: Any, axis: Any = None) -> Any:
    """Return the array without some elements; `obj` is an index, a slice or an array of indices.

    >>> mx.np.delete(mx.np.array([1, 2, 3]), 1)
    array([1., 3.])
    """
    if isinstance(obj, slice):
        if obj == slice(None):
            obj = slice(None, None, 1)  # without attributes the operator takes an array of indices
        return F._npi_delete(arr, **_slice_attributes(obj), axis=axis)
    if isinstance(obj, Integral):
        return F._npi_delete(arr, int_ind=int(obj), axis=axis)
    if F.is_array(obj):
        return F._npi_delete(arr, obj, axis=axis)
    raise TypeError(f"'obj' can not support type {type(obj)!s}")


def insert(F: NumpyNamespace, arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """Return the array with values inserted before some indices.

    >>> mx.np.insert(mx.np.array([1, 3]), 1, 2)
    array([1., 2., 3.])
    """
    F.require_array("arr", arr)
    if is_number(values):
        if isinstance(obj, slice):
            return F._npi_insert_slice(arr, val=values, **_slice_attributes(obj), axis=axis)
        if isinstance(obj, Integral):
            return F._npi_insert_scalar(arr, val=values, int_ind=int(obj), axis=axis)
        if F.is_array(obj):
            return F._npi_insert_tensor(arr, obj, val=values, axis=axis)
    elif F.is_array(values):
        if isinstance(obj, slice):
            return F._npi_insert_slice(arr, values, **_slice_attributes(obj), axis=axis)
        if isinstance(obj, Integral):
            return F._npi_insert_scalar(arr, values, int_ind=int(obj), axis=axis)
        if F.is_array(obj):
            return F._npi_insert_tensor(arr, values, obj, axis=axis)
    raise TypeError(
        f"insert: obj of {type(obj).__name__} with values of {type(values).__name__} is not "
        "supported. Indices must be an int, a slice or an array; values a number or an array."
    )
