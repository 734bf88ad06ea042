"""Models in the ONNX format: `export_model` writes them, `import_model` reads them."""

from __future__ import annotations

from . import backend, mx2onnx
from .export import export_model, get_operator_support

__all__ = ["backend", "export_model", "get_operator_support", "mx2onnx"]
