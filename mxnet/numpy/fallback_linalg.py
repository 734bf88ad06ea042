"""Functions of `mx.np.linalg` that NumPy computes, as in `fallback`."""

from __future__ import annotations

from typing import Any

import numpy as onp

from .fallback import REMOVED, make_fallback

NAMES = ("cond", "lstsq", "matrix_power", "matrix_rank", "multi_dot", "qr")
__all__ = list(NAMES)


def _lstsq(a: Any, b: Any, rcond: Any = "warn") -> Any:
    """Solve least squares; NumPy 2 dropped ``"warn"``, which meant the precision of the machine."""
    return onp.linalg.lstsq(a, b, rcond=-1 if rcond == "warn" else rcond)


REMOVED["lstsq"] = _lstsq

for _name in __all__:
    globals()[_name] = make_fallback(_name, onp.linalg, "mxnet.numpy.linalg")
