"""Rows for functions of one array, and for identity operators."""

import numpy as np

from tests.grammar.sampling import distinct, each, integers, normal, sample, uniform

POSITIVE = ("sqrt", "rsqrt", "log", "log10", "log2", "rcbrt", "reciprocal", "gamma", "gammaln")
UNIT = ("arcsin", "arccos", "arctanh", "erfinv")
ABOVE_ONE = ("arccosh",)
CURVED = (
    "abs", "cbrt", "square", "relu", "exp", "expm1", "sin", "cos", "tan", "arctan", "sinh",
    "cosh", "tanh", "arcsinh", "degrees", "radians", "sigmoid", "softsign", "erf", "negative",
)  # fmt: skip
FLAT = ("sign", "floor", "ceil", "trunc", "fix", "round", "rint", "logical_not")
ANY = (*CURVED, *FLAT)
WIDE = ("float32", "float64")
LOOSE = {"rtol": 1e-2, "atol": 1e-2}  # float16


def function(name, low, high):
    """Add rows of one function over the floating types."""
    smooth = name not in FLAT
    grad = name != "logical_not"
    for dtype in WIDE:
        sample(name, uniform(low, high, 2, 3, dtype=dtype), numeric=smooth, grad=grad)
    half = uniform(low, high, 5, dtype="float16")
    sample(name, half, numeric=False, grad=grad, **LOOSE)


for name in ANY:
    function(name, -2, 2)
for name in POSITIVE:
    function(name, 0.3, 3)
for name in UNIT:
    function(name, -0.9, 0.9)
for name in ABOVE_ONE:
    function(name, 1.1, 3)
sample("log1p", uniform(-0.9, 3, 2, 3))
sample("gamma", [-2.5, -1.5, -0.5, 4.5], rtol=1e-3)
sample("gammaln", [0.25, 4.5, 20])
sample("cbrt", [-27, -8, 1, 8, 27])

# Edges: halves, zeros, infinities and NaN.
HALVES = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 8388609.0]
NOT_FINITE = [-np.inf, np.inf, np.nan]
for name in FLAT:
    sample(name, HALVES, numeric=False, grad=name != "logical_not")
    sample(name, NOT_FINITE, numeric=False, grad=False)
for name in ("abs", "relu", "square", "negative"):
    sample(name, [-1, 0, 2], numeric=False)
for name in ("exp", "tanh", "sigmoid", "arctan", "log", "sqrt", "cbrt", "relu", "abs", "erf"):
    sample(name, NOT_FINITE, numeric=False, grad=False)

# Integers are computed in floating point and truncated.
for name in (*ANY, *POSITIVE, "log1p"):
    for dtype in ("int32", "int64", "int8", "uint8"):
        sample(name, np.array([1, 2, 3, 27, 64, 100], dtype), grad=False)
for name in ("sqrt", "log", "arccos", "reciprocal", "sinh", "degrees", "tan", "cbrt"):
    sample(name, np.array([-3, -1, 0, 1, 100], "int32"), grad=False)

sample("clip", uniform(-3, 3, 2, 4), a_min=-1, a_max=1)
sample("clip", [-2, -1, 0, 1, 2], a_min=-1, a_max=1, numeric=False)
sample("clip", [-2, 0.5, 2], a_min=0.5, a_max=0.5, numeric=False)
for dtype in ("int32", "int64", "int8", "uint8"):
    values = np.array([0, 1, 2, 3, 100], dtype)
    sample("clip", values, a_min=each(-1.5, 0.5, -500), a_max=each(2.7, 300), grad=False)
sample("clip", uniform(-3, 3, 5, dtype="float64"), a_min=-1, a_max=1)

sample("hard_sigmoid", uniform(-2, 2, 2, 3))
sample("hard_sigmoid", [-4, -1, 0, 1, 4], alpha=each(0.5, 0.0), beta=each(0.25, 1.0), numeric=False)
sample("hard_sigmoid", uniform(-4, 4, 5, dtype="float64"), numeric=False)

sample("smooth_l1", uniform(-3, 3, 2, 4), scalar=each(1, 0.5, 2))
sample("smooth_l1", [-5, -1, -0.25, 0, 0.25, 1, 4], scalar=each(1, 2, 0), numeric=False)
sample("smooth_l1", [-5, 0.25, 4], numeric=False)
sample("smooth_l1", uniform(-3, 3, 5, dtype="float16"), scalar=1, numeric=False, **LOOSE)
sample("smooth_l1", np.array([-4, -1, 0, 1, 4], "int32"), scalar=1, grad=False)

sample("_contrib_quadratic", normal(2, 3))
sample("_contrib_quadratic", normal(2, 3), a=2, b=-3, c=0.5)
sample("_contrib_quadratic", np.array([1, 2], "int32"), a=1.5, b=1.5, c=0.7, grad=False)
sample("_contrib_div_sqrt_dim", normal(2, 3))
sample("_contrib_div_sqrt_dim", normal(2, 2, 5))
sample("_contrib_div_sqrt_dim", np.array([[10, 20, 30]], "int32"), grad=False)
sample("_contrib_round_ste", distinct(2, 3), numeric=False)
sample("_contrib_sign_ste", [-2, 0, 3], numeric=False)
sample("_contrib_gradientmultiplier", normal(2, 3), scalar=each(-0.5, 2.0), numeric=False)
sample("_contrib_gradientmultiplier", normal(3))

sample("_copy", normal(2, 3))
sample("BlockGrad", normal(2, 3), numeric=False)
sample("make_loss", normal(2, 3), numeric=False)
sample("zeros_like", normal(2, 3))
sample("ones_like", normal(2, 3))
for name in ("_copy", "BlockGrad", "make_loss", "zeros_like", "ones_like"):
    for dtype in ("int32", "bool", "float16"):
        sample(name, np.array([[0, 1], [1, 0]], dtype), grad=False)
sample("_identity_with_attr_like_rhs", normal(2, 3), normal(2, 3), grad=False)

NUMBERS = ("float16", "float32", "float64", "int32", "int64", "int8", "uint8")
EDGES = [-300.7, -1.5, 0, 0.3, 1.5, 300.7, np.nan, np.inf, -np.inf, 3e9, -3e9]
sample("Cast", uniform(-5, 5, 2, 3), dtype=each("float16", "float32", "float64"), numeric=False)
sample("Cast", EDGES, dtype=each(*NUMBERS, "bool"), grad=False)
sample("Cast", np.array([-300, -1, 0, 1, 70000], "int32"), dtype=each(*NUMBERS, "bool"), grad=False)
sample("Cast", np.array([False, True]), dtype=each(*NUMBERS, "bool"), grad=False)
sample("amp_cast", uniform(-5, 5, 2, 3), dtype=each("float16", "float32"), numeric=False)
sample("amp_cast", integers(0, 5, 3, dtype="int32"), dtype="float16", grad=False)
sample("amp_multicast", normal(2, 3), normal(4), num_outputs=2)
sample("amp_multicast", normal(3), num_outputs=1, cast_narrow=True)
