"""What composites check before they call operators."""

from __future__ import annotations

from typing import Any

from ...error import InvalidType


def require_array(F: Any, name: str, value: Any) -> None:
    """Refuse what is not an array of the namespace."""
    if not F.is_array(value):
        raise InvalidType(
            f"Argument {name} must have {F.array_class.__name__} type, but got {value!r} of "
            f"{type(value).__name__}. Wrap it: mx.np.array(value)."
        )
