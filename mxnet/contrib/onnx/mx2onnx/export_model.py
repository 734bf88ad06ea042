"""The module of `export_model` before MXNet 1.9."""

from __future__ import annotations

from ....interop.onnx.export import export_model, get_operator_support

__all__ = ["export_model", "get_operator_support"]
