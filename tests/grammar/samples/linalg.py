"""Rows for mxnet/ops/tensor/linalg.py."""

from __future__ import annotations

import numpy as np

from tests.grammar.sampling import each, normal, sample

TIGHT = {"rtol": 1e-9, "atol": 1e-11}
DOUBLE = "float64"


def positive(*batch: int, size: int = 3, seed: int = 0, dtype: str = DOUBLE) -> np.ndarray:
    """Symmetric positive definite matrices with well separated eigenvalues."""
    rng = np.random.RandomState(seed)
    q, _ = np.linalg.qr(rng.standard_normal((size, size)))
    values = np.arange(1.0, size + 1) + rng.uniform(0, 0.3, (*batch, size))
    # Rounded, so that results are equal for every LAPACK.
    return np.round(np.matmul(q * values[..., None, :], q.T), 3).astype(dtype)


def triangular(*batch: int, size: int = 3, seed: int = 1, dtype: str = DOUBLE) -> np.ndarray:
    """Matrices with a dominant diagonal, and no zeros."""
    rng = np.random.RandomState(seed)
    made = rng.uniform(-1, 1, (*batch, size, size)) + 2 * np.eye(size)
    return np.round(made, 3).astype(dtype)


# products
for dtype, close in (("float32", {}), (DOUBLE, TIGHT)):
    for batch in ((), (2,)):
        left, right = normal(*batch, 2, 3, dtype=dtype), normal(*batch, 3, 4, dtype=dtype)
        sample("_linalg_gemm2", left, right,
               alpha=each(1.0, -0.5), **close)  # fmt: skip
        sample("_linalg_gemm", left, right, normal(*batch, 2, 4, dtype=dtype),
               alpha=each(1.0, 2.0), beta=each(1.0, -0.5), **close)  # fmt: skip
        sample("_linalg_syrk", normal(*batch, 2, 3, dtype=dtype), transpose=each(False, True),
               alpha=each(1.0, 0.5), **close)  # fmt: skip
        sample("_linalg_trmm", triangular(*batch, dtype=dtype), normal(*batch, 3, 3, dtype=dtype),
               transpose=each(False, True), rightside=each(False, True), lower=each(True, False),
               alpha=each(1.0, 2.0), **close)  # fmt: skip
        sample("_linalg_trsm", triangular(*batch, dtype=dtype), normal(*batch, 3, 3, dtype=dtype),
               transpose=each(False, True), rightside=each(False, True), lower=each(True, False),
               alpha=each(1.0, 2.0), **close)  # fmt: skip
sample("_linalg_gemm2", normal(3, 2, dtype=DOUBLE), normal(4, 3, dtype=DOUBLE), transpose_a=True,
       transpose_b=True, **TIGHT)  # fmt: skip
sample("_linalg_gemm2", normal(3, 3, dtype=DOUBLE), normal(3, 3, dtype=DOUBLE),
       transpose_a=each(False, True), transpose_b=each(False, True), **TIGHT)  # fmt: skip
sample("_linalg_gemm2", normal(2, 5, 2, 3, dtype=DOUBLE), normal(3, 5, 2, 4, dtype=DOUBLE),
       axis=each(0, -4), **TIGHT)  # fmt: skip
sample("_linalg_gemm2", normal(2, 3, 5, 3, dtype=DOUBLE), normal(2, 3, 5, 3, dtype=DOUBLE),
       axis=1, transpose_b=each(True, False), **TIGHT)  # fmt: skip
sample("_linalg_gemm", normal(2, 5, 3, dtype=DOUBLE), normal(3, 5, 4, dtype=DOUBLE),
       normal(2, 5, 4, dtype=DOUBLE), axis=0, **TIGHT)  # fmt: skip
sample("_linalg_gemm", normal(3, 3, dtype=DOUBLE), normal(3, 3, dtype=DOUBLE),
       normal(3, 3, dtype=DOUBLE), transpose_a=each(False, True), transpose_b=each(False, True),
       **TIGHT)  # fmt: skip
sample("_linalg_trmm", triangular(), normal(3, 2, dtype=DOUBLE), **TIGHT)
sample("_linalg_trsm", triangular(), normal(2, 3, dtype=DOUBLE), rightside=True, **TIGHT)

# factorisations, inverse, determinant
for matrices in (positive(), positive(2), positive(2, 2, size=2), positive(size=1)):
    for name in ("inverse", "det", "slogdet", "sumlogdiag"):
        sample(f"_linalg_{name}", matrices, **TIGHT)
        sample(f"_linalg_{name}", matrices.astype("float32"))
    # Numeric gradients do not keep matrices symmetric.
    sample("_linalg_potrf", matrices, numeric=False, **TIGHT)
    sample("_linalg_potrf", matrices.astype("float32"), numeric=False)
    sample("_linalg_syevd", matrices, numeric=False, rtol=1e-8, atol=1e-10)
    sample("_linalg_syevd", matrices.astype("float32"), numeric=False, rtol=1e-3, atol=1e-4)
for matrices in (triangular(), triangular(2), triangular(2, size=2)):
    sample("_linalg_potri", matrices, **TIGHT)
    sample("_linalg_potri", matrices.astype("float32"))
    for name in ("inverse", "det", "slogdet"):
        sample(f"_linalg_{name}", matrices, **TIGHT)
sample("_linalg_potrf", np.array([[4.0, 9.0], [1.0, 3.0]]), numeric=False, **TIGHT)
sample("_linalg_syevd", np.array([[1.0, 0.0], [0.0, 1.0]]), numeric=False, rtol=1e-6)
sample("_linalg_det", np.ones((2, 2)), numeric=False, **TIGHT)
sample("_linalg_slogdet", np.ones((2, 2)), numeric=False, **TIGHT)
sample("_linalg_gelqf", normal(2, 3, dtype=DOUBLE), **TIGHT)
sample("_linalg_gelqf", normal(2, 3, 3, dtype=DOUBLE), **TIGHT)
sample("_linalg_gelqf", normal(2, 4))

# diagonals and triangles
for batch in ((), (2,), (2, 1)):
    sample("_linalg_extractdiag", normal(*batch, 3, 3, dtype=DOUBLE), offset=each(0, 1, -2),
           **TIGHT)  # fmt: skip
    sample("_linalg_makediag", normal(*batch, 3, dtype=DOUBLE), offset=each(0, 1, -2), **TIGHT)
    sample("_linalg_extracttrian", normal(*batch, 3, 3, dtype=DOUBLE), offset=each(0, 1, -1),
           lower=each(True, False), **TIGHT)  # fmt: skip
    sample("_linalg_maketrian", normal(*batch, 6, dtype=DOUBLE), offset=each(0, 1, -1),
           lower=each(True, False), **TIGHT)  # fmt: skip
for name in ("extractdiag", "makediag", "extracttrian"):
    sample(f"_linalg_{name}", normal(3, 3))
sample("_linalg_maketrian", normal(2, 3))
