"""Parts of MXNet outside its core: mixed precision, quantization, text, SVRG, TensorBoard."""

from __future__ import annotations

import importlib
from types import ModuleType

from . import autograd, io, ndarray, symbol, tensorboard, text
from . import ndarray as nd
from . import symbol as sym

# Larger and seldom used: they are loaded when asked for.
_ON_DEMAND = {
    "amp": "amp",
    "onnx": "onnx",
    "quant": "quantization",
    "quantization": "quantization",
    "svrg_optimization": "svrg_optimization",
}


def __getattr__(name: str) -> ModuleType:
    if name in _ON_DEMAND:
        return importlib.import_module(f"{__name__}.{_ON_DEMAND[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})
