"""Composites of `mx.np.linalg`."""

from __future__ import annotations

from numbers import Integral

__all__ = [
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "norm",
    "pinv",
    "slogdet",
    "solve",
    "svd",
    "tensorinv",
    "tensorsolve",
]


def _together(made):
    """Return several results as a tuple; a symbol holds them itself."""
    return tuple(made) if isinstance(made, list) else made


def cholesky(F, a):
    """Return the lower triangular factor of a symmetric positive-definite matrix.

    >>> mx.np.linalg.cholesky(mx.np.array([[4.0]]))
    array([[2.]])
    """
    return F._npi_cholesky(a)


def det(F, a):
    """Return the determinant.

    >>> mx.np.linalg.det(mx.np.array([[[2.0, 0.0], [0.0, 3.0]]]))
    array([6.])
    """
    return F._npi_det(a)


def slogdet(F, a):
    """Return sign and logarithm of the determinant.

    >>> mx.np.linalg.slogdet(mx.np.array([[[1.0]]]))
    (array([1.]), array([0.]))
    """
    return _together(F._npi_slogdet(a))


def inv(F, a):
    """Return the inverse of a matrix.

    >>> mx.np.linalg.inv(mx.np.array([[2.0]]))
    array([[0.5]])
    """
    return F._npi_inv(a)


def pinv(F, a, rcond=1e-15, hermitian=False):
    """Return the Moore-Penrose inverse of a matrix.

    >>> mx.np.linalg.pinv(mx.np.array([[2.0], [0.0]]))
    array([[0.5, 0. ]])
    """
    if hermitian is True:
        raise NotImplementedError("hermitian is not supported yet...")
    if F.is_array(rcond):
        return F._npi_pinv(a, rcond, hermitian=hermitian)
    return F._npi_pinv_scalar_rcond(a, rcond=rcond, hermitian=hermitian)


def solve(F, a, b):
    """Return the solution of a linear system.

    >>> mx.np.linalg.solve(mx.np.array([[2.0]]), mx.np.array([4.0]))
    array([2.])
    """
    return F._npi_solve(a, b)


def svd(F, a):
    """Return the singular value decomposition: (UT, L, V) with ``a = UT @ diag(L) @ V``.

    >>> mx.np.linalg.svd(mx.np.array([[2.0]]))[1]
    array([2.])
    """
    return _together(F._npi_svd(a))


def eig(F, a):
    """Return eigenvalues and right eigenvectors of a square matrix.

    >>> mx.np.linalg.eig(mx.np.array([[2.0]]))[0]
    array([2.])
    """
    return _together(F._npi_eig(a))


def eigh(F, a, UPLO="L"):
    """Return eigenvalues and eigenvectors of a symmetric matrix.

    >>> mx.np.linalg.eigh(mx.np.array([[2.0]]))[0]
    array([2.])
    """
    return _together(F._npi_eigh(a, UPLO=UPLO))


def eigvals(F, a):
    """Return the eigenvalues of a square matrix.

    >>> mx.np.linalg.eigvals(mx.np.array([[2.0]]))
    array([2.])
    """
    return F._npi_eigvals(a)


def eigvalsh(F, a, UPLO="L"):
    """Return the eigenvalues of a symmetric matrix.

    >>> mx.np.linalg.eigvalsh(mx.np.array([[2.0]]))
    array([2.])
    """
    return F._npi_eigvalsh(a, UPLO=UPLO)


def tensorinv(F, a, ind=2):
    """Return the inverse of a tensor under `tensordot`.

    >>> mx.np.linalg.tensorinv(mx.np.eye(4).reshape(2, 2, 2, 2)).shape
    (2, 2, 2, 2)
    """
    return F._npi_tensorinv(a, ind=ind)


def tensorsolve(F, a, b, axes=None):
    """Return the tensor `x` with ``tensordot(a, x, x.ndim) == b``.

    >>> mx.np.linalg.tensorsolve(mx.np.eye(4).reshape(2, 2, 4), mx.np.ones((2, 2)))
    array([1., 1., 1., 1.])
    """
    return F._npi_tensorsolve(a, b, a_axes=() if axes is None else axes)


# -- norms ------------------------------------------------------------------------------------

_BY_SINGULAR_VALUES = (2, -2, "nuc")


def norm(F, x, ord=None, axis=None, keepdims=False):
    """Return a norm of vectors or matrices; by default that of all elements as one vector.

    >>> mx.np.linalg.norm(mx.np.array([3.0, 4.0]))
    array(5.)
    """
    if axis is None and ord is None:
        return _root_of_squares(F, x, None, keepdims)
    if isinstance(axis, list):
        axis = tuple(axis)
    if axis is None:
        ndim = x.ndim
        if ndim not in (1, 2):
            raise ValueError("Improper number of dimensions to norm.")
        axis = tuple(range(ndim))
    elif isinstance(axis, Integral):
        axis = (int(axis),)
    if len(axis) == 1:
        return _vector_norm(F, x, ord, axis, keepdims)
    if len(axis) == 2:
        return _matrix_norm(F, x, ord, axis, keepdims)
    if ord is None:
        return _root_of_squares(F, x, axis, keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def _root_of_squares(F, x, axis, keepdims):
    return F._npi_sqrt(F._np_sum(F._npi_square(x), axis=axis, keepdims=keepdims))


def _vector_norm(F, x, ord, axis, keepdims):
    if ord is None or ord == 2:
        return _root_of_squares(F, x, axis, keepdims)
    size = F._npi_absolute(x)
    if ord == float("inf"):
        return F._np_max(size, axis=axis, keepdims=keepdims)
    if ord == float("-inf"):
        return F._np_min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        is_something = F._npi_cast(F._npi_not_equal_scalar(x, scalar=0.0), dtype="float32")
        return F._np_sum(is_something, axis=axis, keepdims=keepdims)
    if ord == 1:
        return F._np_sum(size, axis=axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError("Invalid norm order for vectors.")
    powers = F._np_sum(F._npi_power_scalar(size, scalar=float(ord)), axis=axis, keepdims=keepdims)
    return F._npi_power_scalar(powers, scalar=1.0 / ord)


def _matrix_norm(F, x, ord, axis, keepdims):
    if ord is None or ord == "fro":
        return _root_of_squares(F, x, axis, keepdims)
    if ord in _BY_SINGULAR_VALUES:
        return _singular_norm(F, x, ord, axis, keepdims)
    if ord not in (1, -1, float("inf"), float("-inf")):
        raise ValueError("Invalid norm order for matrices.")
    rows, columns = axis
    summed, kept = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = F._np_sum(F._npi_absolute(x), axis=summed, keepdims=True)
    extreme = F._np_max if ord > 0 else F._np_min
    made = extreme(sums, axis=kept, keepdims=True)
    return made if keepdims else F._np_squeeze(made, axis=axis)


def _singular_norm(F, x, ord, axis, keepdims):
    matrices = F._np_moveaxis(x, source=axis, destination=(-2, -1))
    values = F._npi_svd(matrices)[1]
    reduce = {2: F._np_max, -2: F._np_min, "nuc": F._np_sum}[ord]
    made = reduce(values, axis=-1)
    if keepdims:
        for place in sorted(a % x.ndim for a in axis):
            made = F._npi_expand_dims(made, axis=place)
    return made
