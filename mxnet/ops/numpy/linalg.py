"""NumPy's linear algebra on matrices in the last two axes, and products: dot, matmul, einsum.

MXNet 1.9.1 supports float32 and float64; some operators also take integers and return float64.
Operators without a gradient in MXNet use torch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, Literal

import torch
from torch import Tensor

from ...dtypes import to_name
from ...error import DTypeError, MXNetError, ShapeError
from ...torch_private import is_view
from ..attributes import Shape
from ..declare import Op, op
from ..families import BOOL, check_same_dtype, truncate
from ..shapes import UNKNOWN, Shapes, TypePattern, broadcast_two, given_shapes, unify
from ..tensor.identity import in_row_order
from ..tensor.products import vector_norm
from ..tensor.shape_changing import axis_within
from ..tracing import check_values
from .reduce import axes_over, reduced_shape


def _check(name: str, a: Tensor, b: Tensor) -> None:
    check_same_dtype(name, a, b)
    if a.dtype is BOOL:
        raise DTypeError(f"Operator {name} does not support boolean type.")


def contract(name: str, a: Tensor, b: Tensor, a_axes: Shape, b_axes: Shape) -> Tensor:
    """Contract pairs of axes.

    The result has the remaining axes of `a`, followed by those of `b`.
    """
    _check(name, a, b)
    contracted_shape(name, tuple(a.shape), tuple(b.shape), a_axes, b_axes)
    # torch's type annotation of tensordot only allows an int here.
    axes: Any = (list(a_axes), list(b_axes))
    return torch.tensordot(a, b, axes)


def contracted_shape(name: str, a: Shape, b: Shape, a_axes: Shape, b_axes: Shape) -> Shape:
    """Return the shape of a contraction; sizes of paired axes must agree."""
    if len(a_axes) != len(b_axes):
        raise ShapeError(f"{name}: {a_axes} and {b_axes} name different numbers of axes.")
    left = [axis_within(i, len(a), name) for i in a_axes]
    right = [axis_within(i, len(b), name) for i in b_axes]
    for i, j in zip(left, right, strict=True):
        if a[i] != b[j] and UNKNOWN not in (a[i], b[j]):
            raise ShapeError(
                f"Shape inconsistent in {name}: axis {i} of {list(a)} and axis {j} of {list(b)} "
                "are paired, but differ in size."
            )
    rest = [n for i, n in enumerate(a) if i not in left]
    return (*rest, *(n for j, n in enumerate(b) if j not in right))


def agreed_sizes(name: str, a: Shape, b: Shape, a_axes: Shape, b_axes: Shape) -> dict[str, Shape]:
    """Complete unknown sizes of paired axes in both shapes."""
    contracted_shape(name, a, b, a_axes, b_axes)
    left, right = list(a), list(b)
    for i, j in zip(a_axes, b_axes, strict=True):
        left[i] = right[j] = a[i] if a[i] != UNKNOWN else b[j]
    return {"a": tuple(left), "b": tuple(right)}


def _dot_axes(a: int, b: int) -> tuple[Shape, Shape]:
    if not a or not b:
        return (), ()
    return (a - 1,), (max(b - 2, 0),)


@op("_np_dot")
def dot(a: Tensor, b: Tensor) -> Tensor:
    """Dot product of vectors, matrices and scalars: last axis by second to last.

    Parameters
    ----------
    a
        The first factor.
    b
        The second factor.

    >>> mx.nd._internal._np_dot(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([1, 1])).asnumpy()
    array([3., 7.], dtype=float32)
    """
    if a.ndim == 2 and b.ndim == 2 and a.dtype is b.dtype and a.dtype is not BOOL:
        return torch.mm(a, b)
    return contract("_np_dot", a, b, *_dot_axes(a.ndim, b.ndim))


@dot.variant("call")
def _multiply_matrices(attrs: dict[str, Any], dtype: torch.dtype) -> Callable | None:
    """Return torch's matrix product, which raises for other arrays."""
    return None if dtype is BOOL else torch.mm


@dot.infer_inputs
def dot_inputs(a: Shape | None, b: Shape | None) -> dict[str, Shape]:
    """Infer the size of the summed axis from the other array."""
    if a is None or b is None:
        return {}
    return agreed_sizes("_np_dot", a, b, *_dot_axes(len(a), len(b)))


@dot.infer_outputs
def dot_shape(a: Shape | None, b: Shape | None) -> Shape | None:
    """Remove the summed axes."""
    if a is None or b is None:
        return None
    return contracted_shape("_np_dot", a, b, *_dot_axes(len(a), len(b)))


@op("_npi_matmul", outputs=("out",))
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Matrix product of the last two axes; the others broadcast.

    Parameters
    ----------
    a
        The first factor; a vector is a row.
    b
        The second factor; a vector is a column.

    >>> mx.nd._internal._npi_matmul(mx.nd.ones((4, 2, 3)), mx.nd.ones((3, 2))).shape
    (4, 2, 2)
    """
    _check("_npi_matmul", a, b)
    matmul_shape(tuple(a.shape), tuple(b.shape))
    return torch.matmul(a, b)


@matmul.infer_inputs
def matmul_inputs(a: Shape | None, b: Shape | None) -> dict[str, Shape]:
    """Infer the size of the summed axis from the other array."""
    if not a or not b:
        return {}
    return agreed_sizes("_npi_matmul", a, b, *_dot_axes(len(a), len(b)))


@matmul.infer_outputs
def matmul_shape(a: Shape | None, b: Shape | None) -> Shape | None:
    """Broadcast the batches, and multiply matrices."""
    if a is None or b is None:
        return None
    if not a or not b:
        raise ShapeError("_npi_matmul: multiplication by scalars is not allowed; use multiply.")
    left = (1, *a) if len(a) == 1 else a
    right = (*b, 1) if len(b) == 1 else b
    if left[-1] != right[-2] and UNKNOWN not in (left[-1], right[-2]):
        raise ShapeError(f"Shape inconsistent in _npi_matmul: {list(a)} by {list(b)}.")
    out = (*broadcast_two(left[:-2], right[:-2]), left[-2], right[-1])
    if len(a) == 1:
        out = (*out[:-2], out[-1])
    return out[:-1] if len(b) == 1 else out


@op("_npi_tensordot")
def tensordot(a: Tensor, b: Tensor, *, a_axes_summed: Shape, b_axes_summed: Shape) -> Tensor:
    """Compute the tensor dot product over pairs of axes.

    Parameters
    ----------
    a
        The first factor.
    b
        The second factor.
    a_axes_summed
        Axes of `a` to sum over.
    b_axes_summed
        Axes of `b` to sum over, in the same order.

    >>> x, y = mx.nd.ones((2, 3)), mx.nd.ones((3, 4))
    >>> mx.nd._internal._npi_tensordot(x, y, a_axes_summed=1, b_axes_summed=0).shape
    (2, 4)
    """
    return contract("_npi_tensordot", a, b, a_axes_summed, b_axes_summed)


@tensordot.infer_inputs
def tensordot_inputs(
    a: Shape | None, b: Shape | None, *, a_axes_summed: Shape, b_axes_summed: Shape
) -> dict[str, Shape]:
    """Infer the sizes of summed axes from the other array."""
    if a is None or b is None:
        return {}
    return agreed_sizes("_npi_tensordot", a, b, a_axes_summed, b_axes_summed)


@tensordot.infer_outputs
def tensordot_shape(
    a: Shape | None, b: Shape | None, *, a_axes_summed: Shape, b_axes_summed: Shape
) -> Shape | None:
    """Remove the summed axes."""
    if a is None or b is None:
        return None
    return contracted_shape("_npi_tensordot", a, b, a_axes_summed, b_axes_summed)


def _last_and_first(a: int, b: int, axes: int) -> tuple[Shape, Shape]:
    if axes < 0 or axes > min(a, b):
        raise ShapeError(
            f"_npi_tensordot_int_axes: axes={axes} exceeds arrays of {a} and {b} axes."
        )
    return tuple(range(a - axes, a)), tuple(range(axes))


@op("_npi_tensordot_int_axes")
def tensordot_int_axes(a: Tensor, b: Tensor, *, axes: int) -> Tensor:
    """Compute the tensor dot product over the last ``axes`` of `a` and the first of `b`.

    Parameters
    ----------
    a
        The first factor.
    b
        The second factor.
    axes
        Number of axes to sum over.

    >>> mx.nd._internal._npi_tensordot_int_axes(nd.ones((2, 3)), nd.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return contract("_npi_tensordot_int_axes", a, b, *_last_and_first(a.ndim, b.ndim, axes))


@tensordot_int_axes.infer_inputs
def tensordot_int_axes_inputs(a: Shape | None, b: Shape | None, *, axes: int) -> dict[str, Shape]:
    """Infer the sizes of summed axes from the other array."""
    if a is None or b is None:
        return {}
    pairs = _last_and_first(len(a), len(b), axes)
    return agreed_sizes("_npi_tensordot_int_axes", a, b, *pairs)


@tensordot_int_axes.infer_outputs
def tensordot_int_axes_shape(a: Shape | None, b: Shape | None, *, axes: int) -> Shape | None:
    """Remove the summed axes."""
    if a is None or b is None:
        return None
    pairs = _last_and_first(len(a), len(b), axes)
    return contracted_shape("_npi_tensordot_int_axes", a, b, *pairs)


def _einsum_terms(subscripts: str, shapes: list[Shape]) -> tuple[list[str], str | None]:
    """Return the labels of each operand, and of the output or None."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(shapes):
        raise MXNetError(
            f"_npi_einsum: {subscripts!r} has {len(terms)} operands, but {len(shapes)} were given."
        )
    for position, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        labels = term.replace("...", "")
        if len(labels) > len(shape) or ("..." not in term and len(labels) != len(shape)):
            raise ShapeError(
                f"_npi_einsum: subscript {term!r} does not contain the correct number of "
                f"indices for operand {position} of shape {list(shape)}."
            )
    return terms, output if arrow else None


def einsum_shape(*data: Shape | None, subscripts: str, **_: int) -> Shape | None:
    """Return the sizes of the output's labels."""
    shapes = given_shapes(data)
    if shapes is None:
        return None
    terms, output = _einsum_terms(subscripts, shapes)
    sizes: dict[str, int] = {}
    batch: Shape = ()
    for term, shape in zip(terms, shapes, strict=True):
        before, dots, after = term.partition("...")
        middle = shape[len(before) : len(shape) - len(after)] if dots else ()
        batch = broadcast_two(batch, tuple(middle))
        named = shape[: len(before)] + (shape[len(shape) - len(after) :] if after else ())
        for label, n in zip(before + after, named, strict=True):
            size = sizes.get(label, 1)
            if size != n and 1 not in (size, n) and UNKNOWN not in (size, n):
                raise ShapeError(
                    f"_npi_einsum: size of label {label!r} ({n}) does not match previous terms "
                    f"({size}) in {subscripts!r}."
                )
            sizes[label] = n if size == 1 else size
    if output is None:
        labels = "".join(terms).replace(".", "")
        output = ("..." if batch else "") + "".join(
            sorted(c for c in set(labels) if labels.count(c) == 1)
        )
    before, dots, after = output.partition("...")
    unknown = set(before + after) - set(sizes)
    if unknown:
        raise MXNetError(f"_npi_einsum: {output!r} has labels that no operand has: {unknown}.")
    return (*(sizes[c] for c in before), *(batch if dots else ()), *(sizes[c] for c in after))


@op("_npi_einsum", count="num_args")
def einsum(*data: Tensor, subscripts: str = "", optimize: int = 0) -> Tensor:
    """Evaluate Einstein summation notation.

    Parameters
    ----------
    data
        The operands.
    subscripts
        Subscripts of the operands and the result: ``'ij,jk->ik'``.
    optimize
        Whether to optimize the order of the products.

    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd._internal._npi_einsum(x, x, subscripts="ij,ij->i").asnumpy()
    array([ 5., 25.], dtype=float32)
    """
    for x in data[1:]:
        check_same_dtype("_npi_einsum", data[0], x)
    einsum_shape(*(tuple(x.shape) for x in data), subscripts=subscripts)
    dtype = data[0].dtype
    operands = [x.to(torch.int64) for x in data] if dtype is torch.bool else data
    result = torch.einsum(subscripts, *operands).to(dtype)  # torch sums int32 in int64
    return result.clone() if is_view(result) else result


einsum.infer_outputs(einsum_shape)


Triangle = Literal["L", "U"]
_REAL = (torch.float32, torch.float64)


def _to_double(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype in _REAL else torch.float64


def _floating(name: str, x: Tensor) -> Tensor:
    if x.dtype not in _REAL:
        raise DTypeError(
            f"Operator {name} only supports float32 and float64. Convert it: x.astype('float32')."
        )
    return x


def _number(name: str, x: Tensor) -> Tensor:
    if x.dtype in (torch.float16, torch.bool):
        raise DTypeError(
            f"Operator {name} does not support {to_name(x.dtype)}. Convert it to float32."
        )
    return x if x.dtype in _REAL else x.double()


def _square(name: str, shape: Shape) -> Shape:
    if len(shape) < 2 or (shape[-1] != shape[-2] and UNKNOWN not in shape[-2:]):
        raise ShapeError(f"{name}: needs square matrices in the last two axes, got {list(shape)}.")
    return shape


def _numbers(name: str, *tensors: Tensor) -> list[Tensor]:
    """Convert tensors to their common floating-point type."""
    numbers = [_number(name, t) for t in tensors]
    common = reduce(torch.promote_types, (t.dtype for t in numbers))
    return [t.to(common) for t in numbers]


class DoubleTypes(TypePattern):
    """Outputs have the inputs' common dtype, float64 for integers."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer unknown inputs from the first one, and outputs from all."""
        if ins[0] is None:
            return ins, outs
        ins = [t or ins[0] for t in ins]
        common = reduce(torch.promote_types, map(_to_double, ins))
        return ins, [common] * len(outs)


def _square_same(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    shape = unify(ins[0], outs[0], "the output")
    if shape is not None:
        _square("linalg", shape)
    return [shape], [shape]


@in_row_order
@op("_npi_cholesky", shape=_square_same)
def cholesky(A: Tensor) -> Tensor:
    """Lower triangle L of a positive definite matrix: ``A = L L^T``.

    >>> mx.nd._internal._npi_cholesky(mx.nd.array([[4, 2], [2, 5]])).asnumpy()
    array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    _square("_npi_cholesky", tuple(A.shape))
    return torch.linalg.cholesky(_floating("_npi_cholesky", A))


@in_row_order
@op("_npi_svd", outputs=("output0", "output1", "output2"))
def svd(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Reduced singular value decomposition of matrices that are not taller than wide.

    Returns ``UT, L, V`` with ``A = UT diag(L) V``.

    >>> ut, l, v = mx.nd._internal._npi_svd(mx.nd.array([[0, 2, 0], [3, 0, 0]]))
    >>> l.asnumpy()
    array([3., 2.], dtype=float32)
    """
    svd_shapes(tuple(A.shape))
    return tuple(torch.linalg.svd(_floating("_npi_svd", A), full_matrices=False))


@svd.infer_outputs
def svd_shapes(A: Shape | None) -> list[Shape] | None:
    """Return (..., m, m), (..., m) and (..., m, n)."""
    if A is None:
        return None
    if len(A) < 2 or (A[-2] > A[-1] and UNKNOWN not in A[-2:]):
        raise ShapeError(
            f"_npi_svd: the second to last size must not exceed the last, got {list(A)}."
        )
    return [(*A[:-1], A[-2]), A[:-1], A]


def _real_eigen(name: str, A: Tensor) -> tuple[Tensor, Tensor]:
    A = _number(name, A)
    _square(name, tuple(A.shape))
    values, vectors = torch.linalg.eig(A)
    if not A.is_meta and values.numel():
        is_real = ~(values.imag.detach().abs().max() > 1e-15)  # also for NaN
        check_values(is_real, MXNetError(f"{name}: complex eigenvalues are not supported."))
    return values.real.contiguous(), vectors.real.contiguous()


@op("_npi_eig", outputs=("output0", "output1"))
def eig(A: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of matrices whose eigenvalues are real.

    >>> values, vectors = mx.nd._internal._npi_eig(mx.nd.array([[2, 0], [0, 3]]))
    >>> values.asnumpy()
    array([2., 3.], dtype=float32)
    """
    return _real_eigen("_npi_eig", A)


@op("_npi_eigvals")
def eigvals(A: Tensor) -> Tensor:
    """Eigenvalues of matrices whose eigenvalues are real.

    >>> mx.nd._internal._npi_eigvals(mx.nd.array([[2, 0], [0, 3]])).asnumpy()
    array([2., 3.], dtype=float32)
    """
    return _real_eigen("_npi_eigvals", A)[0]


def _choose_signs(vectors: Tensor) -> Tensor:
    """Choose signs of eigenvectors as in MXNet: the largest component is positive."""
    fixed = vectors.detach()
    largest = fixed.gather(-2, fixed.abs().argmax(-2, keepdim=True)) if fixed.numel() else fixed
    return vectors * torch.where(largest < 0, -1.0, 1.0).to(vectors.dtype)


@in_row_order
@op("_npi_eigh", outputs=("output0", "output1"))
def eigh(A: Tensor, *, UPLO: Triangle = "L") -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of symmetric matrices, read from one triangle.

    >>> values, vectors = mx.nd._internal._npi_eigh(mx.nd.array([[2, 0], [0, 3]]))
    >>> values.asnumpy()
    array([2., 3.], dtype=float32)
    """
    A = _number("_npi_eigh", A)
    _square("_npi_eigh", tuple(A.shape))
    values, vectors = torch.linalg.eigh(A, UPLO)
    return values, _choose_signs(vectors)


@op("_npi_eigvalsh")
def eigvalsh(A: Tensor, *, UPLO: Triangle = "L") -> Tensor:
    """Eigenvalues of symmetric matrices, read from one triangle.

    >>> mx.nd._internal._npi_eigvalsh(mx.nd.array([[2, 0], [0, 3]])).asnumpy()
    array([2., 3.], dtype=float32)
    """
    A = _number("_npi_eigvalsh", A)
    _square("_npi_eigvalsh", tuple(A.shape))
    return torch.linalg.eigvalsh(A, UPLO)


def _vector_and_matrix(A: Shape | None, **_: str) -> list[Shape] | None:
    return None if A is None else [_square("_npi_eig", A)[:-1], A]


def _vector(A: Shape | None, **_: str) -> Shape | None:
    return None if A is None else _square("_npi_eigvals", A)[:-1]


for _op in (eig, eigh):
    _op.infer_outputs(_vector_and_matrix)
for _op in (eigvals, eigvalsh):
    _op.infer_outputs(_vector)
for _op in (eig, eigh, eigvals, eigvalsh):
    _op.type_pattern = DoubleTypes(None)


@in_row_order
@op("_npi_solve")
def solve(A: Tensor, B: Tensor) -> Tensor:
    """Solve ``A X = B``; ``B`` is a matrix, or a vector if it has one axis less than ``A``.

    Parameters
    ----------
    A
        Square matrices of coefficients.
    B
        Right-hand sides.

    >>> mx.nd._internal._npi_solve(mx.nd.array([[2, 0], [0, 4]]), mx.nd.array([2, 2])).asnumpy()
    array([1. , 0.5], dtype=float32)
    """
    solve_shape(tuple(A.shape), tuple(B.shape))
    A, B = _numbers("_npi_solve", A, B)
    if B.ndim == A.ndim - 1:
        return torch.linalg.solve(A, B.unsqueeze(-1)).squeeze(-1)
    return torch.linalg.solve(A, B)


@solve.infer_outputs
def solve_shape(A: Shape | None, B: Shape | None) -> Shape | None:
    """Return the shape of the right-hand side."""
    if A is None or B is None:
        return B
    _square("_npi_solve", A)
    rows = B[-1] if len(B) == len(A) - 1 else B[-2] if len(B) == len(A) else None
    if rows is None or (rows != A[-1] and UNKNOWN not in (rows, A[-1])):
        raise ShapeError(f"_npi_solve: a right-hand side {list(B)} does not fit {list(A)}.")
    return B


solve.type_pattern = DoubleTypes(None)


def _invert_shape(A: Shape) -> Shape:
    if len(A) < 2:
        raise ShapeError(f"pinv: needs matrices in the last two axes, got {list(A)}.")
    return (*A[:-2], A[-1], A[-2])


def _pseudo_inverse(A: Tensor, rcond: Tensor, hermitian: bool) -> Tensor:
    return torch.linalg.pinv(A, atol=torch.zeros_like(rcond), rtol=rcond, hermitian=hermitian)


@op("_npi_pinv", types="T R -> T", without_gradient=("rcond",))
def pinv(A: Tensor, rcond: Tensor, *, hermitian: bool = False) -> Tensor:
    """Moore-Penrose pseudo-inverse, with a cutoff of small singular values.

    Parameters
    ----------
    rcond
        Singular values below this fraction of the largest are treated as 0; one number per matrix.

    >>> x = mx.nd._internal._npi_pinv(mx.nd.array([[2, 0], [0, 4]]), mx.nd.array(1e-5))
    >>> x.shape
    (2, 2)
    """
    _invert_shape(tuple(A.shape))
    A = _floating("_npi_pinv", A)
    return _pseudo_inverse(A, rcond.detach().to(A.dtype), hermitian)


@pinv.infer_outputs
def pinv_shape(A: Shape | None, rcond: Shape | None, **_: bool) -> Shape | None:
    """Exchange the last two sizes."""
    return None if A is None else _invert_shape(A)


@op("_npi_pinv_scalar_rcond")
def pinv_scalar_rcond(A: Tensor, *, rcond: float = 1e-15, hermitian: bool = False) -> Tensor:
    """Moore-Penrose pseudo-inverse, with a cutoff of small singular values.

    Parameters
    ----------
    rcond
        Singular values below this fraction of the largest are treated as 0.

    >>> mx.nd._internal._npi_pinv_scalar_rcond(mx.nd.array([[2, 0], [0, 4]])).asnumpy()
    array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    _invert_shape(tuple(A.shape))
    A = _floating("_npi_pinv_scalar_rcond", A)
    return _pseudo_inverse(A, torch.tensor(rcond, dtype=A.dtype, device=A.device), hermitian)


@pinv_scalar_rcond.infer_outputs
def pinv_scalar_rcond_shape(A: Shape | None, **_: float) -> Shape | None:
    """Exchange the last two sizes."""
    return None if A is None else _invert_shape(A)


@in_row_order
@op("_npi_tensorinv")
def tensorinv(a: Tensor, *, ind: int = 2) -> Tensor:
    """Inverse with respect to ``tensordot(a, b, ind)``.

    Parameters
    ----------
    ind
        Number of leading axes that become the last axes of the inverse.

    >>> x = mx.nd.array([[2, 0], [0, 4]]).reshape((2, 1, 2))
    >>> mx.nd._internal._npi_tensorinv(x, ind=1).shape
    (1, 2, 2)
    """
    tensorinv_shape(tuple(a.shape), ind=ind)
    return torch.linalg.tensorinv(_number("_npi_tensorinv", a), ind)


@tensorinv.infer_outputs
def tensorinv_shape(a: Shape | None, *, ind: int) -> Shape | None:
    """Exchange the first ``ind`` sizes and the others."""
    if a is None:
        return None
    if ind <= 0:
        raise MXNetError(f"_npi_tensorinv: ind must be positive, got {ind}.")
    front, back = a[:ind], a[ind:]
    if UNKNOWN not in a and math.prod(front) != math.prod(back):
        raise ShapeError(
            f"_npi_tensorinv: a shape must be square, i. e., prod(a.shape[:ind]) == "
            f"prod(a.shape[ind:]), got {list(a)} with ind={ind}."
        )
    return back + front


def _solved_order(ndim: int, a_axes: Shape) -> list[int]:
    moved = [axis_within(i, ndim, "_npi_tensorsolve") for i in a_axes]
    return [i for i in range(ndim) if i not in moved] + moved


@op("_npi_tensorsolve")
def tensorsolve(a: Tensor, b: Tensor, *, a_axes: Shape = ()) -> Tensor:
    """Solve ``tensordot(a, x, x.ndim) = b``; ``a_axes`` are moved to the end first.

    Parameters
    ----------
    a
        The coefficients.
    b
        The right-hand side.
    a_axes
        Axes of `a` to move to the end first.

    >>> x = mx.nd.array([[2, 0], [0, 4]])
    >>> mx.nd._internal._npi_tensorsolve(x, mx.nd.array([2, 2])).asnumpy()
    array([1. , 0.5], dtype=float32)
    """
    target = tensorsolve_shape(tuple(a.shape), tuple(b.shape), a_axes=a_axes)
    a, b = _numbers("_npi_tensorsolve", a, b)
    matrix = a.permute(_solved_order(a.ndim, a_axes)).reshape(b.numel(), b.numel())
    return torch.linalg.solve(matrix, b.reshape(-1, 1)).reshape(target)


@tensorsolve.infer_outputs
def tensorsolve_shape(a: Shape | None, b: Shape | None, *, a_axes: Shape) -> Shape | None:
    """Return the sizes of ``a`` after those of ``b``."""
    if a is None or b is None:
        return None
    sizes = tuple(a[i] for i in _solved_order(len(a), a_axes))
    # If `a` has fewer axes than `b`, skip the difference.
    target = sizes[-(len(a) - len(b)) :]
    if UNKNOWN not in (*a, *b) and (
        math.prod(target) != math.prod(b) or math.prod(a) != math.prod(b) ** 2
    ):
        raise ShapeError(f"_npi_tensorsolve: a shape must be square, got {list(a)} for {list(b)}.")
    return target


for _op in (tensorinv, tensorsolve):
    _op.type_pattern = DoubleTypes(None)


VECTOR, SPECTRAL, NUCLEAR = -1, 0, 2


def _norm_axes(axis: Shape | None, ndim: int, flag: int) -> Shape:
    """Return the axes of a norm; a norm with an order is over matrices if possible."""
    if axis is None and flag == VECTOR and ndim > 1:
        return (ndim - 2, ndim - 1)
    # The first of two axes has the rows.
    return tuple(a % ndim for a in axis) if axis else axes_over(None, ndim)


def _norm_shape(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    if ins[0] is None:
        return ins, outs
    axes = _norm_axes(attrs["axis"], len(ins[0]), attrs["flag"])
    return ins, [unify(reduced_shape(ins[0], axes, attrs["keepdims"]), outs[0], "the output")]


def _matrix_norm(data: Tensor, axes: Shape, ord: float, flag: int, keepdims: bool) -> Tensor:
    """Return a matrix norm by singular values, columns or rows."""
    if len(axes) != 2:
        raise ShapeError(f"_npi_norm: a matrix norm needs two axes, got {axes}.")
    matrices = data.movedim(axes, (-2, -1))
    if flag == NUCLEAR:
        out = torch.linalg.svdvals(matrices).sum(-1)
    else:
        if abs(ord) == 2:
            sizes = torch.linalg.svdvals(matrices)
        else:  # MXNet treats other orders as that of rows
            sizes = matrices.abs().sum(-2 if abs(ord) == 1 else -1)
        out = sizes.amax(-1) if ord > 0 else sizes.amin(-1)
    return out.reshape(reduced_shape(data.shape, axes, True)) if keepdims else out


@op("_npi_norm", shape=_norm_shape, outputs=("output0",), total=4)
def norm(
    data: Tensor,
    *,
    ord: float = 2.0,
    axis: Shape | None = None,
    keepdims: bool = False,
    flag: int = VECTOR,
) -> Tensor:
    """Norm of vectors or matrices, depending on the number of axes.

    ``flag`` 1 and -2: Frobenius norm, 0: spectral norm, 2: nuclear norm.

    Parameters
    ----------
    ord
        Order of the norm: 2 is Euclidean, inf the largest absolute value.
    axis
        One axis for vectors, two for matrices; None: over all elements.
    flag
        Type of norm; -1: by `ord` and `axis`.

    >>> mx.nd._internal._npi_norm(mx.nd.array([[3, 4], [6, 8]]), ord=2, axis=(1,)).asnumpy()
    array([ 5., 10.], dtype=float32)
    """
    axes = _norm_axes(axis, data.ndim, flag)
    if flag in (SPECTRAL, NUCLEAR) or (flag == VECTOR and len(axes) == 2):
        if data.dtype in (*_REAL, torch.bool) or flag == NUCLEAR or abs(ord) == 2:
            return _matrix_norm(_floating("_npi_norm", data), axes, ord, flag, keepdims)
        sums = _matrix_norm(data.double(), axes, ord, flag, keepdims)
        return sums.half() if data.is_floating_point() else truncate(sums, data.dtype)
    if not data.dtype.is_floating_point:
        whole = norm(data.double(), ord=ord, axis=axis, keepdims=keepdims, flag=flag)
        return truncate(whole, data.dtype)
    if not data.ndim:
        return data.abs()
    return vector_norm(data, ord if flag == VECTOR else 2, axes, keepdims)
