"""Parts of MXNet outside its core: mixed precision, quantization, text, SVRG, TensorBoard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._compat.star_imports import complete_star_imports
from .._process.on_demand import import_on_demand
from . import autograd, io, ndarray, symbol, tensorboard, text
from . import ndarray as nd
from . import symbol as sym

if TYPE_CHECKING:
    from . import amp, onnx, quantization, svrg_optimization
    from . import quantization as quant

# Larger and seldom used.
_ON_DEMAND = {
    "amp": "amp",
    "onnx": "onnx",
    "quant": "quantization",
    "quantization": "quantization",
    "svrg_optimization": "svrg_optimization",
}
__getattr__, __dir__ = import_on_demand(__name__, _ON_DEMAND)
complete_star_imports("contrib")
