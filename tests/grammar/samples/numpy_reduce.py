"""Rows for NumPy's reductions."""

import numpy as np

from tests.grammar.sampling import distinct, each, normal, sample, uniform

INTEGERS = ("int32", "int64", "int8", "uint8")
AXES = (None, (), 0, -1, (0, 2), (0, 1, 2))
LOOSE = {"rtol": 1e-2, "atol": 1e-2}

for name in ("_np_sum", "_np_prod", "_npi_mean", "_npi_std", "_npi_var"):
    derived = name in ("_npi_std", "_npi_var")
    keepdims = each(False, True)
    sample(name, uniform(0.5, 2, 2, 3, 2), axis=each(*AXES), keepdims=keepdims, derived=derived)
    sample(name, uniform(0.5, 2, 4), derived=derived)
    sample(name, uniform(0.5, 2), grad=False)
    sample(name, uniform(0.5, 2, 2, 3, dtype="float64"), axis=1, derived=derived)
    sample(name, uniform(0.5, 2, 2, 3, dtype="float16"), axis=1, grad=False, **LOOSE)
    sample(
        name, uniform(0.5, 2, 2, 3), dtype=each("float64", "int32", "float16"), grad=False, **LOOSE
    )
    for dtype in INTEGERS:
        sample(name, np.array([[10, 11, 12], [3, 2, 5]], dtype), axis=each(None, 1), grad=False)
        sample(name, np.array([[10, 1, 12], [3, 2, 5]], dtype), dtype="float32", axis=1, grad=False)
for name in ("_np_sum", "_np_prod", "_npi_mean"):
    sample(name, np.array([[False, True], [True, True]]), axis=each(None, 1), grad=False)
sample("_np_sum", uniform(0, 1, 0), grad=False)
sample("_npi_var", uniform(0, 1, 2, 4), ddof=each(0, 1, 2), axis=1, derived=True)
sample("_npi_std", uniform(0, 1, 2, 4), ddof=each(0, 1, 2), axis=1, derived=True)
sample("_npi_std", [2, 2, 2], numeric=False)
for name in ("_np_max", "_np_min"):
    sample(name, distinct(2, 3, 2), axis=each(*AXES), keepdims=each(False, True))
    sample(name, distinct())
    sample(name, [[1, 2, 3], [3, 2, 1]], axis=each(None, 0, 1), numeric=False)
    sample(name, [[1, np.nan, 3], [np.inf, -np.inf, 1]], axis=1, grad=False)
    sample(name, normal(2, 0), axis=0, grad=False)
    for dtype in (*INTEGERS, "bool", "float64"):
        sample(name, np.array([[1, 0, 1], [0, 0, 0]], dtype), axis=each(None, 1), grad=False)
for name in ("_np_all", "_np_any"):
    sample(name, [[0, 1, 2], [0, 0, 0], [1, np.nan, 2]], axis=each(None, 0, 1, ()), grad=False)
    sample(
        name,
        [[[0, 1], [2, 1]]],
        axis=each((0, 2), (0, 1, 2)),
        keepdims=each(False, True),
        grad=False,
    )
    sample(name, normal(0), grad=False)
    sample(name, normal(2, 0), axis=each(0, 1), grad=False)
    sample(name, normal(), grad=False)
    for dtype in (*INTEGERS, "bool", "float16", "float64"):
        sample(name, np.array([[1, 0], [1, 1]], dtype), axis=1, grad=False)
for name in ("_npi_argmax", "_npi_argmin"):
    sample(
        name, distinct(2, 3, 4), axis=each(None, 0, 1, -1), keepdims=each(False, True), grad=False
    )
    sample(name, [[1, 5, 5, 0, 0], [2, 2, 2, 2, 2]], axis=1, grad=False)
    sample(name, [[1, np.nan, 3], [np.inf, -np.inf, 0], [np.nan, np.nan, 1]], axis=1, grad=False)
    sample(name, distinct(), grad=False)
    for dtype in (*INTEGERS, "float16", "float64"):
        sample(name, np.array([[3, 1, 2], [0, 0, 9]], dtype), axis=1, grad=False)
sample("_npi_average", uniform(0.5, 2, 2, 3), uniform(0.5, 2, 2, 3), axis=each(None, 1, (0, 1)))
sample("_npi_average", uniform(0.5, 2, 2, 3), uniform(0.5, 2, 3), axis=1)
sample("_npi_average", uniform(0.5, 2, 2, 3), uniform(0.5, 2, 3), axis=1, returned=True, grad=False)
sample(
    "_npi_average",
    uniform(0.5, 2, 2, 3),
    weighted=False,
    axis=each(None, 1),
    returned=each(False, True),
    grad=False,
)
sample("_npi_average", np.array([1, 2, 7], "int32"), np.array([1, 2, 7], "int32"), grad=False)
