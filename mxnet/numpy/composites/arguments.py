"""How composites pass on what their callers gave."""

from __future__ import annotations

from typing import Any

from ...error import InvalidType

_NOTHING: dict[str, Any] = {}


def to(out: Any) -> dict[str, Any]:
    """Return the keyword that makes an operator write into `out`; nothing if it is None."""
    return _NOTHING if out is None else {"out": out}


def given(**attributes: Any) -> dict[str, Any]:
    """Return the attributes that are not None.

    >>> given(axis=0, dtype=None)
    {'axis': 0}
    """
    return {key: value for key, value in attributes.items() if value is not None}


def require_array(F: Any, name: str, value: Any) -> None:
    """Refuse what is not an array of the namespace."""
    if not F.is_array(value):
        raise InvalidType(
            f"Argument {name} must have {F.array_class.__name__} type, but got {value!r} of "
            f"{type(value).__name__}. Wrap it: mx.np.array(value)."
        )
