"""Arrays from text files."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..context import current_context
from .multiarray import array, ndarray

__all__ = ["genfromtxt"]


def genfromtxt(*args: Any, **kwargs: Any) -> ndarray:
    """Load an array from a text file by `numpy.genfromtxt`, by default as float32.

    Parameters
    ----------
    args
        Arguments of `numpy.genfromtxt`: the file, or its lines, first.

    >>> mx.np.genfromtxt(["1,2", "3,4"], delimiter=",")
    array([[1., 2.],
           [3., 4.]])
    """
    ctx = kwargs.pop("ctx", None) or current_context()
    dtype = kwargs.pop("dtype", None)
    return array(onp.genfromtxt(*args, **kwargs), dtype=dtype or onp.float32, ctx=ctx)
