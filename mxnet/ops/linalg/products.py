"""Products of matrices on the last two axes, and solving by triangular ones.

Triangular inputs are read only in their triangle: what stands in the other one does not matter.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...error import ShapeError
from ..declare import op
from ..families import check_same_dtype
from ..shapes import Shape, unify
from ..tensor.memory import in_row_order
from .checks import check_float, check_product, check_square


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
    """Multiply matrices and add a third: ``alpha op(A) op(B) + beta C``.

    `axis` is where the rows stand; columns are always last.

    Parameters
    ----------
    C
        Matrices that are added to the product.
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
    """Multiply matrices: ``alpha op(A) op(B)``; `axis` is where the rows stand.

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
        Whether to compute ``A^T A`` in place of ``A A^T``.

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
