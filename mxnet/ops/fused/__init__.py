"""Fused operators: what graph passes put in the place of several nodes.

They are registered like all others, so that a compiled graph prints, saves, loads and profiles.
Users do not call them. Each computes exactly what the nodes compute that it stands for.
"""

from __future__ import annotations

from . import (
    channels_last,
    convolution,
    pointwise_blocks,
    projection,
    quantized_layers,
    recompute,
    recurrent,
)

__all__ = [
    "channels_last",
    "convolution",
    "pointwise_blocks",
    "projection",
    "quantized_layers",
    "recompute",
    "recurrent",
]
