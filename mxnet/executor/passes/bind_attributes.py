"""Kernels whose attributes never change in a graph are chosen once.

Before: ``Activation(x, act_type="relu")`` looks up what relu is, ``x * 2`` looks up the number 2
as a tensor of the right type, on every call.
After: ``relu(x)`` is torch's own function; the number is kept by the call itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...ops.declare import Op
from ...ops.families import ScalarTypes, number
from ...ops.nn.activation import ACTIVATIONS
from ..plan import Plan


def bind_attributes(plan: Plan) -> None:
    """Replace kernels by narrower ones that take no attributes."""
    for call in plan.calls:
        op = call.node.op
        if op.gradient_rule is not None or call.kernel is not op.kernel:
            continue
        if op.name == "Activation":
            call.kernel, call.attrs = ACTIVATIONS[call.attrs["act_type"]], {}
        elif isinstance(op.type_pattern, ScalarTypes) and op.raw is not None:
            call.kernel, call.attrs = _with_number(op, call.attrs), {}


def _with_number(op: Op, attrs: dict[str, Any]) -> Callable[[Tensor], Tensor]:
    """Return a function of an array and a fixed number."""
    raw, function = op.raw, op.function
    numbers: dict[torch.dtype, Tensor] = {}

    def general(data: Tensor) -> Tensor:
        dtype = data.dtype
        if not dtype.is_floating_point:
            return function(data, **attrs)
        value = number(attrs["scalar"], dtype)
        out = raw(value, data) if op.swapped else raw(data, value)
        if out.dtype is dtype:  # the kernel alone is enough from now on
            numbers[dtype] = value
        return out.to(dtype)

    def array_first(data: Tensor) -> Tensor:
        value = numbers.get(data.dtype)
        return general(data) if value is None else raw(data, value)

    def number_first(data: Tensor) -> Tensor:
        value = numbers.get(data.dtype)
        return general(data) if value is None else raw(value, data)

    return number_first if op.swapped else array_first
