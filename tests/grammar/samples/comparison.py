"""Rows for comparisons and logic."""

import numpy as np

from tests.grammar.sampling import each, integers, sample

NAMES = (
    "equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal",
    "logical_and", "logical_or", "logical_xor",
)  # fmt: skip
DTYPES = ("float32", "float64", "float16", "int32", "int64", "int8", "uint8")
LEFT, RIGHT = [0, 0, 1, 2, 3], [0, 2, 1, 0, 1]
ODD_LEFT, ODD_RIGHT = [np.nan, 1, np.nan, np.inf, -np.inf], [np.nan, np.nan, 0, np.inf, np.inf]

for short in NAMES:
    for dtype in DTYPES:
        left, right = np.array(LEFT, dtype), np.array(RIGHT, dtype)
        sample(f"broadcast_{short}", left, right, grad=False)
        sample(f"_{short}", left, right, grad=False)
        sample(f"_{short}_scalar", left, scalar=each(0, 1, 1.5), grad=False)
    sample(f"broadcast_{short}", integers(0, 3, 2, 1, 3), integers(0, 3, 2, 1), grad=False)
    sample(f"broadcast_{short}", ODD_LEFT, ODD_RIGHT, grad=False)
    sample(f"_{short}_scalar", ODD_LEFT, scalar=each(0, np.inf), grad=False)
    sample(f"_{short}_scalar", np.array([True, False]), scalar=1, grad=False)
    sample(f"_{short}_scalar", np.array([1, 2], "int32"), scalar=1.5, is_int=False, grad=False)
    sample(f"_{short}_scalar", [0.1, 1], grad=False)
    sample(f"_{short}_scalar", [0.1, 0.3], scalar=0.1, grad=False)

for tolerance in (1e-5, 0.2):
    sample("_contrib_allclose", [1, 2], [1, 2.1], atol=tolerance, grad=False)
    sample("_contrib_allclose", [1, 2], [1, 2.1], rtol=tolerance, grad=False)
sample("_contrib_allclose", [1, np.nan], [1, np.nan], equal_nan=each(True, False), grad=False)
sample("_contrib_allclose", [np.inf, -np.inf], [np.inf, -np.inf], grad=False)
sample("_contrib_allclose", np.array([1, 2], "int32"), np.array([1, 2], "int32"), grad=False)
