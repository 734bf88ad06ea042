"""Operators on 8-bit integers: conversions and layers; `ops/fused` has their fast kernels."""

from . import conversions, elementwise, layers

__all__ = ["conversions", "elementwise", "layers"]
