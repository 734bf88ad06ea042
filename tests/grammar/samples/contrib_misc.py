"""Correlation and Hawkes processes."""

import numpy as np

from tests.grammar.sampling import each, normal, sample, uniform

_maps = (normal(2, 3, 6, 7), normal(2, 3, 6, 7))
sample("Correlation", *_maps, pad_size=each(0, 1, 3), max_displacement=each(1, 2))
sample(
    "Correlation",
    *_maps,
    pad_size=4,
    max_displacement=4,
    stride1=each(1, 2),
    stride2=each(1, 2),
    kernel_size=each(1, 3),
    is_multiply=each(True, False),
    numeric=False,
)
sample(
    "_contrib_hawkesll",
    uniform(1, 2, 3, 2),
    uniform(0.1, 0.5, 2),
    uniform(0.5, 2, 2),
    uniform(0, 1, 3, 2),
    uniform(0.1, 1, 3, 4),
    np.array([[0, 1, 0, 1], [1, 1, 0, 0], [0] * 4], "int32"),
    [4, 2, 1],
    [5, 4, 3],
    grad=False,
)
