"""``out=`` of large pointwise results: the kernel writes into the given array, without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ..ops import interpreters
from ..ops.declare import Op
from .handle import writable
from .state import state

LEAST_ELEMENTS = 1 << 14  # a copy of less costs less than looking


def write_directly(op: Op, tensors: Sequence[Tensor | None], attrs: dict, out: Any) -> bool:
    """Compute into `out` where the operator can do so; return whether that was done."""
    if "out" not in op.variants or state.recording or interpreters.eager:
        return False
    if isinstance(out, list | tuple) or out._data is None:
        return False
    place = writable(out)
    if place.numel() < LEAST_ELEMENTS or not place.is_floating_point():
        return False
    if not all(t is not None and _may_read(t, place) for t in tensors):
        return False
    kernel = op.find_variant("out", op.complete(attrs), place.dtype)
    if kernel is None:
        return False
    kernel(*tensors, out=place)
    return True


def _may_read(tensor: Tensor, place: Tensor) -> bool:
    """Return whether an operand is like the result, and the same memory or another."""
    if tensor.shape != place.shape or tensor.dtype is not place.dtype:
        return False
    if tensor.device != place.device or tensor.requires_grad:
        return False
    if tensor.data_ptr() == place.data_ptr():
        return tensor.stride() == place.stride()
    return tensor.untyped_storage().data_ptr() != place.untyped_storage().data_ptr()
