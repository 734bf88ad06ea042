"""Modules: symbols with parameters and an optimizer, with `fit` and `predict`."""

from __future__ import annotations

from .._compat.star_imports import complete_star_imports
from .base_module import BaseModule
from .bucketing_module import BucketingModule
from .module import Module
from .python_module import PythonLossModule, PythonModule
from .sequential_module import SequentialModule

__all__ = [
    "BaseModule",
    "BucketingModule",
    "Module",
    "PythonLossModule",
    "PythonModule",
    "SequentialModule",
]

complete_star_imports("module")
