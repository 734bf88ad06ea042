"""Composites of `mx.np.linalg`."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..codegen.functions import NumpyNamespace


def _together(outputs: Any) -> Any:
    """Return several results as a tuple, or one symbol with several outputs."""
    return tuple(outputs) if isinstance(outputs, list) else outputs


def cholesky(F: NumpyNamespace, a: Any) -> Any:
    """Return the lower triangular factor of a symmetric positive-definite matrix.

    >>> mx.np.linalg.cholesky(mx.np.array([[4.0]]))
    array([[2.]])
    """
    return F._npi_cholesky(a)


def det(F: NumpyNamespace, a: Any) -> Any:
    """Return the determinant.

    >>> mx.np.linalg.det(mx.np.array([[[2.0, 0.0], [0.0, 3.0]]]))
    array([6.])
    """
    return F._npi_det(a)


def slogdet(F: NumpyNamespace, a: Any) -> Any:
    """Return sign and logarithm of the determinant.

    >>> mx.np.linalg.slogdet(mx.np.array([[[1.0]]]))
    [array([1.]), array([0.])]
    """
    return F._npi_slogdet(a)


def inv(F: NumpyNamespace, a: Any) -> Any:
    """Return the inverse of a matrix.

    >>> mx.np.linalg.inv(mx.np.array([[2.0]]))
    array([[0.5]])
    """
    return F._npi_inv(a)


def pinv(F: NumpyNamespace, a: Any, rcond: Any = 1e-15, hermitian: bool = False) -> Any:
    """Return the Moore-Penrose inverse of a matrix.

    >>> mx.np.linalg.pinv(mx.np.array([[2.0], [0.0]]))
    array([[0.5, 0. ]])
    """
    if hermitian is True:
        raise NotImplementedError("hermitian is not supported yet...")
    if F.is_array(rcond):
        return F._npi_pinv(a, rcond, hermitian=hermitian)
    return F._npi_pinv_scalar_rcond(a, rcond=rcond, hermitian=hermitian)


def solve(F: NumpyNamespace, a: Any, b: Any) -> Any:
    """Return the solution of a linear system.

    Parameters
    ----------
    a
        Square matrices of coefficients.
    b
        Right-hand sides.

    >>> mx.np.linalg.solve(mx.np.array([[2.0]]), mx.np.array([4.0]))
    array([2.])
    """
    return F._npi_solve(a, b)


def svd(F: NumpyNamespace, a: Any) -> Any:
    """Return the singular value decomposition: (UT, L, V) with ``a = UT @ diag(L) @ V``.

    >>> mx.np.linalg.svd(mx.np.array([[2.0]]))[1]
    array([2.])
    """
    return _together(F._npi_svd(a))


def eig(F: NumpyNamespace, a: Any) -> Any:
    """Return eigenvalues and right eigenvectors of a square matrix.

    >>> mx.np.linalg.eig(mx.np.array([[2.0]]))[0]
    array([2.])
    """
    return _together(F._npi_eig(a))


def eigh(F: NumpyNamespace, a: Any, UPLO: str = "L") -> Any:
    """Return eigenvalues and eigenvectors of a symmetric matrix.

    >>> mx.np.linalg.eigh(mx.np.array([[2.0]]))[0]
    array([2.])
    """
    return _together(F._npi_eigh(a, UPLO=UPLO.upper()))


def eigvals(F: NumpyNamespace, a: Any) -> Any:
    """Return the eigenvalues of a square matrix.

    >>> mx.np.linalg.eigvals(mx.np.array([[2.0]]))
    array([2.])
    """
    return F._npi_eigvals(a)


def eigvalsh(F: NumpyNamespace, a: Any, UPLO: str = "L") -> Any:
    """Return the eigenvalues of a symmetric matrix.

    >>> mx.np.linalg.eigvalsh(mx.np.array([[2.0]]))
    array([2.])
    """
    return F._npi_eigvalsh(a, UPLO=UPLO.upper())


def tensorinv(F: NumpyNamespace, a: Any, ind: Any = 2) -> Any:
    """Return the inverse of a tensor with respect to `tensordot`.

    >>> mx.np.linalg.tensorinv(mx.np.eye(4).reshape(2, 2, 2, 2)).shape
    (2, 2, 2, 2)
    """
    return F._npi_tensorinv(a, ind=ind)


def tensorsolve(F: NumpyNamespace, a: Any, b: Any, axes: Any = None) -> Any:
    """Return the tensor `x` with ``tensordot(a, x, x.ndim) == b``.

    Parameters
    ----------
    a
        The coefficients.
    b
        The right-hand side.
    axes
        Axes of `a` to move to the end first.

    >>> mx.np.linalg.tensorsolve(mx.np.eye(4).reshape(2, 2, 4), mx.np.ones((2, 2)))
    array([1., 1., 1., 1.])
    """
    return F._npi_tensorsolve(a, b, a_axes=() if axes is None else axes)


# -- norms ------------------------------------------------------------------------------------


def norm(
    F: NumpyNamespace, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False
) -> Any:
    """Return a norm of vectors or matrices, by default of the flattened array.

    >>> mx.np.linalg.norm(mx.np.array([3.0, 4.0]))
    array(5.)
    """
    if isinstance(axis, list):
        axis = tuple(axis)
    elif isinstance(axis, Integral):
        axis = (int(axis),)
    if axis is not None and len(axis) > 2 and ord is not None:
        raise ValueError("Improper number of dimensions to norm.")
    if ord in ("inf", "-inf") or (axis is not None and len(axis) == 1 and ord in (INF, -INF)):
        return _infinite_norm(F, x, float(ord), axis, keepdims)
    flag, ord = _norm_flag(ord, axis)
    return F._npi_norm(x, ord=ord, axis=axis, keepdims=keepdims, flag=flag)


INF = float("inf")


def _norm_flag(ord: Any, axis: Any) -> Any:
    """Return the operator's flag and number for an order of norm."""
    if ord is None:
        return (-2 if axis is None else 1), 2
    if isinstance(ord, str):
        if ord == "fro":  # the Euclidean norm of a vector
            return 1, 2
        if ord != "nuc" or (axis is not None and len(axis) != 2):
            raise ValueError("Invalid norm order for vectors.")
        return 2, 2
    is_matrix = axis is not None and len(axis) == 2
    if is_matrix and ord not in (1, -1, 2, -2, INF, -INF):
        raise ValueError("Invalid norm order for matrices.")
    return (0 if is_matrix and abs(ord) == 2 else -1), ord


def _infinite_norm(F: NumpyNamespace, x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    """Return the infinity norm: of absolute values of vectors, or row sums of matrices."""
    size, extreme = F._npi_absolute(x), F._np_max if ord > 0 else F._np_min
    if axis is None or len(axis) == 1:
        return extreme(size, axis=axis, keepdims=keepdims)
    rows, columns = axis
    norm = extreme(F._np_sum(size, axis=columns, keepdims=True), axis=rows, keepdims=True)
    return norm if keepdims else F._np_squeeze(norm, axis=axis)
