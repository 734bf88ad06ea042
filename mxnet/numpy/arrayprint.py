"""Printing of arrays by NumPy, with its options."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..util import set_module  # noqa: F401 (MXNet shows it here)

__all__ = ["set_printoptions"]


def set_printoptions(
    precision: int | None = None, threshold: int | None = None, **kwarg: Any
) -> None:
    """Set the options of printing arrays.

    Parameters
    ----------
    precision
        Number of digits after the decimal point.
    threshold
        Number of elements above which arrays are summarized.

    >>> mx.np.set_printoptions(precision=2)
    >>> mx.np.array([1.23456])
    array([1.23])
    >>> mx.np.set_printoptions(precision=8)
    """
    if kwarg:
        raise NotImplementedError(
            f"mxnet.numpy.set_printoptions does not support {', '.join(kwarg)} for now."
        )
    onp.set_printoptions(precision=precision, threshold=threshold)
