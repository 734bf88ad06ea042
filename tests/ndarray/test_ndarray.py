"""NDArray: indexing, operators, recorded writes, and results of MXNet 1.9.1."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import mxnet as mx
from mxnet import autograd, nd
from mxnet.error import ShapeError
from tests.arrays import check
from tests.batches import check_each
from tests.expressions import Expressions
from tests.golden.record.array_expressions import EXPRESSIONS, SETUP, WRITING


def test_format_of_one_element_arrays():
    assert f"{nd.array([1.23456]):.3f}" == "1.235"
    assert f"{nd.array(7, dtype='int32'):05d}" == "00007"
    assert f"{nd.ones((1,))}" == str(nd.ones((1,)))
    with pytest.raises(TypeError, match="one element"):
        f"{nd.ones((2,)):.3f}"


def test_reductions_of_asnumpy_are_numpy_scalars():
    one = nd.array([4.0]).asnumpy()
    for number in (one.sum(), one.mean(), one.max(), np.sum(one), one.dot(one), np.median(one)):
        assert type(number) is np.float32
        assert hash(number) == hash(float(number))
    assert type(one.argmax()) is np.int64
    assert float(np.sqrt(one)) == float(one / 2) == 2.0
    assert repr(0.5 * one) == "array([2.], dtype=float32)"


def test_matmul_operator():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose((nd.array(a) @ nd.array(b)).asnumpy(), a @ b)
    np.testing.assert_allclose((nd.array(a) @ nd.array(b[:, 0])).asnumpy(), a @ b[:, 0])
    stack = np.arange(24.0).reshape(2, 3, 4)
    left = nd.array(stack)
    np.testing.assert_allclose(
        (left @ nd.array(stack.transpose(0, 2, 1))).asnumpy(), stack @ stack.transpose(0, 2, 1)
    )
    with pytest.raises(ShapeError, match="@ multiplies matrices"):
        left @ nd.array(b)
    with pytest.raises(TypeError):
        nd.array(a) @ 3


def test_matmul_operator_gradient():
    x = nd.ones((1, 2))
    x.attach_grad()
    with mx.autograd.record():
        y = x @ nd.array([[1.0], [2.0]])
    y.backward()
    assert x.grad.asnumpy().tolist() == [[1, 2]]


def test_numpy_method_equals_asnumpy():
    assert nd.ones((2,)).numpy().tolist() == [1, 1]


def test_astype_accepts_an_array_as_dtype():
    """Sockeye calls ``output.astype(label)``."""
    assert mx.nd.ones(2).astype(mx.nd.ones(1, dtype="int32")).dtype == np.int32
    assert mx.nd.ones(2).astype(np.ones(1)).dtype == np.float64


# -- advanced indexing and assignment -----------------------------------------------------------


KEYS = [
    (0, (0, 1)),
    ((0, 1), (1, 2)),
    ([0, 1], (1, 2)),
    (slice(None), (1, 2)),
    ((0, 1),),
    (((0, 1),), 0),
    (0, ((0, 1), (1, 2))),
    (slice(None, None, -1), (0, 2)),
    (slice(None, None, -1), range(2)),
    (Ellipsis, (3, 0)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_tuples_in_a_key_are_advanced_indices(key):
    values = np.arange(24, dtype="float32").reshape(2, 3, 4)
    array = nd.array(values)
    np.testing.assert_array_equal(array[key].asnumpy(), values[key])
    array[key] = -1
    values[key] = -1
    np.testing.assert_array_equal(array.asnumpy(), values)


BACK = slice(None, None, -1)
COLUMN = np.array([[1], [0]])
MIXED = [
    (BACK, [0, 2]),
    ([0, 1], BACK),
    ([0, 1], slice(None, None, -2), [1, 2]),
    (BACK, [0, 1, 2], slice(3, 0, -2)),
    (0, BACK, [1, 2]),
    (None, BACK, [1, 2]),
    (0, slice(None), [1, 2]),
    ([0, 1], slice(None), 2),
    (slice(None), 1, [3, 0]),
    (0, None, [2, 0], 3),
    (COLUMN, BACK, [1, 2]),
    (BACK, COLUMN),
    (1, COLUMN, BACK),
    (COLUMN, 0, slice(3, None, -2)),
    (BACK, BACK, [1, 3]),
    ([0, 1], None, BACK),
]


@pytest.mark.parametrize("key", MIXED, ids=lambda key: str(key).replace("\n", ""))
def test_keys_can_mix_lists_slices_and_numbers(key):
    values = np.arange(24, dtype="float32").reshape(2, 3, 4)
    array, expected = nd.array(values), values[key]
    np.testing.assert_array_equal(array[key].asnumpy(), expected)
    new = np.arange(expected.size, dtype="float32").reshape(expected.shape) + 100
    array[key] = new
    values[key] = new
    np.testing.assert_array_equal(array.asnumpy(), values)


@pytest.mark.parametrize("key", [[0, 2], (slice(None), [1, 0]), slice(1, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_assigned_values_are_cast_to_the_dtype_of_the_array(key, dtype):
    whole = np.arange(np.zeros((3, 2))[key].size).reshape(np.zeros((3, 2))[key].shape)
    expected = np.zeros((3, 2), dtype)
    expected[key] = whole
    for value in (whole, whole.tolist(), nd.array(whole), whole.astype("float64")):
        array = nd.zeros((3, 2), dtype=dtype)
        array[key] = value
        np.testing.assert_array_equal(array.asnumpy(), expected)


def test_index_lists_of_different_lengths_raise():
    with pytest.raises(IndexError, match="shape mismatch"):
        nd.zeros((2, 3, 4))[[0, 1], [0, 1, 2], 0]


def test_out_of_range_tuples_in_a_key_raise():
    with pytest.raises(IndexError):
        nd.zeros((2, 3))[0, (1, 3)]


# -- operators with scalars, which have a fast path ---------------------------------------------


def test_in_place_operators_on_overlapping_views():
    x = nd.array([1, 2, 3, 4])
    x[0:3] += x[1:4]
    assert x.asnumpy().tolist() == [3, 5, 7, 4]
    part = x[1:3]
    part += x[0:2]
    assert x.asnumpy().tolist() == [3, 8, 12, 4]


def test_in_place_operators_keep_memory_and_shape():
    x, y = nd.ones((2, 3)), nd.ones((3,))
    memory = x.handle.data_ptr()
    for _ in range(2):  # the second time the scalars are cached
        x += 1
        x *= 2.0
        x -= y
        x /= 2
    assert x.handle.data_ptr() == memory
    np.testing.assert_array_equal(x.asnumpy(), 2)
    with pytest.raises(mx.MXNetError, match="Shape inconsistent"):
        y += x


def test_in_place_operators_on_recorded_arrays_raise():
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = x * 2
        with pytest.raises(mx.MXNetError, match="Assigning to NDArrays"):
            y += 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_scalar_operands_give_equal_results_when_repeated(dtype):
    x = nd.array([1, 2, 3], dtype=dtype)
    for _ in range(3):
        assert (x + 1.5).asnumpy().tolist() == (np.array([1, 2, 3]) + 1.5).astype(dtype).tolist()
        assert (x > 2).asnumpy().tolist() == [0, 0, 1] and (x > 2).dtype == np.dtype(dtype)
        assert (3 - x).asnumpy().tolist() == [2, 1, 0]


def test_division_by_negative_zero():
    x = nd.array([1.0])
    for _ in range(2):
        assert (x / 0).asscalar() == math.inf and (x / -0.0).asscalar() == -math.inf
        assert (x / 0.0).asscalar() == math.inf


def test_comparisons_broadcast():
    x, y = nd.array([[1], [2]]), nd.array([1, 2])
    assert (x == y).asnumpy().tolist() == [[1, 0], [0, 1]]
    assert (x >= x).asnumpy().tolist() == [[1], [1]]


def test_mixed_dtypes_raise_also_after_cached_calls():
    x, y = nd.ones((2,)), nd.ones((2,), dtype="int32")
    assert (x + x).asnumpy().tolist() == [2, 2]
    for _ in range(2):
        with pytest.raises(mx.MXNetError, match=r"expected float32, got int32"):
            x + y
        with pytest.raises(mx.MXNetError, match=r"expected float32, got int32"):
            x += y


# -- assignments to whole arrays while recording ------------------------------------------------


def gradient(function, make=nd.array):
    x = make([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    return x.grad.asnumpy()


def written(key, make_zeros=nd.zeros, shape=(3,)):
    def write(x):
        y = make_zeros(shape)
        y[key] = x
        return y * y

    return write


@pytest.mark.parametrize("key", [slice(None), Ellipsis, slice(0, 3), ()])
@pytest.mark.parametrize("module", [mx.nd, mx.np], ids=["nd", "np"])
def test_assigning_a_whole_array_keeps_gradients(module, key):
    assert_array_equal(gradient(written(key, module.zeros), module.array), [2, 4, 6])


def test_assigned_array_is_broadcast_with_gradients():
    assert_array_equal(gradient(written(slice(None), shape=(2, 3))), [4, 8, 12])


FULL = slice(None)
WHOLE = (FULL, Ellipsis, (), None, (FULL, None), (Ellipsis, None), (FULL, FULL), slice(0, 3))
PARTS = (0, slice(0, 1), (FULL, 1), (0, None), [0, 1], np.array([0, 2]), slice(None, None, -1))


@pytest.mark.parametrize("module", [mx.nd, mx.np], ids=["nd", "np"])
def test_assignments_of_any_dtype_are_recorded_or_raise(module):
    def check(case):
        key, dtype, value_dtype = case
        x = module.zeros((3, 2), dtype=dtype)
        y = module.ones(np.zeros((3, 2))[key].shape, dtype=value_dtype)
        y.attach_grad()
        with autograd.record():
            x[key] = y
            z = x * 3
        z.backward()
        assert x.shape == (3, 2) and np.dtype(x.dtype) == dtype
        assert (x.asnumpy() == 1).all() and (y.grad.asnumpy() == 3).all()

    def refuse(case):
        with pytest.raises(mx.MXNetError, match="Inplace operations"):
            check(case)

    types = list(itertools.product(("float32", "int32"), repeat=2))
    check_each({f"{k} {t}": (k, *t) for k in WHOLE for t in types}, check)
    check_each({f"{k} {t}": (k, *t) for k in PARTS for t in types}, refuse)


def test_assigned_array_with_extra_leading_axes_keeps_gradients():
    def write(x):
        y = nd.zeros((3,))
        y[:] = x.reshape((1, 1, 3))
        return y * y

    assert_array_equal(gradient(write), [2, 4, 6])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_copyto_keeps_gradients(dtype):
    assert_array_equal(gradient(lambda x: x.copyto(nd.zeros(3, dtype=dtype)) * 2), [2, 2, 2])


def test_array_constructor_keeps_gradients():
    assert_array_equal(gradient(lambda x: nd.array(x, dtype="float64") * 3), [3, 3, 3])
    assert_array_equal(gradient(lambda x: mx.np.array(x) * 3, mx.np.array), [3, 3, 3])


@pytest.mark.parametrize("module", [mx.nd, mx.np], ids=["nd", "np"])
def test_assigning_a_recorded_array_to_a_slice_raises(module):
    with pytest.raises(mx.MXNetError, match="Inplace operations"):
        gradient(written(0, module.zeros, (2, 3)), module.array)


def test_assigning_constants_to_slices_keeps_gradients():
    def write(x):
        y = nd.zeros(3)
        y[:] = 1
        y[1] = x.detach()[1]
        return y * x

    assert_array_equal(gradient(write), [1, 2, 1])


def test_assignment_while_recording_updates_views():
    y = nd.zeros(3)
    part = y[1:]
    x = nd.array([1, 2, 3])
    x.attach_grad()
    with autograd.record():
        y[:] = x
    assert_array_equal(part.asnumpy(), [2, 3])


def test_assigning_incompatible_shapes_raises():
    with pytest.raises(ValueError, match=r"cannot assign an array of shape \(3,\)"):
        gradient(written(slice(None), shape=(2, 2)))


# -- expressions recorded from MXNet 1.9.1 ------------------------------------------------------


RECORDED = Expressions("array_expressions.json", SETUP, {"mx": mx, "nd": mx.nd, "np": np})


def test_expressions_match_mxnet() -> None:
    """Compare values, shapes, dtypes, reprs, or error types."""
    check_each({e: e for e in EXPRESSIONS}, RECORDED.check)


def test_assignments_match_mxnet() -> None:
    """Compare the array after a statement, also through a view."""
    pairs = {f"{s}; {e}": (e, s) for s, e in WRITING}
    check_each(pairs, lambda pair: RECORDED.check(*pair))


def test_broadcast_like_method_accepts_more_axes():
    y = nd.ones((2, 3))
    assert_array_equal(gradient(lambda x: x.broadcast_like(y) * y), [2, 2, 2])
    x = nd.array([1, 2, 3])
    assert_array_equal(x.broadcast_like(other=y).asnumpy(), [[1, 2, 3], [1, 2, 3]])
    assert_array_equal(x.broadcast_like(np.ones((2, 3))).asnumpy(), [[1, 2, 3], [1, 2, 3]])
    with pytest.raises(mx.MXNetError, match="number of axes must be equal"):
        nd.broadcast_like(x, y)


def test_tostype_default_returns_a_copy():
    x = nd.ones((2,))
    y = x.tostype("default")
    y[:] = 5
    check(x, 1)


def test_assignment_between_overlapping_slices_copies_the_old_values():
    x = nd.array([1, 2, 3, 4])
    x[:-1] = x[1:]
    check(x, [2, 3, 4, 4])


def test_copyto_between_overlapping_slices_copies_the_old_values():
    x = nd.array([1, 2, 3, 4])
    x[1:].copyto(x[:-1])
    check(x, [2, 3, 4, 4])


SLICES = [
    ((2, 2), lambda a: a[::2], [5, 5, 1, 1]),
    ((2, 2), lambda a: a[...], [5, 5, 5, 5]),
    ((2, 2), lambda a: a[..., 0:1], [1, 1, 1, 1]),
    ((1, 4), lambda a: a[:, 1:3], [1, 5, 5, 1]),
    ((2, 4), lambda a: a[0:1, 1:3], [1, 5, 5, 1, 1, 1, 1, 1]),
    ((2, 4), lambda a: a[1, 1:3], [1, 1, 1, 1, 1, 5, 5, 1]),
    ((2, 1), lambda a: a[:, None], [5, 5]),
    ((3, 2), lambda a: a[::-1], [1, 1, 1, 1, 1, 1]),
    ((1, 2), lambda a: a[::-1], [5, 5]),
    ((2, 1), lambda a: a[:, ::-1], [5, 5]),
    ((3, 2), lambda a: a[1::-3], [1, 1, 5, 5, 1, 1]),
]


@pytest.mark.parametrize(("shape", "part", "expected"), SLICES)
def test_only_contiguous_slices_share_memory(shape, part, expected):
    x = nd.ones(shape)
    part(x)[:] = 5
    check(x, expected)
