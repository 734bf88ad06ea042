"""Rows of operators that join and split arrays, and of matrix products."""

from tests.grammar.sampling import each, integers, normal, sample

sample("Concat", normal(2, 3), normal(2, 3), dim=each(0, 1, -1))
sample("Concat", normal(2, 1, 2), normal(2, 3, 2), normal(2, 2, 2))
sample("Concat", normal(2, 3))
sample(
    "Concat",
    integers(0, 9, 2, 3, dtype="int32"),
    integers(0, 9, 1, 3, dtype="int32"),
    dim=0,
    grad=False,
)
sample("_rnn_param_concat", normal(3), normal(2), dim=0)
sample("stack", normal(2, 3), normal(2, 3), axis=each(0, 1, 2, -1))
sample("stack", normal(2))
sample("SliceChannel", normal(2, 4), num_outputs=each(1, 2, 4))
sample("SliceChannel", normal(2, 3, 4), num_outputs=3, axis=1, squeeze_axis=each(True, False))
sample("SliceChannel", normal(2, 3), num_outputs=2, axis=-2, squeeze_axis=True)
sample("_split_v2", normal(2, 5), indices=each((0, 1, 3), (0, 0, 2), (0, 4)), axis=1)
sample("_split_v2", normal(2, 6), indices=(), sections=each(1, 2, 3), axis=1)
sample("_split_v2", normal(2, 3, 2), indices=(), sections=3, axis=-2, squeeze_axis=True)
sample("_split_v2", normal(3, 2), indices=(0, 1, 2), axis=0, squeeze_axis=True)
sample("khatri_rao", normal(2, 3), normal(4, 3), grad=False)
sample("khatri_rao", normal(2, 3), normal(1, 3), normal(3, 3), grad=False)

sample("dot", normal(3), normal(3))
sample("dot", normal(2, 3), normal(3, 4))
sample("dot", normal(3, 2), normal(3, 4), transpose_a=True)
sample("dot", normal(2, 3), normal(4, 3), transpose_b=True)
sample("dot", normal(3, 2), normal(4, 3), transpose_a=True, transpose_b=True)
sample("dot", normal(2, 3), normal(3), transpose_b=each(False, True))
sample("dot", normal(2), normal(2, 3), transpose_a=each(False, True))
sample("dot", normal(2), normal(3, 2), transpose_b=True)
sample("dot", normal(2, 3), normal(2), transpose_a=True)
sample("dot", normal(2, 2, 3), normal(3, 2, 2))
sample("dot", normal(3, 2, 2), normal(2, 2, 3), transpose_a=True, transpose_b=True)
sample("dot", normal(2, 2, 3), normal(3))
sample("dot", normal(2), normal(2, 2, 3))
sample("dot", normal(2, 3, dtype="float64"), normal(3, 2, dtype="float64"))
sample("batch_dot", normal(2, 3, 4), normal(2, 4, 2))
sample("batch_dot", normal(2, 4, 3), normal(2, 4, 2), transpose_a=True)
sample("batch_dot", normal(2, 3, 4), normal(2, 2, 4), transpose_b=True)
sample("batch_dot", normal(2, 4, 3), normal(2, 2, 4), transpose_a=True, transpose_b=True)
sample("batch_dot", normal(2, 2, 3, 4), normal(2, 2, 4, 2))
