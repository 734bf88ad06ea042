"""Rows for reductions, indices of extremes, running sums, and operators over many arrays."""

import numpy as np

from tests.grammar.sampling import distinct, each, integers, normal, sample, uniform

SUMS = ("sum", "mean", "nansum")
PRODUCTS = ("prod", "nanprod")
EXTREMES = ("max", "min")
AXES = (None, (), 0, 1, -1, (0, 2), (1, 2), (-1, 0), (0, 1, 2))
INTEGERS = ("int32", "int64", "int8", "uint8")
LOOSE = {"rtol": 1e-2, "atol": 1e-2}

for name in (*SUMS, *PRODUCTS, *EXTREMES):
    values = distinct(2, 3, 2) if name in EXTREMES else uniform(0.5, 2, 2, 3, 2)
    sample(name, values, axis=each(*AXES), keepdims=each(False, True))
    sample(name, values, axis=each((), 1, (0, 2), (0, 1, 2)), exclude=True)
    sample(name, values, axis=(0, 1), keepdims=True, exclude=True)
    sample(name, values)
    sample(name, uniform(0.5, 2, 2, 3, dtype="float64"), axis=1)
    sample(name, uniform(0.5, 2, 2, 3, dtype="float16"), axis=1, numeric=False, **LOOSE)
    sample(name, uniform(0.5, 2, 4))
    for dtype in INTEGERS:
        sample(name, np.array([[100, 101, 102], [3, 2, 5]], dtype), axis=each(None, 1), grad=False)
    sample(name, np.array([[False, True], [False, False]]), axis=each(None, 1), grad=False)
    sample(name, np.array([[-7, -2], [2, 2]], "int32"), axis=1, grad=False)
    odd = [[1, np.nan, 3], [np.nan, np.nan, np.nan], [np.inf, -np.inf, 1], [0, 2, 0]]
    sample(name, odd, axis=1, grad=name not in PRODUCTS, numeric=False)
for name in EXTREMES:
    sample(name, [[1, 2, 3], [3, 2, 1]], axis=each(None, 0, 1), numeric=False)
    sample(name, [[1, 1], [1, 1]], numeric=False)

sample("norm", uniform(0.5, 2, 2, 3, 2), ord=each(1, 2), axis=each(None, (), 1, -1, (0, 1), (2, 1)))
sample("norm", normal(2, 3, 2), ord=each(1, 2), axis=each(None, 1), keepdims=True, rtol=1e-3)
sample("norm", [[1, -2, 0], [3, 2, -1]], ord=each(1, 2), axis=each(None, 0), numeric=False)
sample("norm", [[np.nan, 1], [-3, 4]], ord=each(1, 2), axis=1, grad=False)
sample("norm", uniform(0.5, 2, 2, 3, dtype="float64"), ord=each(1, 2), axis=1)
sample("norm", uniform(0.5, 2, 2, 3, dtype="float16"), axis=1, numeric=False, **LOOSE)
sample("norm", np.array([[1, -2, 3], [3, 2, 1]], "int32"), ord=each(1, 2), axis=1, grad=False)

for name in ("argmax", "argmin"):
    sample(
        name, distinct(2, 3, 4), axis=each(None, 0, 1, -1), keepdims=each(False, True), grad=False
    )
    sample(name, [[1, 5, 5, 0, 0], [2, 2, 2, 2, 2]], axis=1, grad=False)
    sample(name, [[1, np.nan, 3], [np.inf, -np.inf, 0], [np.nan, np.nan, 1]], axis=1, grad=False)
    sample(name, distinct(5), axis=0, keepdims=each(False, True), grad=False)
    for dtype in (*INTEGERS, "float16", "float64"):
        sample(name, integers(0, 50, 2, 9, dtype=dtype), axis=1, grad=False)
sample("argmax_channel", distinct(2, 3), grad=False)
sample("argmax_channel", distinct(2, 3, 4), grad=False)
sample("argmax_channel", integers(0, 50, 2, 9, dtype="int32"), grad=False)

sample(
    "moments", normal(2, 3, 4), axes=each(0, 1, -1, (0, 2), (0, 1, 2)), keepdims=each(False, True)
)
sample("moments", normal(2, 3, dtype="float64"), axes=1)
sample("moments", np.array([[1, 2], [3, 5]], "int32"), axes=1, grad=False)

sample("cumsum", normal(2, 3, 2), axis=each(None, 0, 1, 2))
sample("cumsum", normal(2, 3), axis=1, dtype=each("float64", "float16"), numeric=False, **LOOSE)
for dtype in (*INTEGERS, "bool"):
    sample("cumsum", np.array([100, 101, 102], dtype), grad=False)
sample("cumsum", np.array([100, 101, 102], "int8"), dtype="int32", grad=False)

sample("all_finite", normal(2, 3), grad=False)
sample("all_finite", [1, np.inf], grad=False)
sample("all_finite", np.array([1, np.nan], "float16"), grad=False)
sample("multi_all_finite", normal(2), normal(2, 3), num_arrays=2, grad=False)
sample("multi_all_finite", normal(2), [np.nan], num_arrays=2, grad=False)
sample("multi_sum_sq", normal(2), normal(2, 3), normal(1), num_arrays=3, grad=False)
sample("multi_sum_sq", normal(4, dtype="float64"), num_arrays=1, grad=False)
sample("multi_sum_sq", normal(4, dtype="float16"), num_arrays=1, grad=False, **LOOSE)
