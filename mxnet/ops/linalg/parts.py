"""Diagonals and triangles of the matrices on the last two axes: taken out, and made."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...error import ShapeError
from ..declare import op
from ..shapes import UNKNOWN, Shape
from ..tensor.memory import in_row_order
from .checks import check_float


def _check_offset(name: str, a: Tensor, offset: int) -> None:
    check_float(name, a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name} needs square matrices, but got an array of {list(a.shape)}.")
    if abs(offset) >= a.shape[-1]:
        raise ShapeError(f"{name}: offset {offset} lies outside of {a.shape[-1]} rows.")


@in_row_order
@op("_linalg_extractdiag", "linalg_extractdiag", precision="full")
def linalg_extractdiag(A: Tensor, *, offset: int = 0) -> Tensor:
    """Take a diagonal: the main one, or one above (`offset` > 0) or below it.

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
    """Make matrices that are zero but on one diagonal.

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
    """Return rows and columns of a triangle; an offset decides the side by its sign.

    A lower one goes row by row, an upper one column by column.
    """
    below = lower if offset == 0 else offset < 0
    indices = torch.tril_indices(size, size, -abs(offset), device=device)
    return indices if below else indices.flip(0)


def _side_of(count: int) -> int:
    """Return the size of a triangle of so many elements, or -1 if there is none."""
    side = (math.isqrt(8 * count + 1) - 1) // 2
    return side if side * (side + 1) // 2 == count else -1


@op("_linalg_extracttrian", "linalg_extracttrian", precision="full")
def linalg_extracttrian(A: Tensor, *, offset: int = 0, lower: bool = True) -> Tensor:
    """Flatten a lower triangle row by row, or an upper one column by column.

    An `offset` other than 0 alone decides which triangle: above the diagonal, or below.

    Parameters
    ----------
    offset
        First diagonal of the triangle: above the main one if positive, below if negative.
    lower
        Whether to take the lower triangle; used only with ``offset=0``.

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
    """Make triangular matrices from their elements in the order of `extracttrian`.

    Parameters
    ----------
    A
        Elements of triangles on the last axis.
    offset
        First diagonal of the triangle: above the main one if positive, below if negative.
    lower
        Whether to make a lower triangle; used only with ``offset=0``.

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
    made = A.new_zeros((*A.shape[:-1], size, size))
    made[..., rows, columns] = A
    return made


@linalg_maketrian.infer_outputs
def _maketrian_shape(a: Shape | None, *, offset: int, **_: Any) -> Shape | None:
    if a is None:
        return None
    size = UNKNOWN if a[-1] == UNKNOWN else _side_of(a[-1]) + abs(offset)
    return (*a[:-1], size, size)
