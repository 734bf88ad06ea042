"""Operators that files of other frameworks need and MXNet does not have: the rest of ONNX."""

from __future__ import annotations

from . import arithmetic, indexing, layers, sampling, shapes

__all__ = ["arithmetic", "indexing", "layers", "sampling", "shapes"]
