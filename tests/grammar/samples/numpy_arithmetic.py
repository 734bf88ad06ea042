"""Rows for NumPy's arithmetic and comparisons: promotion, broadcasting, scalars."""

import numpy as np

from tests.grammar.sampling import each, integers, normal, sample, uniform

PROMOTING = ("add", "subtract", "multiply", "mod", "power", "true_divide")
STRICT = ("hypot", "arctan2", "copysign", "ldexp")
COMPARING = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
INTEGERS = ("int32", "int64", "int8", "uint8")
LOOSE = {"rtol": 1e-2, "atol": 1e-2}
SHAPES = [((2, 3), (2, 3)), ((2, 1, 3), (4, 1)), ((), (2, 3)), ((), ()), ((0, 3), (1, 3))]


def both(name, lhs, rhs, **options):
    """Add a row with operands whose quotients are not integers and whose powers are not huge."""
    dtypes = options.pop("dtypes", ("float32", "float32"))
    left = uniform(0.4, 3, *lhs, dtype=dtypes[0])
    sample(name, left, uniform(0.5, 2.3, *rhs, dtype=dtypes[1]), **options)


for short in (*PROMOTING, *STRICT):
    name, smooth = f"_npi_{short}", short not in ("mod", "copysign")
    for lhs, rhs in SHAPES:
        both(name, lhs, rhs, numeric=smooth, grad=0 not in lhs)
    both(name, (2, 3), (3,), dtypes=("float64", "float64"), numeric=smooth)
    both(name, (3,), (3,), dtypes=("float16", "float16"), grad=False, **LOOSE)
for short in PROMOTING:
    name, loose = f"_npi_{short}", dict(LOOSE, grad=False)
    for dtype in ("float32", "float64", "float16"):
        for other in (*INTEGERS, "bool"):
            sample(name, uniform(0.4, 3, 3, dtype=dtype), np.array([1, 1, 1], other), **loose)
            sample(name, np.array([1, 0, 1], other), uniform(0.4, 3, 3, dtype=dtype), **loose)
    for dtype in INTEGERS:
        sample(name, np.array([5, 3, 100], dtype), np.array([3, 4, 2], dtype), grad=False)
    sample(name, np.array([5, -5, 5, -7], "int32"), np.array([3, 3, -3, 2], "int32"), grad=False)
for short in ("add", "multiply", "power"):
    name = f"_npi_{short}"
    for one, two in (("int8", "int32"), ("uint8", "int64"), ("int64", "int32"), ("bool", "uint8")):
        sample(name, np.array([1, 1, 0], one), np.array([2, 3, 1], two), grad=False)
    truth = np.array([True, True, False, False]), np.array([True, False, True, False])
    sample(name, *truth, grad=False)
    both(name, (3,), (3,), dtypes=("float32", "float64"))
    both(name, (3,), (1,), dtypes=("float16", "float32"), grad=False, **LOOSE)
sample("_npi_true_divide", np.array([True, False]), np.array([True, True]), grad=False)
sample("_npi_true_divide", [1, -1, 0], [0, 0, 0], grad=False)
sample("_npi_mod", [5, -5, 5, -5, 3], [3, 3, -3, 0, np.inf], grad=False)
sample("_npi_mod", [-5, -5, 5, 5, -2.5], [3, -3, 3, -3, 2], numeric=False)
sample("_npi_copysign", [1, -2, 3, 0, -1], [-1, 0, -0.0, -2, -3], numeric=False)
for dtype in ("int32", "int8", "int64"):
    sample("_npi_copysign", np.array([1, -2, 3], dtype), np.array([-1, 0, 1], dtype), grad=False)
    sample("_npi_ldexp", np.array([1, -2, 3], dtype), np.array([-1, 1, 2], dtype), grad=False)
    sample("_npi_lcm", np.array([4, -6, 0, 0], dtype), np.array([6, 4, 3, 0], dtype), grad=False)
sample("_npi_lcm", np.array([[4], [6]], "int32"), np.array([6, 4], "int32"), grad=False)
sample("_npi_lcm", np.array([True, True]), np.array([True, False]), grad=False)
sample("_npi_lcm_scalar", np.array([4, -6, 0], "int32"), scalar=each(6, 1), grad=False)
for short in ("and", "or", "xor"):
    name = f"_npi_bitwise_{short}"
    for dtype in (*INTEGERS, "bool"):
        sample(name, np.array([0, 1, 1], dtype), np.array([1, 0, 1], dtype), grad=False)
        sample(f"{name}_scalar", np.array([0, 1, 1], dtype), scalar=each(1, 2), grad=False)
    sample(
        name, integers(-9, 9, 2, 3, dtype="int32"), integers(-9, 9, 3, dtype="int32"), grad=False
    )
    sample(f"{name}_scalar", integers(-9, 9, 2, 3, dtype="int64"), scalar=each(3, -2), grad=False)

SCALAR = ("add", "subtract", "rsubtract", "multiply", "true_divide", "rtrue_divide", "mod",
          "rmod", "power", "rpower", "arctan2", "rarctan2", "copysign", "rcopysign", "ldexp",
          "rldexp")  # fmt: skip
for short in SCALAR:
    name = f"_npi_{short}_scalar"
    # MXNet has no gradient of copysign with a scalar.
    options = {"numeric": "mod" not in short, "grad": "copysign" not in short}
    options["derived"] = short == "rarctan2"
    sample(name, uniform(0.4, 3, 2, 3), scalar=each(2, 0.7), **options)
    sample(name, uniform(0.4, 3), scalar=1.3, is_int=False, **options)
    sample(name, uniform(0.4, 3, 0, 2), scalar=2, grad=False)
    sample(name, uniform(0.4, 3, 4, dtype="float64"), scalar=1.3, is_int=False, **options)
    sample(name, uniform(0.4, 3, 4, dtype="float16"), scalar=1.3, is_int=False, grad=False, **LOOSE)
    for dtype in INTEGERS:
        sample(name, np.array([1, 2, 5], dtype), scalar=2, grad=False)
        sample(name, np.array([1, 2, 5], dtype), scalar=1.5, is_int=False, grad=False)
    sample(name, np.array([True, True]), scalar=2, grad=False)
    sample(name, np.array([True, True]), scalar=1.5, is_int=False, grad=False)
sample("_npi_copysign_scalar", [-2, 0, 3], scalar=each(-1, 0, 2), grad=False)
sample("_npi_rcopysign_scalar", [-2, 0, 3], scalar=each(-1, 2), grad=False)
sample("_npi_mod_scalar", [-5, -2.5, 1, 5], scalar=each(2, -2, 0), numeric=False)
sample("_npi_rmod_scalar", [-5, -2.5, 1.5, 5], scalar=each(2, -2), numeric=False)
sample("_npi_power_scalar", [-2, -1, 1, 3], scalar=each(2, 3, -1), rtol=1e-3)

for short in COMPARING:
    name = f"_npi_{short}"
    for lhs, rhs in SHAPES:
        sample(name, integers(0, 3, *lhs), integers(0, 3, *rhs), grad=False)
    sample(name, [np.nan, 1, np.inf], [np.nan, np.nan, np.inf], grad=False)
    sample(f"{name}_scalar", integers(0, 3, 2, 3), scalar=1, grad=False)
    sample(f"{name}_scalar", normal(), scalar=each(0.1, -1), is_int=False, grad=False)
    for dtype in (*INTEGERS, "bool", "float16", "float64"):
        sample(name, np.array([0, 1, 1], dtype), np.array([1, 1, 0], dtype), grad=False)
        # Without is_int integers are converted to floats; else the scalar is cast to their dtype.
        sample(f"{name}_scalar", np.array([0, 1, 2], dtype), scalar=0.5, is_int=False, grad=False)
        sample(f"{name}_scalar", np.array([0, 1, 2], dtype), scalar=each(1, 0.5), grad=False)
