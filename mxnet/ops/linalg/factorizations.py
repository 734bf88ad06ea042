"""Factorizations, inverses and determinants of the matrices on the last two axes.

Leading axes are a batch; matrices are float32 or float64. Products are in
`products`, diagonals and triangles in `parts`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...base import is_np_shape
from ...error import ShapeError
from ..declare import op
from ..shapes import Shape, same
from ..tensor.memory import in_row_order
from .checks import SOLVABLE, check_float, check_square

# What equal eigenvalues are taken to differ by, so that gradients stay numbers.
_SMALLEST_GAP = {torch.float32: 1e-30, torch.float64: 1e-100}


@in_row_order
@op("_linalg_potrf", "linalg_potrf", shape=same, precision="full")
def linalg_potrf(A: Tensor, *, lower: bool = True) -> Tensor:
    """Factor positive definite matrices after Cholesky: lower triangular B with ``B B^T = A``.

    Without `lower` B is upper triangular, and ``B^T B = A``.

    Parameters
    ----------
    lower
        Whether to return the lower factor; with False the upper one, ``B^T B = A``.

    >>> mx.nd.linalg.potrf(nd.array([[4, 2], [2, 5]])).asnumpy()
    array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    check_square("_linalg_potrf", A)
    return torch.linalg.cholesky(A, upper=not lower)


@in_row_order
@op("_linalg_potri", "linalg_potri", shape=same, precision="full")
def linalg_potri(A: Tensor, *, lower: bool = True) -> Tensor:
    """Invert matrices given by their Cholesky factor: ``(A A^T)^-1`` of lower triangular A.

    Without `lower` A is upper triangular, and the result ``(A^T A)^-1``.

    Parameters
    ----------
    A
        The Cholesky factor, or a batch of them.
    lower
        Whether A is the lower factor.

    >>> mx.nd.linalg.potri(nd.array([[1, 0], [1, 1]])).asnumpy()
    array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    check_square("_linalg_potri", A)
    return torch.cholesky_inverse(A.tril() if lower else A.triu(), upper=not lower)


@op("_linalg_gelqf", "linalg_gelqf", outputs=2, precision="full")
def linalg_gelqf(A: Tensor) -> tuple[Tensor, Tensor]:
    """Factor ``A = L Q`` with lower triangular L and orthonormal rows in Q; return Q and L.

    >>> q, l = mx.nd.linalg.gelqf(nd.array([[0, 2]]))
    >>> abs(l.asnumpy())
    array([[2.]], dtype=float32)
    """
    if A.dtype not in SOLVABLE:
        check_square("_linalg_gelqf", A)
    if A.ndim < 2 or A.shape[-2] > A.shape[-1]:
        raise ShapeError(
            f"_linalg_gelqf: matrices must have at least as many columns as rows, "
            f"but got an array of {list(A.shape)}."
        )
    q, r = torch.linalg.qr(A.mT)
    return q.mT.contiguous(), r.mT.contiguous()


@linalg_gelqf.infer_outputs
def _gelqf_shape(a: Shape | None) -> list | None:
    return None if a is None else [a, (*a[:-1], a[-2])]


@op("_linalg_syevd", outputs=2, precision="full")
def linalg_syevd(A: Tensor) -> tuple[Tensor, Tensor]:
    """Find eigenvectors (rows of U) and ascending eigenvalues L: ``A = U^T diag(L) U``.

    A is symmetric and read in its lower triangle. The largest component of each eigenvector is
    positive.

    >>> u, l = mx.nd.linalg.syevd(nd.array([[2, 0], [0, 1]]))
    >>> u.asnumpy(), l.asnumpy()
    (array([[0., 1.],
           [1., 0.]], dtype=float32), array([1., 2.], dtype=float32))
    """
    check_square("_linalg_syevd", A)
    values, columns = torch.linalg.eigh(A)
    rows = columns.mT
    largest = rows.gather(-1, rows.abs().argmax(-1, keepdim=True))
    return rows * torch.where(largest < 0, -1.0, 1.0).to(A.dtype), values


@linalg_syevd.gradient
def _syevd_gradient(grads: tuple, outs: tuple, A: Tensor) -> Tensor:
    """Return ``U^T (diag(gL) + sym(gU U^T / gaps)) U``, gaps being those between eigenvalues."""
    (grad_rows, grad_values), (rows, values) = grads, outs
    above = torch.ones_like(A).triu(1)
    sign = above.mT - above  # eigenvalues ascend; zero on the diagonal
    gaps = (values.unsqueeze(-1) - values.unsqueeze(-2)).abs().clamp(min=_SMALLEST_GAP[A.dtype])
    turned = torch.matmul(grad_rows, rows.mT) * (sign / gaps)
    inner = (turned + turned.mT) / 2 + torch.diag_embed(grad_values)
    return torch.matmul(rows.mT, torch.matmul(inner, rows))


@linalg_syevd.infer_outputs
def _syevd_shape(a: Shape | None) -> list | None:
    return None if a is None else [a, a[:-1]]


# -- inverse and determinant --------------------------------------------------------------------


@in_row_order
@op("_linalg_inverse", "linalg_inverse", "_npi_inv", shape=same, precision="full")
def linalg_inverse(A: Tensor) -> Tensor:
    """Invert matrices; a singular one is an error.

    >>> mx.nd.linalg.inverse(nd.array([[2, 0], [0, 4]])).asnumpy()
    array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    check_square("_linalg_inverse", A)
    return torch.linalg.inv(A)


def _matrix_free(a: Shape | None) -> Shape | None:
    return None if a is None else a[:-2] or (() if is_np_shape() else (1,))


def _legacy_scalar(x: Tensor) -> Tensor:
    return x if x.ndim or is_np_shape() else x.reshape(1)


def _inverse_transposed(A: Tensor, factor: Tensor, regular: Tensor) -> Tensor:
    """Return ``factor A^-T``, and zero where the matrix is singular, as MXNet does."""
    inverse, _ = torch.linalg.inv_ex(A)
    batch = (*A.shape[:-2], 1, 1)
    found = factor.reshape(batch) * inverse.mT
    return torch.where(regular.reshape(batch), found, torch.zeros_like(found))


@op("_linalg_det", "linalg_det", "_npi_det", total=3, precision="full")
def linalg_det(A: Tensor) -> Tensor:
    """Compute determinants; one matrix gives shape (1,).

    >>> mx.nd.linalg.det(nd.array([[2, 1], [1, 4]])).asnumpy()
    array([7.], dtype=float32)
    """
    check_square("_linalg_det", A)
    return _legacy_scalar(torch.linalg.det(A))


@linalg_det.gradient
def _det_gradient(grad: Tensor, out: Tensor, A: Tensor) -> Tensor:
    return _inverse_transposed(A, grad * out, out != 0)


linalg_det.infer_outputs(_matrix_free)


@op("_linalg_slogdet", "linalg_slogdet", "_npi_slogdet", outputs=2, total=4, precision="full")
def linalg_slogdet(A: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the sign of determinants and the logarithm of their absolute values.

    >>> sign, logarithm = mx.nd.linalg.slogdet(nd.array([[-1, 0], [0, 1]]))
    >>> sign.asnumpy(), logarithm.asnumpy()
    (array([-1.], dtype=float32), array([0.], dtype=float32))
    """
    check_square("_linalg_slogdet", A)
    sign, logarithm = torch.linalg.slogdet(A)
    return _legacy_scalar(sign), _legacy_scalar(logarithm)


@linalg_slogdet.gradient
def _slogdet_gradient(grads: tuple, outs: tuple, A: Tensor) -> Tensor:
    return _inverse_transposed(A, grads[1], outs[0] != 0)


linalg_slogdet.infer_outputs(_matrix_free)


@op("_linalg_sumlogdiag", "linalg_sumlogdiag", precision="full")
def linalg_sumlogdiag(A: Tensor) -> Tensor:
    """Sum the logarithms of the diagonal; one matrix gives shape (1,).

    Parameters
    ----------
    A
        A square matrix with a positive diagonal, or a batch of them.

    >>> mx.nd.linalg.sumlogdiag(nd.array([[1, 5], [7, 1]])).asnumpy()
    array([0.], dtype=float32)
    """
    check_float("_linalg_sumlogdiag", A)
    return _legacy_scalar(A.diagonal(dim1=-2, dim2=-1).log().sum(-1))


linalg_sumlogdiag.infer_outputs(_matrix_free)
