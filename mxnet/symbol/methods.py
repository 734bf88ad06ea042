"""Methods of Symbol whose signature differs from their operator's."""

from __future__ import annotations

from typing import Any

from .functions import split_v2
from .namespace import F
from .symbol import Symbol


def astype(self: Symbol, dtype: Any, **kwargs: Any) -> Symbol:
    """Return the symbol cast to another data type.

    Parameters
    ----------
    dtype
        The data type.
    """
    return F.cast(self, dtype=dtype, **kwargs)


def diag(self: Symbol, k: int = 0, **kwargs: Any) -> Symbol:
    """Return a diagonal, or a matrix with this diagonal.

    Parameters
    ----------
    k
        Number of the diagonal: 0 is the main one, positive ones are above it, negative below.
    """
    return F.diag(self, k=k, **kwargs)


def expand_dims(self: Symbol, axis: int, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Return the symbol with a new axis of size 1.

    Parameters
    ----------
    axis
        Position of the new axis in the result.
    inplace
        Accepted because arrays have it, without effect.
    """
    return F.expand_dims(self, axis=axis, **kwargs)


def flatten(self: Symbol, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Return the symbol with all axes but the first made one.

    Parameters
    ----------
    inplace
        Accepted because arrays have it, without effect.
    """
    return F.flatten(self, **kwargs)


def squeeze(self: Symbol, axis: Any = None, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Return the symbol without axes of size 1.

    Parameters
    ----------
    axis
        The axes to remove; None removes all of size 1.
    inplace
        Accepted because arrays have it, without effect.
    """
    return F.squeeze(self, axis=axis, **kwargs)


def add_special_methods(cls: type[Symbol]) -> None:
    """Give a class the methods of this module."""
    for method in (astype, diag, expand_dims, flatten, squeeze, split_v2):
        setattr(cls, method.__name__, method)
