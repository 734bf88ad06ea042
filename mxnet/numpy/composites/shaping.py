"""Composites that change the form of an array, not its elements."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as onp

from .creation import check_order

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_to",
    "copy",
    "diag",
    "diagflat",
    "diagonal",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "moveaxis",
    "pad",
    "ravel",
    "repeat",
    "reshape",
    "resize",
    "roll",
    "rollaxis",
    "rot90",
    "squeeze",
    "swapaxes",
    "tile",
    "transpose",
    "tril",
    "triu",
]


def reshape(F, a, newshape, order="C", out=None):
    """Return the elements in another shape; one size may be -1 and follows from the others.

    >>> mx.np.reshape(mx.np.arange(4), (2, -1))
    array([[0., 1.],
           [2., 3.]])
    """
    check_order(order)
    return F._np_reshape(a, newshape=newshape, order=order, out=out)


def ravel(F, x, order="C"):
    """Return the elements as a vector.

    >>> mx.np.ravel(mx.np.ones((2, 2)))
    array([1., 1., 1., 1.])
    """
    if order != "C":
        raise NotImplementedError(f"order={order!r} is not supported; arrays are row-major ('C').")
    if not F.is_array(x):
        return onp.ravel(x)
    return F._npi_reshape(x, newshape=-1)


def transpose(F, a, axes=None):
    """Return the array with its axes permuted; without `axes` they are reversed.

    Parameters
    ----------
    axes
        The new order of the axes; None reverses them.

    >>> mx.np.transpose(mx.np.ones((2, 3))).shape
    (3, 2)
    """
    return F._np_transpose(a, axes=axes)


def moveaxis(F, a, source, destination):
    """Return the array with some axes moved to other positions.

    >>> mx.np.moveaxis(mx.np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return F._np_moveaxis(a, source=source, destination=destination)


def rollaxis(F, a, axis, start=0):
    """Return the array with one axis rolled back to before another one.

    Parameters
    ----------
    axis
        The axis to move.
    start
        Where to put it: in front of this axis.

    >>> mx.np.rollaxis(mx.np.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    ndim = a.ndim
    axis, start = axis % ndim, start + ndim if start < 0 else start
    return moveaxis(F, a, axis, start - 1 if axis < start else start)


def swapaxes(F, a, axis1, axis2):
    """Return the array with two axes exchanged.

    >>> mx.np.swapaxes(mx.np.ones((2, 3)), 0, 1).shape
    (3, 2)
    """
    return F._npi_swapaxes(a, dim1=axis1, dim2=axis2)


def expand_dims(F, a, axis):
    """Return the array with a new axis of size 1.

    Parameters
    ----------
    axis
        Position of the new axis in the result.

    >>> mx.np.expand_dims(mx.np.ones(2), 0).shape
    (1, 2)
    """
    return F._npi_expand_dims(a, axis=axis)


def squeeze(F, a, axis=None, out=None):
    """Return the array without axes of size 1.

    >>> mx.np.squeeze(mx.np.ones((1, 2, 1))).shape
    (2,)
    """
    return F._np_squeeze(a, axis=axis, out=out)


def broadcast_to(F, array, shape):
    """Return the array repeated along axes of size 1 to fill a shape.

    >>> mx.np.broadcast_to(mx.np.ones(2), (3, 2)).shape
    (3, 2)
    """
    if not F.is_array(array):
        return F._npi_full(shape=shape, value=float(array))
    return F._npi_broadcast_to(array, shape=shape)


def broadcast_arrays(F, *args):
    """Return a list of the arrays, all broadcast to their common shape.

    >>> [x.shape for x in mx.np.broadcast_arrays(mx.np.ones((2, 1)), mx.np.ones(3))]
    [(2, 3), (2, 3)]
    """
    shape = onp.broadcast_shapes(*(x.shape for x in args))
    return [x if tuple(x.shape) == shape else broadcast_to(F, x, shape) for x in args]


def flip(F, m, axis=None, out=None):
    """Return the elements in reverse order along some axes, by default along all.

    >>> mx.np.flip(mx.np.array([1, 2]))
    array([2., 1.])
    """
    if not F.is_array(m):
        return onp.flip(m, axis)
    return F._npi_flip(m, axis=axis, out=out)


def flipud(F, m):
    """Return the rows in reverse order.

    >>> mx.np.flipud(mx.np.array([[1], [2]]))
    array([[2.],
           [1.]])
    """
    return flip(F, m, 0)


def fliplr(F, m):
    """Return the columns in reverse order.

    >>> mx.np.fliplr(mx.np.array([[1, 2]]))
    array([[2., 1.]])
    """
    return flip(F, m, 1)


def roll(F, a, shift, axis=None):
    """Return the elements shifted along an axis; what falls off one end comes in at the other.

    >>> mx.np.roll(mx.np.array([1, 2, 3]), 1)
    array([3., 1., 2.])
    """
    return F._np_roll(a, shift=shift, axis=axis)


def rot90(F, m, k=1, axes=(0, 1)):
    """Return the array rotated by quarter turns in the plane of two axes.

    Parameters
    ----------
    k
        How many times to rotate by 90 degrees.
    axes
        The two axes of the plane of rotation.

    >>> mx.np.rot90(mx.np.array([[1, 2], [3, 4]]))
    array([[2., 4.],
           [1., 3.]])
    """
    return F._npi_rot90(m, k=k, axes=axes)


def repeat(F, a, repeats, axis=None):
    """Return each element repeated, along an axis or of the flattened array.

    >>> mx.np.repeat(mx.np.array([1, 2]), 2)
    array([1., 1., 2., 2.])
    """
    return F._np_repeat(a, repeats=repeats, axis=axis)


def tile(F, A, reps):
    """Return the array repeated as a whole along each axis.

    >>> mx.np.tile(mx.np.array([1, 2]), 2)
    array([1., 2., 1., 2.])
    """
    if not F.is_array(A):
        return onp.tile(A, reps)
    return F._npi_tile(A, reps=reps)


def resize(F, a, new_shape):
    """Return the elements in a new shape, repeated from the start or cut off as needed.

    >>> mx.np.resize(mx.np.array([1, 2]), (3,))
    array([1., 2., 1.])
    """
    if not hasattr(a, "size"):
        raise NotImplementedError("resize of a symbol is not supported: its size is unknown.")
    shape = (int(new_shape),) if isinstance(new_shape, Integral) else tuple(new_shape)
    wanted = math.prod(shape)
    if not a.size:
        return F._npi_full(shape=shape, value=0.0, dtype=a.dtype)
    flat = F._np_reshape(a, newshape=-1)
    repeated = F._npi_tile(flat, reps=(-(-wanted // a.size) or 1,))
    return F._np_reshape(F._npi_slice(repeated, begin=(0,), end=(wanted,)), newshape=shape)


def copy(F, a, out=None):
    """Return a copy.

    >>> mx.np.copy(mx.np.ones(2))
    array([1., 1.])
    """
    return F._np_copy(a, out=out)


def diag(F, array, k=0):
    """Return a diagonal of a matrix, or a matrix with this diagonal.

    >>> mx.np.diag(mx.np.array([1, 2]))
    array([[1., 0.],
           [0., 2.]])
    """
    return F._np_diag(array, k=k)


def diagflat(F, array, k=0):
    """Return a matrix with the flattened array on a diagonal.

    >>> mx.np.diagflat(mx.np.array([[1, 2]])).shape
    (2, 2)
    """
    return F._np_diagflat(array, k=k)


def diagonal(F, a, offset=0, axis1=0, axis2=1):
    """Return the diagonal in the plane of two axes.

    >>> mx.np.diagonal(mx.np.array([[1, 2], [3, 4]]))
    array([1., 4.])
    """
    return F._np_diagonal(a, offset=offset, axis1=axis1, axis2=axis2)


def tril(F, m, k=0):
    """Return the matrix with zeros above a diagonal.

    >>> mx.np.tril(mx.np.ones((2, 2)))
    array([[1., 0.],
           [1., 1.]])
    """
    return F._npi_tril(m, k=k)


def triu(F, m, k=0):
    """Return the matrix with zeros below a diagonal.

    >>> mx.np.triu(mx.np.ones((2, 2)))
    array([[1., 1.],
           [0., 1.]])
    """
    return m - F._npi_tril(m, k=k - 1)


def atleast_1d(F, *arys):
    """Return the arrays with at least one axis.

    >>> mx.np.atleast_1d(mx.np.array(1))
    array([1.])
    """
    return _alone(F._np_atleast_1d(*arys), arys)


def atleast_2d(F, *arys):
    """Return the arrays with at least two axes.

    >>> mx.np.atleast_2d(mx.np.array(1))
    array([[1.]])
    """
    return _alone(F._np_atleast_2d(*arys), arys)


def atleast_3d(F, *arys):
    """Return the arrays with at least three axes.

    >>> mx.np.atleast_3d(mx.np.array(1)).shape
    (1, 1, 1)
    """
    return _alone(F._np_atleast_3d(*arys), arys)


def _alone(made, arys):
    if len(arys) == 1:
        return made[0] if isinstance(made, list) else made
    return made


def _pad_width(pad_width, ndim):
    pairs = onp.broadcast_to(onp.asarray(pad_width, dtype=int), (ndim, 2))
    return tuple((int(before), int(after)) for before, after in pairs)


_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "maximum", "minimum")
_NO_PAD_MODES = ("linear_ramp", "wrap", "empty", "mean", "median")


def pad(F, x, pad_width=None, mode="constant", **kwargs):
    """Return the array with a border added around it.

    Parameters
    ----------
    pad_width
        Pairs (before, after), one for each axis, or one pair or number for all.
    mode : {'constant', 'edge', 'reflect', 'symmetric', 'maximum', 'minimum'}
        What to add: ``'constant'``, ``'edge'``, ``'reflect'``, ``'symmetric'``, ``'maximum'`` or
        ``'minimum'``.
    constant_values, reflect_type
        Values of their modes.

    >>> mx.np.pad(mx.np.array([1, 2]), ((1, 0),))
    array([0., 1., 2.])
    """
    if mode in _NO_PAD_MODES:
        raise ValueError(f"mode {mode!r} is not supported; known are {', '.join(_PAD_MODES)}.")
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
