"""Methods of Symbol whose signature differs from their operator's."""

from __future__ import annotations

from typing import Any

from ..ops import registry
from .codegen import call, entry_of
from .functions import split_v2
from .symbol import Symbol


def _apply(self: Symbol, name: str, hint: str, attrs: dict[str, Any], kwargs: dict) -> Symbol:
    given = {registry.get(name).inputs[0].name: entry_of(self, "data")}
    return call(type(self), registry.get(name), hint, given, {**attrs, **kwargs})


def astype(self: Symbol, dtype: Any, **kwargs: Any) -> Symbol:
    """Return the symbol cast to another data type."""
    return _apply(self, "Cast", "cast", {"dtype": dtype}, kwargs)


def diag(self: Symbol, k: int = 0, **kwargs: Any) -> Symbol:
    """Return a diagonal, or a matrix with this diagonal."""
    return _apply(self, "diag", "diag", {"k": k}, kwargs)


def expand_dims(self: Symbol, axis: int, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Return the symbol with a new axis of size 1."""
    return _apply(self, "expand_dims", "expand_dims", {"axis": axis}, kwargs)


def flatten(self: Symbol, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Return the symbol with all axes but the first made one."""
    return _apply(self, "Flatten", "flatten", {}, kwargs)


def squeeze(self: Symbol, axis: Any = None, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Return the symbol without axes of size 1."""
    return _apply(self, "squeeze", "squeeze", {"axis": axis}, kwargs)


def add_special_methods(cls: type[Symbol]) -> None:
    """Give a class the methods of this module."""
    for method in (astype, diag, expand_dims, flatten, squeeze, split_v2):
        setattr(cls, method.__name__, method)
