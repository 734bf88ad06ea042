"""Rows of operators that order and count."""

import numpy as np

from tests.grammar.sampling import distinct, each, normal, sample

ties = [[3, 1, 2, 3], [2, 2, 1, 2]]

sample("sort", distinct(3, 4), axis=each(0, 1, -1), is_ascend=each(True, False))
sample("sort", distinct(3, 4), axis=None, is_ascend=each(True, False), grad=False)
sample("sort", np.array([3, 1, 2], dtype="int32"), grad=False)
sample("argsort", distinct(3, 4), axis=each(None, 0, -1), is_ascend=each(True, False), grad=False)
sample(
    "argsort", ties, axis=each(None, 0, -1), is_ascend=each(True, False), dtype="int32", grad=False
)
sample("topk", distinct(3, 5), k=each(1, 3, 0, 5))
sample(
    "topk",
    distinct(4, 5),
    k=2,
    axis=each(None, 0, 1),
    ret_typ=each("value", "both"),
    is_ascend=each(True, False),
)
sample(
    "topk",
    distinct(4, 5),
    k=2,
    axis=each(None, 0, 1),
    ret_typ=each("indices", "mask"),
    is_ascend=each(True, False),
    grad=False,
)
sample(
    "topk",
    ties,
    k=2,
    ret_typ=each("indices", "value", "mask"),
    dtype=each("int32", "float64"),
    grad=False,
)
sample("topk", distinct(2, 40), k=3, ret_typ="both", dtype="int64", grad=False)
sample("topk", np.array([3, 1, 2], dtype="int32"), k=2, ret_typ="both", grad=False)
sample(
    "_histogram",
    [0, 1, 2, 2, 5, 7, -1],
    bin_cnt=each(3, 4),
    range=each((0, 5), (-1, 6)),
    grad=False,
)
sample("_histogram", [0, 1, 2, 2, 5, 7, -1], [0, 2, 3, 5], grad=False)
sample("_histogram", np.array([0, 1, 2, 2, 5], dtype="int32"), bin_cnt=3, range=(0, 5), grad=False)
sample("_histogram", normal(20, dtype="float64"), bin_cnt=5, range=(-2, 2), grad=False)
