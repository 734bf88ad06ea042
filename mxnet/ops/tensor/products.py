"""Matrix products, and operators over lists of arrays for training loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from ...error import MXNetError, ShapeError
from ...torch_private import foreach
from ..attributes import ArrayCount, Shape
from ..declare import op
from ..families import check_same_dtype
from ..shapes import UNKNOWN, KnownShapes
from .elementwise import require_floating_point

Storage = Literal["default", "row_sparse", "csr"]
_mm, _bmm = torch.mm, torch.bmm


@op("dot", "_sparse_dot", precision="widest", repeatable=True)
def dot(
    lhs: Tensor,
    rhs: Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: Storage | None = None,
) -> Tensor:
    """Compute the dot product over the last axis of ``lhs`` and the first axis of ``rhs``.

    Two vectors give shape (1,).

    Parameters
    ----------
    lhs
        The first factor.
    rhs
        The second factor.
    transpose_a
        Whether to sum over the first axis of `lhs` instead of the last.
    transpose_b
        Whether to sum over the last axis of `rhs` instead of the first.

    >>> mx.nd.dot(mx.nd.array([[1, 2]]), mx.nd.array([[3], [4]])).asnumpy()
    array([[11.]], dtype=float32)
    """
    if lhs.ndim == 2 and rhs.ndim == 2:
        return _mm(lhs.t() if transpose_a else lhs, rhs.t() if transpose_b else rhs)
    if lhs.ndim == 1 and rhs.ndim == 1:
        return torch.dot(lhs, rhs).reshape(1)
    # A vector has one axis, with or without transposition.
    transpose_a, transpose_b = transpose_a and lhs.ndim > 1, transpose_b and rhs.ndim > 1
    shape = dot_shape(lhs.shape, rhs.shape, transpose_a=transpose_a, transpose_b=transpose_b)
    left = lhs.flatten(1).t() if transpose_a else lhs.reshape(_rows(lhs), lhs.shape[-1])
    if transpose_b:
        right = rhs.reshape(_rows(rhs), rhs.shape[-1]).t()
    else:
        right = rhs.flatten(1) if rhs.ndim > 1 else rhs.unsqueeze(1)
    return _mm(left, right).reshape(shape)


def _rows(matrix: Tensor) -> int:
    """Return the number of vectors along the last axis; -1 would fail for empty arrays."""
    return math.prod(matrix.shape[:-1])


@dot.variant("call")
def _multiply_matrices(attrs: dict[str, Any], dtype: torch.dtype) -> Callable | None:
    """Return torch's matrix product, which raises for other arrays."""
    return None if attrs.get("transpose_a") or attrs.get("transpose_b") else _mm


@dot.infer_outputs
def dot_shape(
    lhs: Shape | None, rhs: Shape | None, *, transpose_a: bool, transpose_b: bool, **_: object
) -> Shape | None:
    """The remaining axes of both arrays, without the summed ones."""
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
    """One multiply-add for each output element and each element of the summed axis."""
    return math.prod(outs[0]) * (ins[0][0] if attrs["transpose_a"] else ins[0][-1])


@op(
    "batch_dot",
    "_npx_batch_dot",
    precision="widest",
    overwritable=True,
    gradient_names=("lhs_output", "rhs_output"),
    repeatable=True,
)
def batch_dot(
    lhs: Tensor,
    rhs: Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: Storage | None = None,
) -> Tensor:
    """Compute a batch of matrix products; the last two axes are the matrices.

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


@batch_dot.variant("call")
def _multiply_batches(attrs: dict[str, Any], dtype: torch.dtype) -> Callable | None:
    """Return torch's batched matrix product, which raises for other arrays."""
    return None if attrs.get("transpose_a") or attrs.get("transpose_b") else _bmm


@batch_dot.infer_outputs
def batch_dot_shape(
    lhs: Shape | None, rhs: Shape | None, *, transpose_a: bool, transpose_b: bool, **_: object
) -> Shape | None:
    """The batch axes, then the rows of the first and the columns of the second factor."""
    if lhs is None or rhs is None:
        return None
    what = f"{list(lhs)} X {list(rhs)} (transpose_a={transpose_a}, transpose_b={transpose_b})"
    if len(lhs) < 3 or len(lhs) != len(rhs):
        raise ShapeError(
            f"batch_dot shape error: {what}: both need the same number of axes, at least 3."
        )
    rows, summed = lhs[-2:][::-1] if transpose_a else lhs[-2:]
    other, columns = rhs[-2:][::-1] if transpose_b else rhs[-2:]
    pairs = [*zip(lhs[:-2], rhs[:-2], strict=True), (summed, other)]
    if any(a != b and UNKNOWN not in (a, b) for a, b in pairs):
        raise ShapeError(f"batch_dot shape error: {what}: the sizes do not match.")
    return (*(max(a, b) for a, b in pairs[:-1]), rows, columns)


@batch_dot.work
def batch_dot_work(ins: KnownShapes, outs: KnownShapes, attrs: dict) -> int:
    """One multiply-add for each output element and each element of the summed axis."""
    return math.prod(outs[0]) * ins[0][-2 if attrs["transpose_a"] else -1]


def finite(name: str, arrays: tuple[Tensor, ...], init_output: bool) -> Tensor:
    """Return 1 if no element is infinite or NaN, else 0."""
    if not init_output:
        raise MXNetError(
            f"{name}: init_output=False, which multiplies the result into out=, is not supported. "
            "Pass all arrays in one call, or multiply the results."
        )
    for x in arrays:
        require_floating_point(name, x)
    # The maximum of absolute values is infinite or NaN if one of the elements is.
    filled = [x.detach() for x in arrays if x.numel()]
    if not filled:
        return torch.ones(1)
    sizes = torch.stack(foreach("norm")(filled, math.inf))
    return sizes.isfinite().all().to(torch.float32).reshape(1)


MIN_SPLIT = 2**20  # elements per block; torch sums float32 squares sequentially
BLOCK = {1: 2048, 2: 1024}  # indexed by the order of the norm


def vector_norm(
    x: Tensor, ord: float = 2, axes: tuple[int, ...] | None = None, keepdims: bool = False
) -> Tensor:
    """Return ``torch.linalg.vector_norm``; for many float32 elements the norm of block norms.

    On a CPU torch accumulates squares in a few float32 sums, which lose precision: 5 % of the norm
    of 10^8 equal numbers.

    >>> x = torch.full((2**24,), 0.5)
    >>> vector_norm(x)
    tensor(2048.)
    """
    dims = sorted(a % x.ndim for a in (range(x.ndim) if axes is None else axes))
    is_split = x.dtype is torch.float32 and x.is_cpu and ord in (1, 2)
    if not is_split or math.prod([x.shape[a] for a in dims]) < MIN_SPLIT:
        return torch.linalg.vector_norm(x, ord, axes, keepdims)
    first = dims[-1]  # size of the last axes, which are flattened if contiguous
    while x.is_contiguous() and first - 1 in dims:
        first -= 1
    blocks = _block_norms(x.flatten(first, dims[-1]), ord, first)
    # float64 is slow: only for few elements
    dtype = torch.float64 if blocks.numel() * 64 <= x.numel() else None
    outer = [a for a in dims if a < first]
    out = torch.linalg.vector_norm(blocks, ord, [*outer, first], dtype=dtype).to(torch.float32)
    return out.reshape([1 if a in dims else n for a, n in enumerate(x.shape)]) if keepdims else out


def _block_norms(x: Tensor, ord: float, axis: int) -> Tensor:
    """Replace the elements along an axis by the norms of blocks."""
    size = x.shape[axis]
    block = BLOCK[int(ord)]
    count, rest = divmod(size, block)
    norms = []
    if count:
        blocks = x.narrow(axis, 0, size - rest).unflatten(axis, (count, block))
        norms.append(torch.linalg.vector_norm(blocks, ord, axis + 1))
    if rest:
        last = x.narrow(axis, size - rest, rest)
        norms.append(torch.linalg.vector_norm(last, ord, axis, keepdim=True))
    return norms[0] if len(norms) == 1 else torch.cat(norms, axis)


def list_norms(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the norm of each tensor; see `vector_norm`.

    >>> list_norms([torch.tensor([3.0, 4.0]), torch.ones(1)])
    (tensor(5.), tensor(1.))
    """
    if all(t.numel() < MIN_SPLIT for t in tensors):
        return foreach("norm")(tensors)
    return [vector_norm(t) for t in tensors]


@op("all_finite", types="T -> float32")
def all_finite(data: Tensor, *, init_output: bool = True) -> Tensor:
    """Return 1 if no element is infinite or NaN, else 0.

    >>> mx.nd.all_finite(mx.nd.array([1, np.inf])).asnumpy()
    array([0.], dtype=float32)
    """
    return finite("all_finite", (data,), init_output)


@op(
    "multi_all_finite",
    count="num_arrays",
    types="T -> float32",
    input_names=lambda a: [f"array_{i}" for i in range(a["num_arrays"])],
)
def multi_all_finite(*data: Tensor, num_arrays: ArrayCount = 1, init_output: bool = True) -> Tensor:
    """Return 1 if no element of any array is infinite or NaN, else 0.

    Parameters
    ----------
    data
        The arrays.

    >>> mx.nd.multi_all_finite(mx.nd.array([1]), mx.nd.array([np.nan]), num_arrays=2).asnumpy()
    array([0.], dtype=float32)
    """
    return finite("multi_all_finite", data, init_output)


@all_finite.infer_outputs
def all_finite_outputs(*_: tuple | None, **__: bool) -> tuple:
    """Return the shape of one number."""
    return (1,)


multi_all_finite.infer_outputs(all_finite_outputs)


@op(
    "multi_sum_sq",
    count="num_arrays",
    types="T -> float32",
    input_names=lambda a: [f"array_{i}" for i in range(a["num_arrays"])],
)
def multi_sum_sq(*data: Tensor, num_arrays: ArrayCount) -> Tensor:
    """Compute the sum of squares of each array.

    Parameters
    ----------
    data
        The arrays.

    >>> mx.nd.multi_sum_sq(mx.nd.array([1, 2]), mx.nd.array([[3, 4]]), num_arrays=2).asnumpy()
    array([ 5., 25.], dtype=float32)
    """
    for x in data[1:]:
        check_same_dtype("multi_sum_sq", data[0], x)
    wide = [x.detach().float() for x in data]
    return torch.stack(list(list_norms(wide))).square()


@multi_sum_sq.infer_outputs
def multi_sum_sq_outputs(*shapes: tuple | None, **_: int) -> tuple:
    """Return one number for each array."""
    return (len(shapes),)


@op("reset_arrays", count="num_arrays", outputs=0, mutates=("data",))
def reset_arrays(*data: Tensor, num_arrays: ArrayCount) -> tuple:
    """Set all arrays to zero in place.

    Parameters
    ----------
    data
        The arrays.

    >>> x = mx.nd.array([1, 2])
    >>> mx.nd.reset_arrays(x, num_arrays=1)
    []
    >>> x.asnumpy()
    array([0., 0.], dtype=float32)
    """
    foreach("zero_")([x.detach() for x in data])
    return ()
