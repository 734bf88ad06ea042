"""Functions of NumPy operators by the names under which they are registered."""

from __future__ import annotations

from collections.abc import Callable

from . import numpy as _np
from . import numpy_extension as _npx


def _get_builtin_op(op_name: str) -> Callable | None:
    """Return the public function of a registered ``_np_`` or ``_npx_`` operator, or None.

    >>> _get_builtin_op("_np_sum").__name__
    'sum'
    """
    if op_name.startswith("_npx__image_"):
        return getattr(_npx.image, op_name.removeprefix("_npx__image_"), None)
    if op_name.startswith("_npx_"):
        return getattr(_npx, op_name.removeprefix("_npx_"), None)
    if op_name.startswith("_np_"):
        return getattr(_np, op_name.removeprefix("_np_"), None)
    return None
