"""Rows for arithmetic of two arrays, and of an array with a number."""

import numpy as np

from tests.grammar.sampling import each, integers, normal, sample, uniform

BROADCASTING = ["add", "sub", "mul", "div", "mod", "power", "maximum", "minimum", "hypot"]
SAME_SHAPE = (
    "elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "_scatter_elemwise_div",
    "_mod", "_power", "_maximum", "_minimum", "_hypot",
)  # fmt: skip
SCALAR = (
    "plus", "minus", "rminus", "mul", "div", "rdiv", "mod", "rmod", "power", "rpower",
    "maximum", "minimum", "hypot",
)  # fmt: skip
INTEGERS = ("int32", "int64", "int8", "uint8")
LOOSE = {"rtol": 1e-2, "atol": 1e-2}
SHAPES = [((2, 3), (2, 3)), ((2, 1, 3), (4, 1)), ((1,), (2, 3)), ((2, 1), (1, 2))]


def both(name, lhs, rhs, **options):
    """Add a row with operands whose quotients are not integers and whose powers are not huge."""
    dtype = options.pop("dtype", "float32")
    left, right = uniform(0.4, 3, *lhs, dtype=dtype), uniform(0.5, 2.3, *rhs, dtype=dtype)
    sample(name, left, right, **options)


for short in BROADCASTING:
    name = f"broadcast_{short}"
    for lhs, rhs in SHAPES:
        both(name, lhs, rhs, numeric=short != "mod")
    both(name, (2, 3), (1, 3), dtype="float64", numeric=short != "mod")
    both(name, (3,), (3,), dtype="float16", numeric=False, **LOOSE)
    for dtype in INTEGERS:
        left = np.array([5, 5, 3, 7, 2, 100], dtype)
        sample(name, left, np.array([3, 2, 4, 1, 6, 3], dtype), grad=False)
    if short != "power":
        left, right = np.array([-5, -5, 5, -7], "int32"), np.array([3, -3, -3, 2], "int32")
        sample(name, left, right, grad=False)

for name in SAME_SHAPE:
    both(name, (2, 3), (2, 3), numeric="mod" not in name)
    both(name, (4,), (4,), dtype="float64", numeric="mod" not in name)
sample("_grad_add", normal(2, 3), normal(2, 3), grad=False)

# Ties: the first array has the gradient.
for name in ("broadcast_maximum", "broadcast_minimum", "_maximum", "_minimum"):
    sample(name, [1, 2, 3, 0], [2, 2, 1, 0], numeric=False)
    sample(name, [np.nan, 1, -np.inf, np.inf], [1, np.nan, 3, 3], grad=False)
for name in ("_maximum_scalar", "_minimum_scalar"):
    sample(name, [-1, 0, 1, 2], scalar=each(0, 1), numeric=False)

# Signs and zeros of the divisor.
SIGNS = ([-5, -5, 5, 5, 3, 0, -2.5, 7.5], [3, -3, 3, -3, 0.75, 2, 2, -2])
sample("broadcast_mod", *SIGNS, numeric=False)
sample("_mod", *SIGNS, numeric=False)
sample("broadcast_mod", [3, 0, -2, 5], [0, 0, 0, np.inf], grad=False)
sample("broadcast_mod", np.array([3, 0, -2], "int32"), np.array([0, 0, 0], "int32"), grad=False)
sample("broadcast_power", np.array([2, 3, -1], "int32"), np.array([-1, 2, -3], "int32"), grad=False)
sample("broadcast_power", [-2, -2, 0, 4], [3, -2, 2, 0.5], grad=False)
sample("broadcast_div", [1, -1, 0], [0, 0, 0], grad=False)

for short in SCALAR:
    name = f"_{short}_scalar"
    smooth = "mod" not in short and "imum" not in short
    sample(name, uniform(0.4, 3, 2, 3), scalar=each(2, 0.7), numeric=smooth)
    sample(name, uniform(0.4, 3, 4, dtype="float64"), scalar=1.3, numeric=smooth)
    sample(name, uniform(0.4, 3, 4, dtype="float16"), scalar=1.3, numeric=False, **LOOSE)
    sample(name, uniform(0.4, 3, 2))
    for dtype in INTEGERS:
        # For integer arrays, the scalar is truncated.
        sample(name, np.array([1, 2, 5, 100], dtype), scalar=each(2, 2.7, -2.5), grad=False)
    sample(name, np.array([1, 2, 5], "int32"), scalar=each(2, 1.5), is_int=False, grad=False)
    sample(name, np.array([True, True]), scalar=2, grad=False)
    sample(name, np.array([True, True]), scalar=1.5, is_int=False, grad=False)
sample("_plus_scalar", np.array([1, 2], "int32"), scalar=each(3e9, np.inf, -1e20), grad=False)
sample("_plus_scalar", np.array([1, 2], "uint8"), scalar=each(300, 3e9, -1), grad=False)
sample("_mul_scalar", [-1, 0, 2], scalar=each(0, -0.0))
sample("_power_scalar", [-2, -1, 1, 3], scalar=each(2, 3, -1), rtol=1e-3)
sample("_power_scalar", uniform(0.4, 3, 4), scalar=each(0, 0.5, 1, -0.5))
sample("_mod_scalar", [-5, -2.5, 1, 5], scalar=each(2, -2, 0), numeric=False)
sample("_rmod_scalar", [-5, -2.5, 1.5, 5], scalar=each(2, -2), numeric=False)
sample("_scatter_plus_scalar", normal(2, 3), scalar=2.0)
sample("_scatter_minus_scalar", normal(2, 3), scalar=2.0)

sample("add_n", normal(2, 3))
sample("add_n", normal(2, 3), normal(2, 3))
sample("add_n", normal(4), normal(4), normal(4), normal(4))
sample("add_n", *(integers(0, 100, 3, dtype="int32") for _ in range(3)), grad=False)
sample("add_n", normal(3, dtype="float64"), normal(3, dtype="float64"))
