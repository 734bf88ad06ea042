"""NumPy's old names (``np.float``, ``np.NaN``) for packages that were written before they went."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def lend_numpy_names() -> Iterator[None]:
    """Let NumPy have its old names while a module that uses them is imported."""
    lent = [name for name in REMOVED_NAMES if name not in vars(np) and not _has(name)]
    for name in lent:
        setattr(np, name, REMOVED_NAMES[name])
    try:
        yield
    finally:
        for name in lent:
            delattr(np, name)


def _has(name: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hasattr(np, name)


_old_numpy = _OldNumPy("numpy", np.__doc__)


def restore_numpy_names(module: ModuleType) -> None:
    """Let the global name ``np`` (or ``numpy``) of a module have NumPy's old names.

    NumPy itself stays as it is, and so does every other module.
    """
    for name in ("np", "numpy", "onp", "_np"):
        if vars(module).get(name) is np:
            setattr(module, name, _old_numpy)
