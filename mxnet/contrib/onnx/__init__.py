"""ONNX files: `import_model`, `import_to_gluon`, `get_model_metadata` and `export_model`."""

from __future__ import annotations

from ...onnx import mx2onnx
from ...onnx.export import export_model
from ...onnx.importer.api import get_model_metadata, import_model, import_to_gluon
from . import onnx2mx

__all__ = [
    "export_model",
    "get_model_metadata",
    "import_model",
    "import_to_gluon",
    "mx2onnx",
    "onnx2mx",
]
