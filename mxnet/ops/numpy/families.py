"""Families of NumPy's elementwise operators: unary, binary, and with a number.

They differ from the legacy families in three points: two arrays may have different dtypes,
predicates and comparisons return bool, and 0-d arrays are scalars.

Dtypes are promoted as in MXNet 1.9.1: floating point takes precedence over integers of any width
(int64 with float16 is float16), then the wider type, and int8 with uint8 has no common type.
Quotients and means of integers are float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ... import dtypes
from ...error import DTypeError
from ..declare import Op, op
from ..families import (
    BOOL,
    Kernel,
    ScalarTypes,
    broadcast_error,
    check_same_dtype,
    document,
    float_kernel,
    in_floating_point,
    number,
    refuse_bool,
)
from ..shapes import TypePattern, broadcast, same

_SUPPORTED = frozenset(dtypes.BY_TORCH)


def promote(name: str, first: torch.dtype, second: torch.dtype) -> torch.dtype:
    """Return the common dtype of two arrays.

    >>> promote("add", torch.int64, torch.float16), promote("add", torch.bool, torch.uint8)
    (torch.float16, torch.uint8)
    """
    if first is second:
        return first
    common = torch.promote_types(first, second)
    if common not in _SUPPORTED:  # int8 with uint8 needs int16
        left, right = dtypes.to_name(first), dtypes.to_name(second)
        raise DTypeError(
            f"Operator {name}: {left} and {right} have no common type. "
            f"Convert both: x.astype('int32')."
        )
    return common


def to_common_type(name: str, lhs: Tensor, rhs: Tensor) -> tuple[Tensor, Tensor]:
    """Convert both arrays to their common dtype."""
    dtype = promote(name, lhs.dtype, rhs.dtype)
    return lhs.to(dtype), rhs.to(dtype)


def to_float(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of quotients and means: float32 for integers and bool."""
    return dtype if dtype.is_floating_point else torch.float32


def to_countable(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of sums and products: int64 for bool."""
    return torch.int64 if dtype is BOOL else dtype


class PromotedTypes(TypePattern):
    """The output has the common dtype of the inputs; an unknown input has that of the other."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer forwards by promotion, backwards only to equal dtypes."""
        types = [t for t in ins if t is not None]
        if not types:
            back = outs[0] if outs[0] is not None and outs[0].is_floating_point else None
            return [back] * len(ins), outs
        ins = [types[0] if t is None else t for t in ins]
        out = ins[0]
        for t in ins[1:]:
            out = promote(op.name, out, t)
        return ins, [self.result(out)] * len(outs)

    def result(self, dtype: torch.dtype) -> torch.dtype:
        """Return the output's dtype, given the common one."""
        return dtype


class QuotientTypes(PromotedTypes):
    """Like `PromotedTypes`, but float32 for integers."""

    def result(self, dtype: torch.dtype) -> torch.dtype:
        """Return a floating-point dtype."""
        return to_float(dtype)


class BoolTypes(PromotedTypes):
    """Inputs are promoted to a common dtype; the output is bool."""

    def result(self, dtype: torch.dtype) -> torch.dtype:
        """Return bool."""
        return BOOL

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the output; inputs are not inferred from it."""
        ins, _ = super().infer(op, ins, [None], attrs)
        return ins, [BOOL] * len(outs)


class AttributeTypes(TypePattern):
    """The output has the attribute ``dtype``, else a dtype derived from the input's."""

    def __init__(self, default: Callable[[torch.dtype], torch.dtype]) -> None:
        super().__init__(None)
        self.default = default

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the output from the attribute or the first input."""
        dtype = attrs.get("dtype")
        if dtype is None and ins[0] is not None:
            dtype = self.default(ins[0])
        return ins, [dtype or o for o in outs]


Names = tuple[str, ...]


def shown(name: str, call: str, result: str, dtype: str = "float32") -> str:
    """Return an example of a call; `call` has the arguments, `result` the array's text.

    Forms with a number have no public function: the example calls the operator.
    """
    if name.endswith("_scalar"):
        call = call.replace("mx.np.array", "mx.nd.array")
        suffix = "" if dtype in ("bool", "int64", "float64") else f", dtype={dtype}"
        return f"mx.nd._internal.{name}({call}).asnumpy() -> array({result}{suffix})"
    suffix = "" if dtype in ("bool", "float32") else f", dtype={dtype}"
    return f"mx.np.{name.removeprefix('_npi_')}({call}) -> array({result}{suffix})"


def floats(text: str) -> str:
    """Format an array of float32."""
    return f"mx.np.array({text})"


def unary(
    name: str,
    kernel: Kernel,
    *aliases: str,
    doc: str,
    given: str,
    result: str,
    exact: bool = False,
    gradient: Callable | None = None,
) -> Op:
    """Declare an elementwise function of one array; the result keeps the array's dtype.

    Integers are computed in floating point and truncated, unless the kernel is `exact` on them.
    `gradient` is ``rule(grad, out, x)`` if MXNet's differs from the derivative.
    """

    def function(x: Tensor) -> Tensor:
        if x.dtype.is_floating_point or (exact and x.dtype is not BOOL):
            return kernel(x)
        return in_floating_point(name, kernel, x)

    example = shown(name, floats(given), result)
    record = op(name, *aliases, shape=same, pointwise=True)(document(function, name, doc, example))
    record.raw = kernel
    record.variant("call")(partial(float_kernel, kernel))
    if gradient is not None:
        record.gradient(gradient)
    return record


def question(name: str, kernel: Kernel, *, doc: str, given: str, result: str) -> Op:
    """Declare an elementwise predicate of an array of any dtype."""

    def function(x: Tensor) -> Tensor:
        return kernel(x)

    example = shown(name, floats(given), result, "bool")
    return op(name, shape=same, types="T -> bool", pointwise=True)(
        document(function, name, doc, example)
    )


def _require_kind(name: str, dtype: torch.dtype, floating: bool | None) -> None:
    if floating is True and not dtype.is_floating_point:
        raise DTypeError(
            f"Operator {name} only supports floating point types. Convert it: x.astype('float32')."
        )
    if floating is False and dtype.is_floating_point:
        raise DTypeError(
            f"Operator {name} only supports integer types. Convert it: x.astype('int32')."
        )


def _finish_binary(
    name: str,
    kernel: Kernel,
    names: Names,
    doc: str,
    example: str,
    types: PromotedTypes,
    prepare: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    gradient: Callable | None,
    **facts: Any,
) -> Op:
    def function(lhs: Tensor, rhs: Tensor) -> Tensor:
        lhs, rhs = prepare(lhs, rhs)
        try:
            return kernel(lhs, rhs)
        except RuntimeError as error:
            raise broadcast_error(name, lhs, rhs, error) from None

    def function_of_x1_x2(x1: Tensor, x2: Tensor) -> Tensor:
        return function(x1, x2)

    chosen = function_of_x1_x2 if names == ("x1", "x2") else function
    record = op(name, shape=broadcast, pointwise=True, precision="widest", **facts)(
        document(chosen, name, doc, example)
    )
    record.raw = kernel
    record.type_pattern = types
    if gradient is not None:
        record.gradient(_reduce_to_operands(name, gradient))
    return record


def _reduce_to_operands(name: str, gradient: Callable) -> Callable:
    def rule(grad: Tensor, out: Tensor, lhs: Tensor, rhs: Tensor) -> tuple:
        match = gradient(grad, out, *to_common_type(name, lhs, rhs))
        return tuple(
            None if g is None else g.sum_to_size(x.shape).to(x.dtype)
            for g, x in zip(match, (lhs, rhs), strict=True)
        )

    return rule


def binary(
    name: str,
    kernel: Kernel,
    *,
    doc: str,
    example: str,
    on_bool: Kernel | None = None,
    gradient: Callable | None = None,
    **facts: Any,
) -> Op:
    """Declare a broadcasting function of two arrays, computed in their common dtype.

    Without `on_bool` two bool arrays are an error. `gradient` is ``rule(grad, out, lhs, rhs)``
    on operands of the common dtype, before broadcast axes are summed.
    """

    def prepare(lhs: Tensor, rhs: Tensor) -> tuple[Tensor, Tensor]:
        if lhs.dtype is not rhs.dtype:
            return to_common_type(name, lhs, rhs)
        if lhs.dtype is BOOL and on_bool is None:
            raise refuse_bool(name)
        return lhs, rhs

    bool_kernel = kernel if on_bool is None else on_bool

    def compute(lhs: Tensor, rhs: Tensor) -> Tensor:
        return bool_kernel(lhs, rhs) if lhs.dtype is BOOL else kernel(lhs, rhs)

    run = kernel if bool_kernel is kernel else compute
    names, types = ("lhs", "rhs"), PromotedTypes(None)
    output = _finish_binary(name, run, names, doc, example, types, prepare, gradient, **facts)
    output.raw = kernel
    return output


def quotient(name: str, kernel: Kernel, *, doc: str, example: str) -> Op:
    """Declare a broadcasting function of two arrays with floating-point result."""

    def prepare(lhs: Tensor, rhs: Tensor) -> tuple[Tensor, Tensor]:
        lhs, rhs = to_common_type(name, lhs, rhs)
        dtype = to_float(lhs.dtype)
        return lhs.to(dtype), rhs.to(dtype)

    types = QuotientTypes(None)
    return _finish_binary(name, kernel, ("lhs", "rhs"), doc, example, types, prepare, None)


def strict(
    name: str,
    kernel: Kernel,
    *,
    doc: str,
    example: str,
    names: Names = ("lhs", "rhs"),
    floating: bool | None = None,
    on_bool: bool = False,
    gradient: Callable | None = None,
) -> Op:
    """Declare a broadcasting function of two arrays of the same dtype.

    `floating` True takes floating point only, False integers only.
    """

    def prepare(lhs: Tensor, rhs: Tensor) -> tuple[Tensor, Tensor]:
        check_same_dtype(name, lhs, rhs)
        if lhs.dtype is BOOL and not on_bool:
            raise refuse_bool(name)
        _require_kind(name, lhs.dtype, floating)
        return lhs, rhs

    types = PromotedTypes(None)
    return _finish_binary(name, kernel, names, doc, example, types, prepare, gradient)


def comparison(name: str, kernel: Kernel, *, doc: str, example: str) -> Op:
    """Declare a broadcasting comparison of two arrays with bool result."""

    def prepare(lhs: Tensor, rhs: Tensor) -> tuple[Tensor, Tensor]:
        return to_common_type(name, lhs, rhs)

    types = BoolTypes(None)
    return _finish_binary(name, kernel, ("lhs", "rhs"), doc, example, types, prepare, None)


def scalar_comparison(name: str, kernel: Kernel, *, doc: str, example: str) -> Op:
    """Declare a comparison of an array with a number.

    Integers and a fraction are compared in floating point; other numbers are cast to the array's
    dtype.
    """

    def function(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> Tensor:
        if not is_int and not data.dtype.is_floating_point and data.dtype is not BOOL:
            data = data.double()
        return kernel(data, number(scalar, data.dtype))

    record = op(name, names_single_input=True, shape=same, types="T -> bool", pointwise=True)(
        document(function, name, doc, example)
    )
    record.raw, record.swapped = kernel, False
    return record


class ScalarQuotientTypes(ScalarTypes):
    """Dtypes of a quotient with a number: the array's, float32 for integers."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the output from the input, and a floating-point input from the output."""
        if ins[0] is not None:
            return ins, [to_float(ins[0])]
        return super().infer(op, ins, outs, attrs)


def scalar_quotient(
    name: str, kernel: Kernel, *, doc: str, example: str, swapped: bool = False
) -> Op:
    """Declare a quotient of an array and a number; `swapped` puts the number first."""

    def function(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> Tensor:
        if not data.dtype.is_floating_point:
            data = data.float()
        value = number(scalar, data.dtype)
        return kernel(value, data) if swapped else kernel(data, value)

    record = op(name, shape=same, pointwise=True)(document(function, name, doc, example))
    record.raw, record.swapped = kernel, swapped
    record.type_pattern = ScalarQuotientTypes(None)
    return record


def scalar_bits(name: str, kernel: Kernel, *, doc: str, example: str, on_bool: bool = True) -> Op:
    """Declare a function of integers and a number; the result keeps the array's dtype."""

    def function(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> Tensor:
        if data.dtype is BOOL and not on_bool:
            raise refuse_bool(name)
        _require_kind(name, data.dtype, False)
        return kernel(data, number(scalar, data.dtype))

    return op(name, shape=same, pointwise=True)(document(function, name, doc, example))
