"""Fused operators: what graph passes put in the place of several nodes.

They are registered like all others, so that a compiled graph prints, saves, loads and profiles.
Users do not call them. Each computes exactly what the nodes compute that it replaces.
"""

from __future__ import annotations

from . import (
    attention,
    batch_norm,
    convolution,
    dense,
    log_likelihood,
    recurrent,
    subgraph_operators,
)

__all__ = [
    "attention",
    "batch_norm",
    "convolution",
    "dense",
    "log_likelihood",
    "recurrent",
    "subgraph_operators",
]
