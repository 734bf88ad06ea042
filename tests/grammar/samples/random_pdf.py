"""Rows for mxnet/ops/tensor/random_pdf.py."""

from __future__ import annotations

import numpy as np

from tests.grammar.sampling import each, integers, normal, sample, uniform

# 1.9.1 keeps pi and its digamma in single precision, even for float64.
CLOSE = {"rtol": 2e-6, "atol": 2e-6}

for dtype, close in (("float32", {}), ("float64", CLOSE)):
    for leading, rest in (((2,), (4,)), ((2, 3), ()), ((2, 1), (2, 2))):
        shape = (*leading, *rest)
        positive = uniform(0.3, 3.0, *leading, dtype=dtype)
        points = uniform(0.2, 4.0, *shape, dtype=dtype)
        counts = integers(0, 6, *shape, dtype=dtype)
        below_one = uniform(0.1, 0.9, *leading, dtype=dtype)
        log = each(False, True)
        sample("_random_pdf_uniform", points, below_one, uniform(1.5, 4.0, *leading, dtype=dtype),
               is_log=log, **close)  # fmt: skip
        sample("_random_pdf_normal", normal(*shape, dtype=dtype), normal(*leading, dtype=dtype),
               positive, is_log=log, **close)  # fmt: skip
        sample("_random_pdf_gamma", points, positive, positive, is_log=log, **close)
        sample("_random_pdf_exponential", points, positive, is_log=log, **close)
        # Counts carry no gradient.
        discrete = {"is_log": log, "numeric": False, **close}
        sample("_random_pdf_poisson", counts, positive, **discrete)
        sample("_random_pdf_negative_binomial", counts, integers(1, 5, *leading, dtype=dtype),
               below_one, **discrete)  # fmt: skip
        sample("_random_pdf_generalized_negative_binomial", counts, positive, below_one,
               **discrete)  # fmt: skip
    simplex = np.array([[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]], dtype=dtype)
    sample("_random_pdf_dirichlet", simplex, uniform(0.5, 3.0, 1, 3, dtype=dtype),
           is_log=each(False, True), **close)  # fmt: skip
    sample("_random_pdf_dirichlet", simplex, uniform(0.5, 3.0, 1, 2, 3, dtype=dtype),
           is_log=each(False, True), **close)  # fmt: skip
    sample("_random_pdf_dirichlet", simplex[0], uniform(0.5, 3.0, 3, dtype=dtype),
           is_log=each(False, True), **close)  # fmt: skip
