"""Rows of the fully connected layer."""

from tests.grammar.sampling import each, normal, sample

for dtype in ("float32", "float64"):
    data, weight, bias = (
        normal(2, 3, 4, dtype=dtype),
        normal(5, 12, dtype=dtype),
        normal(5, dtype=dtype),
    )
    sample("FullyConnected", data, weight, bias, num_hidden=5)
    sample("FullyConnected", data, weight, num_hidden=5, no_bias=True)
    sample(
        "FullyConnected",
        data,
        normal(5, 4, dtype=dtype),
        bias,
        num_hidden=5,
        flatten=False,
    )

sample(
    "FullyConnected", normal(3, 4), normal(2, 4), normal(2), num_hidden=2, flatten=each(True, False)
)
sample("FullyConnected", normal(3), normal(2, 1), normal(2), num_hidden=2)
sample("FullyConnected", normal(4), normal(2, 4), num_hidden=2, flatten=False, no_bias=True)
