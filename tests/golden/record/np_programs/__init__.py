"""Whole programs under ``npx.set_np()``: run by real MXNet when recording, by MXNext in tests.

Each module has ``train(mx)``, which returns what every step gave as lists of numbers. Data and
first weights are the same everywhere (`values`), so the numbers can be compared step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

PROGRAMS = (
    "bert",
    "gan",
    "lenet",
    "linear_regression",
    "matrix_factorization",
    "resnet",
    "seq2seq",
    "softmax_regression",
    "ssd",
    "transformer",
)


def values(shape: tuple[int, ...], start: int = 0, scale: float = 0.5) -> onp.ndarray:
    """Return numbers that are the same everywhere."""
    count = int(onp.prod(shape))
    return (
        (onp.sin(onp.arange(start, start + count) * 0.7) * scale).reshape(shape).astype("float32")
    )


def fill(mx: Any, net: Any, scale: float = 0.3) -> None:
    """Give the parameters of a network values that are the same everywhere."""
    for number, (name, param) in enumerate(net.collect_params().items()):
        made = values(param.shape, number, scale)
        if name.endswith(("gamma", "var")):
            made = onp.abs(made) + 0.75
        param.set_data(mx.np.array(made))


def numbers(*arrays: Any) -> list[float]:
    """Return arrays, or Python numbers, as a flat list."""
    found: list[float] = []
    for a in arrays:
        flat = onp.asarray(a.asnumpy() if hasattr(a, "asnumpy") else a, dtype="float64").ravel()
        found += [round(float(x), 6) for x in flat]
    return found
