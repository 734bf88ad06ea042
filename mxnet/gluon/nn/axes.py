"""Sizes and layouts of convolution and pooling windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Sizes = int | Sequence[int]
numeric_types = (float, int, np.generic)

CONV_LAYOUTS = {1: ("NCW",), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
POOL_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def spread(sizes: Sizes, ndim: int, name: str | None = None) -> tuple[int, ...]:
    """Return a size for each of `ndim` axes; a number stands for all of them.

    >>> spread(3, 2), spread((1, 2), 2)
    ((3, 3), (1, 2))
    """
    if isinstance(sizes, numeric_types):
        return (sizes,) * ndim
    assert name is None or len(sizes) == ndim, f"{name} must be a number or a list of {ndim} ints"
    return tuple(sizes)


def check_conv_layout(layout: str, ndim: int) -> None:
    """Refuse a layout that no convolution of `ndim` axes knows."""
    known = CONV_LAYOUTS[ndim]
    names = " and ".join(f"'{name}'" for name in known)
    assert layout in known, f"Only supports {names} layout for now"


def check_pool_layout(layout: str, ndim: int) -> None:
    """Refuse a layout that no pooling of `ndim` axes knows."""
    known = POOL_LAYOUTS[ndim]
    names = " and ".join(known)
    assert layout in known, f"Only {names} layouts are valid for {ndim}D Pooling"
