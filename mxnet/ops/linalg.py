"""Linear algebra on the last two axes: products, factorizations, and parts of matrices."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..base import is_np_shape
from ..dtypes import to_name
from ..error import DTypeError, ShapeError
from .declare import op
from .families import check_same_dtype
from .shapes import UNKNOWN, Shape, same, unify
from .tensor.identity import in_row_order

SOLVABLE = (torch.float32, torch.float64)  # types supported by LAPACK


def check_float(name: str, a: Tensor) -> None:
    """Raise for integers."""
    if not a.is_floating_point():
        raise DTypeError(
            f"{name}: matrices must be of floating point, but got {to_name(a.dtype)}. "
            "Convert it: x.astype('float32')."
        )


def check_square(name: str, a: Tensor) -> None:
    """Raise for types other than float32 and float64, and for non-square matrices."""
    if a.dtype not in SOLVABLE:
        raise DTypeError(
            f"{name} only supports 32-bit and 64-bit floating point, but got {to_name(a.dtype)}. "
            "Convert it: x.astype('float32')."
        )
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name} needs square matrices, but got an array of {list(a.shape)}.")


def check_product(name: str, a: Tensor, b: Tensor) -> None:
    """Raise if the batches of matrices do not match."""
    if a.dtype is not b.dtype:
        check_same_dtype(name, a, b)
    check_float(name, a)
    if a.ndim < 2 or a.ndim != b.ndim:
        raise ShapeError(
            f"{name}: both inputs must have the same number of dimensions, at least 2, "
            f"but got {list(a.shape)} and {list(b.shape)}."
        )


def _multiply(
    name: str, a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool, axis: int
) -> Tensor:
    """Return ``op(a) op(b)`` with rows on axis -2 of the result."""
    check_product(name, a, b)
    if axis not in (-2, a.ndim - 2):
        a, b = a.movedim(axis, -2), b.movedim(axis, -2)
    if a.shape[:-2] != b.shape[:-2]:
        raise ShapeError(
            f"{name}: shapes of inputs must be the same, except on row and column axes, "
            f"but got {list(a.shape)} and {list(b.shape)}."
        )
    return torch.matmul(a.mT if transpose_a else a, b.mT if transpose_b else b)


def _rows_back(x: Tensor, axis: int) -> Tensor:
    return x if axis in (-2, x.ndim - 2) else x.movedim(-2, axis)


@op("_linalg_gemm", "linalg_gemm", precision="full")
def linalg_gemm(
    A: Tensor,
    B: Tensor,
    C: Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    axis: int = -2,
) -> Tensor:
    """Compute ``alpha op(A) op(B) + beta C``.

    `axis` is the axis of the rows; columns are always last.

    Parameters
    ----------
    C
        Matrices added to the product.
    beta
        Factor of C.

    >>> a, c = nd.array([[1, 2], [3, 4]]), nd.ones((2, 2))
    >>> mx.nd.linalg.gemm(a, a, c, transpose_b=True, alpha=2, beta=10).asnumpy()
    array([[20., 32.],
           [32., 60.]], dtype=float32)
    """
    product = _rows_back(_multiply("_linalg_gemm", A, B, transpose_a, transpose_b, axis), axis)
    if product.shape != C.shape:
        raise ShapeError(
            f"Shape inconsistent, Provided = {list(C.shape)}, inferred shape="
            f"{list(product.shape)}, for C of _linalg_gemm."
        )
    check_same_dtype("_linalg_gemm", A, C)
    return product * alpha + C * beta


@op("_linalg_gemm2", "linalg_gemm2", precision="full")
def linalg_gemm2(
    A: Tensor,
    B: Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    axis: int = -2,
) -> Tensor:
    """Compute ``alpha op(A) op(B)``; `axis` is the axis of the rows.

    >>> a = nd.array([[1, 2], [3, 4]])
    >>> mx.nd.linalg.gemm2(a, a, transpose_b=True, alpha=2).asnumpy()
    array([[10., 22.],
           [22., 50.]], dtype=float32)
    """
    product = _multiply("_linalg_gemm2", A, B, transpose_a, transpose_b, axis)
    return _rows_back(product if alpha == 1.0 else product * alpha, axis)


def _product_shape(a: Shape, b: Shape, transpose_a: bool, transpose_b: bool, axis: int) -> Shape:
    if len(a) != len(b) or len(a) < 2:
        raise ShapeError(f"matrices of shapes {list(a)} and {list(b)} cannot be multiplied")
    rows = axis % len(a)
    inner_a, outer_a = (a[rows], a[-1]) if transpose_a else (a[-1], a[rows])
    inner_b, outer_b = (b[-1], b[rows]) if transpose_b else (b[rows], b[-1])
    unify((inner_a,), (inner_b,), "inner sizes of the product")
    batch = [n for i, n in enumerate(a[:-1]) if i != rows]
    batch = unify(tuple(batch), tuple(n for i, n in enumerate(b[:-1]) if i != rows), "batch axes")
    left = list(batch)
    left.insert(rows, outer_a)
    return (*left, outer_b)


@linalg_gemm2.infer_outputs
def _gemm2_shape(
    a: Shape | None,
    b: Shape | None,
    *,
    transpose_a: bool,
    transpose_b: bool,
    axis: int,
    **_: Any,
) -> Shape | None:
    if a is None or b is None:
        return None
    return _product_shape(a, b, transpose_a, transpose_b, axis)


@linalg_gemm.infer_outputs
def _gemm_shape(
    a: Shape | None,
    b: Shape | None,
    c: Shape | None,
    *,
    transpose_a: bool,
    transpose_b: bool,
    axis: int,
    **_: Any,
) -> Shape | None:
    if a is None or b is None:
        return c
    return unify(_product_shape(a, b, transpose_a, transpose_b, axis), c, "C of gemm")


@linalg_gemm.infer_inputs
def _gemm_addend(
    a: Shape | None,
    b: Shape | None,
    c: Shape | None,
    *,
    transpose_a: bool,
    transpose_b: bool,
    axis: int,
    **_: Any,
) -> dict[str, Shape]:
    if a is None or b is None:
        return {}
    return {"C": _product_shape(a, b, transpose_a, transpose_b, axis)}


@op("_linalg_syrk", "linalg_syrk", precision="full")
def linalg_syrk(A: Tensor, *, transpose: bool = False, alpha: float = 1.0) -> Tensor:
    """Multiply a matrix by its own transpose: ``alpha A A^T``, or ``alpha A^T A``.

    Parameters
    ----------
    transpose
        Whether to compute ``A^T A`` instead of ``A A^T``.

    >>> mx.nd.linalg.syrk(nd.array([[1, 2], [3, 4]])).asnumpy()
    array([[ 5., 11.],
           [11., 25.]], dtype=float32)
    """
    check_float("_linalg_syrk", A)
    product = torch.matmul(A.mT, A) if transpose else torch.matmul(A, A.mT)
    return product if alpha == 1.0 else product * alpha


@linalg_syrk.infer_outputs
def _syrk_shape(a: Shape | None, *, transpose: bool, **_: Any) -> Shape | None:
    if a is None:
        return None
    size = a[-1] if transpose else a[-2]
    return (*a[:-2], size, size)


def _check_triangular(name: str, a: Tensor, b: Tensor, rightside: bool) -> None:
    check_product(name, a, b)
    if a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name} needs square A, but got an array of {list(a.shape)}.")
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-1 if rightside else -2]:
        raise ShapeError(
            f"{name}: A of {list(a.shape)} and B of {list(b.shape)} do not fit "
            f"with rightside={rightside}."
        )


def _beside_triangle(
    a: Shape | None, b: Shape | None, *, rightside: bool, **_: Any
) -> dict[str, Shape]:
    if b is None:
        return {}
    size = b[-1] if rightside else b[-2]
    return {"A": (*b[:-2], size, size)}


def _shape_of_b(a: Shape | None, b: Shape | None, **_: Any) -> Shape | None:
    return b


@op("_linalg_trmm", "linalg_trmm", precision="full")
def linalg_trmm(
    A: Tensor,
    B: Tensor,
    *,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
) -> Tensor:
    """Multiply by a triangular matrix: ``alpha op(A) B``, or ``alpha B op(A)`` on the right side.

    >>> mx.nd.linalg.trmm(nd.array([[1, 9], [2, 3]]), nd.ones((2, 2))).asnumpy()
    array([[1., 1.],
           [5., 5.]], dtype=float32)
    """
    _check_triangular("_linalg_trmm", A, B, rightside)
    triangle = A.tril() if lower else A.triu()
    if transpose:
        triangle = triangle.mT
    product = torch.matmul(B, triangle) if rightside else torch.matmul(triangle, B)
    return product if alpha == 1.0 else product * alpha


@in_row_order
@op("_linalg_trsm", "linalg_trsm", precision="full")
def linalg_trsm(
    A: Tensor,
    B: Tensor,
    *,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
) -> Tensor:
    """Solve ``op(A) X = alpha B`` with triangular A, or ``X op(A) = alpha B`` on the right side.

    >>> mx.nd.linalg.trsm(nd.array([[1, 9], [2, 4]]), nd.array([[1], [4]])).asnumpy()
    array([[1. ],
           [0.5]], dtype=float32)
    """
    _check_triangular("_linalg_trsm", A, B, rightside)
    check_square("_linalg_trsm", A)
    matrix, upper = (A.mT, lower) if transpose else (A, not lower)
    right = B if alpha == 1.0 else B * alpha
    return torch.linalg.solve_triangular(matrix, right, upper=upper, left=not rightside)


for _triangular in (linalg_trmm, linalg_trsm):
    _triangular.infer_inputs(_beside_triangle)
    _triangular.infer_outputs(_shape_of_b)


# Minimum gap of eigenvalues in gradients, to keep them finite.
_MIN_GAP = {torch.float32: 1e-30, torch.float64: 1e-100}


@in_row_order
@op("_linalg_potrf", "linalg_potrf", shape=same, precision="full")
def linalg_potrf(A: Tensor, *, lower: bool = True) -> Tensor:
    """Cholesky factorization of positive definite matrices: lower triangular B with ``B B^T = A``.

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

    A is symmetric; only its lower triangle is used. The largest component of each eigenvector is
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
    gaps = (values.unsqueeze(-1) - values.unsqueeze(-2)).abs().clamp(min=_MIN_GAP[A.dtype])
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
    """Invert matrices; raise for singular ones.

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
    """Return ``factor A^-T``, zero for singular matrices, as in MXNet."""
    inverse, _ = torch.linalg.inv_ex(A)
    batch = (*A.shape[:-2], 1, 1)
    result = factor.reshape(batch) * inverse.mT
    return torch.where(regular.reshape(batch), result, torch.zeros_like(result))


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


def _check_offset(name: str, a: Tensor, offset: int) -> None:
    check_float(name, a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name} needs square matrices, but got an array of {list(a.shape)}.")
    if abs(offset) >= a.shape[-1]:
        raise ShapeError(f"{name}: offset {offset} lies outside of {a.shape[-1]} rows.")


@in_row_order
@op("_linalg_extractdiag", "linalg_extractdiag", precision="full")
def linalg_extractdiag(A: Tensor, *, offset: int = 0) -> Tensor:
    """Extract a diagonal: the main one, or one above (`offset` > 0) or below it.

    >>> mx.nd.linalg.extractdiag(nd.array([[1, 2], [3, 4]]), offset=-1).asnumpy()
    array([3.], dtype=float32)
    """
    _check_offset("_linalg_extractdiag", A, offset)
    return A.diagonal(offset, -2, -1).contiguous()


@linalg_extractdiag.infer_outputs
def _extractdiag_shape(a: Shape | None, *, offset: int) -> Shape | None:
    if a is None:
        return None
    return (*a[:-2], a[-1] if a[-1] == UNKNOWN else a[-1] - abs(offset))


@op("_linalg_makediag", "linalg_makediag", precision="full")
def linalg_makediag(A: Tensor, *, offset: int = 0) -> Tensor:
    """Create matrices with one nonzero diagonal.

    Parameters
    ----------
    A
        Vectors on the last axis.

    >>> mx.nd.linalg.makediag(nd.array([1, 2])).asnumpy()
    array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    check_float("_linalg_makediag", A)
    return torch.diag_embed(A, offset)


@linalg_makediag.infer_outputs
def _makediag_shape(a: Shape | None, *, offset: int) -> Shape | None:
    if a is None:
        return None
    size = a[-1] if a[-1] == UNKNOWN else a[-1] + abs(offset)
    return (*a[:-1], size, size)


def _triangle(size: int, offset: int, lower: bool, device: torch.device) -> Tensor:
    """Return the indices of a triangle; a nonzero offset determines the side.

    The lower triangle is ordered by rows, the upper one by columns.
    """
    below = lower if offset == 0 else offset < 0
    indices = torch.tril_indices(size, size, -abs(offset), device=device)
    return indices if below else indices.flip(0)


def _side_of(count: int) -> int:
    """Return the size of a triangle with this number of elements, or -1."""
    side = (math.isqrt(8 * count + 1) - 1) // 2
    return side if side * (side + 1) // 2 == count else -1


@op("_linalg_extracttrian", "linalg_extracttrian", precision="full")
def linalg_extracttrian(A: Tensor, *, offset: int = 0, lower: bool = True) -> Tensor:
    """Flatten a lower triangle by rows, or an upper one by columns.

    A nonzero `offset` determines the triangle: above or below the diagonal.

    Parameters
    ----------
    offset
        First diagonal of the triangle: above the main one if positive, below if negative.
    lower
        Whether to extract the lower triangle; used only with ``offset=0``.

    >>> mx.nd.linalg.extracttrian(nd.array([[1, 2], [3, 4]])).asnumpy()
    array([1., 3., 4.], dtype=float32)
    """
    _check_offset("_linalg_extracttrian", A, offset)
    rows, columns = _triangle(A.shape[-1], offset, lower, A.device)
    return A[..., rows, columns]


@linalg_extracttrian.infer_outputs
def _extracttrian_shape(a: Shape | None, *, offset: int, **_: Any) -> Shape | None:
    if a is None:
        return None
    side = a[-1] - abs(offset)
    return (*a[:-2], UNKNOWN if a[-1] == UNKNOWN else side * (side + 1) // 2)


@op("_linalg_maketrian", "linalg_maketrian", precision="full")
def linalg_maketrian(A: Tensor, *, offset: int = 0, lower: bool = True) -> Tensor:
    """Create triangular matrices from elements in the order of `extracttrian`.

    Parameters
    ----------
    A
        Elements of triangles on the last axis.
    offset
        First diagonal of the triangle: above the main one if positive, below if negative.
    lower
        Whether to fill the lower triangle; used only with ``offset=0``.

    >>> mx.nd.linalg.maketrian(nd.array([1, 2, 3])).asnumpy()
    array([[1., 0.],
           [2., 3.]], dtype=float32)
    """
    check_float("_linalg_maketrian", A)
    side = _side_of(A.shape[-1])
    if side < 0:
        raise ShapeError(
            f"_linalg_maketrian: the last axis must have 1, 3, 6, 10, ... elements, but got an "
            f"array of {list(A.shape)}."
        )
    size = side + abs(offset)
    rows, columns = _triangle(size, offset, lower, A.device)
    output = A.new_zeros((*A.shape[:-1], size, size))
    output[..., rows, columns] = A
    return output


@linalg_maketrian.infer_outputs
def _maketrian_shape(a: Shape | None, *, offset: int, **_: Any) -> Shape | None:
    if a is None:
        return None
    size = UNKNOWN if a[-1] == UNKNOWN else _side_of(a[-1]) + abs(offset)
    return (*a[:-1], size, size)
