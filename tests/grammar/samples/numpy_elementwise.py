"""Rows for NumPy's functions of one array."""

import numpy as np

from tests.grammar.sampling import each, integers, normal, sample, uniform

ANYWHERE = ("sin", "cos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "degrees", "radians",
            "exp", "expm1", "square", "negative")  # fmt: skip
POSITIVE = ("sqrt", "log", "log10", "log2", "log1p", "cbrt", "reciprocal")
INSIDE = ("arcsin", "arccos", "arctanh", "tan")
STEPS = ("rint", "floor", "ceil", "trunc", "fix", "sign", "absolute")
QUESTIONS = ("isnan", "isinf", "isposinf", "isneginf", "isfinite", "logical_not")
INTEGERS = ("int32", "int64", "int8", "uint8")
LOOSE = {"rtol": 1e-2, "atol": 1e-2}


def usual(short, low, high, **options):
    """Add rows of the usual dtypes and shapes."""
    name = f"_npi_{short}"
    sample(name, uniform(low, high, 2, 3), **options)
    sample(name, uniform(low, high), **options)
    sample(name, uniform(low, high, 2, 0), grad=False)
    sample(name, uniform(low, high, 3, dtype="float64"), **options)
    sample(name, uniform(low, high, 3, dtype="float16"), grad=False, **LOOSE)


for short in ANYWHERE:
    usual(short, -2, 2)
for short in POSITIVE:
    usual(short, 0.4, 3)
for short in INSIDE:
    usual(short, -0.9, 0.9)
usual("arccosh", 1.2, 4)
for short in STEPS:
    usual(short, -3, 3)
    sample(f"_npi_{short}", [-2.5, -1.5, -0.5, 0, 0.5, 1.5, 2.5], numeric=False)
    sample(f"_npi_{short}", [np.nan, np.inf, -np.inf], grad=False)
for short in (*ANYWHERE, *POSITIVE, *STEPS):
    for dtype in INTEGERS:
        sample(f"_npi_{short}", np.array([1, 2, 4], dtype), grad=False)
for short in QUESTIONS:
    name = f"_npi_{short}"
    sample(name, [0, 1.5, np.nan, np.inf, -np.inf], grad=False)
    sample(name, [[1, 0]], grad=False)
    sample(name, np.array(2.0, "float64"), grad=False)
    sample(name, normal(0, 2), grad=False)
    for dtype in (*INTEGERS, "bool", "float16"):
        sample(name, np.array([0, 1], dtype), grad=False)

sample("_npi_bitwise_not", np.array([[0, 1, 5]], "int32"), grad=False)
for dtype in ("int8", "uint8", "int64", "bool"):
    sample("_npi_bitwise_not", np.array([0, 1, 1], dtype), grad=False)
sample("_npi_around", [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], numeric=False)
sample("_npi_around", uniform(-300, 300, 2, 3), decimals=each(-2, -1, 0, 1, 2), numeric=False)
sample("_npi_around", np.array([-255, -145, 125, 15], "int32"), decimals=each(-1, 0, 1), grad=False)
sample("_npi_around", uniform(-3, 3), decimals=1, numeric=False)
sample("_npi_around", uniform(-3, 3, 2, dtype="float64"), decimals=2, numeric=False)
ODD = [np.nan, np.inf, -np.inf, 1]
sample("_npi_nan_to_num", ODD, numeric=False)
sample("_npi_nan_to_num", ODD, nan=2, posinf=3, neginf=-4, numeric=False)
sample("_npi_nan_to_num", np.array(ODD, "float16"), grad=False)
sample("_npi_nan_to_num", np.array(ODD, "float64"), nan=1.5, grad=False)
sample("_npi_nan_to_num", np.array([1, 2], "int32"), nan=1.5, grad=False)
sample("_npi_nan_to_num", uniform(-3, 3))
sample("_npx_relu", normal(2, 3))
sample("_npx_relu", normal(), grad=False)
sample("_npx_relu", integers(-3, 3, 4, dtype="int32"), grad=False)
sample("_npx_relu", [-1, 0, 1], numeric=False)
sample("_npx_sigmoid", normal(2, 3))
sample("_npx_sigmoid", normal())
sample("_npx_sigmoid", normal(3, dtype="float64"))
