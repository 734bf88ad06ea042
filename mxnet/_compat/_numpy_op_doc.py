"""Documentation of NumPy operators by the names under which they are registered."""

from __future__ import annotations

from collections.abc import Callable

from .numpy_op_signature import _get_builtin_op


def __getattr__(name: str) -> Callable:
    function = None if name.startswith("__") else _get_builtin_op(name)
    if function is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return function
