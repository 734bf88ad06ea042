"""Registry of operators by name and alias."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..error import MXNetError, did_you_mean

if TYPE_CHECKING:
    from .declare import Op

_by_name: dict[str, Op] = {}
_watchers: list[Callable[[str, Op], None]] = []


def register(op: Op, *names: str) -> None:
    """Register an operator under names, each of which must be new."""
    for name in names:
        if name in _by_name:
            raise ValueError(f"operator name {name!r} is declared twice")
        _by_name[name] = op
        for watcher in _watchers:
            watcher(name, op)


def watch(watcher: Callable[[str, Op], None]) -> None:
    """Call ``watcher(name, op)`` for every name, including those declared later.

    Operators that need arrays or graphs are declared by packages that import these namespaces.
    """
    for name, op in _by_name.items():
        watcher(name, op)
    _watchers.append(watcher)


def find(name: str) -> Op | None:
    """Return the operator of this name, or None."""
    return _by_name.get(name)


def get(name: str) -> Op:
    """Return the operator of this name; raise for an unknown name, with the nearest match.

    >>> get("broadcast_plus").name
    'broadcast_add'
    """
    op = _by_name.get(name)
    if op is None:
        raise MXNetError(
            f"Operator {name!r} is not registered. {did_you_mean(name, _by_name)}".rstrip()
        )
    return op


def names() -> list[str]:
    """Return all names, including aliases."""
    return list(_by_name)


def operators() -> Iterator[Op]:
    """Yield each operator once."""
    seen = set()
    for op in _by_name.values():
        if id(op) not in seen:
            seen.add(id(op))
            yield op
