"""Adjustments for packages written for MXNet that would not run with today's torch and NumPy.

MXNext runs on torch, so torch is always installed; some packages refuse versions of it that they
do not know, although they never use it together with MXNet. Others use names that NumPy has lost
since. `ADJUSTMENTS` lists the modules concerned; each function is called right after a module is
imported, and changes nothing but what its docstring names.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import NamedTuple

from .gluoncv import skip_torch_check
from .import_hook import call_after_import
from .numpy_names import lend_numpy_names, restore_numpy_names

__all__ = ["ADJUSTMENTS", "Adjustment", "install"]


class Adjustment(NamedTuple):
    """What is done to a module: after its import, and around it."""

    after: Callable[[ModuleType], None]
    during: Callable[[], AbstractContextManager] = nullcontext


OLD_NUMPY = Adjustment(restore_numpy_names, lend_numpy_names)
ADJUSTMENTS = {
    "gluoncv.check": Adjustment(skip_torch_check),
    "gluoncv.*": OLD_NUMPY,
    "gluonnlp.*": OLD_NUMPY,
    "gluonts.*": OLD_NUMPY,
    "insightface.*": OLD_NUMPY,
    "mxboard.*": OLD_NUMPY,
    "sockeye.*": OLD_NUMPY,
    "xfer.*": OLD_NUMPY,
}


def install() -> None:
    """Make the adjustments, also to packages that are being imported already."""
    for name, adjustment in ADJUSTMENTS.items():
        call_after_import(name, *adjustment)
