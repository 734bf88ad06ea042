"""Products of matrices: `dot` and its batched form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from ....error import ShapeError
from ...attributes import Shape
from ...declare import op
from ...shapes import UNKNOWN, KnownShapes

Storage = Literal["default", "row_sparse", "csr"]
_mm, _bmm = torch.mm, torch.bmm


@op("dot", "_sparse_dot", precision="widest")
def dot(
    lhs: Tensor,
    rhs: Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: Storage | None = None,
) -> Tensor:
    """Sum products over the last axis of ``lhs`` and the first of ``rhs``.

    Transposed, the first axis of ``lhs`` and the last of ``rhs`` are meant. Two vectors give
    shape (1,).

    Parameters
    ----------
    lhs
        The first factor.
    rhs
        The second factor.
    transpose_a
        Whether the first axis of `lhs` is summed over, in place of the last.
    transpose_b
        Whether the last axis of `rhs` is summed over, in place of the first.

    >>> mx.nd.dot(mx.nd.array([[1, 2]]), mx.nd.array([[3], [4]])).asnumpy()
    array([[11.]], dtype=float32)
    """
    if lhs.ndim == 2 and rhs.ndim == 2:
        return _mm(lhs.t() if transpose_a else lhs, rhs.t() if transpose_b else rhs)
    if lhs.ndim == 1 and rhs.ndim == 1:
        return torch.dot(lhs, rhs).reshape(1)
    # A vector is the summed axis itself, whichever way it is turned.
    transpose_a, transpose_b = transpose_a and lhs.ndim > 1, transpose_b and rhs.ndim > 1
    shape = dot_shape(lhs.shape, rhs.shape, transpose_a=transpose_a, transpose_b=transpose_b)
    left = lhs.flatten(1).t() if transpose_a else lhs.reshape(_rows(lhs), lhs.shape[-1])
    if transpose_b:
        right = rhs.reshape(_rows(rhs), rhs.shape[-1]).t()
    else:
        right = rhs.flatten(1) if rhs.ndim > 1 else rhs.unsqueeze(1)
    return _mm(left, right).reshape(shape)


def _rows(matrix: Tensor) -> int:
    """Return how many vectors lie along the last axis; -1 would not do for empty arrays."""
    return math.prod(matrix.shape[:-1])


@dot.variant("call")
def _multiply_matrices(attrs: dict[str, Any], dtype: torch.dtype) -> Callable | None:
    """Return torch's product of matrices, which raises on other arrays."""
    return None if attrs.get("transpose_a") or attrs.get("transpose_b") else _mm


@dot.infer_outputs
def dot_shape(
    lhs: Shape | None, rhs: Shape | None, *, transpose_a: bool, transpose_b: bool, **_: object
) -> Shape | None:
    """What is left of both when the summed axes are gone."""
    if lhs is None or rhs is None:
        return None
    if not lhs or not rhs:
        raise ShapeError(f"dot shape error: {list(lhs)} X {list(rhs)}: both need an axis.")
    summed, left = (lhs[0], lhs[1:]) if transpose_a else (lhs[-1], lhs[:-1])
    other, right = (rhs[-1], rhs[:-1]) if transpose_b else (rhs[0], rhs[1:])
    if summed != other and UNKNOWN not in (summed, other):
        raise ShapeError(
            f"dot shape error: {list(lhs)} X {list(rhs)} (transpose_a={transpose_a}, "
            f"transpose_b={transpose_b}): {summed} elements cannot be multiplied with {other}."
        )
    return (*left, *right) or (1,)


@dot.work
def dot_work(ins: KnownShapes, outs: KnownShapes, attrs: dict) -> int:
    """Every output element takes one multiply-add for each element of the summed axis."""
    return math.prod(outs[0]) * (ins[0][0] if attrs["transpose_a"] else ins[0][-1])


@op(
    "batch_dot",
    "_npx_batch_dot",
    precision="widest",
    overwritable=True,
    gradient_names=("lhs_output", "rhs_output"),
)
def batch_dot(
    lhs: Tensor,
    rhs: Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: Storage | None = None,
) -> Tensor:
    """Multiply matrices pairwise: the last two axes are matrices, those before count pairs.

    Parameters
    ----------
    lhs
        The first factors.
    rhs
        The second factors.

    >>> x, y = mx.nd.ones((2, 1, 3)), mx.nd.ones((2, 1, 3))
    >>> mx.nd.batch_dot(x, y, transpose_b=True).asnumpy().tolist()
    [[[3.0]], [[3.0]]]
    """
    left, right = lhs.mT if transpose_a else lhs, rhs.mT if transpose_b else rhs
    if lhs.ndim == 3 and rhs.ndim == 3:
        return _bmm(left, right)
    batch_dot_shape(lhs.shape, rhs.shape, transpose_a=transpose_a, transpose_b=transpose_b)
    return torch.matmul(left, right)


@batch_dot.infer_outputs
def batch_dot_shape(
    lhs: Shape | None, rhs: Shape | None, *, transpose_a: bool, transpose_b: bool, **_: object
) -> Shape | None:
    """Equal leading sizes, then rows of the first and columns of the second."""
    if lhs is None or rhs is None:
        return None
    what = f"{list(lhs)} X {list(rhs)} (transpose_a={transpose_a}, transpose_b={transpose_b})"
    if len(lhs) < 3 or len(lhs) != len(rhs):
        raise ShapeError(f"batch_dot shape error: {what}: both need equally many axes, 3 or more.")
    rows, summed = lhs[-2:][::-1] if transpose_a else lhs[-2:]
    other, columns = rhs[-2:][::-1] if transpose_b else rhs[-2:]
    pairs = [*zip(lhs[:-2], rhs[:-2], strict=True), (summed, other)]
    if any(a != b and UNKNOWN not in (a, b) for a, b in pairs):
        raise ShapeError(f"batch_dot shape error: {what}: the sizes do not agree.")
    return (*(max(a, b) for a, b in pairs[:-1]), rows, columns)


@batch_dot.work
def batch_dot_work(ins: KnownShapes, outs: KnownShapes, attrs: dict) -> int:
    """Every output element takes one multiply-add for each element of the summed axis."""
    return math.prod(outs[0]) * ins[0][-2 if attrs["transpose_a"] else -1]
