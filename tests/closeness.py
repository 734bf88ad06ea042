"""Equality up to rounding, for two ways of computing the same numbers.

Torch computes the end of an array with other instructions than the rest, cuts arrays at its
threads, and libraries choose kernels by the processor: between two kernels, two splits of the
work, two layouts or two batch sizes a last bit may differ. Equal bits are for data that is only
moved, for numbers whose arithmetic is exact, and for one call repeated on the same arrays.
"""

from __future__ import annotations

import numpy as np


def assert_equal_up_to_rounding(
    actual: np.ndarray, expected: np.ndarray, roundings: float = 8, err_msg: str = ""
) -> None:
    """Compare arrays; floating-point ones may differ by some roundings of their largest value."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype, err_msg
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(actual, expected, err_msg=err_msg)
        return
    rtol = roundings * float(np.finfo(expected.dtype).eps)
    finite = expected[np.isfinite(expected)].astype(np.result_type(expected, np.float64))
    atol = rtol * np.abs(finite).max(initial=0)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol, err_msg=err_msg)
