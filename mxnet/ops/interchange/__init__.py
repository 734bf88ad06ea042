"""Operators that files of other frameworks need and MXNet does not have: the rest of ONNX."""

from __future__ import annotations

from . import (
    arithmetic,
    attention,
    integer_products,
    pooling,
    recurrent,
    runtime_shapes,
    sampling,
    scattering,
    selecting,
    signal,
)

__all__ = [
    "arithmetic",
    "attention",
    "integer_products",
    "pooling",
    "recurrent",
    "runtime_shapes",
    "sampling",
    "scattering",
    "selecting",
    "signal",
]
