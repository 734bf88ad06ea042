"""Rows of the operators that go between real and 8-bit numbers."""

from __future__ import annotations

import numpy as np

from tests.grammar.sampling import each, integers, normal, sample, uniform

LOW, HIGH = [-1.5], [2.0]
SPREAD = np.array([-1000, -2.0, -1.25, -0.6, -0.01, 0, 0.004, 0.5, 1.1, 2.0, 3.3], "float32")
RAW8 = np.array([-128, -127, -3, 0, 1, 64, 127], "int8")
RAW32 = np.array([-(2**30), -5_000_000, -70_000, 0, 3, 900_000, 2**30], "int32")

for kind in ("int8", "uint8"):
    for data in (SPREAD, normal(3, 4)):
        sample("_contrib_quantize", data, LOW, HIGH, out_type=kind, grad=False)
    sample("_contrib_quantize", uniform(0, 3, 6), [0.0], [3.0], out_type=kind, grad=False)
    sample("_contrib_quantize", normal(6), [-3.0], [1.0], out_type=kind, grad=False)
for data in (SPREAD, normal(3, 4), uniform(0, 3, 6)):
    sample("_contrib_quantize_v2", data, out_type=each("int8", "uint8", "auto"), grad=False)
    sample(
        "_contrib_quantize_v2",
        data,
        out_type=each("int8", "uint8", "auto"),
        min_calib_range=each(-1.0, 0.0),
        max_calib_range=1.5,
        grad=False,
    )
for low, high in ((LOW, HIGH), ([-3.0], [1.0]), ([0.0], [2.0])):
    sample("_contrib_dequantize", RAW8, low, high, grad=False)
    sample("_contrib_dequantize", integers(0, 256, 9, dtype="uint8"), low, high, grad=False)
    for data in (RAW32, integers(-90_000, 80_000, 9, dtype="int32")):
        sample("_contrib_requantize", data, low, high, grad=False)
        sample(
            "_contrib_requantize",
            data,
            low,
            high,
            out_type=each("int8", "uint8", "auto"),
            min_calib_range=each(-0.0005, 0.0),
            max_calib_range=0.002,
            grad=False,
        )
