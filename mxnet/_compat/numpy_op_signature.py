"""Functions of NumPy operators by the names under which they are registered."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from .. import numpy as _np
from .. import numpy_extension as _npx

_NAMESPACES = {"_npx__image_": _npx.image, "_npx_": _npx, "_np_": _np}


def _get_builtin_op(op_name: str) -> Callable | None:
    """Return the public function of a registered ``_np_`` or ``_npx_`` operator, or None.

    >>> _get_builtin_op("_np_sum").__name__
    'sum'
    """
    for prefix, namespace in _NAMESPACES.items():
        if op_name.startswith(prefix):
            function = getattr(namespace, op_name.removeprefix(prefix), None)
            if function is not None and not hasattr(function, "__signature__"):
                function.__signature__ = inspect.signature(function)  # where MXNet has it
            return function
    return None
