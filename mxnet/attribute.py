"""`AttrScope`: attributes of all symbols created inside a ``with`` block."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, ClassVar

from .base import AssignableClass, classproperty, string_types  # noqa: F401 (MXNet shows it here)

__all__ = ["AttrScope"]


class AttrScope(metaclass=AssignableClass):
    """Attach attributes to all symbols created in this scope; nested scopes are combined.

    >>> with AttrScope(ctx_group="dev1"):
    ...     AttrScope.current.get({"lr_mult": "2"})
    {'ctx_group': 'dev1', 'lr_mult': '2'}
    """

    _current: Any
    # Number of uses of each name.
    _subgraph_names: ClassVar[defaultdict[str, int]] = defaultdict(int)

    def __init__(self, **kwargs: str) -> None:
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise ValueError(
                    f"Attributes need to be string, but {key}={value!r} is "
                    f"{type(value).__name__}. Write {key}='{value}'."
                )
        self._attr = kwargs
        self._outer: list[tuple[AttrScope, dict[str, str]]] = []

    def get(self, attr: Mapping[str, str] | None) -> dict[str, str]:
        """Return the scope's attributes, overridden by the given ones."""
        return {**self._attr, **attr} if attr else dict(self._attr)

    @classproperty
    def current(cls) -> AttrScope:  # pyright: ignore[reportRedeclaration] (its setter)
        """The current scope of this thread."""
        return AttrScope._current.value

    @current.setter
    def current(cls, scope: AttrScope) -> None:
        AttrScope._current.value = scope

    def __enter__(self) -> AttrScope:
        outer = AttrScope._current.value
        self._outer.append((outer, self._attr))
        self._attr = {**outer._attr, **self._attr}
        AttrScope._current.value = self
        return self

    def __exit__(self, *exc: object) -> None:
        AttrScope._current.value, self._attr = self._outer.pop()


class _Current(threading.local):
    def __init__(self) -> None:
        self.value = AttrScope()


AttrScope._current = _Current()
