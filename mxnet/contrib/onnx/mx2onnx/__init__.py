"""The exporter under its module name before MXNet 1.9."""

from __future__ import annotations

from . import export_onnx
from .export_model import export_model, get_operator_support

__all__ = ["export_model", "export_onnx", "get_operator_support"]
