"""Functions of `mx.np.linalg` computed by NumPy; see `fallback`."""

from __future__ import annotations

import sys
from functools import cache, partial
from typing import Any

import numpy as onp

from .codegen.namespaces import fill
from .fallback import REMOVED, make_fallback

NAMES = ("cond", "lstsq", "matrix_power", "matrix_rank", "multi_dot", "qr")


def _lstsq(a: Any, b: Any, rcond: Any = "warn") -> Any:
    """Solve least squares; ``rcond="warn"``, removed in NumPy 2, means machine precision."""
    return onp.linalg.lstsq(a, b, rcond=-1 if rcond == "warn" else rcond)


REMOVED["lstsq"] = _lstsq

_make = partial(make_fallback, source=onp.linalg, module="mxnet.numpy.linalg")
fill(sys.modules[__name__], {name: cache(partial(_make, name)) for name in NAMES})
