"""The `onnx` library, imported when it is first needed."""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType

from ..error import MXNetError

__all__ = ["MissingOnnx", "load_onnx"]


class MissingOnnx(MXNetError, ImportError):
    """The `onnx` library is not installed."""


@cache
def load_onnx() -> ModuleType:
    """Return the `onnx` module; without it the error names what to install."""
    try:
        for part in ("checker", "helper", "numpy_helper", "shape_inference"):
            importlib.import_module(f"onnx.{part}")
        return importlib.import_module("onnx")
    except ImportError as error:
        raise MissingOnnx(
            "ONNX files need the onnx library. Install it with: pip install 'mxnext[onnx]'"
        ) from error
