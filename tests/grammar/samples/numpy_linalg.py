"""Rows for NumPy's linear algebra."""

import numpy as np

from tests.grammar.sampling import each, sample

SYMMETRIC = np.array([[4, 2, 0.5], [2, 5, 1], [0.5, 1, 3]], "float32")
BATCH = np.stack([SYMMETRIC, SYMMETRIC + np.eye(3, dtype="float32")])
GENERAL = np.array([[4, 2, 1], [1, 3, 0.5], [0.25, 1, 6]], "float32")
WIDE = np.array([[4, 2, 1], [2, 3, 5]], "float32")
RIGHT = np.array([[1, 2], [3, -1], [0.5, 4]], "float32")
LOOSE = {"rtol": 1e-3, "atol": 1e-4}

sample("_npi_cholesky", SYMMETRIC, numeric=False, **LOOSE)
sample("_npi_cholesky", BATCH, numeric=False, **LOOSE)
sample("_npi_cholesky", SYMMETRIC.astype("float64"), numeric=False, **LOOSE)
for matrix in (SYMMETRIC, BATCH, SYMMETRIC.astype("float64")):
    sample("_npi_eigvalsh", matrix, UPLO=each("L", "U"), grad=False, **LOOSE)
    sample("_npi_eigh", matrix, UPLO=each("L", "U"), grad=False, **LOOSE)
    sample("_npi_solve", matrix, RIGHT.astype(matrix.dtype) if matrix.ndim == 2 else BATCH, **LOOSE)
sample("_npi_eigvalsh", np.array([[4, 2], [2, 3]], "int32"), grad=False, **LOOSE)
sample("_npi_solve", GENERAL, np.array([1, 2, 3], "float32"), derived=True, **LOOSE)
sample("_npi_solve", np.array([[4, 2], [2, 3]], "int32"), np.array([1, 2], "int32"), grad=False)
for name in ("_npi_norm",):
    sample(name, GENERAL, ord=2, axis=None, flag=-2, **LOOSE)
    sample(
        name, GENERAL, ord=each(1, 2, -1, -2), axis=each(None, (0, 1), (1, 0)), grad=False, **LOOSE
    )
    sample(name, GENERAL, ord=each(1, 2, 3, -1), axis=each((0,), (1,)), flag=-1, **LOOSE)
    sample(
        name,
        GENERAL,
        ord=2,
        axis=each(None, (0, 1), (1,)),
        keepdims=each(False, True),
        flag=1,
        **LOOSE,
    )
    sample(name, GENERAL, ord=each(2, -2), axis=(0, 1), flag=0, grad=False, **LOOSE)
    sample(name, GENERAL, ord=2, axis=(0, 1), flag=2, grad=False, **LOOSE)
sample("_npi_pinv", WIDE, np.array(1e-5, "float32"), grad=False, **LOOSE)
sample("_npi_pinv", BATCH, np.array([1e-5, 1e-5], "float32"), grad=False, **LOOSE)
sample("_npi_pinv", SYMMETRIC, np.array(1e-5, "float32"), hermitian=True, grad=False, **LOOSE)
sample("_npi_pinv_scalar_rcond", WIDE, grad=False, **LOOSE)
sample("_npi_pinv_scalar_rcond", WIDE.T.copy(), rcond=each(1e-6, 0.5), grad=False, **LOOSE)
sample("_npi_tensorinv", GENERAL.reshape(3, 3, 1), ind=1, **LOOSE)
sample(
    "_npi_tensorinv", np.kron(np.eye(2), WIDE[:, :2]).astype("float32").reshape(2, 2, 4), **LOOSE
)
sample("_npi_tensorsolve", GENERAL, np.array([1, 2, 3], "float32"), **LOOSE)
sample("_npi_tensorsolve", GENERAL.reshape(3, 3, 1), np.array([1, 2, 3], "float32"), **LOOSE)
sample("_npi_tensorsolve", GENERAL, np.array([1, 2, 3], "float32"), a_axes=(0,), **LOOSE)
# Signs and orders of singular vectors and eigenvectors depend on LAPACK: values that do
# not depend on it are compared here, the rest in tests/ops/numpy.
sample("_npi_eigvals", np.array([[2, 1], [0, 3]], "float32"), grad=False, **LOOSE)
sample("_npi_eig", np.array([[2, 0], [0, 3]], "float32"), grad=False, **LOOSE)
sample("_npi_svd", np.array([[3, 0, 0], [0, 2, 0]], "float32"), grad=False, **LOOSE)

SQUARE = np.arange(9, dtype="float32").reshape(3, 3) * 0.37
for k in (-4, -1, 0, 1, 3):
    sample("_np_diag", SQUARE, k=k, grad=abs(k) < 3)
    sample("_np_diag", np.array([1.5, 2.5], "float32"), k=k)
    sample("_np_diagonal", SQUARE, offset=k, grad=abs(k) < 3)
    sample("_np_trace", SQUARE, offset=k, grad=abs(k) < 3)
    sample("_npi_tril", SQUARE, k=k)
sample("_np_diag", SQUARE[:2], k=each(-1, 0, 1))
sample("_np_diagflat", SQUARE[:2, :2], k=each(-1, 0, 2))
CUBE = np.arange(12, dtype="float32").reshape(2, 3, 2) * 0.3
sample("_np_diagonal", CUBE, axis1=each(0, 1), axis2=each(2, -1), offset=each(0, 1))
sample("_np_trace", CUBE, axis1=each(0, 1), axis2=each(2, -1))
sample("_np_trace", np.arange(4, dtype="int32").reshape(2, 2), grad=False)
sample("_npi_tril", CUBE, k=each(0, 1))
sample("_npi_tril", np.array([1.5, 2.5], "float32"))
sample("_npi_diag_indices_from", SQUARE, grad=False)
sample("_npi_diag_indices_from", np.zeros((2, 2, 2), "float32"), grad=False)
