"""MXNet's module of `export_model`, which programs import it from."""

from __future__ import annotations

from ..export import export_model, get_operator_support
from ._export_helper import load_module
from ._export_onnx import MXNetGraph

__all__ = ["MXNetGraph", "export_model", "get_operator_support", "load_module"]
