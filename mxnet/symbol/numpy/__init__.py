"""`mx.sym.np`: NumPy's functions on symbols. `mxnet.numpy` fills it from the operator registry."""

from __future__ import annotations

from . import _internal, linalg, random
from ._symbol import _Symbol

__all__ = ["_internal", "linalg", "random"]
