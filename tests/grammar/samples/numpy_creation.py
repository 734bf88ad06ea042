"""Rows for NumPy's creation operators."""

import numpy as np

from tests.grammar.sampling import each, normal, sample

SHAPES = each((), (2,), (2, 0), (2, 3))
DTYPES = each("float32", "float64", "int32", "bool")

sample("_npi_zeros", shape=SHAPES, dtype=DTYPES, grad=False)
sample("_npi_ones", shape=SHAPES, dtype=DTYPES, grad=False)
sample("_npi_full", shape=SHAPES, value=3.7, dtype=each("float32", "int32"), grad=False)
sample("_npi_identity", shape=each((0, 0), (1, 1), (3, 3)), dtype=DTYPES, grad=False)
sample(
    "_npi_full_like",
    normal(2, 3),
    fill_value=each(3, 1.5),
    dtype=each(None, "int32", "bool"),
    grad=False,
)
sample("_npi_full_like", np.array(2, "int32"), fill_value=2.5, grad=False)
sample("_npi_arange", start=each(0, 5), stop=each(None, 5, 2.5), step=each(1, 0.5), grad=False)
sample("_npi_arange", start=3, stop=each(3, 1, -2), step=each(-1, 1), dtype="int32", grad=False)
sample("_npi_eye", N=each(0, 2, 3), M=each(None, 0, 4), k=each(-1, 0, 2, 7), grad=False)
sample("_npi_eye", N=2, dtype="int32", grad=False)
sample("_npi_indices", dimensions=each((2, 3), (2, 0), (3,), (2, 1, 2)), grad=False)
sample("_npi_indices", dimensions=(2, 2), dtype=each("float32", "int64"), grad=False)
sample(
    "_npi_logspace", start=0, stop=2, num=each(0, 1, 3, 4), endpoint=each(True, False), grad=False
)
sample(
    "_npi_logspace", start=0.5, stop=3, num=4, base=2, dtype=each("float64", "int32"), grad=False
)
for window in ("hanning", "hamming", "blackman"):
    sample(f"_npi_{window}", M=each(-3, 0, 1, 2, 5, 8), grad=False)
    sample(f"_npi_{window}", M=4, dtype=each("float64", "int32"), grad=False)
