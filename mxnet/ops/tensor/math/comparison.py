"""Comparisons and logic: 1 where true, 0 where not, in the operands' own dtype."""

from __future__ import annotations

import torch
from torch import Tensor

from ....error import ShapeError
from ...declare import op
from ...families import Kernel, check_same_dtype, scalar, shown
from .arithmetic import forms

LEFT, RIGHT = "[0, 1, 2]", "[0, 2, 1]"


def comparison(name: str, kernel: Kernel, old: str, doc: str, results: tuple[str, str]) -> None:
    """Declare the forms of one comparison; `old` is MXNet's older spelling."""
    same_shape = (f"_{name}", f"_{old}")
    forms((f"broadcast_{name}",), same_shape, kernel, doc, (LEFT, RIGHT), results[0])
    with_number = f"_{name}_scalar"
    example = f"mx.nd._internal.{with_number}(mx.nd.array({LEFT}), scalar=1)"
    scalar(
        with_number,
        kernel,
        f"_{old.replace('_', '')}Scalar",
        doc=doc.replace("rhs", "number"),
        example=shown(example, results[1]),
    )


comparison("equal", torch.eq, "Equal", "1 where ``lhs == rhs``.", ("[1., 0., 0.]", "[0., 1., 0.]"))
comparison(
    "not_equal", torch.ne, "Not_Equal", "1 where ``lhs != rhs``.", ("[0., 1., 1.]", "[1., 0., 1.]")
)
comparison(
    "greater", torch.gt, "Greater", "1 where ``lhs > rhs``.", ("[0., 0., 1.]", "[0., 0., 1.]")
)
comparison(
    "greater_equal",
    torch.ge,
    "Greater_Equal",
    "1 where ``lhs >= rhs``.",
    ("[1., 0., 1.]", "[0., 1., 1.]"),
)
comparison("lesser", torch.lt, "Lesser", "1 where ``lhs < rhs``.", ("[0., 1., 0.]", "[1., 0., 0.]"))
comparison(
    "lesser_equal",
    torch.le,
    "Lesser_Equal",
    "1 where ``lhs <= rhs``.",
    ("[1., 1., 0.]", "[1., 1., 0.]"),
)
comparison(
    "logical_and",
    torch.logical_and,
    "Logical_And",
    "1 where both lhs and rhs are not 0.",
    ("[0., 1., 1.]", "[0., 1., 1.]"),
)
comparison(
    "logical_or",
    torch.logical_or,
    "Logical_Or",
    "1 where lhs or rhs is not 0.",
    ("[0., 1., 1.]", "[1., 1., 1.]"),
)
comparison(
    "logical_xor",
    torch.logical_xor,
    "Logical_Xor",
    "1 where one of lhs and rhs is 0 and the other is not.",
    ("[0., 0., 0.]", "[1., 0., 0.]"),
)


@op("_contrib_allclose", types="T T -> uint8")
def allclose(
    a: Tensor, b: Tensor, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = True
) -> Tensor:
    """1 if ``|a - b| <= atol + rtol * |b|`` everywhere, else 0.

    Parameters
    ----------
    a
        One array.
    b
        The other array, of the same shape.
    rtol
        Relative tolerance.
    atol
        Absolute tolerance.
    equal_nan
        Whether NaN equals NaN.

    >>> mx.nd.contrib.allclose(mx.nd.array([1, 2]), mx.nd.array([1, 2.1]), atol=0.2).asnumpy()
    array(1, dtype=uint8)
    """
    check_same_dtype("_contrib_allclose", a, b)
    if a.shape != b.shape:
        raise ShapeError(
            f"Error in operator _contrib_allclose: shapes differ, {list(a.shape)} and "
            f"{list(b.shape)}; they must be equal."
        )
    return torch.isclose(a, b, rtol, atol, equal_nan).all().to(torch.uint8)


@allclose.infer_outputs
def allclose_outputs(a: tuple | None, b: tuple | None, **_: float) -> tuple:
    """Return the shape of one number."""
    return ()
