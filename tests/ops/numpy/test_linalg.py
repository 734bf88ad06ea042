"""Decompositions, up to the signs and orders that LAPACK chooses."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.util import use_np

linalg = mx.nd._internal
GENERAL = np.array([[4, 2, 1], [1, 3, 0.5], [0.25, 1, 6]], "float32")
SYMMETRIC = np.array([[4, 2, 0.5], [2, 5, 1], [0.5, 1, 3]], "float32")


def test_svd_reconstructs_the_matrix() -> None:
    wide = GENERAL[:2]
    ut, values, v = (x.asnumpy() for x in linalg._npi_svd(mx.nd.array(wide)))
    np.testing.assert_allclose(ut @ np.diag(values) @ v, wide, atol=1e-5)
    np.testing.assert_allclose(v @ v.T, np.eye(2), atol=1e-5)


def test_svd_of_tall_matrices_raises() -> None:
    with pytest.raises(mx.MXNetError, match="must not exceed"):
        linalg._npi_svd(mx.nd.ones((3, 2)))


def test_eig_satisfies_its_definition() -> None:
    values, vectors = (x.asnumpy() for x in linalg._npi_eig(mx.nd.array(GENERAL)))
    np.testing.assert_allclose(GENERAL @ vectors, vectors * values, atol=1e-4)
    wanted = np.sort(np.linalg.eigvals(GENERAL))
    np.testing.assert_allclose(np.sort(values), wanted, rtol=1e-4)


def test_complex_eigenvalues_raise() -> None:
    rotation = mx.nd.array([[0, -1], [1, 0]])
    with pytest.raises(mx.MXNetError, match="complex"):
        linalg._npi_eigvals(rotation)


def test_largest_component_of_symmetric_eigenvectors_is_positive() -> None:
    _, vectors = linalg._npi_eigh(mx.nd.array(SYMMETRIC))
    vectors = vectors.asnumpy()
    largest = np.abs(vectors).argmax(0)
    assert (vectors[largest, range(3)] > 0).all()


def test_eigvalsh_gradient() -> None:
    """The sum of the eigenvalues is the trace."""
    a = mx.nd.array(SYMMETRIC)
    a.attach_grad()
    with mx.autograd.record():
        total = linalg._npi_eigvalsh(a).sum()
    total.backward()
    np.testing.assert_allclose(a.grad.asnumpy(), np.eye(3), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "int32", "uint8"])
@pytest.mark.parametrize(("ord", "wanted"), [(1, 6), (-1, 4), (np.inf, 7), (-np.inf, 3)])
def test_matrix_norms_keep_the_dtype(dtype, ord, wanted):
    x = mx.np.array([[3, 4], [1, 2]], dtype=dtype)
    made = mx.np.linalg.norm(x, ord=ord, axis=(0, 1))
    assert made.dtype == np.dtype(dtype)
    assert made.item() == wanted


@pytest.mark.parametrize(("first", "second"), [("float32", "float64"), ("float64", "float32")])
def test_solve_uses_the_common_dtype(first, second) -> None:
    a, b = mx.np.array(GENERAL, dtype=first), mx.np.array(np.ones(3), dtype=second)
    b.attach_grad()
    for solve in (mx.np.linalg.solve, mx.np.linalg.tensorsolve):
        with mx.autograd.record():
            x = solve(a, b)
        x.backward()
        assert (x.dtype, b.grad.dtype) == (np.float64, np.dtype(second))
        np.testing.assert_allclose(x.asnumpy(), np.linalg.solve(GENERAL, np.ones(3)), 1e-5)


assign_number = mx.nd._internal._npi_boolean_mask_assign_scalar
assign_values = mx.nd._internal._npi_boolean_mask_assign_tensor


def test_assign_number_writes_where_the_mask_is_true() -> None:
    x, mask = mx.nd.ones((2, 2)), mx.nd.array([0, 1], dtype="bool")
    assert assign_number(x, mask, value=7).asnumpy().tolist() == [[1, 1], [7, 7]]
    assert assign_number(x, mask, value=7, start_axis=1).asnumpy().tolist() == [[1, 7], [1, 7]]


def test_mask_assignment_with_out_works_in_place() -> None:
    x, mask = mx.nd.ones((2,)), mx.nd.array([0, 1], dtype="bool")
    assign_number(x, mask, value=7, out=x)
    assert x.asnumpy().tolist() == [1, 7]


def test_mask_assignment_of_values_in_order_or_broadcast() -> None:
    x, mask = mx.nd.zeros((2, 2)), mx.nd.array([[1, 0], [1, 1]], dtype="bool")
    in_order = assign_values(x, mask, mx.nd.array([5, 6, 7]))
    assert in_order.asnumpy().tolist() == [[5, 0], [6, 7]]
    assert assign_values(x, mask, mx.nd.array([5])).asnumpy().tolist() == [[5, 0], [5, 5]]


def test_mask_with_a_wrong_shape_raises() -> None:
    with pytest.raises(mx.MXNetError, match="does not fit"):
        assign_number(mx.nd.zeros((2,)), mx.nd.array([1, 0, 1], dtype="bool"), value=1)


def test_unique_sorts_nan_last() -> None:
    values, first, counts = mx.np.unique(
        mx.np.array([float("nan"), 1, float("nan"), 2, 1]), return_index=True, return_counts=True
    )
    assert values.asnumpy()[:2].tolist() == [1, 2]
    assert [v != v for v in values.asnumpy().tolist()] == [False, False, True, True]
    assert first.asnumpy().tolist() == [1, 3, 0, 2]
    assert counts.asnumpy().tolist() == [2, 1, 1, 1]


@use_np
def test_tensorsolve_output_shapes_for_single_elements() -> None:
    for shape, right, expected in (
        ((1, 1, 1), (1, 1, 1), (1, 1, 1)),
        ((1, 1), (1, 1), (1, 1)),
        ((1,), (1,), (1,)),
        ((1, 1), (1, 1, 1), (1,)),
        ((1, 1, 1), (1,), (1, 1)),
    ):
        solved = mx.np.linalg.tensorsolve(mx.np.full(shape, 4.0), mx.np.ones(right))
        assert solved.shape == expected and solved.reshape(-1).tolist() == [0.25]
