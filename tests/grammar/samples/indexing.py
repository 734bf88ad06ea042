"""Rows of operators that read and write elements by arrays of indices."""

import numpy as np

from tests.grammar.sampling import each, integers, normal, sample

# Integer indices, because a numeric gradient cannot perturb indices.
whole = np.array([[0, 2], [1, 1]], dtype="int32")

sample("take", normal(3, 4), [0, 5, -1, 1, 1], mode=each("clip", "wrap"), numeric=False)
sample("take", normal(3, 4), [0, 2, 1, 1], mode="raise", numeric=False)
sample(
    "take",
    normal(3, 4),
    [[0, 7], [-2, 1]],
    axis=each(1, -1, 0),
    mode=each("clip", "wrap"),
    numeric=False,
)
sample("take", normal(2, 3, 4), whole, axis=each(0, 1, 2))
sample("take", normal(5), [3, 0, 3], numeric=False)
sample("take", normal(3, 2, dtype="float64"), [0.9, 1.9, 2.0], numeric=False)
sample("batch_take", normal(2, 3), np.array([0, 2], dtype="int32"), grad=False)
sample("batch_take", normal(2, 3), np.array([5, -2], dtype="int32"), grad=False)
sample("one_hot", [[0, 2], [1, 5]], depth=3, grad=False)
sample(
    "one_hot",
    [0, -1, 1.7],
    depth=3,
    on_value=5,
    off_value=-1,
    dtype=each("float32", "int32", "float16"),
    grad=False,
)
sample("gather_nd", normal(3, 4), [[0, 2, 0], [1, 3, 1]], numeric=False)
sample("gather_nd", normal(3, 4, 2), [[0, 2, 0], [1, 3, 1]], numeric=False)
sample("gather_nd", normal(3, 4), [[0, 2, 0]], numeric=False)
sample("gather_nd", normal(3, 4), [[[0, 2], [1, 0]], [[1, 1], [3, 1]]], numeric=False)
sample("gather_nd", normal(3, 4), [[-1, -2], [-1, 2]], grad=False)
sample("scatter_nd", normal(3), [[1, 1, 0], [0, 1, 1]], shape=(2, 3), numeric=False)
sample("scatter_nd", normal(2, 3), [[1, 0]], shape=(2, 3), numeric=False)
sample("scatter_nd", normal(2, 2), [[[1, 0], [2, 3]]], shape=(5,), numeric=False)
sample("_ravel_multi_index", [[3, 6, 6], [4, 5, 1]], shape=each((7, 6), (-1, 6)), grad=False)
sample("_ravel_multi_index", integers(0, 4, 3, 2, dtype="int64"), shape=(4, 5, 6), grad=False)
sample("_unravel_index", [22, 41, 37, 99, -1], shape=each((7, 6), (-1, 6), (2, 7, 3)), grad=False)
sample("_unravel_index", integers(0, 100, 4, dtype="int32"), shape=(4, 5, 6), grad=False)
sample(
    "Embedding",
    np.array([[0, 2], [2, 9], [-3, 1]], dtype="int32"),
    normal(3, 4),
    input_dim=3,
    output_dim=4,
)
sample(
    "Embedding",
    np.array([1, 1, 0], dtype="int64"),
    normal(3, 2, dtype="float64"),
    input_dim=3,
    output_dim=2,
    dtype="float64",
)
sample("Embedding", [0.9, 1.2, 2], normal(3, 2), input_dim=3, output_dim=2, grad=False)
sample("_contrib_index_copy", normal(4, 2), [2, 0], normal(2, 2), numeric=False)
sample("_contrib_index_copy", normal(4), np.array([3, 1], dtype="int64"), normal(2), grad=False)
sample("_contrib_boolean_mask", normal(4, 2), [0, 1, 0, 2], numeric=False)
sample("_contrib_boolean_mask", normal(3), np.array([1, 0, 1], dtype="int32"))
sample("_onehot_encode", [0, 2, 5], normal(3, 3), grad=False)
sample("fill_element_0index", normal(3, 3), normal(3), [0, 2, 5], grad=False)
sample(
    "pick",
    normal(2, 3),
    [0, 5],
    mode=each("clip", "wrap"),
    keepdims=each(False, True),
    numeric=False,
)
sample("pick", normal(2, 3), [-1, 4], mode=each("clip", "wrap"), numeric=False)
sample("pick", normal(2, 3), [0, 1, 1], axis=0, numeric=False)
sample("pick", normal(2, 3), [[0, 1, 1]], axis=0, keepdims=each(False, True), numeric=False)
sample("pick", normal(2, 3, 4), [[0, 1, 2], [3, 2, 1]], numeric=False)
sample("pick", normal(2, 3, 4), np.array([[0, 1, 2, 0], [2, 2, 1, 0]], dtype="int32"), axis=1)
sample("pick", normal(3), [1], numeric=False)
sample("where", [[1, 0, 1], [0, 0, 2]], normal(2, 3), normal(2, 3), numeric=False)
sample("where", [1, 0], normal(2, 3), normal(2, 3), numeric=False)
sample("where", np.array([0, 1], dtype="int32"), normal(2, 2, 3), normal(2, 2, 3))
sample("where", [0.5, -1, 0], normal(3), normal(3), numeric=False)
sample("gather_nd", normal(3, 4), whole)
sample("scatter_nd", normal(2), whole, shape=(3, 2))
sample(
    "_contrib_index_copy", normal(4, 2), np.array([2, 0], dtype="int64"), normal(2, 2), grad=False
)
