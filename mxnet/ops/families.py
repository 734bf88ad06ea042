"""Families of operators: unary math, binary arithmetic with scalar forms, reductions.

Each member has its bare kernel as `raw`, which is correct for all dtypes but bool; operator
overloads call it directly.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache, partial
from types import BuiltinFunctionType, BuiltinMethodType
from typing import Any

import torch
from torch import Tensor

from .. import dtypes
from .._process.caches import store
from ..error import DTypeError, ShapeError
from ..torch_private import count_dispatch_modes
from .attributes import Shape
from .declare import Op, op
from .shapes import TypePattern, broadcast, reduced, reduced_axes, same
from .tracing import is_traced

Kernel = Callable[..., Tensor]
BOOL = torch.bool
axes_of = lru_cache(maxsize=4096)(reduced_axes)


def _whole(value: float, dtype: torch.dtype) -> int:
    """Truncate like x86: values out of range become the smallest integer."""
    bits = 63 if dtype is torch.int64 else 31
    fits = math.isfinite(value) and -(2**bits) <= int(value) < 2**bits
    return int(value) if fits else -(2**bits)


# Cache of Python numbers as tensors, by the arrays' dtype and value.
known_numbers: dict[torch.dtype | None, dict[float, Tensor]] = defaultdict(dict)
MAX_KNOWN_NUMBERS = 4096


def number(value: float, dtype: torch.dtype) -> Tensor:
    """Return a Python number as a cached 0-d tensor of an array's dtype.

    For integer arrays the number is truncated, as in MXNet: ``int32 * 1.5`` is ``* 1``.

    >>> number(1.5, torch.int32)
    tensor(1, dtype=torch.int32)
    """
    if not value and math.copysign(1.0, value) < 0:  # -0.0 and 0.0 are equal keys
        return _tensor_of(value, dtype)
    if count_dispatch_modes():  # torch.compile and other modes create their own tensors
        return _tensor_of(value, dtype)
    numbers = known_numbers[dtype]
    match = numbers.get(value)
    if match is None:
        match = _tensor_of(value, dtype)
        # Torch's modes may create other tensors; NaN is not equal to itself.
        is_plain = type(match) is Tensor and not is_traced()
        if is_plain and dtype is not BOOL and value == value:
            store(numbers, value, match, MAX_KNOWN_NUMBERS)
    return match


def _tensor_of(value: float, dtype: torch.dtype) -> Tensor:
    if torch.is_inference_mode_enabled():  # autograd cannot save such a tensor
        with torch.inference_mode(False):
            return _tensor_of(value, dtype)
    if dtype.is_floating_point or dtype is BOOL:
        return torch.tensor(value, dtype=torch.float64, device="cpu").to(dtype)
    return torch.tensor(_whole(float(value), dtype), dtype=torch.int64, device="cpu").to(dtype)


def check_same_dtype(name: str, lhs: Tensor, rhs: Tensor) -> None:
    """Raise if dtypes differ."""
    if lhs.dtype is not rhs.dtype:
        left, right = dtypes.to_name(lhs.dtype), dtypes.to_name(rhs.dtype)
        raise DTypeError(
            f"Incompatible attr in node {name} at 1-th input: expected {left}, got {right}. "
            f"Convert one of them: x.astype('{left}')."
        )


@lru_cache(maxsize=1024)
def accepts_out(kernel: Callable, operands: int) -> bool:
    """Return whether a torch function of `operands` tensors supports ``out=``, by calling it."""
    if not isinstance(kernel, BuiltinFunctionType | BuiltinMethodType):
        return False
    try:
        kernel(*[torch.ones(1)] * operands, out=torch.empty(1))
    except (TypeError, RuntimeError):
        return False
    return True


def refuse_bool(name: str) -> DTypeError:
    """Return the error of operators without support for bool."""
    return DTypeError(
        f"Operator {name} does not support boolean type. Convert it: x.astype('float32')."
    )


def document(
    function: Callable, name: str, sentence: str, example: str | None, parameters: str = ""
) -> Callable:
    """Set name and docstring of a family member; an example is ``call -> result``.

    `parameters` is the family's ``Parameters`` section, if the glossary is not enough.
    """
    function.__name__ = function.__qualname__ = name.lstrip("_")
    doc = f"{sentence}\n\n{parameters}" if parameters else sentence
    if example:
        arguments, target = example.split(" -> ")
        doc += f"\n\n    >>> {arguments}\n    {target}\n    "
    function.__doc__ = doc
    return function


def shown(call: str, result: str) -> str:
    """Return the example of a call with float32 result."""
    return f"{call}.asnumpy() -> array({result}, dtype=float32)"


def truncate(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Truncate floats to integers like x86: a byte is the lowest byte of an int32."""
    return x.to(torch.int32).to(dtype) if dtype.itemsize == 1 else x.to(dtype)


def in_floating_point(name: str, kernel: Kernel, *operands: Tensor) -> Tensor:
    """Compute on integers in double precision and truncate the result."""
    dtype = operands[0].dtype
    if dtype is BOOL:
        raise refuse_bool(name)
    return truncate(kernel(*(x.double() for x in operands)), dtype)


def unary(
    name: str,
    kernel: Kernel,
    *aliases: str,
    doc: str,
    example: str | None = None,
    method: bool = True,
    exact: bool = False,
    gradient: Callable | None = None,
    **facts: Any,
) -> Op:
    """Declare an elementwise function of one array; the result keeps the array's dtype.

    Integers are computed in floating point and truncated, unless the kernel is `exact` on them.
    `gradient` is ``rule(grad, out, data)`` where MXNet's is not the derivative.
    """

    def function(data: Tensor) -> Tensor:
        if data.dtype.is_floating_point or (exact and data.dtype is not BOOL):
            return kernel(data)
        return in_floating_point(name, kernel, data)

    facts = {"pointwise": True, "repeatable": True, **facts}
    declare = op(name, *aliases, shape=same, method=method, **facts)
    record = declare(document(function, name, doc, example))
    record.raw = kernel
    record.variant("call")(partial(float_kernel, kernel))
    record.variant("out")(lambda attrs, dtype: kernel if accepts_out(kernel, 1) else None)
    if gradient is not None:
        record.gradient(gradient)
    return record


def float_kernel(kernel: Kernel, attrs: dict[str, Any], dtype: torch.dtype) -> Kernel | None:
    """Return the kernel for floating-point arrays; torch's methods parse faster than functions."""
    if not dtype.is_floating_point:
        return None
    name = getattr(kernel, "__name__", "")
    return getattr(Tensor, name, kernel) if getattr(torch, name, None) is kernel else kernel


def binary(
    name: str,
    kernel: Kernel,
    *aliases: str,
    doc: str,
    example: str | None = None,
    gradient: Callable | None = None,
    **facts: Any,
) -> Op:
    """Declare a broadcasting function of two arrays; inputs and result have the same dtype.

    `gradient` is ``rule(grad, out, lhs, rhs)`` before broadcast axes are summed away.
    """

    def function(lhs: Tensor, rhs: Tensor) -> Tensor:
        dtype = lhs.dtype
        if dtype is not rhs.dtype or dtype is BOOL:
            check_same_dtype(name, lhs, rhs)
            raise refuse_bool(name)
        try:
            out = kernel(lhs, rhs)
        except RuntimeError as error:
            raise broadcast_error(name, lhs, rhs, error) from None
        return out if out.dtype is dtype else out.to(dtype)

    facts = {"pointwise": True, "precision": "widest", "repeatable": True, **facts}
    record = op(name, *aliases, shape=broadcast, **facts)(document(function, name, doc, example))
    record.raw = kernel
    record.variant("out")(lambda attrs, dtype: kernel if accepts_out(kernel, 2) else None)
    if gradient is not None:
        record.gradient(_sum_to_operands(gradient))
    return record


def broadcast_error(name: str, lhs: Tensor, rhs: Tensor, error: RuntimeError) -> RuntimeError:
    """Return the error for operands that do not broadcast; other errors unchanged."""
    try:
        torch.broadcast_shapes(lhs.shape, rhs.shape)
    except RuntimeError:
        return ShapeError(
            f"Error in operator {name}: operands could not be broadcast together with shapes "
            f"{list(lhs.shape)} {list(rhs.shape)}"
        )
    return error


def elementwise(
    name: str,
    kernel: Kernel,
    *aliases: str,
    doc: str,
    example: str | None = None,
    gradient: Callable | None = None,
    **facts: Any,
) -> Op:
    """Declare a function of two arrays of the same shape and dtype."""

    def function(lhs: Tensor, rhs: Tensor) -> Tensor:
        if lhs.shape != rhs.shape:
            raise ShapeError(
                f"Incompatible attr in node {name} at 1-th input: expected {list(lhs.shape)}, got "
                f"{list(rhs.shape)}. Use broadcast_{name.split('_', 1)[-1]} to broadcast."
            )
        dtype = lhs.dtype
        if dtype is not rhs.dtype or dtype is BOOL:
            check_same_dtype(name, lhs, rhs)
            raise refuse_bool(name)
        out = kernel(lhs, rhs)
        return out if out.dtype is dtype else out.to(dtype)

    facts = {"pointwise": True, "precision": "widest", "repeatable": True, **facts}
    record = op(name, *aliases, shape=same, **facts)(document(function, name, doc, example))
    record.raw = kernel
    record.variant("out")(lambda attrs, dtype: kernel if accepts_out(kernel, 2) else None)
    if gradient is not None:
        record.gradient(gradient)
    return record


class ScalarTypes(TypePattern):
    """Dtypes of an array with a number: the array's, or the wider one that bool needs."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the output from the input, and the input from a floating-point output."""
        dtype = ins[0]
        if dtype is not None:
            return ins, [scalar_dtype(dtype, attrs.get("is_int", True))]
        back = outs[0] if outs[0] is not None and outs[0].is_floating_point else None
        return [back], outs


def scalar_dtype(dtype: torch.dtype, is_int: bool) -> torch.dtype:
    """Return the dtype of an operation on an array and a number.

    >>> scalar_dtype(torch.int32, True), scalar_dtype(torch.bool, True)
    (torch.int32, torch.int64)
    """
    if dtype.is_floating_point:
        return dtype
    if not is_int:
        return torch.float64
    return torch.int64 if dtype is BOOL else dtype


def scalar(
    name: str,
    kernel: Kernel,
    *aliases: str,
    doc: str,
    example: str | None = None,
    swapped: bool = False,
    gradient: Callable | None = None,
    **facts: Any,
) -> Op:
    """Declare a function of an array and a number; `swapped` puts the number first.

    `gradient` is ``rule(grad, out, data, *, scalar, **_)``.
    """

    def function(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> Tensor:
        dtype = data.dtype
        if not dtype.is_floating_point:
            dtype = scalar_dtype(dtype, is_int)
            data = data.to(dtype)
        value = number(scalar, dtype)
        out = kernel(value, data) if swapped else kernel(data, value)
        return out if out.dtype is dtype else out.to(dtype)

    facts = {"pointwise": True, "repeatable": True, **facts}
    record = op(name, *aliases, shape=same, **facts)(document(function, name, doc, example))
    record.raw, record.swapped = kernel, swapped
    record.type_pattern = ScalarTypes(None)
    record.variant("out")(
        lambda attrs, dtype: _number_into(kernel, swapped, attrs["scalar"], dtype)
    )
    if gradient is not None:
        record.gradient(gradient)
    else:
        record.variant("node")(
            lambda attrs, differentiable: _bind_number(record, attrs["scalar"], attrs)
        )
    return record


def _number_into(
    kernel: Kernel, swapped: bool, value: float, dtype: torch.dtype
) -> Callable[..., Tensor] | None:
    if not accepts_out(kernel, 2):
        return None
    bound = number(value, dtype)
    if swapped:
        return lambda data, out: kernel(bound, data, out=out)
    return lambda data, out: kernel(data, bound, out=out)


def _bind_number(op: Op, value: float, attrs: dict[str, Any]) -> Callable[[Tensor], Tensor]:
    """Return the function with the number bound, cached as a tensor for each dtype."""
    raw, function, swapped = op.raw, op.function, op.swapped
    assert raw is not None
    numbers: dict[torch.dtype, Tensor] = {}

    def run_general(data: Tensor) -> Tensor:
        dtype = data.dtype
        if not dtype.is_floating_point:
            return function(data, **attrs)
        tensor = number(value, dtype)
        out = raw(tensor, data) if swapped else raw(data, tensor)
        # From now on only the kernel is needed.
        if out.dtype is dtype and type(tensor) is Tensor:
            numbers[dtype] = tensor
        return out.to(dtype)

    def array_first(data: Tensor) -> Tensor:
        tensor = numbers.get(data.dtype)
        return run_general(data) if tensor is None else raw(data, tensor)

    def number_first(data: Tensor) -> Tensor:
        tensor = numbers.get(data.dtype)
        return run_general(data) if tensor is None else raw(tensor, data)

    return number_first if swapped else array_first


def as_vector(out: Tensor) -> Tensor:
    """Reshape a 0-d result to ``(1,)``, the shape of scalars in legacy operators."""
    return out.reshape(1) if out.requires_grad else out.resize_(1)


_REDUCED = """    Parameters
    ----------
    axis
        Axis or axes to reduce; negative ones count from the last, None or ``()`` means all.
"""


def reduction(
    name: str,
    kernel: Callable[[Tensor, tuple[int, ...], bool], Tensor],
    *aliases: str,
    doc: str,
    example: str | None = None,
    method: bool = True,
    gradient: Callable | None = None,
    direct: Callable | None = None,
    **facts: Any,
) -> Op:
    """Declare a reduction: ``kernel(data, axes, keepdims)`` with axes non-negative and sorted.

    `gradient` is ``rule(grad, out, data)`` with `grad` and `out` of kept dimensions. `direct` is
    torch's function for floating-point data, over one axis or over all.
    """

    def function(
        data: Tensor, *, axis: Shape | None = None, keepdims: bool = False, exclude: bool = False
    ) -> Tensor:
        axes = axes_of(axis or None, data.ndim, exclude)
        # All axes are excluded, or there are none; in torch no axes means all.
        out = kernel(data, axes, keepdims) if axes else data.clone()
        if out.dtype is not data.dtype:
            out = out.to(data.dtype)
        return out if out.ndim or keepdims else as_vector(out)

    facts.setdefault("repeatable", True)
    declare = op(name, *aliases, shape=reduced, method=method, **facts)
    record = declare(document(function, name, doc, example, _REDUCED))

    if direct is not None:
        record.variant("call")(partial(_reduce_directly, direct))
    if gradient is not None:

        def rule(
            grad: Tensor, out: Tensor, data: Tensor, *, axis: Shape | None, exclude: bool, **_: Any
        ) -> Tensor:
            axes = axes_of(axis or None, data.ndim, exclude)
            reduced = [1 if i in axes else n for i, n in enumerate(data.shape)]
            return gradient(grad.reshape(reduced), out.reshape(reduced), data)

        record.gradient(rule)
    return record


def _reduce_directly(
    direct: Callable, attrs: dict[str, Any], dtype: torch.dtype
) -> Callable[[Tensor], Tensor] | None:
    """Return torch's reduction for fixed attributes; torch parses an int faster than a tuple."""
    axes, keepdims = attrs.get("axis"), attrs.get("keepdims", False)
    if not dtype.is_floating_point or attrs.get("exclude") or (keepdims and not axes):
        return None
    if not axes:
        return lambda data: as_vector(direct(data))
    if len(axes) > 1:
        return None
    (axis,) = axes

    def reduce(data: Tensor) -> Tensor:
        out = direct(data, axis, keepdims)
        return out if out.ndim else as_vector(out)

    return reduce


def _sum_to_operands(gradient: Callable) -> Callable:
    def rule(grad: Tensor, out: Tensor, lhs: Tensor, rhs: Tensor) -> tuple:
        match = gradient(grad, out, lhs, rhs)
        return tuple(
            None if g is None else g.sum_to_size(x.shape)
            for g, x in zip(match, (lhs, rhs), strict=True)
        )

    return rule
