"""Composites that join arrays, split them, or change how many elements there are."""

from __future__ import annotations

from numbers import Integral, Number

import numpy as onp

from .arguments import require_array

__all__ = [
    "append",
    "array_split",
    "column_stack",
    "concatenate",
    "delete",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "insert",
    "row_stack",
    "split",
    "stack",
    "vsplit",
    "vstack",
]


def concatenate(F, seq, axis=0, out=None):
    """Join arrays along an existing axis; with None they are flattened first.

    Parameters
    ----------
    axis
        The axis to join along; None flattens the arrays first.

    >>> mx.np.concatenate([mx.np.ones(2), mx.np.zeros(1)])
    array([1., 1., 0.])
    """
    return F._npi_concatenate(seq if type(seq) is tuple else tuple(seq), axis=axis, out=out)


def append(F, arr, values, axis=None):
    """Return the array with values added at its end.

    >>> mx.np.append(mx.np.ones(1), mx.np.zeros(1))
    array([1., 0.])
    """
    return F._npi_concatenate(arr, values, axis=axis)


def stack(F, arrays, axis=0, out=None):
    """Join arrays of one shape along a new axis.

    Parameters
    ----------
    axis
        Position of the new axis in the result.

    >>> mx.np.stack([mx.np.ones(2), mx.np.zeros(2)]).shape
    (2, 2)
    """
    return F._npi_stack(arrays if type(arrays) is tuple else tuple(arrays), axis=axis, out=out)


def vstack(F, arrays, out=None):
    """Join arrays row by row.

    >>> mx.np.vstack([mx.np.ones(2), mx.np.zeros(2)]).shape
    (2, 2)
    """
    return F._npi_vstack(*arrays, out=out)


def row_stack(F, arrays):
    """Join arrays row by row; another name of `vstack`.

    >>> mx.np.row_stack([mx.np.ones(2), mx.np.zeros(2)]).shape
    (2, 2)
    """
    return F._npi_vstack(*arrays)


def hstack(F, arrays):
    """Join arrays column by column.

    >>> mx.np.hstack([mx.np.ones(2), mx.np.zeros(2)])
    array([1., 1., 0., 0.])
    """
    return F._npi_hstack(*arrays)


def dstack(F, arrays):
    """Join arrays along the third axis.

    >>> mx.np.dstack([mx.np.ones(2), mx.np.zeros(2)]).shape
    (1, 2, 2)
    """
    return F._npi_dstack(*arrays)


def column_stack(F, tup):
    """Join vectors as the columns of a matrix.

    >>> mx.np.column_stack([mx.np.ones(2), mx.np.zeros(2)]).shape
    (2, 2)
    """
    return F._npi_column_stack(*tup)


def _places(indices_or_sections):
    """Return (indices, sections) as the operators take them."""
    if isinstance(indices_or_sections, Integral):
        return [], int(indices_or_sections)
    if isinstance(indices_or_sections, set):
        indices_or_sections = sorted(indices_or_sections)
    if isinstance(indices_or_sections, list | tuple | onp.ndarray):
        return [0, *(int(i) for i in indices_or_sections)], 0
    raise ValueError("indices_or_sections must be either int, or tuple / list / set of ints")


def _listed(made):
    return made if isinstance(made, list | tuple) or hasattr(made, "list_outputs") else [made]


def _split_evenly(F, ary, indices_or_sections, axis):
    indices, sections = _places(indices_or_sections)
    return _listed(
        F._npi_split(ary, indices=indices, axis=axis, squeeze_axis=False, sections=sections)
    )


def split(F, ary, indices_or_sections, axis=0):
    """Split an array into equal parts, or at indices, along an axis.

    >>> [x.shape for x in mx.np.split(mx.np.ones(4), 2)]
    [(2,), (2,)]
    """
    sections = indices_or_sections
    if isinstance(sections, Integral) and hasattr(ary, "dtype") and ary.shape[axis] % sections:
        raise ValueError("array split does not result in an equal division")
    return _split_evenly(F, ary, indices_or_sections, axis)


def array_split(F, ary, indices_or_sections, axis=0):
    """Split an array into parts that may differ in size by one.

    >>> [x.shape for x in mx.np.array_split(mx.np.ones(3), 2)]
    [(2,), (1,)]
    """
    return _split_evenly(F, ary, indices_or_sections, axis)


def vsplit(F, ary, indices_or_sections):
    """Split an array along its first axis.

    >>> len(mx.np.vsplit(mx.np.ones((4, 2)), 2))
    2
    """
    if hasattr(ary, "dtype") and ary.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(F, ary, indices_or_sections, 0)


def hsplit(F, ary, indices_or_sections):
    """Split an array along its second axis, a vector along its only one.

    >>> len(mx.np.hsplit(mx.np.ones((2, 4)), 2))
    2
    """
    if hasattr(ary, "dtype") and ary.ndim < 1:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    indices, sections = _places(indices_or_sections)
    return _listed(
        F._npi_hsplit(ary, indices=indices, axis=1, squeeze_axis=False, sections=sections)
    )


def dsplit(F, ary, indices_or_sections):
    """Split an array along its third axis.

    >>> len(mx.np.dsplit(mx.np.ones((1, 2, 4)), 2))
    2
    """
    if hasattr(ary, "dtype") and ary.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    indices, sections = _places(indices_or_sections)
    return _listed(
        F._npi_dsplit(ary, indices=indices, axis=2, squeeze_axis=False, sections=sections)
    )


def _slice_attributes(obj):
    return {"start": obj.start, "stop": obj.stop, "step": obj.step}


def delete(F, arr, obj, axis=None):
    """Return the array without some elements; `obj` is an index, a slice or an array of indices.

    >>> mx.np.delete(mx.np.array([1, 2, 3]), 1)
    array([1., 3.])
    """
    if isinstance(obj, slice):
        return F._npi_delete(arr, **_slice_attributes(obj), axis=axis)
    if isinstance(obj, Integral):
        return F._npi_delete(arr, int_ind=int(obj), axis=axis)
    if F.is_array(obj):
        return F._npi_delete(arr, obj, axis=axis)
    raise TypeError(f"'obj' can not support type {type(obj)!s}")


def insert(F, arr, obj, values, axis=None):
    """Return the array with values inserted before some indices.

    >>> mx.np.insert(mx.np.array([1, 3]), 1, 2)
    array([1., 2., 3.])
    """
    require_array(F, "arr", arr)
    if isinstance(values, Number):
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
        "supported. Indices are an int, a slice or an array; values a number or an array."
    )
