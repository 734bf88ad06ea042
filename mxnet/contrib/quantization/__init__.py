"""Quantize networks to 8-bit integers: ``mx.contrib.quantization``, also ``mx.contrib.quant``."""

from ...graph.quantization.calibration import (
    LayerHistogramCollector,
    LayerOutputCollector,
    LayerOutputMinMaxCollector,
    _get_optimal_threshold,
    _get_optimal_thresholds,
    _smooth_distribution,
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
from .steps import (
    _calibrate_quantized_sym,
    _load_params,
    _load_sym,
    _quantize_params,
    _quantize_symbol,
)

# MXNet's tests and some programs use these names.
_LayerHistogramCollector = LayerHistogramCollector
_LayerOutputMinMaxCollector = LayerOutputMinMaxCollector

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
