"""The ``npx`` operators that have no legacy counterpart."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from ...error import InvalidValue, ShapeError
from ..attributes import Shape
from ..declare import op
from ..families import unary
from ..shapes import UNKNOWN, Shapes, is_known, unify
from ..tensor.identity import in_row_order, may_share
from ..tensor.shape_changing import complete_by_size
from ..tracing import check_values

unary(
    "_npx_relu",
    torch.relu,
    doc="Rectified linear unit: ``max(x, 0)``.",
    example="mx.npx.relu(mx.np.array([-1, 2])) -> array([0., 2.])",
    method=False,
    exact=True,
)
unary(
    "_npx_sigmoid",
    torch.sigmoid,
    doc="Logistic function: ``1 / (1 + e^-x)``.",
    example="mx.npx.sigmoid(mx.np.array([0, 100])) -> array([0.5, 1. ])",
    method=False,
)


@lru_cache(maxsize=4096)
def resolve_npx_reshape(shape: Shape, codes: Shape, reverse: bool = False) -> Shape:
    """Resolve the codes of ``npx.reshape``.

    ``-1`` is inferred, ``-2`` copies a size, ``-3`` drops a size of 1, ``-4`` copies all remaining
    sizes, ``-5`` merges two, ``-6`` splits one into the two that follow.

    >>> resolve_npx_reshape((6, 1, 4), (-6, 2, -1, -3, -4))
    (2, 3, 4)
    """
    if reverse:
        output = _read_codes(shape[::-1], codes[::-1], codes)[::-1]
    else:
        output = _read_codes(shape, codes, codes)
    if not is_known(shape):
        return tuple(UNKNOWN if n is None else n for n in output)
    total = torch.Size(shape).numel()
    sizes = [n for n in output if n is not None]
    rest = torch.Size(sizes).numel()
    if None in output and rest and total % rest == 0:
        return tuple(total // rest if n is None else n for n in output)
    if None in output and not rest and not total:
        return tuple(0 if n is None else n for n in output)
    if None in output or rest != total:
        raise ShapeError(
            f"_npx_reshape: cannot reshape array of shape {list(shape)} into shape "
            f"{list(codes)}, reverse = {int(reverse)}."
        )
    return tuple(sizes)


def _read_codes(shape: Shape, codes: Shape, newshape: Shape) -> list[int | None]:
    items: list[int | None] = []
    source = 0
    pending = iter(codes)

    def take() -> int:
        nonlocal source
        if source >= len(shape):
            raise ShapeError(
                f"_npx_reshape: {list(newshape)} asks for more sizes than {list(shape)} has."
            )
        source += 1
        return shape[source - 1]

    for code in pending:
        if code >= 0:
            items.append(code)
            source += 1
        elif code == -1:
            if None in items:
                raise ShapeError(
                    f"_npx_reshape: only one size can be -1, but got {list(newshape)}."
                )
            items.append(None)
            source += 1
        elif code == -2:
            items.append(take())
        elif code == -3:
            if take() not in (1, UNKNOWN):
                raise ShapeError(
                    f"_npx_reshape: -3 only skips sizes of 1, but {list(shape)} has "
                    f"{shape[source - 1]} there."
                )
        elif code == -4:
            items.extend(shape[source:])
            source = len(shape)
        elif code == -5:
            first, second = take(), take()
            items.append(UNKNOWN if UNKNOWN in (first, second) else first * second)
        elif code == -6:
            items.extend(_split(take(), next(pending, None), next(pending, None), newshape))
        else:
            raise ShapeError(f"_npx_reshape: {code} is not one of the codes -1 to -6.")
    return items


def _split(size: int, first: int | None, second: int | None, newshape: Shape) -> tuple[int, int]:
    if first is None or second is None or first == second == -1:
        raise ShapeError(f"_npx_reshape: two sizes, one known, must follow -6 in {list(newshape)}.")
    if size == UNKNOWN:
        return first, second
    if first == -1:
        first = size // second if second else 0
    elif second == -1:
        second = size // first if first else 0
    if first * second != size:
        raise ShapeError(f"_npx_reshape: {first} and {second} do not split {size}.")
    return first, second


def _reshaped(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    if ins[0] is None:
        return ins, outs
    target = resolve_npx_reshape(ins[0], attrs["newshape"], attrs["reverse"])
    out = unify(target, outs[0], "the output")
    return [complete_by_size(ins[0], out)], [out]


@may_share
@op("_npx_reshape", "_npi_reshape", shape=_reshaped)
def reshape(a: Tensor, *, newshape: Shape, reverse: bool = False, order: str = "C") -> Tensor:
    """Change the shape of the array.

    In ``newshape`` -1 is inferred, -2 copies a size, -3 drops a size of 1, -4 copies all remaining
    sizes, -5 merges two, -6 splits one into the two numbers that follow.

    Parameters
    ----------
    newshape
        The new shape; numbers from -1 to -6 are codes.
    reverse
        Whether to match sizes from the right.

    >>> mx.npx.reshape(mx.np.zeros((2, 3, 4)), (-5, -2)).shape
    (6, 4)
    """
    return a.reshape(resolve_npx_reshape(tuple(a.shape), newshape, reverse))


@in_row_order
@op("_npx_nonzero", "_npi_nonzero", types="T -> int64", value_dependent=True)
def nonzero(x: Tensor) -> Tensor:
    """Return the indices of nonzero elements, one row each; a scalar is treated as a vector.

    >>> mx.nd._internal._npx_nonzero(mx.nd.array([[0, 1], [2, 0]])).asnumpy()
    array([[0, 1],
           [1, 0]])
    """
    return torch.nonzero(x.detach() if x.ndim else x.detach().reshape(1))


@nonzero.infer_outputs
def nonzero_shape(x: Shape | None) -> Shape | None:
    """One column per axis; the number of rows depends on values."""
    return None if x is None else (UNKNOWN, max(len(x), 1))


@op("_npx_constraint_check", types="bool -> bool")
def constraint_check(input: Tensor, *, msg: str = "Constraint violated.") -> Tensor:
    """Return True if all elements are true, else raise an error with the message.

    Parameters
    ----------
    input
        Array of bool.
    msg
        Message of the error.

    >>> mx.nd._internal._npx_constraint_check(mx.nd.array([1, 1], dtype="bool")).asnumpy()
    array(True)
    """
    out = torch.all(input)
    if not input.is_meta:
        check_values(out, InvalidValue(msg))
    return out


@constraint_check.infer_outputs
def constraint_check_shape(input: Shape | None, **_: str) -> Shape:
    """A scalar."""
    return ()
