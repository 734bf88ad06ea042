"""NumPy's functions on `mx.np` arrays, and functions that fall back to NumPy."""

from __future__ import annotations

import functools

import numpy as onp
import pytest

from mxnet import autograd, np
from mxnet._compat.numpy_dispatch_protocol import (
    _NUMPY_ARRAY_FUNCTION_LIST,
    _NUMPY_ARRAY_UFUNC_LIST,
)

UNARY = [n for n in _NUMPY_ARRAY_UFUNC_LIST if getattr(getattr(onp, n), "nin", 0) == 1]
BINARY = [n for n in _NUMPY_ARRAY_UFUNC_LIST if getattr(getattr(onp, n), "nin", 0) == 2]


@pytest.mark.parametrize("name", UNARY)
def test_unary_numpy_ufuncs_return_np_arrays(name: str) -> None:
    x = np.array([0.25, 0.5]) if name not in ("arccosh",) else np.array([1.5, 2.0])
    x = x.astype("int32") if name in ("invert", "bitwise_not") else x
    out = getattr(onp, name)(x)
    assert type(out) is np.ndarray
    onp.testing.assert_allclose(out.asnumpy(), getattr(onp, name)(x.asnumpy()), rtol=1e-5)


@pytest.mark.parametrize("name", BINARY)
def test_binary_numpy_ufuncs_return_np_arrays(name: str) -> None:
    integers = name in ("lcm", "bitwise_and", "bitwise_or", "bitwise_xor")
    x, y = np.array([4.0, 2.0]), np.array([2.0, 3.0])
    if integers:
        x, y = x.astype("int32"), y.astype("int32")
    out = getattr(onp, name)(x, y)
    assert type(out) is np.ndarray
    onp.testing.assert_allclose(
        out.asnumpy(), getattr(onp, name)(x.asnumpy(), y.asnumpy()), rtol=1e-5
    )


@pytest.mark.parametrize("name", _NUMPY_ARRAY_FUNCTION_LIST)
def test_functions_of_the_dispatch_list_exist(name: str) -> None:
    assert callable(functools.reduce(getattr, name.split("."), np))


def test_numpy_functions_return_np_arrays_with_gradients() -> None:
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = onp.sum(onp.stack([x, x]) * onp.mean(x))
    y.backward()
    assert type(y) is np.ndarray
    assert x.grad.tolist() == [6, 6]


def test_mixing_with_numpy_arrays_raises() -> None:
    with pytest.raises(TypeError, match="numpy"):
        np.ones(2) + onp.ones(2)
    with pytest.raises(TypeError):
        onp.concatenate([np.ones(2), onp.ones(2)])


def test_fallbacks_compute_with_numpy_and_return_np_arrays() -> None:
    x = np.array([3.0, 1.0, 2.0])
    assert type(np.searchsorted(np.sort(x), x)) is np.ndarray
    assert float(onp.median(x)) == 2
    assert np.isclose(x, x).tolist() == [True, True, True]


def test_fallbacks_convert_fields_of_named_tuples() -> None:
    result = np.linalg.qr(np.eye(2))
    assert type(result.Q) is np.ndarray and type(result[1]) is np.ndarray


def test_fallbacks_while_recording_raise() -> None:
    x = np.ones(2)
    with autograd.record(), pytest.raises(ValueError, match="interp"):
        np.interp(x, x, x)


def test_numpy_functions_that_modify_their_argument_raise() -> None:
    with pytest.raises(TypeError, match="copyto"):
        onp.copyto(np.ones(2), np.zeros(2))


def test_keywords_of_old_numpy_versions() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    assert float(np.nanpercentile(x, 50, interpolation="lower")) == 2
    assert np.corrcoef(np.stack([x, -x]), bias=True).shape == (2, 2)
    with pytest.raises(RuntimeError, match="numpy_financial"):
        np.npv(0.1, [1, 2])


def test_multiple_results_have_the_container_type_of_numpy() -> None:
    x = np.eye(2)
    for function, arrays in ((onp.meshgrid, (x[0], x[0])), (onp.atleast_2d, (x, x))):
        assert type(function(*arrays)) is type(function(*(a.asnumpy() for a in arrays)))
    assert type(onp.linalg.slogdet(x)) is type(onp.linalg.slogdet(onp.eye(2)))
    assert onp.linalg.eigh(x)[0].tolist() == [1, 1]


def test_numpy_functions_with_different_semantics_use_numpy() -> None:
    assert onp.linalg.svd(np.ones((3, 2)))[0].shape == (3, 3)
    assert onp.ldexp(np.ones(2), np.array([1, 2], dtype="int32")).tolist() == [2, 4]


def test_lstsq_accepts_all_values_of_rcond() -> None:
    for options in ({}, {"rcond": "warn"}, {"rcond": None}):
        assert np.linalg.lstsq(np.eye(2), np.ones(2), **options)[0].tolist() == [1, 1]


def test_numpy_scalars_do_not_promote_arrays() -> None:
    x = np.array([5, 3], dtype="int32")
    assert (x // onp.int64(2)).dtype == "int32"
    assert (np.array([5.0], dtype="float16") // onp.float32(2)).dtype == "float16"


@pytest.mark.parametrize("name", ["greater", "less_equal", "equal", "not_equal", "add", "hypot"])
def test_numpy_scalars_as_left_operands(name: str) -> None:
    """NumPy passes 0-d arrays, so `max(numpy_scalar, array)` works."""
    x = np.array([1.0, 2.0])
    for number in (onp.float32(2), onp.int64(2), onp.array(2.0)):
        out = getattr(onp, name)(number, x)
        assert type(out) is np.ndarray
        onp.testing.assert_allclose(out.asnumpy(), getattr(onp, name)(2, x.asnumpy()), rtol=1e-6)
    assert max(np.array(1.0), onp.float32(2)) == 2
    assert max(onp.float32(1), np.array(2.0)) == 2
