"""The place of `MXNetGraph` before version 1.9."""

from __future__ import annotations

from ....onnx.mx2onnx._export_onnx import MXNetGraph

__all__ = ["MXNetGraph"]
