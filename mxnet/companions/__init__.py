"""Adjustments for packages written for MXNet that would not run beside today's torch and NumPy.

MXNext runs on torch, so torch is always installed; some packages refuse versions of it that they
do not know, although they never use it together with MXNet. Others use names that NumPy has lost
since. `ADJUSTMENTS` lists the modules concerned; each function is called right after a module is
imported, and changes nothing but what its docstring names.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from .gluoncv import skip_torch_check
from .import_hook import call_after_import
from .numpy_names import restore_numpy_names

__all__ = ["ADJUSTMENTS", "install"]

ADJUSTMENTS: dict[str, Callable[[ModuleType], None]] = {
    "gluoncv.check": skip_torch_check,
    "gluoncv.*": restore_numpy_names,
    "gluonnlp.*": restore_numpy_names,
    "gluonts.*": restore_numpy_names,
    "insightface.*": restore_numpy_names,
    "mxboard.*": restore_numpy_names,
    "sockeye.*": restore_numpy_names,
    "xfer.*": restore_numpy_names,
}


def install() -> None:
    """Make the adjustments, also to packages that are being imported already."""
    for name, adjust in ADJUSTMENTS.items():
        call_after_import(name, adjust)
