"""Automatic names: `NameManager` counts per hint, `Prefix` adds a prefix."""

from __future__ import annotations

import threading
from typing import Any

from .base import AssignableClass, classproperty

__all__ = ["NameManager", "Prefix"]


class NameManager(metaclass=AssignableClass):
    """Generates names of symbols and blocks: ``hint0``, ``hint1``, ...

    As a scope, it has its own counters.

    >>> with NameManager() as names:
    ...     names.get(None, "conv"), names.get(None, "conv"), names.get("mine", "conv")
    ('conv0', 'conv1', 'mine')
    """

    _current: Any

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}
        self._outer: list[NameManager] = []

    def get(self, name: str | None, hint: str) -> str:
        """Return the explicit name, or the hint with the next number."""
        if name:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    @classproperty
    def current(cls) -> NameManager:  # pyright: ignore[reportRedeclaration] (its setter)
        """The current manager of this thread."""
        return NameManager._current.value

    @current.setter
    def current(cls, manager: NameManager) -> None:
        NameManager._current.value = manager

    def __enter__(self) -> NameManager:
        self._outer.append(NameManager._current.value)
        NameManager._current.value = self
        return self

    def __exit__(self, *exc: object) -> None:
        NameManager._current.value = self._outer.pop()


class Prefix(NameManager):
    """A name manager that adds a prefix to every name, explicit or automatic.

    Parameters
    ----------
    prefix
        The prefix.

    >>> with Prefix("stage1_") as names:
    ...     names.get(None, "conv"), names.get("fc", "conv")
    ('stage1_conv0', 'stage1_fc')
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """Return the prefixed name."""
        return self._prefix + super().get(name, hint)


class _Current(threading.local):
    def __init__(self) -> None:
        self.value = NameManager()


NameManager._current = _Current()
