"""`mx.nd.np`: NumPy's functions on arrays, those of `mx.np`. `mxnet.numpy` fills it."""

from __future__ import annotations

from . import _internal, linalg, random

__all__ = ["_internal", "linalg", "random"]
