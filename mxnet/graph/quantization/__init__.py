"""8-bit networks: calibration, rewriting and kernels. `mx.contrib.quantization` is the API.

| file | holds |
|---|---|
| `rewriting.py` | a float graph becomes one on 8-bit integers, with parameters and ranges |
| `calibration.py` | what collects the ranges of outputs, and chooses thresholds |
| `fused_layers.py` | layers as nodes that hold their graph, as in files of MXNet's oneDNN backend |
| `lowering.py` | the pass `fuse_quantized`: calibrated layers get constant ranges |
| `kernels.py` | those operators by oneDNN, on weights that are packed once |

The operators are declared in `mxnet/ops/quantization`.
"""

from __future__ import annotations

from . import kernels

__all__ = ["kernels"]
