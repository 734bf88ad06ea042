"""Code of ported operators: layers, expressions, functions of the library."""

from __future__ import annotations

from . import functions, layers, tensors
from .layers import MODULE_FORMS, PORT_ROWS

__all__ = ["MODULE_FORMS", "PORT_ROWS", "functions", "layers", "tensors"]
