"""Rows of softmax and related operators."""

import numpy as np

from tests.grammar.sampling import each, normal, sample

for op in ("softmax", "log_softmax", "softmin"):
    for dtype in ("float32", "float64"):
        sample(op, normal(2, 3, 4, dtype=dtype), axis=each(-1, 0, 1))
    sample(op, normal(2, 5, scale=3.0), temperature=each(1.0, 0.5, 4.0))
    sample(op, normal(2, 5), dtype=each("float32", "float64"))
    sample(op, normal(2, 5), dtype="float16", rtol=1e-2, atol=1e-3, numeric=False)

sample(
    "softmax",
    normal(2, 3, 4),
    np.array([[1, 0, 3, 2], [3, 1, 2, 0]], dtype="int32"),
    axis=1,
    use_length=True,
    temperature=each(None, 2.0),
    numeric=False,
)
sample("softmax", normal(2, 4), np.array([4, 2], dtype="int32"), use_length=True, numeric=False)
sample("softmax", normal(2, 4), np.array([1, 3], dtype="int64"), use_length=True, numeric=False)
sample("SoftmaxActivation", normal(2, 3, 4), mode="channel")
# For more than two dimensions, MXNet's backward of this mode is inconsistent with its forward.
sample("SoftmaxActivation", normal(2, 3, 4), mode="instance", grad=False)
sample("SoftmaxActivation", normal(3, 5))
