"""Operators on 8-bit integers: conversions, arrays, layers.

The passes of `mxnet/graph/quantization` put them into graphs.

MXNet's own take and return arrays with ranges; those of `int8.py` have constant ranges.
"""

from . import arrays, calibration, conversions, int8, layers, recurrent, subgraph_layers

__all__ = [
    "arrays",
    "calibration",
    "conversions",
    "int8",
    "layers",
    "recurrent",
    "subgraph_layers",
]
