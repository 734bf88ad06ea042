"""Steps on axes that several import rows share."""

from __future__ import annotations

from typing import Any

from ....base import is_np_shape
from ..functions import F
from ..value import Value


def axis_within(axis: int, rank: int) -> int:
    """Return an axis counted from the front; one that is not there is an error."""
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} of {rank} axes")
    return axis % rank


def with_rank(x: Any, have: int, wanted: int) -> Any:
    """Add leading axes of size 1 to a symbol of `have` axes."""
    if have == 0 and wanted:
        return F.reshape(x, shape=(1,) * wanted)
    for _ in range(wanted - have):
        x = F.expand_dims(x, axis=0)
    return x


def as_scalar(x: Any) -> Any:
    """Return one element without axes; outside NumPy's shapes it keeps one."""
    return F.reshape(x, shape=() if is_np_shape() else (1,))


def wide(value: Value, rank: int) -> Any:
    """Return a value as a symbol with leading axes of size 1."""
    return with_rank(value.symbol, value.rank, rank)
