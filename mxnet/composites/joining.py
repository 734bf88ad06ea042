"""Splitting and counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import integer_types
from .namespace import OperatorNamespace


def split_v2(
    F: OperatorNamespace,
    ary: Any,
    indices_or_sections: Any,
    axis: int = 0,
    squeeze_axis: bool = False,
) -> Any:
    """Split into equal sections, or at the given indices; one part comes without a list.

    >>> [p.shape for p in mx.nd.split_v2(mx.nd.zeros((4, 2)), (1, 3))]
    [(1, 2), (2, 2), (1, 2)]
    """
    if isinstance(indices_or_sections, integer_types):
        sections = int(indices_or_sections)
        if sections == 0:
            raise ValueError("Number of sections must be larger than 0")
        indices: tuple[int, ...] = () if F.is_symbolic else _starts(ary.shape[axis], sections)
    elif isinstance(indices_or_sections, tuple | list | np.ndarray):
        sections, indices = 0, (0, *(int(i) for i in indices_or_sections))
    else:
        raise ValueError("indices_or_sections must be either int or tuple of ints")
    return F._split_v2(
        ary, indices=indices, axis=axis, squeeze_axis=squeeze_axis, sections=sections
    )


def _starts(size: int, sections: int) -> tuple[int, ...]:
    if size % sections:
        raise ValueError("array split does not result in an equal division")
    return tuple(range(0, size, size // sections))
