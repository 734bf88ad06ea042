"""Shapes of parameters, of which some sizes may not be known yet."""

from __future__ import annotations

from collections.abc import Sequence

from ...util import is_np_shape


def stored_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return a shape with 0 for unknown sizes, whatever the shapes in force."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return tuple(0 if size == -1 and is_np_shape() else size for size in sizes)


def fits(known: Sequence[int], wanted: Sequence[int]) -> bool:
    """Return whether a shape agrees with all sizes that are known."""
    return len(known) == len(wanted) and all(
        a in (-1, 0, b) for a, b in zip(known, wanted, strict=True)
    )


def merged(stored: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...] | None:
    """Return the shape in which both know as much as they can; None if they contradict."""
    if len(stored) != len(wanted):
        return None
    pairs = list(zip(stored, wanted, strict=True))
    if not all(a == b or a in (0, -1) or b in (0, -1) for a, b in pairs):
        return None
    return tuple(b if a in (0, -1) else a for a, b in pairs)
