"""The module of `MXNetGraph` before MXNet 1.9."""

from __future__ import annotations

from ....interop.onnx.mx2onnx._export_onnx import MXNetGraph

__all__ = ["MXNetGraph"]
