"""Concurrent blocks, identity, sparse embedding, synchronized normalization, pixel shuffle."""

from . import basic_layers
from .basic_layers import (
    Concurrent,
    HybridConcurrent,
    Identity,
    PixelShuffle1D,
    PixelShuffle2D,
    PixelShuffle3D,
    SparseEmbedding,
    SyncBatchNorm,
)
