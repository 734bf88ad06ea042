"""Dtype promotion of the NumPy operators, as MXNet 1.9.1 does it.

Floating point wins over integers whatever their widths (int64 with float16 is float16), the
wider of two wins within a kind, and int8 with uint8 has no common type. Division and means of
integers are float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ... import dtypes
from ...error import DTypeError
from ..shapes import TypePattern

if TYPE_CHECKING:
    from ..declare import Op

BOOL = torch.bool
_SUPPORTED = frozenset(dtypes.BY_TORCH)


def promote(name: str, first: torch.dtype, second: torch.dtype) -> torch.dtype:
    """Return the dtype in which two arrays meet.

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
    """Return both arrays in the dtype in which they meet."""
    dtype = promote(name, lhs.dtype, rhs.dtype)
    return lhs.to(dtype), rhs.to(dtype)


def to_float(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of quotients and means: float32 for integers and bool."""
    return dtype if dtype.is_floating_point else torch.float32


def to_countable(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of sums and products: int64 for bool."""
    return torch.int64 if dtype is BOOL else dtype


class PromotedTypes(TypePattern):
    """The output has the common dtype of the inputs; an unknown input is taken for the other's."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer forwards by promotion, backwards only to equal dtypes."""
        known = [t for t in ins if t is not None]
        if not known:
            back = outs[0] if outs[0] is not None and outs[0].is_floating_point else None
            return [back] * len(ins), outs
        ins = [known[0] if t is None else t for t in ins]
        out = ins[0]
        for t in ins[1:]:
            out = promote(op.name, out, t)
        return ins, [self.result(out)] * len(outs)

    def result(self, dtype: torch.dtype) -> torch.dtype:
        """Return the output's dtype, given the common one."""
        return dtype


class QuotientTypes(PromotedTypes):
    """As `PromotedTypes`, but integers give float32."""

    def result(self, dtype: torch.dtype) -> torch.dtype:
        """Return a floating-point dtype."""
        return to_float(dtype)


class BoolTypes(PromotedTypes):
    """Inputs meet in a common dtype; the output is bool."""

    def result(self, dtype: torch.dtype) -> torch.dtype:
        """Return bool."""
        return BOOL

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the output, never the inputs by it."""
        ins, _ = super().infer(op, ins, [None], attrs)
        return ins, [BOOL] * len(outs)


class AttributeTypes(TypePattern):
    """The output has the dtype of the attribute ``dtype``, else one that the input's implies."""

    def __init__(self, default: Callable[[torch.dtype], torch.dtype]) -> None:
        super().__init__(None)
        self.default = default

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the output by the attribute or by the first input."""
        given = attrs.get("dtype")
        if given is None and ins[0] is not None:
            given = self.default(ins[0])
        return ins, [given or o for o in outs]
