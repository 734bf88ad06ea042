"""Fused operators, which graph passes insert in place of several nodes.

They are registered like all others, so that compiled graphs can be printed, saved, loaded and
profiled. Users do not call them. Each has exactly the result of the nodes it replaces.
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
