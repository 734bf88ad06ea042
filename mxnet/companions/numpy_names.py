"""NumPy's old names (``np.float``, ``np.NaN``) for packages that were written before they went."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

# Removed in NumPy 1.24 and 2.0.
REMOVED_NAMES: dict[str, Any] = {
    "bool": bool,
    "complex": complex,
    "float": float,
    "int": int,
    "object": object,
    "str": str,
    "long": int,
    "unicode": str,
    "float_": np.float64,
    "complex_": np.complex128,
    "string_": np.bytes_,
    "unicode_": np.str_,
    "Inf": np.inf,
    "Infinity": np.inf,
    "infty": np.inf,
    "NaN": np.nan,
    "PINF": np.inf,
    "NINF": -np.inf,
    "alltrue": np.all,
    "sometrue": np.any,
    "product": np.prod,
    "cumproduct": np.cumprod,
    "row_stack": np.vstack,
    "in1d": np.isin,
    "asscalar": lambda array: array.item(),
}


class _OldNumPy(ModuleType):
    """NumPy, with the names that it has lost."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(np, name)
        except AttributeError:
            if name not in REMOVED_NAMES:
                raise
            return REMOVED_NAMES[name]


_old_numpy = _OldNumPy("numpy", np.__doc__)


def restore_numpy_names(module: ModuleType) -> None:
    """Let the global name ``np`` (or ``numpy``) of a module have NumPy's old names.

    NumPy itself stays as it is, and so does every other module.
    """
    for name in ("np", "numpy", "onp", "_np"):
        if vars(module).get(name) is np:
            setattr(module, name, _old_numpy)
