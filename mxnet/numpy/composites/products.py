"""Composites that multiply and sum: dot products and Einstein summation."""

from __future__ import annotations

from numbers import Integral

from ...util import check_ufunc_keywords

__all__ = ["dot", "einsum", "inner", "matmul", "outer", "tensordot", "vdot"]


def dot(F, a, b, out=None):
    """Return the dot product; of matrices it is the matrix product.

    >>> mx.np.dot(mx.np.array([1, 2]), mx.np.array([3, 4]))
    array(11.)
    """
    return F._np_dot(a, b, out=out)


def matmul(F, a, b, out=None, **kwargs):
    """Return the matrix product; leading axes are broadcast.

    >>> mx.np.matmul(mx.np.ones((2, 3)), mx.np.ones((3, 2)))
    array([[3., 3.],
           [3., 3.]])
    """
    check_ufunc_keywords("matmul", kwargs)
    return F._npi_matmul(a, b, out=out)


def inner(F, a, b):
    """Return the sum of products over the last axes.

    >>> mx.np.inner(mx.np.array([1, 2]), mx.np.array([3, 4]))
    array(11.)
    """
    return tensordot(F, a, b, [-1, -1])


def outer(F, a, b):
    """Return all products of two vectors.

    >>> mx.np.outer(mx.np.array([1, 2]), mx.np.array([3, 4]))
    array([[3., 4.],
           [6., 8.]])
    """
    return tensordot(F, a.reshape(-1), b.reshape(-1), 0)


def vdot(F, a, b):
    """Return the dot product of two arrays as vectors.

    >>> mx.np.vdot(mx.np.ones((2, 2)), mx.np.ones((2, 2)))
    array(4.)
    """
    return tensordot(F, a.reshape(-1), b.reshape(-1), 1)


def tensordot(F, a, b, axes=2):
    """Return the sum of products over some axes of both arrays.

    Parameters
    ----------
    axes
        Number of axes to sum over, or the axes of `a` and those of `b`.

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


def einsum(F, *operands, **kwargs):
    """Return Einstein's sum of products, as its subscripts say.

    >>> mx.np.einsum("ij,j->i", mx.np.ones((2, 3)), mx.np.ones(3))
    array([3., 3.])
    """
    out = kwargs.pop("out", None)
    optimize = kwargs.pop("optimize", False)
    if kwargs:
        raise TypeError(f"einsum() got an unexpected keyword argument {next(iter(kwargs))!r}")
    subscripts, *arrays = operands
    return F._npi_einsum(*arrays, subscripts=subscripts, optimize=int(bool(optimize)), out=out)
