"""Comparison helpers: tolerances by dtype, and error messages."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import test_utils as t

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = A + np.array([[0, -0.5, 0], [0, 0, 1]], dtype=np.float32)


def test_default_tolerances_of_dtypes():
    for dtype, rtol, atol in (
        ("float16", 1e-2, 1e-1),
        ("float32", 1e-4, 1e-3),
        ("float64", 1e-5, 1e-20),
        ("int32", 0, 0),
        ("bool", 0, 0),
    ):
        x = np.zeros(2, dtype)
        assert t.get_tols(x, x, None, None) == (rtol, atol)
    assert t.get_tols(np.zeros(2, "float16"), mx.nd.zeros(2), None, 0.5) == (1e-2, 0.5)
    assert t.get_tols(1.0, 2, None, None) == (1e-5, 1e-20)
    assert t.get_tolerance(A, {np.dtype("float32"): 0.5}, t.default_rtols()) == 0.5
    assert t.get_rtol() == 1e-5 and t.get_atol() == 1e-20 and t.get_etol() == 0
    eps = t.default_numeric_eps()
    assert [eps[np.dtype(d)] for d in ("float16", "float32", "float64")] == [2**-6, 2**-9, 2**-14]


def test_message_has_the_location_of_the_maximum_error(capsys):
    with pytest.raises(AssertionError) as raised:
        t.assert_almost_equal(mx.nd.array(A), mx.nd.array(B), names=("left", "right"))
    text = str(raised.value)
    assert "Error 625.000000 exceeds tolerance rtol=1.000000e-04, atol=1.000000e-03" in text
    assert "(mismatch 33.333333%)" in text
    assert "Location of maximum error: (1, 2), left=5.00000000, right=6.00000000" in text
    assert "ACTUAL: array([[0., 1., 2.]" in text and "DESIRED: array([[0. , 0.5, 2. ]" in text
    printed = capsys.readouterr().out
    assert "*** Maximum errors for vector of size 6:  rtol=0.0001, atol=0.001" in printed
    assert "  2: Error 476.190430  Location of error: (0, 1), left=1.0" in printed


def test_equal_within_tolerance_prints_nothing(capsys):
    t.assert_almost_equal(A, A + 1e-6)
    t.assert_almost_equal(A, A.astype(np.float16))
    t.assert_almost_equal(np.ones((0, 2)), np.ones((0, 2)))
    t.assert_almost_equal([1.0, 2.0], np.array([1.0, 2.0]))
    assert capsys.readouterr().out == ""


def test_comparison_of_nan_and_infinity():
    x = np.array([1, np.nan])
    with pytest.raises(AssertionError, match="Error nan"):
        t.assert_almost_equal(x, x)
    t.assert_almost_equal(x, x, equal_nan=True)
    t.assert_almost_equal(np.array([np.inf]), np.array([np.inf]))
    with pytest.raises(AssertionError):
        t.assert_almost_equal(np.array([np.inf]), np.array([1.0]))
    t.assert_almost_equal_ignore_nan(x, np.array([1.0, 2.0]))
    with pytest.raises(AssertionError):
        t.assert_almost_equal_ignore_nan(x, np.array([1.5, 2.0]))


def test_integers_are_compared_exactly():
    with pytest.raises(AssertionError, match="Error 100000000000000000000"):
        t.assert_almost_equal(np.array([1, 2]), np.array([1, 3]))


def test_comparison_of_different_shapes():
    with pytest.raises(AssertionError, match=r"a.shape = \(2, 3\) and b.shape = \(1, 3\)"):
        t.assert_almost_equal(A, B[:1], use_broadcast=False)
    t.assert_almost_equal(A, A[0] + np.array([[0], [3]], np.float32))
    with pytest.raises(ValueError, match="broadcast"):
        t.assert_almost_equal(A, A[:, :2])
    with pytest.raises(AssertionError, match=r"Error 9090.909091 exceeds"):
        t.assert_almost_equal(1.0, 1.1)


def test_assert_almost_equal_with_err():
    t.assert_almost_equal_with_err(A, B, etol=0.5)
    for etol in (None, 0.1):
        with pytest.raises(AssertionError, match="mismatch 33"):
            t.assert_almost_equal_with_err(A, B, etol=etol)


def test_almost_equal_same_and_same_array():
    assert t.almost_equal(A, A) and not t.almost_equal(mx.nd.array(A), mx.nd.array(B))
    assert t.same(A, mx.nd.array(A)) and not t.same(A, A[:1])
    x = mx.nd.ones((2, 2))
    assert t.same_array(x, x[:]) and not t.same_array(x, x.copy())
    assert not t.same_array(x, x.reshape((4,)))
    with pytest.raises(AssertionError):
        t.assert_allclose(np.array([1.0]), np.array([1.001]))


def test_bfloat16_is_compared_by_value():
    t.assert_almost_equal(mx.nd.ones((2,)).astype("bfloat16"), np.ones(2))


def test_compare_ndarray_tuple_and_same_symbol_structure():
    t.compare_ndarray_tuple((mx.nd.array(A), (None, mx.nd.array(B))), (A, (None, B)))
    with pytest.raises(AssertionError):
        t.compare_ndarray_tuple((A, (B,)), (A, (A,)))
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    assert t.same_symbol_structure(mx.sym.relu(x), mx.sym.relu(y))
    assert not t.same_symbol_structure(mx.sym.relu(x), mx.sym.sigmoid(x))
    assert not t.same_symbol_structure(x - y, x - x)


def test_assert_exception():
    t.assert_exception(lambda: 1 / 0, ZeroDivisionError)
    with pytest.raises(AssertionError, match="did not raise"):
        t.assert_exception(lambda: 1, ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        t.assert_exception(lambda: 1 / 0, TypeError)


class Descent:
    """A minimal optimizer."""

    def __init__(self, rate):
        self.rate = rate

    def create_state_multi_precision(self, index, weight):
        return weight.zeros_like()

    def update_multi_precision(self, index, weight, grad, state):
        rows = [(weight, grad, state)]
        if isinstance(index, list):
            rows = zip(weight, grad, state, strict=True)
        for w, g, s in rows:
            s += g
            w -= self.rate * g


class OneByOne(Descent):
    def update_multi_precision(self, index, weight, grad, state):
        assert isinstance(index, int)
        super().update_multi_precision(index, weight, grad, state)


def test_compare_optimizer_passes_lists_to_the_second_optimizer():
    t.compare_optimizer(OneByOne(0.1), Descent(0.1), [(3, 4), (2,)], "float32", ntensors=2)
    with pytest.raises(AssertionError):
        t.compare_optimizer(Descent(0.1), OneByOne(0.1), [(3, 4)], "float32")


def test_compare_optimizer():
    t.compare_optimizer(Descent(0.1), Descent(0.1), (3, 4), "float32")
    t.compare_optimizer(Descent(0.1), Descent(0.1), [(3, 4), (2,)], "float64", ntensors=2)
    with pytest.raises(AssertionError, match="Items are not equal"):
        t.compare_optimizer(Descent(0.1), Descent(0.5), (3, 4), "float32")
    with pytest.raises(AssertionError, match="ntensors"):
        t.compare_optimizer(Descent(0.1), Descent(0.1), (3, 4), "float32", ntensors=2)


@pytest.mark.filterwarnings("ignore:Storage fallback")
def test_same_array_of_sparse_arrays():
    for array in (mx.nd.sparse.zeros("csr", (2, 2)), mx.nd.ones((2, 2)).tostype("row_sparse")):
        assert mx.test_utils.same_array(array, array)
        assert not mx.test_utils.same_array(array, array.copy())


def test_compare_optimizer_passes_dense_copies_to_the_first():
    class Recording(mx.optimizer.Optimizer):
        def create_state(self, index, weight):
            return seen.append(weight.stype)

        def update(self, index, weight, grad, state):
            seen.append(grad.stype)

    for weight, grad in (("row_sparse", "row_sparse"), ("default", "row_sparse"), ("csr", "csr")):
        seen = []
        mx.test_utils.compare_optimizer(
            Recording(), Recording(), (3, 2), "float32", w_stype=weight, g_stype=grad
        )
        assert seen == ["default", "default", weight, grad]
