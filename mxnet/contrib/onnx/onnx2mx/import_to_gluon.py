"""MXNet's module of `import_to_gluon`."""

from __future__ import annotations

from ....interop.onnx.importer import import_to_gluon
from .import_onnx import GraphProto

__all__ = ["GraphProto", "import_to_gluon"]
