"""Functions of `mx.np.linalg` that NumPy computes, as in `fallback`."""

from __future__ import annotations

import numpy as onp

from .fallback import make_fallback

NAMES = ("cond", "lstsq", "matrix_power", "matrix_rank", "multi_dot", "qr")
__all__ = list(NAMES)

for _name in __all__:
    globals()[_name] = make_fallback(_name, onp.linalg, "mxnet.numpy.linalg")
