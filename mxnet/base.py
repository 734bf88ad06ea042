"""Small things that everything may use: the error root, number kinds, the Null marker."""

from __future__ import annotations

from typing import Any

import numpy as np

from .error import MXNetError, NotImplementedForSymbol, register_error


string_types = (str,)
numeric_types = (float, int, np.generic)
integer_types = (int, np.int32, np.int64)
mx_real_t = np.float32
mx_uint = int
py_str = str

__all__ = ["MXNetError", "NotImplementedForSymbol", "register_error"]


class _NullType:
    """Stands for an argument that was not given."""

    def __repr__(self) -> str:
        return "_Null"

    def __bool__(self) -> bool:
        return False


_Null = _NullType()


def _as_list(obj: Any) -> list:
    """Return lists and tuples as a list, anything else as a list of one.

    >>> _as_list(3), _as_list((1, 2))
    ([3], [1, 2])
    """
    return list(obj) if isinstance(obj, list | tuple) else [obj]


class classproperty:  # noqa: N801 (MXNet's spelling)
    """A read-only property of the class itself."""

    def __init__(self, getter: Any) -> None:
        self.getter = getter

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.getter(owner)
