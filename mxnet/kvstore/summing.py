"""Sums of one array from several devices, of any storage type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..context import Context
from ..error import MXNetError
from ..imperative.handle import plain, wrap_plain
from ..ndarray import NDArray
from .compression import TwoBit


def summed(
    key: Any, values: Sequence[NDArray], context: Context, compression: TwoBit | None = None
) -> NDArray:
    """Return the sum of arrays as a new array on a device; compression takes each one first."""
    if len({v.stype for v in values}) > 1:
        kinds = ", ".join(v.stype for v in values)
        raise MXNetError(f"Values of key {key} have different storage types: {kinds}.")
    if values[0].stype != "default":
        return _summed_sparse(values, context)
    if compression is not None:
        values = [
            wrap_plain(NDArray, compression((key, i), plain(v)), v._ctx)
            for i, v in enumerate(values)
        ]
    total = values[0].copyto(context)
    place = plain(total)
    for other in values[1:]:
        place += plain(other).to(place.device, place.dtype)
    return total


def _summed_sparse(values: Sequence[NDArray], context: Context) -> NDArray:
    total = values[0].copyto(context)
    for other in values[1:]:
        total = total + other.as_in_context(context)
    return total
