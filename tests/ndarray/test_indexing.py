"""Reading and writing parts of arrays: lists of indices, alone and beside slices and numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mxnet import nd

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
def test_tuples_inside_a_key_are_lists_of_indices(key):
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
def test_lists_beside_slices_and_numbers(key):
    values = np.arange(24, dtype="float32").reshape(2, 3, 4)
    array, expected = nd.array(values), values[key]
    np.testing.assert_array_equal(array[key].asnumpy(), expected)
    new = np.arange(expected.size, dtype="float32").reshape(expected.shape) + 100
    array[key] = new
    values[key] = new
    np.testing.assert_array_equal(array.asnumpy(), values)


@pytest.mark.parametrize("key", [[0, 2], (slice(None), [1, 0]), slice(1, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_values_take_the_type_of_the_array(key, dtype):
    whole = np.arange(np.zeros((3, 2))[key].size).reshape(np.zeros((3, 2))[key].shape)
    expected = np.zeros((3, 2), dtype)
    expected[key] = whole
    for value in (whole, whole.tolist(), nd.array(whole), whole.astype("float64")):
        array = nd.zeros((3, 2), dtype=dtype)
        array[key] = value
        np.testing.assert_array_equal(array.asnumpy(), expected)


def test_lists_that_do_not_fit_together():
    with pytest.raises(IndexError, match="shape mismatch"):
        nd.zeros((2, 3, 4))[[0, 1], [0, 1, 2], 0]


def test_tuples_inside_a_key_stay_in_range():
    with pytest.raises(IndexError):
        nd.zeros((2, 3))[0, (1, 3)]
