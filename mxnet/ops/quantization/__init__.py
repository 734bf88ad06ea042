"""Operators on 8-bit integers: conversions and layers; `ops/fused` has their fast kernels."""

from . import calibration, conversions, elementwise, joining, layers, normalization, recurrent

__all__ = [
    "calibration",
    "conversions",
    "elementwise",
    "joining",
    "layers",
    "normalization",
    "recurrent",
]
