"""MXNet's module of `import_model` and `get_model_metadata`."""

from __future__ import annotations

from ....interop.onnx.importer import get_model_metadata, import_model
from .import_onnx import GraphProto

__all__ = ["GraphProto", "get_model_metadata", "import_model"]
