"""Rows of operators that make arrays."""

from tests.grammar.sampling import each, integers, normal, sample

sample("_zeros", shape=each((2, 3), 4), dtype=each("float32", "int32", "float16"), grad=False)
sample("_ones", shape=(2, 3), dtype=each("float64", "uint8", "bool"), grad=False)
sample("_full", shape=(2,), value=each(1.7, -2), dtype=each("float32", "int32"), grad=False)
sample("_arange", start=0, stop=5, step=each(1, 2, 0.3), repeat=each(1, 2), grad=False)
sample("_arange", start=5, grad=False)
sample("_arange", start=5, stop=0, step=-2, grad=False)
sample("_arange", start=each(0.5, 1), stop=4, dtype=each("int32", "float64", "int64"), grad=False)
sample("_linspace", start=0, stop=1, num=each(1, 5), endpoint=each(True, False), grad=False)
sample("_linspace", start=2, stop=9, num=4, dtype=each("float64", "int32"), grad=False)
sample("_eye", N=3, M=each(0, 2, 4), k=each(0, 1, -1, 5), grad=False)
sample("_eye", N=2, dtype="int32", grad=False)
sample(
    "_contrib_arange_like",
    normal(2, 3),
    axis=each(None, 0, -1),
    start=each(0, 2),
    step=3,
    grad=False,
)
sample("_contrib_arange_like", normal(2, 3), repeat=each(2, 4), grad=False)
sample("_contrib_arange_like", integers(0, 2, 2, 2, dtype="int32"), grad=False)
