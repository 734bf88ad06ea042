"""MXNet's reshape codes, resolved against a shape: pure functions, used by arrays and graphs.

``0`` copies a size, ``-1`` follows from the others, ``-2`` copies all that remain, ``-3`` merges
two sizes, ``-4`` splits one into the two numbers that follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ....error import ShapeError
from ...shapes import UNKNOWN, Shape

_INFER = None  # the place of a -1 code, kept apart from sizes that are not known yet


@lru_cache(maxsize=4096)
def resolve_reshape(shape: Shape, codes: Shape, reverse: bool = False) -> Shape | None:
    """Return the shape that the codes mean, or None if the number of elements does not fit.

    `reverse` matches codes and sizes from the right. Unknown sizes (-1) stay unknown.

    >>> resolve_reshape((2, 3, 4), (-1, 0)), resolve_reshape((2, 3, 4), (-1, 0), True)
    ((8, 3), (6, 4))
    >>> resolve_reshape((2, 3, 4), (-4, 1, -1, -3)), resolve_reshape((2, 3), (5, -1))
    ((1, 2, 12), None)
    """
    if reverse:
        return _fit(shape, _read_codes(shape[::-1], codes[::-1])[::-1])
    return _fit(shape, _read_codes(shape, codes))


def _read_codes(shape: Shape, codes: Shape) -> list[int | None]:
    made: list[int | None] = []
    source = 0  # the next size of the input
    pending = iter(codes)
    for code in pending:
        if code == -1:
            if _INFER in made:
                raise ShapeError(f"Reshape: only one size can be -1, but shape is {codes}.")
            made.append(_INFER)
            source += 1
        elif code == 0:
            made.append(_size(shape, source, codes))
            source += 1
        elif code == -2:
            made.extend(shape[source:])
            source = len(shape)
        elif code == -3:
            made.append(_times(_size(shape, source, codes), _size(shape, source + 1, codes)))
            source += 2
        elif code == -4:
            made.extend(_split(_size(shape, source, codes), pending, codes))
            source += 1
        elif code > 0:
            made.append(code)
            source += 1
        else:
            raise ShapeError(f"Reshape: {code} in shape={codes} is not one of 0, -1, -2, -3, -4.")
    return made


def _size(shape: Shape, position: int, codes: Shape) -> int:
    if position >= len(shape):
        raise ShapeError(f"Reshape: shape={codes} asks for more sizes than {list(shape)} has.")
    return shape[position]


def _times(first: int, second: int) -> int:
    return UNKNOWN if UNKNOWN in (first, second) else first * second


def _split(size: int, pending: Iterator[int], codes: Shape) -> tuple[int, int]:
    first, second = next(pending, None), next(pending, None)
    if first is None or second is None:
        raise ShapeError(f"Reshape: two sizes must follow -4 in shape={codes}.")
    if first == second == -1:
        raise ShapeError(f"Reshape: the two sizes after -4 cannot both be -1 in shape={codes}.")
    if size == UNKNOWN:
        return first, second
    if first == -1:
        first = size // second
    elif second == -1:
        second = size // first
    if first * second != size:
        raise ShapeError(f"Reshape: {first} and {second} do not split {size}, in shape={codes}.")
    return first, second


def _fit(shape: Shape, wanted: list[Any]) -> Shape | None:
    """Fill in the size that follows from the others, and check the number of elements."""
    if UNKNOWN in shape:
        return tuple(UNKNOWN if n is _INFER else n for n in wanted)
    total = math.prod(shape)
    rest = math.prod(n for n in wanted if n is not _INFER)
    if _INFER in wanted:
        if total % rest if rest else total:
            return None
        found = total // rest if rest else 0
        return tuple(found if n is _INFER else n for n in wanted)
    return tuple(wanted) if rest == total else None


@lru_cache(maxsize=256)
def resolve_target(shape: Shape, target: Shape, keep_highest: bool) -> Shape | None:
    """Return what the old ``target_shape`` means: 0 follows from the others.

    >>> resolve_target((2, 3, 4), (0, 6), False), resolve_target((2, 3, 4), (9, 0), True)
    ((4, 6), (2, 12))
    """
    wanted: list[int | None] = [_INFER if n == 0 else n for n in target]
    if keep_highest and wanted:
        wanted[0] = shape[0]
    if wanted.count(_INFER) > 1:
        raise ShapeError(f"Reshape: only one size can be 0 in target_shape={target}.")
    return _fit(shape, wanted)


def complete_by_size(shape: Shape, other: Shape) -> Shape:
    """Return the shape with its one unknown size inferred from another shape of as many elements.

    >>> complete_by_size((-1, 3, 4), (2, 12))
    (2, 3, 4)
    """
    if shape.count(UNKNOWN) != 1 or UNKNOWN in other:
        return shape
    rest = math.prod(n for n in shape if n != UNKNOWN)
    if not rest or math.prod(other) % rest:
        return shape
    found = math.prod(other) // rest
    return tuple(found if n == UNKNOWN else n for n in shape)
