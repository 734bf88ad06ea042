"""MXNet's name of the module that imports."""

from __future__ import annotations

from ...onnx.importer.api import get_model_metadata, import_model, import_to_gluon

__all__ = ["get_model_metadata", "import_model", "import_to_gluon"]
