"""8-bit networks: calibration, rewriting and kernels. `mx.contrib.quantization` is the API.

| file | holds |
|---|---|
| `rewriting.py` | conversion of a float graph, its parameters and ranges to 8-bit integers |
| `calibration.py` | collectors of output ranges, and the choice of thresholds |
| `fused_layers.py` | layers as nodes with subgraphs, as in files of MXNet's oneDNN backend |
| `lowering.py` | the pass `fuse_quantized`: constant ranges for calibrated layers |
| `kernels.py` | oneDNN kernels of these layers, with weights packed once |

The operators are declared in `mxnet/ops/quantization`.
"""

from __future__ import annotations

from . import kernels

__all__ = ["kernels"]
