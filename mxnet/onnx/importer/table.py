"""The table of ONNX operators that can be imported."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

Build = Callable[..., Any]
FAMILIES = (
    "elementwise",
    "arithmetic",
    "reduce",
    "shape_changing",
    "indexing",
    "creation",
    "dense",
    "convolution",
    "normalization",
    "recurrent",
    "vision",
    "quantization",
    "control_flow",
    "sequences",
    "signal",
    "losses",
)
_rows: dict[str, Build] = {}


def imports(*op_types: str) -> Callable[[Build], Build]:
    """Register how ONNX operators are built from symbols: ``build(node, *values)``."""

    def register(build: Build) -> Build:
        for op_type in op_types:
            if op_type in _rows:
                raise ValueError(f"ONNX operator {op_type!r} has two rows")
            _rows[op_type] = build
        return build

    return register


@cache
def importers() -> dict[str, Build]:
    """Return all rows by ONNX operator."""
    for family in FAMILIES:
        importlib.import_module(f".rows.{family}", __package__)
    return _rows
