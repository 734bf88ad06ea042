"""ONNX files: `import_model`, `import_to_gluon`, `get_model_metadata` and `export_model`."""

from __future__ import annotations

from ...interop.onnx.export import export_model
from ...interop.onnx.importer import get_model_metadata, import_model, import_to_gluon
from . import mx2onnx, onnx2mx

# MXNet shows the functions under these names too.
export_model_ = export_model
get_model_metadata_ = get_model_metadata
import_model_ = import_model
import_to_gluon_ = import_to_gluon

__all__ = [
    "export_model",
    "export_model_",
    "get_model_metadata",
    "get_model_metadata_",
    "import_model",
    "import_model_",
    "import_to_gluon",
    "import_to_gluon_",
    "mx2onnx",
    "onnx2mx",
]
