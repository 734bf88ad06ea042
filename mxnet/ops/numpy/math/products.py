"""NumPy's products of arrays: dot, matmul, tensordot, einsum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....error import DTypeError, MXNetError, ShapeError
from ...attributes import Shape
from ...declare import op
from ...families import BOOL, check_same_dtype
from ...shapes import UNKNOWN, broadcast_two, given_shapes
from ...tensor.shaping.shape_changing import axis_within


def _check(name: str, a: Tensor, b: Tensor) -> None:
    check_same_dtype(name, a, b)
    if a.dtype is BOOL:
        raise DTypeError(f"Operator {name} does not support boolean type.")


def contract(name: str, a: Tensor, b: Tensor, a_axes: Shape, b_axes: Shape) -> Tensor:
    """Sum products over pairs of axes; the other axes follow in order, the first array's first."""
    _check(name, a, b)
    contracted_shape(name, tuple(a.shape), tuple(b.shape), a_axes, b_axes)
    axes: Any = (list(a_axes), list(b_axes))  # torch annotates the number of axes alone
    return torch.tensordot(a, b, axes)


def contracted_shape(name: str, a: Shape, b: Shape, a_axes: Shape, b_axes: Shape) -> Shape:
    """Return the shape of a contraction; sizes that are summed together must agree."""
    if len(a_axes) != len(b_axes):
        raise ShapeError(f"{name}: {a_axes} and {b_axes} name different numbers of axes.")
    left = [axis_within(i, len(a), name) for i in a_axes]
    right = [axis_within(i, len(b), name) for i in b_axes]
    for i, j in zip(left, right, strict=True):
        if a[i] != b[j] and UNKNOWN not in (a[i], b[j]):
            raise ShapeError(
                f"Shape inconsistent in {name}: axis {i} of {list(a)} and axis {j} of {list(b)} "
                "are summed together, but differ in size."
            )
    rest = [n for i, n in enumerate(a) if i not in left]
    return (*rest, *(n for j, n in enumerate(b) if j not in right))


def agreed_sizes(name: str, a: Shape, b: Shape, a_axes: Shape, b_axes: Shape) -> dict[str, Shape]:
    """Return both shapes with each size that only one of two axes summed together knows."""
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
    """Product of vectors, matrices and scalars: the last axis by the last but one.

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
    """Return torch's product of matrices, which raises on other arrays."""
    return None if dtype is BOOL else torch.mm


@dot.infer_inputs
def dot_inputs(a: Shape | None, b: Shape | None) -> dict[str, Shape]:
    """Take the size of the summed axis from either array."""
    if a is None or b is None:
        return {}
    return agreed_sizes("_np_dot", a, b, *_dot_axes(len(a), len(b)))


@dot.infer_outputs
def dot_shape(a: Shape | None, b: Shape | None) -> Shape | None:
    """Leave the summed axes out."""
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
    """Take the size of the summed axis from either array."""
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
    """Sum products over pairs of axes.

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
    """Take the sizes of summed axes from either array."""
    if a is None or b is None:
        return {}
    return agreed_sizes("_npi_tensordot", a, b, a_axes_summed, b_axes_summed)


@tensordot.infer_outputs
def tensordot_shape(
    a: Shape | None, b: Shape | None, *, a_axes_summed: Shape, b_axes_summed: Shape
) -> Shape | None:
    """Leave the summed axes out."""
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
    """Sum products over the last ``axes`` of the first array and the first of the second.

    Parameters
    ----------
    a
        The first factor.
    b
        The second factor.
    axes
        Number of axes to sum over: the last of `a` with the first of `b`.

    >>> mx.nd._internal._npi_tensordot_int_axes(nd.ones((2, 3)), nd.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return contract("_npi_tensordot_int_axes", a, b, *_last_and_first(a.ndim, b.ndim, axes))


@tensordot_int_axes.infer_inputs
def tensordot_int_axes_inputs(a: Shape | None, b: Shape | None, *, axes: int) -> dict[str, Shape]:
    """Take the sizes of summed axes from either array."""
    if a is None or b is None:
        return {}
    pairs = _last_and_first(len(a), len(b), axes)
    return agreed_sizes("_npi_tensordot_int_axes", a, b, *pairs)


@tensordot_int_axes.infer_outputs
def tensordot_int_axes_shape(a: Shape | None, b: Shape | None, *, axes: int) -> Shape | None:
    """Leave the summed axes out."""
    if a is None or b is None:
        return None
    pairs = _last_and_first(len(a), len(b), axes)
    return contracted_shape("_npi_tensordot_int_axes", a, b, *pairs)


def _einsum_terms(subscripts: str, shapes: list[Shape]) -> tuple[list[str], str | None]:
    """Return the labels of each operand, and of the output if the text has them."""
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
            known = sizes.get(label, 1)
            if known != n and 1 not in (known, n) and UNKNOWN not in (known, n):
                raise ShapeError(
                    f"_npi_einsum: size of label {label!r} ({n}) does not match previous terms "
                    f"({known}) in {subscripts!r}."
                )
            sizes[label] = n if known == 1 else known
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
    """Evaluate Einstein's summation of any number of arrays.

    Parameters
    ----------
    data
        The operands.
    subscripts
        Letters for the axes of each operand and of the result: ``'ij,jk->ik'``.
    optimize
        Whether to look for a good order of the products.

    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd._internal._npi_einsum(x, x, subscripts="ij,ij->i").asnumpy()
    array([ 5., 25.], dtype=float32)
    """
    for x in data[1:]:
        check_same_dtype("_npi_einsum", data[0], x)
    einsum_shape(*(tuple(x.shape) for x in data), subscripts=subscripts)
    dtype = data[0].dtype
    operands = [x.to(torch.int64) for x in data] if dtype is torch.bool else data
    made = torch.einsum(subscripts, *operands).to(dtype)  # torch sums int32 in int64
    return made.clone() if made._is_view() else made


einsum.infer_outputs(einsum_shape)
