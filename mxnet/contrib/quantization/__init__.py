"""Quantize networks to 8-bit integers: ``mx.contrib.quantization``, also ``mx.contrib.quant``."""

from .calibration import (
    LayerHistogramCollector,
    LayerOutputCollector,
    LayerOutputMinMaxCollector,
    combine_histogram,
    find_threshold,
)
from .convert import (
    calib_graph,
    quantize_graph,
    quantize_model,
    quantize_model_mkldnn,
    quantize_net,
    quantize_net_v2,
)

__all__ = [
    "LayerHistogramCollector",
    "LayerOutputCollector",
    "LayerOutputMinMaxCollector",
    "calib_graph",
    "combine_histogram",
    "find_threshold",
    "quantize_graph",
    "quantize_model",
    "quantize_model_mkldnn",
    "quantize_net",
    "quantize_net_v2",
]
