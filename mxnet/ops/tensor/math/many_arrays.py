"""Operators over lists of arrays, as training loops use them: finiteness, squares, reset."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ....error import MXNetError
from ...attributes import ArrayCount
from ...declare import op
from ...families import check_same_dtype
from .elementwise import require_floating_point


def finite(name: str, arrays: tuple[Tensor, ...], init_output: bool) -> Tensor:
    """Return 1 if no element is infinite or NaN, else 0."""
    if not init_output:
        raise MXNetError(
            f"{name}: init_output=False, which multiplies the result into out=, is not offered. "
            "Give all arrays in one call, or multiply the results."
        )
    for x in arrays:
        require_floating_point(name, x)
    # The largest size of an array is infinite or NaN if one of its elements is.
    filled = [x.detach() for x in arrays if x.numel()]
    if not filled:
        return torch.ones(1)
    sizes = torch.stack(torch._foreach_norm(filled, math.inf))
    return sizes.isfinite().all().to(torch.float32).reshape(1)


@op("all_finite", types="T -> float32")
def all_finite(data: Tensor, *, init_output: bool = True) -> Tensor:
    """1 if no element is infinite or NaN, else 0.

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
    """1 if no element of any array is infinite or NaN, else 0.

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
    """Sum of squares of each array.

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
    return torch.stack(torch._foreach_norm(wide)).square()


@multi_sum_sq.infer_outputs
def multi_sum_sq_outputs(*shapes: tuple | None, **_: int) -> tuple:
    """Return one number for each array."""
    return (len(shapes),)


@op("reset_arrays", count="num_arrays", outputs=0, mutates=("data",))
def reset_arrays(*data: Tensor, num_arrays: ArrayCount) -> tuple:
    """Set all arrays to 0 in place.

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
    torch._foreach_zero_([x.detach() for x in data])
    return ()
