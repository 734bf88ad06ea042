"""Decompositions: what holds whatever signs and orders LAPACK chooses."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx

linalg = mx.nd._internal
GENERAL = np.array([[4, 2, 1], [1, 3, 0.5], [0.25, 1, 6]], "float32")
SYMMETRIC = np.array([[4, 2, 0.5], [2, 5, 1], [0.5, 1, 3]], "float32")


def test_singular_vectors_and_values_give_the_matrix_back() -> None:
    wide = GENERAL[:2]
    ut, values, v = (x.asnumpy() for x in linalg._npi_svd(mx.nd.array(wide)))
    np.testing.assert_allclose(ut @ np.diag(values) @ v, wide, atol=1e-5)
    np.testing.assert_allclose(v @ v.T, np.eye(2), atol=1e-5)


def test_svd_refuses_tall_matrices() -> None:
    with pytest.raises(mx.MXNetError, match="must not exceed"):
        linalg._npi_svd(mx.nd.ones((3, 2)))


def test_eigenvectors_are_only_scaled_by_the_matrix() -> None:
    values, vectors = (x.asnumpy() for x in linalg._npi_eig(mx.nd.array(GENERAL)))
    np.testing.assert_allclose(GENERAL @ vectors, vectors * values, atol=1e-4)
    wanted = np.sort(np.linalg.eigvals(GENERAL))
    np.testing.assert_allclose(np.sort(values), wanted, rtol=1e-4)


def test_complex_eigenvalues_are_an_error() -> None:
    rotation = mx.nd.array([[0, -1], [1, 0]])
    with pytest.raises(mx.MXNetError, match="complex"):
        linalg._npi_eigvals(rotation)


def test_largest_component_of_symmetric_eigenvectors_is_positive() -> None:
    _, vectors = linalg._npi_eigh(mx.nd.array(SYMMETRIC))
    vectors = vectors.asnumpy()
    largest = np.abs(vectors).argmax(0)
    assert (vectors[largest, range(3)] > 0).all()


def test_eigenvalues_have_gradients() -> None:
    """The sum of the eigenvalues is the trace."""
    a = mx.nd.array(SYMMETRIC)
    a.attach_grad()
    with mx.autograd.record():
        total = linalg._npi_eigvalsh(a).sum()
    total.backward()
    np.testing.assert_allclose(a.grad.asnumpy(), np.eye(3), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "int32", "uint8"])
@pytest.mark.parametrize(("ord", "wanted"), [(1, 6), (-1, 4), (np.inf, 7), (-np.inf, 3)])
def test_matrix_norms_by_sums_keep_the_data_type(dtype, ord, wanted):
    x = mx.np.array([[3, 4], [1, 2]], dtype=dtype)
    made = mx.np.linalg.norm(x, ord=ord, axis=(0, 1))
    assert made.dtype == np.dtype(dtype)
    assert made.item() == wanted


@pytest.mark.parametrize(("first", "second"), [("float32", "float64"), ("float64", "float32")])
def test_equations_are_solved_in_the_common_type(first, second) -> None:
    a, b = mx.np.array(GENERAL, dtype=first), mx.np.array(np.ones(3), dtype=second)
    b.attach_grad()
    for solve in (mx.np.linalg.solve, mx.np.linalg.tensorsolve):
        with mx.autograd.record():
            x = solve(a, b)
        x.backward()
        assert (x.dtype, b.grad.dtype) == (np.float64, np.dtype(second))
        np.testing.assert_allclose(x.asnumpy(), np.linalg.solve(GENERAL, np.ones(3)), 1e-5)
