"""Which of two values of a metric is the better one."""

from __future__ import annotations

import warnings

import numpy as np


def comparison(mode: str, name: str, what: str) -> np.ufunc:
    """Return `np.less` or `np.greater`: whether a new value is better than an old one."""
    if mode not in ("auto", "min", "max"):
        warnings.warn(
            f"{what} mode {mode} is unknown, fallback to auto mode.", RuntimeWarning, stacklevel=3
        )
        mode = "auto"
    if mode == "auto":
        # MXNet 1.9.1 takes `greater` here for every metric, a loss too, and warns.
        warnings.warn(
            f"`greater` operator will be used to determine if {name} has improved. Please specify "
            "`mode='min'` to use the `less` operator. Specify `mode='max' to disable this "
            "warning.`",
            stacklevel=3,
        )
    return np.less if mode == "min" else np.greater
