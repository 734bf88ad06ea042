"""Operator overloads of `NDArray`, from the table `ops/tensor/arithmetic.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..ops.tensor.arithmetic import BY_DUNDER, Operation
from ..ops.tensor.elementwise import absolute, negative
from ..runtime import overloads
from ..runtime.apply import apply
from ..runtime.overloads import Overload, differentiable_kernel, set_method
from .codegen import make_function
from .ndarray import NDArray

NUMBERS = (int, float, np.generic)
_empty_like = torch.empty_like
# Faster than Tensor.to.
_CASTS = {
    torch.float32: torch.Tensor.float,
    torch.float64: torch.Tensor.double,
    torch.float16: torch.Tensor.half,
    torch.bfloat16: torch.Tensor.bfloat16,
    torch.uint8: torch.Tensor.byte,
    torch.int8: torch.Tensor.char,
    torch.int32: torch.Tensor.int,
    torch.int64: torch.Tensor.long,
}


def unsupported_operand(other: Any) -> TypeError:
    """Return the error for an operand that is neither an array nor a number."""
    return TypeError(
        f"type {type(other)} not supported: use an NDArray (mx.nd.array(x)) or a number."
    )


def _compare_in_dtype(compare: Callable) -> Callable:
    """Return a comparison that gives the first operand's dtype, without a cast if possible."""

    def compare_in_dtype(x: Tensor, y: Tensor) -> Tensor:
        if y.ndim == 0 or x.shape == y.shape:
            return compare(x, y, out=_empty_like(x))
        return _CASTS[x.dtype](compare(x, y))

    return compare_in_dtype


def _compare_and_cast(compare: Callable) -> Callable:
    return lambda x, y: _CASTS[x.dtype](compare(x, y))


def binary_overload(cls: type[NDArray], operation: Operation, reverse: bool = False) -> Callable:
    """Return the method for ``array <op> other``; with `reverse` for ``other <op> array``."""
    op = operation.broadcast
    scalar = operation.reversed_scalar if reverse else operation.scalar

    def general(self: NDArray, other: Any) -> NDArray:
        if isinstance(other, NDArray):
            operands = (other, self) if reverse else (self, other)
            return apply(op, operands, None, cls=cls)
        if isinstance(other, NUMBERS):
            return apply(scalar, (self,), {"scalar": other}, cls=cls)
        raise unsupported_operand(other)

    kernels = [differentiable_kernel(op) or op.kernel, differentiable_kernel(scalar)]
    plain: list[Any] = [op.raw, scalar.raw]  # set by the operations' families
    if operation.returns_bool:
        kernels = [k and _compare_and_cast(k) for k in kernels]
        plain = [_compare_in_dtype(k) for k in plain]
    rule = Overload(
        general,
        kernel=kernels[0],
        number_kernel=kernels[1],
        plain_kernel=plain[0],
        plain_number_kernel=plain[1],
        number_first=scalar.swapped,
        dtypes=overloads.NUMBERS,
        made_dtype=None,
        op=op,
        number_op=scalar,
    )
    return overloads.binary_overload(cls, rule, reverse)


def _in_place_overload(cls: type[NDArray], operation: Operation) -> Callable:
    op, scalar = operation.broadcast, operation.scalar

    def general(self: NDArray, other: Any) -> NDArray:
        if isinstance(other, NDArray):
            return apply(op, (self, other), None, self, cls=cls)
        if isinstance(other, NUMBERS):
            return apply(scalar, (self,), {"scalar": other}, self, cls=cls)
        raise unsupported_operand(other)

    return overloads.in_place_overload(cls, op, scalar, overloads.NUMBERS, general)


def add_operator_overloads(cls: type[NDArray]) -> None:
    """Add the arithmetic and comparison methods to a class."""
    for dunder, operation in BY_DUNDER.items():
        set_method(cls, f"__{dunder}__", binary_overload(cls, operation))
        if operation.returns_bool:
            continue
        set_method(cls, f"__r{dunder}__", binary_overload(cls, operation, reverse=True))
        if dunder != "pow":
            set_method(cls, f"__i{dunder}__", _in_place_overload(cls, operation))
    set_method(cls, "__neg__", make_function(negative, negative.name, cls))
    set_method(cls, "__abs__", make_function(absolute, absolute.name, cls))
    overloads.add_division_names(cls)
