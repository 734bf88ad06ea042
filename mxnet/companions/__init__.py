"""Adjustments for packages written for MXNet that would not start beside torch.

MXNext runs on torch, so torch is always installed; some packages refuse versions of it that they
do not know, although they never use it together with MXNet. `ADJUSTMENTS` lists the modules
concerned; each function is called once, right after its module is imported, and changes nothing
but the check that its docstring names.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from .gluoncv import skip_torch_check
from .import_hook import call_after_import

__all__ = ["ADJUSTMENTS", "install"]

ADJUSTMENTS: dict[str, Callable[[ModuleType], None]] = {
    "gluoncv.check": skip_torch_check,
}


def install() -> None:
    """Make the adjustments, also to packages that are being imported already."""
    for name, adjust in ADJUSTMENTS.items():
        call_after_import(name, adjust)
