"""Lazy import of the `onnx` library, and its types."""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType

import numpy as np
import torch

from ...error import MXNetError

__all__ = ["MissingOnnx", "UnsupportedExport", "load_onnx", "numpy_dtype", "onnx_dtype"]


class UnsupportedExport(MXNetError, NotImplementedError):
    """Raised if a node cannot be exported."""


class MissingOnnx(MXNetError, ImportError):
    """Raised if the `onnx` library is not installed."""


@cache
def load_onnx() -> ModuleType:
    """Return the `onnx` module; if it is missing, the error says what to install."""
    try:
        for part in ("checker", "helper", "numpy_helper", "shape_inference"):
            importlib.import_module(f"onnx.{part}")
        return importlib.import_module("onnx")
    except ImportError as error:
        raise MissingOnnx(
            "ONNX files need the onnx library. Install it with: pip install onnx"
        ) from error


def numpy_dtype(dtype: torch.dtype) -> np.dtype:
    """Return the NumPy dtype that ONNX stores a torch dtype as."""
    onnx = load_onnx()
    return onnx.helper.tensor_dtype_to_np_dtype(onnx_dtype(dtype))


def onnx_dtype(dtype: torch.dtype) -> int:
    """Return ONNX's number of a torch dtype."""
    proto = load_onnx().TensorProto
    table = {
        torch.float32: proto.FLOAT,
        torch.float64: proto.DOUBLE,
        torch.float16: proto.FLOAT16,
        torch.bfloat16: proto.BFLOAT16,
        torch.uint8: proto.UINT8,
        torch.int8: proto.INT8,
        torch.int16: proto.INT16,
        torch.int32: proto.INT32,
        torch.int64: proto.INT64,
        torch.bool: proto.BOOL,
        torch.complex64: proto.COMPLEX64,
        torch.complex128: proto.COMPLEX128,
    }
    if dtype not in table:
        raise UnsupportedExport(f"ONNX export: no ONNX type for {dtype}")
    return table[dtype]
