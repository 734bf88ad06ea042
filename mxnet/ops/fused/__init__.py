"""Fused operators: what graph passes put in the place of several nodes.

They are registered like all others, so that a compiled graph prints, saves, loads and profiles.
Users do not call them. Each computes exactly what the nodes compute that it stands for.
"""

from __future__ import annotations

from . import (
    attention,
    channels_last,
    convolution,
    int8,
    likelihood,
    pointwise_blocks,
    prepared_dense,
    projection,
    recompute,
    recurrent,
)

__all__ = [
    "attention",
    "channels_last",
    "convolution",
    "int8",
    "likelihood",
    "pointwise_blocks",
    "prepared_dense",
    "projection",
    "recompute",
    "recurrent",
]
